package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// allot returns the number of PEs of each task under an allotment.
func (in *Instance) allot(a allotment) []berth.Count {
	if npe, ok := in.allots[a]; ok {
		return npe
	}
	var npe []berth.Count
	switch a {
	case fixed1:
		npe = in.uniform(1)
	case fixedAll:
		npe = in.uniform(in.size)
	case half:
		npe = in.uniform(max(1, in.size/2))
	case cpa:
		npe = in.grown(in.size)
	case cpar:
		npe = in.grown(in.q)
	case mcpar:
		npe = in.own(in.q, levelled)
	case thrift:
		npe = in.own(in.q, thrifty)
	}
	if !in.problem.stopped() { // else it is not complete
		in.allots[a] = npe
	}
	return npe
}

// order returns the tasks by decreasing bottom level under an allotment.
func (in *Instance) order(a allotment) []int32 {
	if order, ok := in.orders[a]; ok {
		return order
	}
	bl := make([]berth.Duration, in.w.Len())
	levels(in.w, in.curves, in.allot(a), nil, bl)
	order := orderOf(in.w, bl)
	if !in.problem.stopped() {
		in.orders[a] = order
	}
	return order
}

// grown returns CPA's allocation of the whole workflow on q PEs. One growth
// serves all q that no task outgrows.
func (in *Instance) grown(q berth.Count) []berth.Count {
	if in.whole == nil {
		in.whole = in.growth(in.w.topological, in.size, steepest)
	}
	npe := make([]berth.Count, in.w.Len())
	if q > in.size || !in.whole.until(q, in.problem.Epsilon, npe) {
		in.growth(in.w.topological, q, steepest).until(q, in.problem.Epsilon, npe)
	}
	return npe
}

// growth prepares the growth of the tasks of an order, which ends when planning does.
func (in *Instance) growth(order []int32, limit berth.Count, rule rule) *growth {
	g := newGrowth(in.w, in.curves, order, limit, rule)
	g.stopped, g.fine = in.problem.stopped, in.fine
	return g
}

// own returns the allocation on q PEs by another rule than CPA's. That of MCPA
// is Bansal, Kumar, Singh, "An improved two-step algorithm for task and data
// parallel scheduling in distributed memory machines", Parallel Computing 2006,
// as specified in spec 2, b.2: as CPA, but a task grows only while the tasks of
// its depth together need no more than q PEs.
func (in *Instance) own(q berth.Count, rule rule) []berth.Count {
	npe := make([]berth.Count, in.w.Len())
	in.growth(in.w.topological, q, rule).until(q, in.problem.Epsilon, npe)
	return npe
}

// depths returns the number of edges on the longest way to each task.
func depths(w *Workflow) []int32 {
	depth := make([]int32, w.Len())
	for _, i := range w.topological {
		for _, parent := range w.parents.of(i) {
			depth[i] = max(depth[i], depth[parent]+1)
		}
	}
	return depth
}

// reserves returns, for each task i of the order that deadline planners go
// through backwards, when i starts in CPA's own schedule of i and all tasks
// before it, on q empty PEs from now on: the start S_i that a resource
// conservative planner keeps free for what is still to be placed. The numbers of
// PEs are those that CPA allots to the whole workflow, or, with Problem.Anew,
// to i and the tasks before it. S_i depends on neither the deadline nor λ, so it
// is computed once.
//
// Source: spec 2, b.5 and (e) 1. Deviation: there, PEs are always allotted anew
// (docs/adr/0009). Cost: that of shrinking for each task; with Anew a part of a
// growth for each and a mapping of the tasks before it, O(n² + n·w) in all for w
// PEs' worth of distinct times.
func (in *Instance) reserves(b backward) []berth.Time {
	if starts, ok := in.starts[b.reserve]; ok {
		return starts
	}
	order := in.order(b.levels())
	starts := make([]berth.Time, in.w.Len())
	if q, by := in.basis(b.reserve); in.problem.Anew {
		in.reservesAnew(order, q, by, starts)
	} else {
		left := newShrinking(in.w, in.curves, in.allot(b.reserve), in.now, q)
		for _, last := range slices.Backward(order) {
			if in.problem.stopped() {
				return starts
			}
			starts[last] = left.start(last)
			left.drop(last)
		}
	}
	if !in.problem.stopped() {
		in.starts[b.reserve] = starts
	}
	return starts
}

// reservesAnew computes the starts of reserves with PEs allotted anew for each.
func (in *Instance) reservesAnew(order []int32, q berth.Count, by rule, starts []berth.Time) {
	g := in.growth(order, q, by)
	npe, part := make([]berth.Count, in.w.Len()), make([]bool, in.w.Len())
	for i := range part {
		part[i] = true
	}
	var m mapping
	for _, last := range slices.Backward(order) {
		if in.problem.stopped() {
			return
		}
		g.until(q, in.problem.Epsilon, npe)
		g.drop()
		starts[last] = m.run(in.w, in.curves, npe, part, in.now, q, last, nil)
		part[last] = false
	}
}

// Allocation names a way to divide PEs among tasks before any is placed.
type Allocation string

// The allocations.
const (
	CPA    Allocation = "cpa"
	MCPA   Allocation = "mcpa"
	Thrift Allocation = "thrift" // ours, see the planner bd-thrift
)

func (a Allocation) rule() rule {
	switch a {
	case MCPA:
		return levelled
	case Thrift:
		return thrifty
	default:
		return steepest
	}
}

// Allocate returns the number of PEs that each task gets on a site of q PEs
// without bookings. It is what bounds the planners named after it. Code
// Invalid: q is not within 1..berth.MaxPEs, or there is no such allocation.
func (in *Instance) Allocate(a Allocation, q berth.Count) ([]berth.Count, error) {
	switch {
	case q < 1 || q > berth.MaxPEs:
		return nil, berth.Errorf(berth.Invalid, "q", "%d; want 1 to %d PEs", q, berth.MaxPEs)
	case q < in.widest():
		return nil, berth.Errorf(berth.Invalid, "q", "%d; a task needs at least %d PEs", q, in.widest())
	case a != CPA && a != MCPA && a != Thrift:
		return nil, berth.Errorf(berth.Invalid, "allocation", "%q; it is %q, %q or %q", a, CPA, MCPA, Thrift)
	case in.problem.Plain:
		s := plain{in: in}
		return s.alloc(q, s.everything(), a.rule()), nil
	case a == CPA:
		return in.grown(q), nil
	default:
		return in.own(q, a.rule()), nil
	}
}

// widest returns the most PEs that a task must have.
func (in *Instance) widest() berth.Count {
	most := berth.Count(1)
	for i := range in.curves {
		most = max(most, in.curves[i].few())
	}
	return most
}

// Map schedules the workflow on q PEs without bookings by CPA: the allocation,
// then each task in the order of its bottom level when enough PEs are
// available. It returns the start of each task. Errors are those of Allocate.
func (in *Instance) Map(a Allocation, q berth.Count) ([]Placement, error) {
	npe, err := in.Allocate(a, q)
	if err != nil {
		return nil, err
	}
	starts := make([]berth.Time, in.w.Len())
	if in.problem.Plain {
		s := plain{in: in}
		starts = s.schedule(npe, q, s.everything())
	} else {
		var m mapping
		m.run(in.w, in.curves, npe, nil, in.now, q, -1, starts)
	}
	out := make([]Placement, in.w.Len())
	for i, start := range starts {
		out[i] = Placement{Task: i, NPE: npe[i], Start: start, End: start.Add(in.curves[i].duration(npe[i]))}
	}
	return out, nil
}
