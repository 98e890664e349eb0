package main

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// What is so far from now is handed on as such, for the service to count from when it decides, and is of one instant
// for all flags of a command. Times of the clock stay what they are.
func TestTimesFromNowAreHandedOn(t *testing.T) {
	in := func(d berth.Duration) *berth.Duration { return &d }
	for name, row := range map[string]struct {
		flags    []string
		want     form.Request // its times
		absolute bool         // the deadline is a time of the clock
		wrong    string
	}{
		"as long as it lasts": {flags: []string{"-t", "1h", "--deadline", "now+1h"}, want: form.Request{DeadlineIn: 3600}},
		"both":                {flags: []string{"-t", "1h", "--ready", "now+30min", "--deadline", "now+90minutes"}, want: form.Request{ReadyIn: in(1800), DeadlineIn: 5400}},
		"a start":             {flags: []string{"-t", "1h", "--start", "now"}, want: form.Request{ReadyIn: in(0), DeadlineIn: 3600}},
		"a later start":       {flags: []string{"-t", "30m", "--start", "now+1hour"}, want: form.Request{ReadyIn: in(3600), DeadlineIn: 5400}},
		"a window":            {flags: []string{"-t", "1h", "--window", "now–now+1h"}, want: form.Request{ReadyIn: in(0), DeadlineIn: 3600}},
		"a time of the clock": {flags: []string{"-t", "1h", "--deadline", "2030-01-02 10:00"}, absolute: true},
		"over":                {flags: []string{"-t", "1h", "--deadline", "now-1h"}, absolute: true},
		"too short":           {flags: []string{"-t", "1h", "--deadline", "now+59m"}, wrong: "--deadline: now+59m is before --ready and --duration, which take until now+01:00:00; want --deadline now+01:00:00 or later"},
		"too short behind":    {flags: []string{"-t", "1h", "--ready", "now+1h", "--deadline", "now+1h"}, wrong: "--deadline: now+1h is before --ready and --duration, which take until now+02:00:00; want --deadline now+02:00:00 or later"},
	} {
		var messages discard
		a := &app{stderr: &messages}
		cmd := a.reserveCommand()
		cmd.ResetFlags()
		q := askFlags(cmd)
		if err := cmd.ParseFlags(row.flags); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		err := a.settle(cmd, q)
		if row.wrong != "" {
			if err == nil || err.Error() != row.wrong {
				t.Errorf("%s: %v; want %s", name, err, row.wrong)
			}
			continue
		}
		same := q.DeadlineIn == row.want.DeadlineIn && (q.ReadyIn == nil) == (row.want.ReadyIn == nil) && valueAt(q.ReadyIn) == valueAt(row.want.ReadyIn)
		if err != nil || !same || q.Ready != 0 || (q.Deadline != 0) != row.absolute {
			t.Errorf("%s: in %v and %d, at %d and %d, %v", name, q.ReadyIn, q.DeadlineIn, q.Ready, q.Deadline, err)
		}
	}
}
