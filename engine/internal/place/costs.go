package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// Cost is what a promise is foreseen to cost the ordinary jobs, as limits bound it.
type Cost struct {
	Delay berth.Duration // the largest of one job
	Idle  int64          // PE-seconds
	// Complete says that all jobs were followed; else it is that much or more.
	Complete bool
}

// With returns the cost together with what a promise was foreseen to cost before.
func (c Cost) With(was berth.Terms) Cost {
	c.Delay, c.Idle = min(c.Delay+was.Delay, berth.TimeLimit), c.Idle+was.Idle
	return c
}

// BoundsCost reports whether a limit bounds what a promise to a request may cost ordinary jobs, in some pool that it may come to.
func (f *Finder) BoundsCost(r *berth.Request) bool {
	if r.IsJob() || !f.Limits.BoundCosts() {
		return false
	}
	for _, a := range f.allowances(r) {
		if a.BoundsCosts() {
			return true
		}
	}
	return false
}

// OverCost returns the refusal of a limit on what a request may cost at some places; nil if it exceeds none. The limit of
// a partition counts if one of the places is in a pool where it takes the request. What is foreseen in part exceeds any limit.
func (f *Finder) OverCost(r *berth.Request, at []berth.Allotment, cost Cost) *berth.Refusal {
	x := f.search(r, nil)
	for _, a := range f.allowances(r) {
		for i := range at {
			if !a.BoundsCosts() || !x.in(f.poolOf(at[i].Resource), &a) {
				continue
			}
			if over := a.exceedsCost(cost); over != nil {
				return &berth.Refusal{Reason: berth.Quota, Resource: at[i].Resource, Wanted: at[i].NPE, Exceeded: over}
			}
			break
		}
	}
	return nil
}

// exceedsCost says which limit a cost exceeds, nil if it exceeds none.
func (a *allowance) exceedsCost(cost Cost) *berth.Exceeded {
	for _, is := range []struct {
		name  policy.LimitIndex
		asked int64
	}{{policy.ByDelay, int64(cost.Delay)}, {policy.ByIdle, cost.Idle}} {
		if over := a.exceeds(is.name, is.asked); over != nil {
			return over
		}
	}
	if cost.Complete {
		return nil
	}
	over := &berth.Exceeded{Limit: string(policy.LimitDelay), Asked: int64(cost.Delay)}
	allowed, limited := a.By(policy.ByDelay)
	if !limited {
		over.Limit, over.Asked = string(policy.LimitIdle), cost.Idle
		allowed, _ = a.By(policy.ByIdle)
	}
	over.Allowed = allowed
	a.names(over)
	return over
}
