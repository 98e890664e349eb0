package reproduce

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// gridOutcome is what one run was worth; see gridMeans.
type gridOutcome struct {
	waiting, offset, rejections, utilization float64
	important, unimportant                   float64
	moved, late                              float64
}

// gridNames are those of an outcome's values.
var gridNames = []string{"waiting", "offset", "rejections", "utilization", "important", "unimportant", "moved", "late"}

// values lists the outcome in the order of gridNames.
func (o *gridOutcome) values() []float64 {
	return []float64{o.waiting, o.offset, o.rejections, o.utilization, o.important, o.unimportant, o.moved, o.late}
}

// gridOutcomeOf is values, turned round.
func gridOutcomeOf(v []float64) gridOutcome {
	return gridOutcome{
		waiting: v[0], offset: v[1], rejections: v[2], utilization: v[3],
		important: v[4], unimportant: v[5], moved: v[6], late: v[7],
	}
}

// measure decides the gridlets in the order of a policy and carries the promises
// out.
func (w *gridWorkload) measure(ctx context.Context, run *gridRun, seed uint64) (gridOutcome, error) {
	config := w.config(run.policy, run.reading.match, seed)
	promised, err := sim.Replay(ctx, config, sim.Workload{Requests: w.requests, Promises: true}, nil)
	if err != nil {
		return gridOutcome{}, err
	}
	runs := make([]berth.Duration, len(promised))
	for i := range promised {
		runs[i] = w.run(i, promised[i].Duration) // the estimate at its pool, if it has one
	}
	o := w.outcome(promised, carriedOut(promised, runs, gridSizes()))
	if run.moves {
		// All decisions fall at time 0, so nothing that happens later changes
		// the pool of a gridlet, and with it its run time.
		config.Overrun, config.Extension = engine.OverrunDelay, extension
		lines, err := sim.Replay(ctx, config, sim.Workload{Requests: w.requests, Runs: standardRuns(promised, runs)}, nil)
		if err != nil {
			return gridOutcome{}, err
		}
		o.moved = meanMove(promised, lines)
	}
	return o, nil
}

// standardRuns returns run times at the pools of a plan in standard seconds, to
// the nearest one: with the slowest pool that is within 1.4 s there.
func standardRuns(promised []berth.Line, runs []berth.Duration) []berth.Duration {
	speeds := map[string]berth.Speed{}
	for i, pool := range gridPools {
		speeds[gridSite(i)] = pool.mips
	}
	standard := make([]berth.Duration, len(runs))
	for i := range runs {
		if promised[i].Accepted {
			work := int64(runs[i]) * int64(speeds[promised[i].Site])
			standard[i] = berth.Duration(max(1, (work+int64(berth.StandardSpeed)/2)/int64(berth.StandardSpeed)))
		}
	}
	return standard
}

// executed is when an accepted gridlet really ran.
type executed struct{ start, end berth.Time }

// carriedOut carries out a plan of one-PE reservations whose run times differ
// from their estimates, space-shared (Ahuja et al.): a gridlet starts when it
// was promised, or, while no PE of its resource is free, waits for the first
// one. Those of one resource start in the order of their promises, ties in the
// order of the lines. What is not accepted has no times. sizes are the PEs of
// the resources. Cost: O(n log n) and O(n·PEs).
func carriedOut(promised []berth.Line, runs []berth.Duration, sizes map[string]berth.Count) []executed {
	var order []int
	for i := range promised {
		if promised[i].Accepted {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(*promised[a].Start, *promised[b].Start) })
	freeAt := map[string][]berth.Time{}
	for site, pes := range sizes {
		freeAt[site] = make([]berth.Time, pes)
	}
	times := make([]executed, len(promised))
	for _, i := range order {
		pes := freeAt[promised[i].Site]
		first := 0
		for pe := range pes {
			if pes[pe] < pes[first] {
				first = pe
			}
		}
		start := max(*promised[i].Start, pes[first])
		times[i] = executed{start, start.Add(runs[i])}
		pes[first] = times[i].end
	}
	return times
}

// outcome measures what was carried out.
func (w *gridWorkload) outcome(promised []berth.Line, times []executed) gridOutcome {
	var served, waiting, offset, rejected, late int64
	var above, below struct{ served, waiting int64 }
	for i := range promised {
		if !promised[i].Accepted {
			rejected++
			continue
		}
		t := times[i]
		served++
		waiting += int64(t.start)
		offset += int64(t.start - *promised[i].Start)
		if _, reserved := w.reserved[i]; reserved && *promised[i].Start > w.requests[i].Ready {
			late++
		}
		switch {
		case w.priority[i] > priorities-3:
			above.served++
			above.waiting += int64(t.start)
		case w.priority[i] <= 3:
			below.served++
			below.waiting += int64(t.start)
		}
	}
	return gridOutcome{
		waiting:     share(waiting, served),
		offset:      share(offset, served),
		rejections:  float64(rejected),
		utilization: utilizationOfMost(promised, times),
		important:   share(above.waiting, above.served),
		unimportant: share(below.waiting, below.served),
		late:        float64(late),
	}
}

// most is the part of the work after which utilisation is not measured any more: what is
// left is a tail of a few wanted starts on an empty grid, which says nothing of the orders.
const most = 0.95

// utilizationOfMost returns the percentage of the PEs that work until most of the work is
// done.
func utilizationOfMost(promised []berth.Line, times []executed) float64 {
	type turn struct {
		at berth.Time
		by int64
	}
	var turns []turn
	var work int64
	for i := range promised {
		if promised[i].Accepted {
			turns = append(turns, turn{times[i].start, 1}, turn{times[i].end, -1})
			work += int64(times[i].end - times[i].start)
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	enough := float64(most * float64(work))
	var done float64
	var busy int64
	var now berth.Time
	for _, t := range turns {
		step := float64(busy) * float64(t.at-now)
		if busy > 0 && done+step >= enough {
			return 100 * enough / (gridPEs * (float64(now) + (enough-done)/float64(busy)))
		}
		done += step
		now, busy = t.at, busy+t.by
	}
	return 0 // nothing was served
}

// meanMove returns how much later than first promised gridlets start where
// promises move out of the way of overruns.
func meanMove(promised, lines []berth.Line) float64 {
	var served, offset int64
	for i := range lines {
		if lines[i].Accepted {
			served++
			offset += int64(*lines[i].Start - *promised[i].Start)
		}
	}
	return share(offset, served)
}
