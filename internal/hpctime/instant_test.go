package hpctime_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("needs the tz database: %v", err)
	}
	return z
}

func TestParseInstant(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 30, 0, 0, zone(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		"now": "2026-11-21T17:30:00+01:00", "now+1hour": "2026-11-21T18:30:00+01:00", "now+2hours": "2026-11-21T19:30:00+01:00",
		"now+2h30m": "2026-11-21T20:00:00+01:00", "now+90minutes": "2026-11-21T19:00:00+01:00", "now+1day": "2026-11-22T17:30:00+01:00",
		"now+PT1H": "2026-11-21T18:30:00+01:00", "now+1-00:00:00": "2026-11-22T17:30:00+01:00", "now-10m": "2026-11-21T17:20:00+01:00",
		"now+1week": "2026-11-28T17:30:00+01:00", "now+1second": "2026-11-21T17:30:01+01:00",
		"now+10min": "2026-11-21T17:40:00+01:00", "now+2hr": "2026-11-21T19:30:00+01:00", "now+30sec": "2026-11-21T17:30:30+01:00",
		"18:00": "2026-11-21T18:00:00+01:00", "9:00": "2026-11-22T09:00:00+01:00", "17:30": "2026-11-22T17:30:00+01:00", "17:30:01": "2026-11-21T17:30:01+01:00",
		"noon": "2026-11-22T12:00:00+01:00", "midnight": "2026-11-22T00:00:00+01:00", "teatime": "2026-11-22T16:00:00+01:00",
		"today": "2026-11-21T00:00:00+01:00", "today 09:00": "2026-11-21T09:00:00+01:00", "tomorrow": "2026-11-22T00:00:00+01:00",
		"tomorrow 18:00": "2026-11-22T18:00:00+01:00", "tomorrow noon": "2026-11-22T12:00:00+01:00", "tomorrow 18:00:30": "2026-11-22T18:00:30+01:00",
		// That day is a Saturday.
		"9am": "2026-11-22T09:00:00+01:00", "6pm": "2026-11-21T18:00:00+01:00", "6:45PM": "2026-11-21T18:45:00+01:00", "12am": "2026-11-22T00:00:00+01:00", "12pm": "2026-11-22T12:00:00+01:00", "tomorrow 9am": "2026-11-22T09:00:00+01:00", "9 am": "2026-11-22T09:00:00+01:00",
		"friday 18:00": "2026-11-27T18:00:00+01:00", "Fri 9am": "2026-11-27T09:00:00+01:00", "friday": "2026-11-27T00:00:00+01:00", "sun 17:30": "2026-11-22T17:30:00+01:00",
		"saturday 18:00": "2026-11-21T18:00:00+01:00", "sat 17:30": "2026-11-28T17:30:00+01:00", "saturday": "2026-11-28T00:00:00+01:00", "next sat 18:00": "2026-11-28T18:00:00+01:00", "next Tue 14:00": "2026-11-24T14:00:00+01:00", "next tuesday": "2026-11-24T00:00:00+01:00",
		"2026-12-01": "2026-12-01T00:00:00+01:00", "2026-07-01 18:00": "2026-07-01T18:00:00+02:00", "2026-07-01T18:00": "2026-07-01T18:00:00+02:00",
		"2026-07-01 18:00:05": "2026-07-01T18:00:05+02:00", "2026-11-21T18:00:00Z": "2026-11-21T18:00:00Z", "2026-11-21T18:00:00-05:00": "2026-11-21T18:00:00-05:00",
		"2026-11-21 18:00:00+05:30": "2026-11-21T18:00:00+05:30", "2028-02-29": "2028-02-29T00:00:00+01:00",
	} {
		got, err := hpctime.ParseInstant(text, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s %v, want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
}

func TestParseRange(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 30, 0, 0, zone(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		"14:00–18:00": "11-22 14:00 to 11-22 18:00", "14:00-18:00": "11-22 14:00 to 11-22 18:00", "next Tue 14:00 – 18:00": "11-24 14:00 to 11-24 18:00", "fri 22:00-6am": "11-27 22:00 to 11-28 06:00",
		"2026-12-01 18:00 - 2026-12-02 06:00": "12-01 18:00 to 12-02 06:00", "friday-sunday": "11-27 00:00 to 11-29 00:00", "now-18:00": "11-21 17:30 to 11-21 18:00", "2026-12-01-2026-12-03": "12-01 00:00 to 12-03 00:00",
		"tomorrow 8am-now+1week": "11-22 08:00 to 11-29 08:00",
	} {
		from, to, err := hpctime.ParseRange(text, now)
		if got := from.Format("01-02 15:04") + " to " + to.Format("01-02 15:04"); err != nil || got != want {
			t.Errorf("%q is %s %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "no range of time", "18:00": "no range of time", "-": "no range of time", "–18:00": "no range of time", "18:00-": "no range of time", "18:00-late": "no range of time", "now-10m": "no range of time",
		"2026-12-02 - 2026-12-01": "ends at Tue 2026-12-01 00:00:00 +01:00 (2026-11-30T23:00:00Z), before it begins",
	} {
		if from, to, err := hpctime.ParseRange(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %s to %s, %v; want %q", text, from, to, err, want)
		}
	}
}

func TestParseInstantRefuses(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 30, 0, 0, zone(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		"": "no time; a time reads like", "18": "It could be now+18s (seconds from now, as in Slurm), @18 (seconds since 1970) or 18:00",
		"1795262400": "of what?", "now+60": "60s (seconds, as in PBS), 60m (minutes, as in Slurm) or 60h",
		"now+12:30": "12m30s (as in Slurm) or 12h30m", "now+": "no duration", "now+-1h": "no duration", "now1h": "no time", "nowish": "no time",
		"now + 1h": "no time", "now+1fortnight": "no duration", "now+hour": "no duration", "now+1hours2": "no duration",
		"24:00": "no time", "18:60": "no time", "18:00:60": "no time", "18:0": "no time", "018:00": "no time", "1:2:3:4": "no time", "-1:00": "no time", "+1:00": "no time",
		"11/21": "is the month or the day first? Write 2026-11-21", "21/11/2026 18:00": "is the month or the day first?",
		"tomorrow ": "no time", "tomorrow 25:00": "no time", "tomorrow18:00": "no time", "Tomorrow": "no time", "yesterday": "no time", "monday ": "no time", "fr 18:00": "no time", "fridays": "no time", "next": "no time", "next 18:00": "no time", "last friday": "no time", "friday 25:00": "no time",
		"13pm": "no time", "0am": "no time", "9:5am": "no time", "9:60am": "no time", "am": "no time", "009am": "no time", "9:30:00am": "no time",
		"2026-02-29": "no time", "2026-13-01": "no time", "2026-1-1": "no time", "2026-11-21 6pm": "no time", "2026-11-21T18:00:00.5": "no time",
		"2026-11-21T18:00+01:00": "no time", "2026-11-21T18:00:00+0100": "no time", "2026-11-21T18:00:00 CET": "no time", "2026-11-21T24:00:00Z": "no time",
		"2026-03-29 02:30": "never comes in Europe/Berlin, because the clocks are put forward; nearest is 2026-03-29T03:30:00+02:00",
		"2026-10-25 02:30": "comes twice in Europe/Berlin, because the clocks are put back; write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
		"9999-12-31":       "year 9999", "now+4398046511103s": "in the year", "next week": "no time", "١٨:٠٠": "no time",
	} {
		got, err := hpctime.ParseInstant(text, now)
		var mistake *berth.Error
		if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Field != "" || !strings.Contains(mistake.Msg, want) {
			t.Errorf("%q is %s, %v; want the complaint %q", text, got, err, want)
		}
	}
}

func TestClocksThatArePutForwardOrBack(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	evening := time.Date(2026, 3, 28, 22, 0, 0, 0, berlin)
	for text, want := range map[string]string{
		"tomorrow 03:00": "2026-03-29T03:00:00+02:00", "tomorrow 01:59:59": "2026-03-29T01:59:59+01:00", "now+5h": "2026-03-29T04:00:00+02:00",
	} {
		if got, err := hpctime.ParseInstant(text, evening); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s %v, want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	if _, err := hpctime.ParseInstant("02:30", evening); err == nil {
		t.Error("a time that never comes is taken")
	}
	for text, want := range map[string]string{
		"2027-10-31 02:00-03:00":              "2027-10-31 02:00:00 comes twice in Europe/Berlin, because the clocks are put back; write 2027-10-31T02:00:00+02:00 or 2027-10-31T02:00:00+01:00",
		"2027-10-31 01:00 - 2027-10-31 02:30": "2027-10-31 02:30:00 comes twice",
		"02:30-04:00":                         "2026-03-29 02:30:00 never comes in Europe/Berlin, because the clocks are put forward; nearest is 2026-03-29T03:30:00+02:00",
		"tomorrow 01:00–02:30":                "2026-03-29 02:30:00 never comes",
		"2027-10-31 02:00-late":               "is no range of time",
		"2027-10-31 2:00-3:00 - 2027-11-01":   "is no range of time",
	} {
		if from, to, err := hpctime.ParseRange(text, evening); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %s to %s, %v; want %q", text, from, to, err, want)
		}
	}
	if from, to, err := hpctime.ParseRange("2027-10-31T02:00:00+02:00 - 2027-10-31T02:00:00+01:00", evening); err != nil || to.Sub(from) != time.Hour {
		t.Errorf("%s to %s, %v", from, to, err)
	}
}

// Whatever can be shown once by the clocks of a zone reads back as that instant.
func TestWhatIsShownReadsBack(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"} {
		where := zone(t, name)
		rapid.Check(t, func(t *rapid.T) {
			then := time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "seconds"), 0).In(where)
			text := then.Format(time.DateTime)
			got, err := hpctime.ParseInstant(text, then)
			if err != nil {
				if !strings.Contains(err.Error(), "twice") {
					t.Fatal(err)
				}
				return
			}
			if !got.Equal(then) {
				t.Fatalf("%s became %s", then, got)
			}
			if got, err := hpctime.ParseInstant(then.Format(time.RFC3339), then); err != nil || !got.Equal(then) {
				t.Fatalf("%s became %s %v", then, got, err)
			}
		})
	}
}

func TestParseSlurm(t *testing.T) {
	for text, want := range map[string]berth.Duration{
		"30": 1800, "0": 0, "120": 7200, "30:15": 1815, "90:00": 5400, "2:30:00": 9000, "100:00:00": 360000, "1-12": 129600, "1-2:30": 95400, "1-02:30:05": 95405,
	} {
		if got, err := hpctime.ParseSlurm(text); err != nil || got != want {
			t.Errorf("%q is %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2h", "UNLIMITED", "-1", "1-", "1:60", "1:2:3:4", "1-2:3:4:5", "1-60", "1.5", "99999999999999999999"} {
		if got, err := hpctime.ParseSlurm(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestParseSlurmInstant(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 30, 0, 0, zone(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		"now+60": "2026-11-21T17:31:00+01:00", "now+1hour": "2026-11-21T18:30:00+01:00", "2026-12-01T10:00:00": "2026-12-01T10:00:00+01:00",
		"12/24": "2026-12-24T00:00:00+01:00", "1/2": "2027-01-02T00:00:00+01:00", "02/29": "2028-02-29T00:00:00+01:00",
		"12/24/27": "2027-12-24T00:00:00+01:00", "12/24/2027-18:00": "2027-12-24T18:00:00+01:00", "11/21-17:00": "2027-11-21T17:00:00+01:00",
		"tomorrow": "2026-11-22T00:00:00+01:00", "noon": "2026-11-22T12:00:00+01:00", "6:00PM": "2026-11-21T18:00:00+01:00", "12/24/27-6:00PM": "2027-12-24T18:00:00+01:00",
	} {
		if got, err := hpctime.ParseSlurmInstant(text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s %v, want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"", "13/01", "1/32", "12/24-", "12/24-25:00", "12/24-13:00PM", "112126", "12/24/27 18:00"} {
		if got, err := hpctime.ParseSlurmInstant(text, now); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestEcho(t *testing.T) {
	then := time.Date(2026, 11, 21, 18, 0, 0, 0, zone(t, "Europe/Berlin"))
	if got := hpctime.Echo(then); got != "Sat 2026-11-21 18:00:00 +01:00 (2026-11-21T17:00:00Z)" {
		t.Error(got)
	}
}

// Whatever the text: no panic; a time that RFC 3339 can write, or a complaint.
func FuzzParseInstant(f *testing.F) {
	for _, seed := range []string{"", "18", "now+1hour", "tomorrow 18:00", "2026-11-21 18:00", "2026-11-21T18:00:00+01:00", "12/24/27-18:00", "noon", "now-99999999999999999999s", "2026-03-29 02:30"} {
		f.Add(seed, int64(1_795_262_400))
	}
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix((seconds & (1<<33 - 1)), 0).In(berlin)
		for _, parse := range []func(string, time.Time) (time.Time, error){hpctime.ParseInstant, hpctime.ParseSlurmInstant} {
			got, err := parse(text, now)
			if err != nil {
				var mistake *berth.Error
				if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Msg == "" {
					t.Fatalf("%q: error %#v", text, err)
				}
				continue
			}
			if again, err := hpctime.ParseInstant(got.Format(time.RFC3339), now); err != nil || again.Unix() != got.Unix() {
				t.Fatalf("%q became %s became %s, %v", text, got, again, err)
			}
		}
	})
}

// Whatever Slurm takes for a duration: no panic, and within the limits.
func FuzzParseSlurm(f *testing.F) {
	for _, seed := range []string{"", "30", "1-12:30", "UNLIMITED", "99999999999999999999-0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := hpctime.ParseSlurm(text); err == nil && (d < 0 || d >= berth.TimeLimit) {
			t.Fatalf("%q is %d", text, d)
		}
	})
}
