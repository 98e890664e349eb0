package workflow

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// portfolio plans with each of its members and takes one of their plans. By a deadline that is the one of fewest CPU-hours. For the earliest
// end it is the earliest of those that have at most a quarter more than the fewest CPU-hours, and if others end at most a hundredth of the turn-around
// later, the one of fewest CPU-hours among these. Where that one ends too late, those that do not are chosen among alike, so that by the end of its
// own plan it plans the same. Equals go to the member that is named first. It is ours: each heuristic goes wrong
// where others do not (docs/results/workflows-own-planner.md).
//
// Cost: that of its members together.
type portfolio struct {
	goal    Goal
	members []method
}

const (
	dear = 4   // CPU-hours beyond the fewest that an earlier end may cost, in parts of the fewest
	near = 100 // what a turn-around may be above the shortest, in parts of it
)

func (f portfolio) plan(in *Instance, due berth.Time, out []Placement) (lambda int, ok bool) {
	var plans []Plan
	for _, m := range f.members {
		plan := Plan{Tasks: make([]Placement, len(out))}
		found := false
		if plan.Lambda, found = m.plan(in, due, plan.Tasks); found {
			plan.sum(in.now)
			plans = append(plans, plan)
		}
		if in.problem.stopped() {
			return 0, false
		}
	}
	if len(plans) == 0 {
		return 0, false
	}
	best := taken(plans)
	if f.goal == Finish {
		best = earliest(plans, due.Sub(in.now))
	}
	copy(out, best.Tasks)
	return best.Lambda, true
}

// early returns the plans whose cheapest is taken.
func early(plans []Plan) []Plan {
	fewest := slices.MinFunc(plans, cheaper).CPUSeconds
	plans = slices.DeleteFunc(slices.Clone(plans), func(p Plan) bool { return p.CPUSeconds > fewest+fewest/dear })
	shortest := slices.MinFunc(plans, func(a, b Plan) int { return cmp.Compare(a.Turnaround, b.Turnaround) }).Turnaround
	return slices.DeleteFunc(plans, func(p Plan) bool { return p.Turnaround > shortest+shortest/near })
}

// earliest returns the plan that is taken for the earliest end, and within a turn-around of at most that if there is one.
func earliest(plans []Plan, most berth.Duration) Plan {
	best := taken(early(plans))
	if best.Turnaround <= most {
		return best
	}
	if plans = slices.DeleteFunc(slices.Clone(plans), func(p Plan) bool { return p.Turnaround > most }); len(plans) > 0 {
		best = taken(early(plans))
	}
	return best
}

// taken returns the first of the cheapest.
func taken(plans []Plan) Plan { return slices.MinFunc(plans, cheaper) }

func cheaper(a, b Plan) int { return cmp.Compare(a.CPUSeconds, b.CPUSeconds) }

func (f portfolio) parts() []method { return f.members }
