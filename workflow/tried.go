package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// tried is an attempt of a planner that keeps a reserve, which others that keep the same one repeat:
// they differ in the steps of λ that they go through, and in the bound on tasks without reserve.
type tried struct {
	reserve  allotment
	bound    allotment
	free     bool // no task was without reserve, so that the bound made no difference
	deadline berth.Time
	step     int
	plan     []Placement // nil if it failed
}

// mostTried is how many attempts are remembered: more than searches for the tightest deadline make with
// three planners, where only those without widening and those that succeed are.
const mostTried = 64

// again returns what became of the same attempt before.
func (in *Instance) again(b backward, deadline berth.Time, step int) *tried {
	for i := range in.tries {
		if t := &in.tries[i]; t.deadline == deadline && t.step == step && t.reserve == b.reserve && (t.free || t.bound == b.bound) {
			return t
		}
	}
	return nil
}

// remember keeps what became of an attempt, in place of the oldest.
func (in *Instance) remember(t tried) {
	if len(in.tries) < mostTried {
		in.tries = append(in.tries, t)
		return
	}
	in.tries[in.oldest] = t
	in.oldest = (in.oldest + 1) % mostTried
}

// heads returns how long the tasks before each task take at least where none gets more PEs than an allotment
// gives it: the longest way to it. A plan in which one starts earlier leaves no time for these and cannot be
// completed, whatever is booked. Cost: O(n + e) once for each allotment.
func (in *Instance) heads(a allotment) []berth.Duration {
	if heads, ok := in.ways[a]; ok {
		return heads
	}
	npe, heads := in.allot(a), make([]berth.Duration, in.w.Len())
	for _, i := range in.w.topological {
		end := heads[i] + in.curves[i].duration(npe[i])
		for _, child := range in.w.children.of(i) {
			heads[child] = max(heads[child], end)
		}
	}
	if in.problem.stopped() { // the allotment may not be complete
		return heads
	}
	if in.ways == nil {
		in.ways = map[allotment][]berth.Duration{}
	}
	in.ways[a] = heads
	return heads
}

// attempt tries one step of λ, unless that was tried before.
func (b backward) attempt(in *Instance, deadline berth.Time, k int, out []Placement) bool {
	if in.problem.Plain {
		return (&plain{in: in}).backward(b, deadline, k, out)
	}
	if b.reserve != fixed1 {
		if t := in.again(b, deadline, k); t != nil {
			copy(out, t.plan)
			return t.plan != nil
		}
	}
	free, ok := b.anew(in, deadline, k, out)
	if in.problem.stopped() {
		return false
	}
	if b.reserve != fixed1 && (ok || k == 0) {
		t := tried{reserve: b.reserve, bound: b.bound, free: free, deadline: deadline, step: k}
		if ok {
			t.plan = slices.Clone(out)
		}
		in.remember(t)
	}
	return ok
}
