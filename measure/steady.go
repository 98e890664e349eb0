package measure

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// Steady are the figures of the jobs of a schedule in its steady state, with
// the beginning and the end of the simulation left out. A mean over nothing is
// nil.
type Steady struct {
	Jobs int `json:"jobs"` // that count
	// MeanWait is the mean of start − arrival, in seconds.
	MeanWait *float64 `json:"mean_wait"`
	// MeanBoundedSlowdown is the mean of (wait + run) / max(run, 10 s), at
	// least 1 each.
	MeanBoundedSlowdown *float64 `json:"mean_bounded_slowdown"`
}

// bound keeps the slowdown of very short jobs from deciding the mean: Feitelson,
// "Metrics for parallel job scheduling and their convergence" (2001).
const bound = 10

// SteadyState returns the figures of the jobs that ran, by the rules of the
// simulator pyss, so that they can be compared: jobs are taken in the order in
// which they ended; left out are the first hundredth, those that ended after
// the last arrival, and every job that drop, if not nil, names by the index of
// its line. Cost: O(n log n).
func SteadyState(lines []berth.Line, drop func(line int) bool) Steady {
	type run struct {
		end        berth.Time
		wait, time berth.Duration
		counts     bool
	}
	var runs []run
	var lastArrival berth.Time
	for i := range lines {
		line := &lines[i]
		if line.Kind != berth.KindJob {
			continue
		}
		lastArrival = max(lastArrival, line.Arrival)
		if line.Start == nil || line.ActualEnd == nil {
			continue
		}
		runs = append(runs, run{
			end: *line.ActualEnd, wait: line.Start.Sub(line.Arrival), time: line.ActualEnd.Sub(*line.Start),
			counts: drop == nil || !drop(i),
		})
	}
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.end, b.end) })
	var s Steady
	var wait berth.Duration
	var slowdown float64
	for _, r := range runs[len(runs)/100:] {
		if r.end > lastArrival {
			break
		}
		if !r.counts {
			continue
		}
		s.Jobs++
		wait += r.wait
		slowdown += max(1, float64(r.wait+r.time)/float64(max(r.time, bound)))
	}
	s.MeanWait = ratio(float64(wait), float64(s.Jobs))
	s.MeanBoundedSlowdown = ratio(slowdown, float64(s.Jobs))
	return s
}
