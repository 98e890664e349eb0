package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// OrderOf returns the order in which a planner's tasks are placed, before a
// planner for a deadline reverses it.
func OrderOf(in *Instance, name string) []int32 {
	p, _ := PlannerNamed(name)
	if f, is := p.how.(forward); is {
		return slices.Clone(in.order(f.levels))
	}
	return slices.Clone(in.order(cpar))
}

// AtLambda makes a plan at one step of λ.
func AtLambda(in *Instance, name string, deadline berth.Time, step int) ([]Placement, bool) {
	p, _ := PlannerNamed(name)
	out := make([]Placement, in.w.Len())
	ok := p.how.(backward).attempt(in, deadline, step, out)
	return out, ok
}
