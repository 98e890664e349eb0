package recurrence

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/debiantest"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t *testing.T, text string, z *time.Location) time.Time {
	t.Helper()
	when, err := time.ParseInLocation("2006-01-02 15:04", text, z)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// What rules mean, as people say them and as calendars write them.
func TestRules(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		rule, want string // without the year
		times      int
	}{
		{"every weekday 09:00", "11-27 09:00, 11-30 09:00, 12-01 09:00", 3},
		{"Weekdays at 9am", "11-27 09:00, 11-30 09:00, 12-01 09:00", 3},
		{"daily 09:00 and 13:00", "11-27 09:00, 11-27 13:00, 11-28 09:00", 3},
		{"every monday", "11-30 07:30, 12-07 07:30", 2},
		{"mon, thu 18:00", "11-30 18:00, 12-03 18:00, 12-07 18:00", 3},
		{"every monday and thursday at noon", "11-30 12:00, 12-03 12:00", 2},
		{"every 2 weeks on friday 9:30pm", "11-27 21:30, 12-11 21:30, 12-25 21:30", 3},
		{"every other day 00:00", "11-29 00:00, 12-01 00:00", 2},
		{"every 6 hours", "11-27 07:30, 11-27 13:30, 11-27 19:30", 3},
		{"first monday of the month 18:00", "12-07 18:00, 01-04 18:00, 02-01 18:00", 3},
		{"last weekday of every month midnight", "11-30 00:00, 12-31 00:00, 01-29 00:00", 3},
		{"on the 31st of each month 08:00", "12-31 08:00, 01-31 08:00, 03-31 08:00", 3},
		{"monthly on the 1st 08:00", "12-01 08:00, 01-01 08:00", 2},
		{"RRULE:FREQ=WEEKLY;BYDAY=MO", "11-30 07:30, 12-07 07:30", 2},
		{"rrule:freq=monthly;byday=mo,tu,we,th,fr;bysetpos=-1;byhour=8;byminute=0", "11-30 08:00, 12-31 08:00", 2},
		{"RRULE:FREQ=DAILY;COUNT=2", "11-27 07:30, 11-28 07:30", 0},
		{"RRULE:FREQ=DAILY;UNTIL=20261128", "11-27 07:30, 11-28 07:30", 0},
		{"RRULE:FREQ=DAILY;UNTIL=20261128T063000Z", "11-27 07:30, 11-28 07:30", 0},
		{"RRULE:FREQ=DAILY;UNTIL=20261128T062959Z", "11-27 07:30", 0},
	} {
		list, err := Expand(&Asked{Rule: c.rule, From: at(t, "2026-11-27 07:30", berlin), Zone: berlin, Times: c.times})
		if err != nil {
			t.Errorf("%q: %v", c.rule, err)
			continue
		}
		var got []string
		for _, o := range list {
			got = append(got, o.At.In(berlin).Format("01-02 15:04"))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%q occurs %s; want %s", c.rule, text, c.want)
		}
	}
}

// What cannot be right is refused with the field, the value and what would be.
func TestRefusals(t *testing.T) {
	utc := time.UTC
	from := at(t, "2026-11-27 07:30", utc)
	for _, c := range []struct {
		asked       Asked
		field, says string
	}{
		{Asked{Rule: "every weekday 09:00"}, "repeat", "never ends; give until or times, or ahead"},
		{Asked{Rule: "RRULE:FREQ=DAILY;INTERVAL=1"}, "repeat", "never ends"},
		{Asked{Rule: "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", Times: 3}, "repeat", "never occurs"},
		{Asked{Rule: "RRULE:FREQ=WEEKLY;BYDAY=MO", Until: at(t, "2026-11-29 00:00", utc)}, "repeat", "never occurs"},
		{Asked{Rule: "RRULE:FREQ=SECONDLY", Times: 3}, "repeat", "FREQ=SECONDLY"},
		{Asked{Rule: "RRULE:FREQ=MINUTELY", Times: 3}, "repeat", "FREQ=MINUTELY"},
		{Asked{Rule: "RRULE:FREQ=DAILY;BYSECOND=1,2,3", Times: 3}, "repeat", "BYSECOND"},
		{Asked{Rule: "RRULE:FREQ=DAILY;BYHOUR=1,2,3,4,5,6;BYMINUTE=0,10,20,30,40", Times: 3}, "repeat", "30 times on a day"},
		{Asked{Rule: "RRULE:FREQ=HOURLY;INTERVAL=24;BYHOUR=5", Times: 3}, "repeat", "FREQ=DAILY with BYHOUR"},
		{Asked{Rule: "RRULE:FREQ=MONTHLY;BYDAY=53MO", Times: 3}, "repeat", "+53MO"},
		{Asked{Rule: "RRULE:FREQ=DAILY;BYSETPOS=2", Times: 3}, "repeat", "nothing to choose from"},
		{Asked{Rule: "RRULE:BYDAY=MO", Times: 3}, "repeat", "no FREQ"},
		{Asked{Rule: "RRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101"}, "repeat", "COUNT and UNTIL"},
		{Asked{Rule: "RRULE:FREQ=DAILY;FREQ=DAILY", Times: 1}, "repeat", "each key once"},
		{Asked{Rule: "RRULE:FREQ=DAILY;INTERVAL=0", Times: 1}, "repeat", "INTERVAL=0"},
		{Asked{Rule: "RRULE:FREQ=DAILY;BYHOUR=25", Times: 1}, "repeat", "byhour"},
		{Asked{Rule: "RRULE:FREQ=DAILY;UNTIL=soon"}, "repeat", "UNTIL=SOON"},
		{Asked{Rule: "every blue moon", Times: 1}, "repeat", "no rule"},
		{Asked{Rule: "every day 09:00 and 10:30", Times: 1}, "repeat", "no rule"},
		{Asked{Rule: "daily 09:00 and 13:00", Times: berth.MaxOccurrences + 1}, "repeat", "more than 4000 times"},
		{Asked{Rule: "daily", Times: 11, Most: 10}, "repeat", "more than 10 times"},
		{Asked{Rule: "every 2 hours", Until: at(t, "2027-11-27 07:30", utc)}, "repeat", "more than 4000 times"},
		{Asked{Rule: "yearly", Times: 30}, "times", "only"},
		{Asked{}, "repeat", "missing"},
		{Asked{Rule: "daily", Times: 2, Except: []string{"2030-01-01"}}, "except", "no time at which it occurs"},
		{Asked{Rule: "daily", Times: 2, Except: []string{"xmas"}}, "except", "no time"},
		{Asked{Rule: "daily", Times: 2, Add: []string{"2026-12-24"}}, "add", "has no time"},
		{Asked{Rule: "daily", Times: 2, Add: []string{"2020-12-24 09:00"}}, "add", "is before"},
		{Asked{Rule: "daily", Times: 1, Except: []string{"2026-11-27"}}, "repeat", "never occurs"},
	} {
		c.asked.From, c.asked.Zone = from, utc
		list, err := Expand(&c.asked)
		var coded *berth.Error
		if !errors.As(err, &coded) || coded.Code != berth.Invalid || coded.Field != c.field || !strings.Contains(coded.Msg, c.says) {
			t.Errorf("%+v: %v, %v; want an error of field %s with %q", c.asked, list, err, c.field, c.says)
		}
	}
}

// Exceptions and additions are by the clock of the zone; what is there twice occurs once.
func TestExceptionsAndAdditions(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	list, err := Expand(&Asked{
		Rule: "every day 09:00", From: at(t, "2026-12-23 00:00", berlin), Zone: berlin, Times: 5,
		Except: []string{"2026-12-24", "2026-12-25T09:00"}, Add: []string{"2026-12-24 18:00", "2026-12-23T08:00:00Z"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range list {
		got = append(got, o.At.In(berlin).Format("02 15:04"))
	}
	if text := strings.Join(got, ", "); text != "23 09:00, 24 18:00, 26 09:00, 27 09:00" {
		t.Errorf("it occurs on %s", text)
	}
}

// A time that the clock never shows is later, one that it shows twice is the first, and both are told.
func TestChangesOfTheClock(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct{ from, rule, want string }{
		{"2027-03-27 00:00", "daily 02:30", "2027-03-27T02:30:00+01:00 | 2027-03-28T03:30:00+02:00 later | 2027-03-29T02:30:00+02:00"},
		{"2026-10-24 00:00", "daily 02:30", "2026-10-24T02:30:00+02:00 | 2026-10-25T02:30:00+02:00 first | 2026-10-26T02:30:00+01:00"},
		{"2027-03-28 01:00", "hourly", "2027-03-28T01:00:00+01:00 | 2027-03-28T03:00:00+02:00 later | 2027-03-28T04:00:00+02:00"},
	} {
		list, err := Expand(&Asked{Rule: c.rule, From: at(t, c.from, berlin), Zone: berlin, Times: 4})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range list[:3] {
			got = append(got, strings.TrimSpace(o.At.In(berlin).Format(time.RFC3339)+" "+string(o.Shift)))
		}
		if text := strings.Join(got, " | "); text != c.want {
			t.Errorf("%q from %s: %s; want %s", c.rule, c.from, text, c.want)
		}
	}
}

// zones are on both sides of the equator, one with half an hour's change and one whose clocks change at midnight.
var zones = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo"}

// zoneinfo writes, for each half hour that a clock may show around a change of it, when it first shows that, with
// what the offset before the change says where it never does.
const zoneinfo = `
import sys
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo
for name in sys.argv[1:]:
    zone, clock = ZoneInfo(name), datetime(2020, 1, 1)
    while clock.year < 2030:
        near = [(clock + timedelta(days=d)).replace(tzinfo=zone).utcoffset() for d in (-1, 0, 1)]
        if len(set(near)) > 1:
            for half in range(48):
                at = (clock + timedelta(minutes=30 * half)).replace(tzinfo=zone)
                print(name, at.strftime("%Y-%m-%dT%H:%M"), int(at.timestamp()))
        clock += timedelta(days=1)
`

// Each time around each change of the clock in five zones and ten years is that of Python's zoneinfo.
func TestZonesAsPythonHasThem(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		debiantest.Absent(t, "python", fmt.Sprintf("python: times of zones are not compared: needs Python 3.9 or later: %v", err))
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-c", zoneinfo}, zones...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	looked, shifted := map[string]int{}, map[berth.Shift]int{}
	for line := range strings.Lines(string(out)) {
		var name, clock string
		var want int64
		if _, err := fmt.Sscan(line, &name, &clock, &want); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		shown, err := time.Parse("2006-01-02T15:04", clock)
		if err != nil {
			t.Fatal(err)
		}
		o := instantOf(shown, zone(t, name))
		if o.At.Unix() != want {
			t.Errorf("%s in %s is %d; Python has %d", clock, name, o.At.Unix(), want)
		}
		looked[name]++
		shifted[o.Shift]++
	}
	for _, name := range zones {
		if looked[name] < 12*48 {
			t.Errorf("%d times of %s were compared; want those around each change", looked[name], name)
		}
	}
	if shifted[berth.ShiftLater] < 40 || shifted[berth.ShiftFirst] < 40 {
		t.Errorf("%v; want times that are never shown, and times that are shown twice", shifted)
	}
}

// Whatever the rule: no panic, an end, and starts in order from the earliest on.
func FuzzExpand(f *testing.F) {
	for _, rule := range []string{
		"every weekday 09:00", "RRULE:FREQ=YEARLY;BYDAY=-1MO;BYMONTH=2,3", "RRULE:FREQ=MONTHLY;BYDAY=MO,-5TU;BYSETPOS=1,-1", "RRULE:FREQ=HOURLY;INTERVAL=7;BYDAY=SU",
		"RRULE:FREQ=DAILY;INTERVAL=7;BYDAY=TU", "RRULE:FREQ=WEEKLY;WKST=SU;INTERVAL=3", "RRULE:FREQ=DAILY;BYMONTHDAY=-31,31;BYDAY=SA", "first sunday of the month noon", "every 3 months on the 31st 7pm",
	} {
		f.Add(rule, int64(1_795_764_600))
	}
	f.Fuzz(func(t *testing.T, rule string, from int64) {
		start := time.Unix(from%4_000_000_000, 0)
		list, err := Expand(&Asked{Rule: rule, From: start, Zone: zone(t, "Europe/Berlin"), Until: start.AddDate(2, 0, 0)})
		if err != nil {
			if _, is := errors.AsType[*berth.Error](err); !is {
				t.Fatalf("%q: %v is no error of the module", rule, err)
			}
			return
		}
		for i, o := range list {
			if o.At.Before(start) || i > 0 && !list[i-1].At.Before(o.At) {
				t.Fatalf("%q: occurrence %d is at %s", rule, i, o.At)
			}
		}
	})
}
