package hpctime_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]berth.Duration{
		"00:00:00": 0, "02:30:00": 9000, "2:30:00": 9000, "100:00:01": 360001, "1-02:03:04": 93784,
		"0-00:00:00": 0, "1-12": 129600, "1-12:30": 131400, "365-00:00:00": 31536000, "1-2:00:00": 93600,
		"2h30m": 9000, "90s": 90, "0s": 0, "1d12h": 129600, "1d1h1m1s": 90061, "90m": 5400, "1d1s": 86401, "007m": 420,
		"PT2H30M": 9000, "P1DT12H": 129600, "P2W": 1209600, "P1D": 86400, "PT90M": 5400, "PT0S": 0, "P0D": 0,
		"4398046511103s": berth.TimeLimit - 1,
	} {
		got, err := hpctime.Parse(text)
		if err != nil || got != want {
			t.Errorf("%q is %d %v, want %d", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "no duration", "90": "90s (seconds, as in PBS), 90m (minutes, as in Slurm) or 90h (hours, as in OAR)",
		"0": "0 of what?", "12:30": "12m30s (as in Slurm) or 12h30m (as in OAR)",
		"-5": "no duration", "-1:00:00": "no duration", "1.5h": "no duration", "1h30": "no duration", "h": "no duration",
		"30m2h": "no duration", "1h1h": "no duration", "2 h": "no duration", " 2h": "no duration", "2h ": "no duration",
		"2H": "no duration", "1w": "no duration", "00:60:00": "no duration", "00:00:60": "no duration", "0:1:00": "no duration",
		"1-24:00:00": "no duration", "1-": "no duration", "1-1-1": "no duration", "-": "no duration", ":": "no duration",
		"1:2:3:4": "no duration", "1-2:3:4:5": "no duration", "00:00:000": "no duration", "1-002:00:00": "no duration",
		"P": "no duration", "PT": "no duration", "P1DT": "no duration", "P1Y": "no duration", "P1M": "no duration",
		"PT1D": "no duration", "P1H": "no duration", "pt1h": "no duration", "PT1h": "no duration", "P1W1D": "no duration",
		"PW": "no duration", "PT1S1H": "no duration", "PT1.5S": "no duration", "UNLIMITED": "no duration", "١h": "no duration",
		"4398046511104s": "beyond 2^42 s", "99999999999999999999d": "beyond 2^42 s", "99999999999999999999-00:00:00": "beyond 2^42 s",
		"P99999999999999999999W": "beyond 2^42 s", "4398046511103h4398046511103m": "beyond 2^42 s",
	} {
		got, err := hpctime.Parse(text)
		var mistake *berth.Error
		if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Field != "" || !strings.Contains(mistake.Msg, want) {
			t.Errorf("%q is %d, %v; want the complaint %q", text, got, err, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[berth.Duration]string{0: "00:00:00", 9000: "02:30:00", 86399: "23:59:59", 86400: "1-00:00:00", 93784: "1-02:03:04"} {
		if got := hpctime.Format(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := berth.Duration(rapid.Int64Range(0, berth.TimeLimit-1).Draw(t, "seconds"))
		if again, err := hpctime.Parse(hpctime.Format(d)); err != nil || again != d {
			t.Fatalf("%d became %q became %d, %v", d, hpctime.Format(d), again, err)
		}
	})
}

// Whatever the text: no panic; a duration within the limits that reads back
// equal, or a complaint.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "90", "12:30", "1-02:03:04", "1-12", "2h30m", "PT2H30M", "P1DT12H", "P2W", "-", "99999999999999999999d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := hpctime.Parse(text)
		if err != nil {
			var mistake *berth.Error
			if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Msg == "" {
				t.Fatalf("%q: error %#v", text, err)
			}
			return
		}
		if d < 0 || d >= berth.TimeLimit {
			t.Fatalf("%q is %d", text, d)
		}
		if again, err := hpctime.Parse(hpctime.Format(d)); err != nil || again != d {
			t.Fatalf("%q became %q became %d, %v", text, hpctime.Format(d), again, err)
		}
	})
}
