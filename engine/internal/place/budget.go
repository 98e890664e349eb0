package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// Budgets are PE-seconds that a holder may be charged for in all, or for what starts in one month. A promise is
// charged in full before it is made, at the prices of its place and its QOS; the state says what is charged for what is over. A budget for all
// time is asked like other limits of PE-seconds. That of a month depends on the start, so it narrows a search as a share does.

// charged returns what a holder is charged for with that many PE-seconds more of a month, or of all.
func (f *Finder) charged(a *allowance, m policy.Month, area int64) int64 {
	return state.AddCharges(f.state.Charged(a.of, m), area)
}

// charged is Finder.charged with what has left its place.
func (x *search) charged(a *allowance, m policy.Month, area int64) int64 {
	sum := x.Finder.charged(a, m, area)
	for _, d := range x.vacant {
		if x.state.Holds(a.of, d) && (m == policy.Always || m == policy.MonthOf(d.Start())) {
			sum = state.AddCharges(sum, x.state.ChargeOf(a.of, d))
		}
	}
	return sum
}

// price returns what some PE-seconds of the request are charged as in a pool.
func (x *search) price(p *pool, area int64) int64 {
	if x.rated != p {
		x.rated, x.rate = p, state.RateOf(x.Sites, x.Prices, x.r, p.id)
	}
	return x.rate.Charge(area)
}

// priceAt is price of what an allotment takes.
func (x *search) priceAt(at *berth.Allotment) int64 {
	return x.price(x.poolOf(at.Resource), berth.Area(at.NPE, at.End.Sub(at.Start)))
}

// keeps returns the PE-seconds that are charged for what is placed again beside those of its new place: what it was foreseen to leave idle.
func (x *search) keeps() int64 {
	if x.again == nil {
		return 0
	}
	return x.again.ChargedIdle()
}

// overBudget says that a holder may not be charged for that many PE-seconds more whenever it starts, nil if it may. What costs
// nothing is within every budget.
func (x *search) overBudget(a *allowance, area int64) *berth.Exceeded {
	if area == 0 {
		return nil
	}
	area = state.AddCharges(area, x.keeps())
	if over := a.exceeds(policy.ByBudget, x.charged(a, policy.Always, area)); over != nil {
		return over
	}
	return a.exceeds(policy.ByMonthBudget, area)
}

// overLonger says that a holder may not be charged for that many PE-seconds more of a reservation that lasts longer, nil if it may.
func (f *Finder) overLonger(a *allowance, d *state.Entry, area int64) *berth.Exceeded {
	if area == 0 {
		return nil
	}
	if over := a.exceeds(policy.ByBudget, f.charged(a, policy.Always, area)); over != nil {
		return over
	}
	return a.exceeds(policy.ByMonthBudget, f.charged(a, policy.MonthOf(d.Start()), area))
}

// OverIdle returns the refusal of a budget that a request exceeds at some places with the PE-seconds that it leaves idle in
// front of it, all that were foreseen for it; nil if it exceeds none. A reservation of its id that is modified is charged at these places
// instead, and one that lasts longer there beside its own.
func (f *Finder) OverIdle(r *berth.Request, at []berth.Allotment, idle int64, longer bool) *berth.Refusal {
	x, own, start := f.search(r, nil), f.state.Entry(r.ID), at[0].Start
	if longer {
		start = own.Start()
	}
	for _, a := range f.allowances(r) {
		area := int64(0)
		for i := range at {
			if x.in(f.poolOf(at[i].Resource), &a) {
				area = state.AddCharges(area, x.priceAt(&at[i]))
			}
		}
		if area == 0 {
			continue
		}
		for _, b := range []struct {
			name policy.LimitIndex
			in   policy.Month
		}{{policy.ByBudget, policy.Always}, {policy.ByMonthBudget, policy.MonthOf(start)}} {
			asked := f.charged(&a, b.in, state.AddCharges(area, idle))
			switch {
			case own == nil || !f.state.Holds(a.of, own):
			case longer:
				asked -= own.ChargedIdle()
			case b.in == policy.Always || b.in == policy.MonthOf(own.Start()):
				asked -= f.state.ChargeOf(a.of, own)
			}
			if over := a.exceeds(b.name, asked); over != nil {
				return &berth.Refusal{Reason: berth.Quota, Resource: at[0].Resource, Wanted: at[0].NPE, Exceeded: over}
			}
		}
	}
	return nil
}

// hasMonths reports whether a budget of a month counts for a promise in a pool.
func (x *search) hasMonths(p *pool) bool {
	if x.r.IsJob() {
		return false
	}
	for i := range x.allowed {
		if _, limited := x.allowed[i].By(policy.ByMonthBudget); limited && x.in(p, &x.allowed[i]) {
			return true
		}
	}
	return false
}

// monthFrom returns the first start from a time on in a month whose budgets leave an area in a pool; Forever if none does.
func (x *search) monthFrom(p *pool, area int64, start berth.Time) berth.Time {
	if area == 0 {
		return start
	}
	area = state.AddCharges(area, x.keeps())
	m := policy.MonthOf(start)
	for i := 0; i < len(x.allowed); i++ {
		a := &x.allowed[i]
		most, limited := a.By(policy.ByMonthBudget)
		switch {
		case !limited || !x.in(p, a):
		case area > most:
			return berth.Forever
		case x.charged(a, m, area) > most:
			m, i = m+1, -1 // all are asked about the next one
			start = m.Start()
		}
	}
	return start
}

// monthBeyond says whose budget of its month a place exceeds, and from when on it would not; nil if it exceeds none.
func (x *search) monthBeyond(found []berth.Allotment) (berth.ResourceID, *berth.Exceeded) {
	for i := range x.allowed {
		a, area, id := &x.allowed[i], int64(0), found[0].Resource
		for k := range found {
			if x.in(x.poolOf(found[k].Resource), a) {
				area, id = state.AddCharges(area, x.priceAt(&found[k])), found[k].Resource
			}
		}
		if area == 0 {
			continue
		}
		area = state.AddCharges(area, x.keeps())
		m := policy.MonthOf(found[0].Start)
		over := a.exceeds(policy.ByMonthBudget, x.charged(a, m, area))
		if over == nil {
			continue
		}
		for ; area <= over.Allowed; m++ {
			if x.charged(a, m, area) <= over.Allowed {
				over.Frees = m.Start()
				break
			}
		}
		return id, over
	}
	return berth.ResourceID{}, nil
}

// overAlways says that tasks which are charged as much together come to more than a budget for all time leaves, nil if they do not.
func (f *Finder) overAlways(a *allowance, charge int64) *berth.Exceeded {
	if charge == 0 {
		return nil
	}
	return a.exceeds(policy.ByBudget, f.charged(a, policy.Always, charge))
}

// overMonths says that tasks, which are charged as much each, come to more than a budget leaves in the month in which they start, nil if they do not.
func (f *Finder) overMonths(a *allowance, tasks []*berth.Allotment, charges []int64) *berth.Exceeded {
	if _, limited := a.By(policy.ByMonthBudget); !limited {
		return nil
	}
	areas := map[policy.Month]int64{}
	var months []policy.Month
	for i, task := range tasks {
		m := policy.MonthOf(task.Start)
		if charges[i] == 0 {
			continue
		}
		if areas[m] == 0 {
			months = append(months, m)
		}
		areas[m] = state.AddCharges(areas[m], charges[i])
	}
	slices.Sort(months)
	for _, m := range months {
		if over := a.exceeds(policy.ByMonthBudget, f.charged(a, m, areas[m])); over != nil {
			return over
		}
	}
	return nil
}

// overTry says which limit of its holders a task that is tried again exceeds at a place, nil if it exceeds none. Those that have left
// their places, to be placed again, count as they were. Cost: O(holders and those).
func (f *Finder) overTry(at *TaskPlace, vacant []*state.Entry) *berth.Exceeded {
	a := &at.Place.Allotments[0]
	x, area := f.search(&at.Request, nil), berth.Area(a.NPE, a.End.Sub(a.Start))
	charge := x.priceAt(a)
	x.vacant = vacant
	for _, of := range f.allowances(&at.Request) {
		if !x.in(f.poolOf(a.Resource), &of) {
			continue
		}
		has := berth.AddAreas(f.state.Usage(of.of).PESeconds, area)
		for _, d := range vacant {
			if f.state.Holds(of.of, d) {
				has = berth.AddAreas(has, berth.Area(d.Part(0).NPE, d.Part(0).End.Sub(d.Start())))
			}
		}
		if over := cmp.Or(
			of.exceeds(policy.ByLength, int64(a.End.Sub(a.Start))),
			of.exceeds(policy.ByPESeconds, has),
		); over != nil {
			return over
		}
		if charge == 0 { // what costs nothing is within every budget
			continue
		}
		if over := cmp.Or(
			of.exceeds(policy.ByBudget, x.charged(&of, policy.Always, charge)),
			of.exceeds(policy.ByMonthBudget, x.charged(&of, policy.MonthOf(a.Start), charge)),
		); over != nil {
			return over
		}
	}
	return nil
}
