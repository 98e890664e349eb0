package service

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Before its limit has ended what took less time and was not stopped by its site: neither a job that was let run beyond its limit until it
// completed, nor one that was stopped, whatever times its site tells.
func TestBeforeTheLimit(t *testing.T) {
	for name, c := range map[string]struct {
		ending site.Ending
		took   berth.Duration
		before int
	}{
		"completed early":                      {site.Completed, 99, 1},
		"failed early":                         {site.Failed, 99, 1},
		"completed at the limit":               {site.Completed, 100, 0},
		"completed beyond the limit":           {site.Completed, 130, 0},
		"stopped at the limit":                 {site.TimedOut, 100, 0},
		"stopped a second before by its times": {site.TimedOut, 99, 0},
	} {
		f := Figures{LeftOut: map[LeftOut]int{}, Refused: map[berth.Reason]int{}}
		f.add(&ShadowJob{Asked: 10, Start: 1000, End: berth.Time(1000).Add(c.took), Limit: 100, Phase: JobEnded, Ending: c.ending})
		if f.Ended != 1 || f.BeforeLimit != c.before {
			t.Errorf("%s: %d ended, %d of them before the limit; want 1 and %d", name, f.Ended, f.BeforeLimit, c.before)
		}
	}
}
