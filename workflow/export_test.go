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

// StartsOfFewer returns the start of each task of an order in a mapping of it and those before it,
// made from nothing each time and by what shrinks. The order is that of bottom levels under by.
func StartsOfFewer(w *Workflow, npe, by []berth.Count, now berth.Time, q berth.Count) (plain, shrunk []berth.Time) {
	n := w.Len()
	curves, part, bl := make([]curve, n), make([]bool, n), make([]berth.Duration, n)
	for i := range curves {
		curves[i], part[i] = w.tasks[i].curve(), true
	}
	levels(w, curves, by, nil, bl)
	plain, shrunk = make([]berth.Time, n), make([]berth.Time, n)
	var m mapping
	s := newShrinking(w, curves, npe, now, q)
	for _, last := range slices.Backward(orderOf(w, bl)) {
		plain[last] = m.run(w, curves, npe, part, now, q, last, nil)
		part[last] = false
		shrunk[last] = s.start(last)
		s.drop(last)
	}
	return plain, shrunk
}

// Grow lets CPA, or our rule, allot PEs, and tells in how many steps.
func Grow(in *Instance, q berth.Count, ours bool) (npe []berth.Count, steps int) {
	npe = make([]berth.Count, in.w.Len())
	limit, by := in.size, steepest
	if ours {
		limit, by = q, thrifty
	}
	g := newGrowth(in.w, in.curves, in.w.topological, limit, by)
	g.until(q, in.problem.Epsilon, npe)
	return npe, len(g.chosen)
}

// StepsOf returns in how many steps PEs of its reference cluster are allotted to the tasks of a grid,
// and whether some were given more than one by one.
func StepsOf(in *GridInstance) (steps int, coarse bool) {
	npe := in.reference.allot(cpar)
	return len(in.reference.whole.chosen), slices.Max(npe) > in.reference.fine
}

// OneByOne has a grid that was just prepared allot all PEs of its reference cluster one by one.
func OneByOne(in *GridInstance) *GridInstance {
	in.reference.fine = 0
	return in
}

// KnowAll has an instance read all of its calendar at once.
func KnowAll(in *Instance) *Instance {
	in.know(berth.Forever)
	return in
}

// KnowAllSites has a grid read all of its calendars at once.
func KnowAllSites(in *GridInstance) *GridInstance {
	for _, s := range in.sites {
		s.know(berth.Forever)
	}
	return in
}

// Known returns up to when an instance has read its calendar.
func Known(in *Instance) berth.Time { return in.known }
