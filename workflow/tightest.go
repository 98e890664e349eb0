package workflow

import "github.com/berth-hpc/berth"

// reach bounds the search for a deadline: no turn-around beyond 2^30 s, 34
// years, is tried (specification 2, b.6).
const reach = 1 << 30

// tightestFor is the planner whose turn-around the search begins with.
var tightestFor = forward{cpar, cpar}

// Tightest searches the earliest deadline that the planner meets, and returns
// it with the plan that meets it. It is false if none is within reach. A
// planner for the earliest end has its own end as its tightest deadline.
//
// Source: Aida and Casanova, section 5.4, as specified in spec 2, b.6: the
// turn-around of bd-cpar is doubled until the planner succeeds, then halved
// towards 0 until what is left is no more than a minute or half a hundredth.
// The planners may fail at a deadline although they meet an earlier one, so
// this is one border between failure and success, not the earliest.
func (in *Instance) Tightest(p Planner) (berth.Time, Plan, bool) {
	if p.Goal == Finish {
		plan, ok := in.try(p, berth.Forever)
		return plan.End(in.now), plan, ok
	}
	first, ok := in.firstReach()
	if !ok {
		return 0, Plan{}, false
	}
	lo, hi := int64(0), int64(first)
	plan, ok := in.try(p, in.now+berth.Time(hi))
	for ; !ok; plan, ok = in.try(p, in.now+berth.Time(hi)) {
		lo, hi = hi, 2*hi
		if hi > reach {
			return 0, Plan{}, false
		}
	}
	for hi-lo > max(60, hi/200) {
		mid := lo + (hi-lo)/2
		if better, ok := in.try(p, in.now+berth.Time(mid)); ok {
			hi, plan = mid, better
		} else {
			lo = mid
		}
	}
	return in.now + berth.Time(hi), plan, true
}

// firstReach returns the turn-around that the search begins with: one plan is made for
// all planners. It is false if that was stopped, and then not remembered.
func (in *Instance) firstReach() (berth.Duration, bool) {
	if in.reached == 0 || in.problem.Plain {
		plan, ok := in.try(Planner{how: tightestFor}, berth.Forever)
		if !ok {
			return 0, false
		}
		in.reached = plan.Turnaround
	}
	return in.reached, true
}

// refuse explains why a planner gave no plan, and what could be had.
func (in *Instance) refuse(p Planner, due berth.Time) *Refusal {
	r := &Refusal{Planner: p.Name, Reason: berth.NoCapacity, Deadline: due, Bound: in.bound, Tightest: berth.Forever}
	if due < in.bound {
		r.Reason = berth.DeadlineMissed
	}
	consider := func(p Planner) {
		if at, _, ok := in.Tightest(p); ok && at < r.Tightest {
			r.Tightest, r.TightestBy = at, p.Name
		}
	}
	consider(p)
	for _, other := range Planners {
		if _, quick := other.how.(forward); quick && other.Name != p.Name {
			consider(other)
		}
	}
	return r
}
