package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// coallocate finds the earliest common start of several parts, all or none.
// Whatever the placement, co-allocated parts take the first start at which all of
// them fit beside each other, with the stocks that the request takes at their sites;
// there each part, in order, takes the first of its pools and variants with which
// those after it still fit. Each part needs a pool that has all that the request
// requires; limits count the parts together.
//
// The search moves a start from the window's beginning: to where each part has room
// alone, and, where the parts do not fit together, to where something ends next. That
// skips no common start. Whether parts fit together in pools of several sizes is as
// hard as packing bins, so the combinations that are tried have a bound, groupBudget, and
// so has the search of a new request in all: groupSteps. Only where one is exceeded is a
// refusal no proof. Cost: O(log n) for n bookings for
// each part, pool and variant at each start that is tried.
func (x *search) coallocate(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	if refusal := x.overGroup(); refusal != nil {
		return nil, refusal
	}
	g := x.group(t, false)
	for start := max(x.notBefore, x.state.Now()); ; {
		alone, part := g.aloneFrom(start)
		if part >= 0 {
			return nil, x.noRoomBeside(part)
		}
		if alone > start {
			start = alone
			continue
		}
		if allotments, ok := g.at(start); ok {
			return allotments, nil
		}
		next, ok := g.next(start)
		if !ok {
			return nil, x.noRoomBeside(g.deepest)
		}
		start = next
	}
}

// overGroup refuses a request if the smallest variants of its parts together exceed a
// limit of a holder, or one part does so wherever it is placed.
func (x *search) overGroup() *berth.Refusal {
	if len(x.allowed) == 0 { // as is what was admitted before
		return nil
	}
	if x.over != nil {
		return x.over
	}
	n := len(x.allowed)
	room := make([]int64, 4*n)
	areas, charges := room[:n], room[n:2*n]
	for part := range x.r.Parts {
		least, cheapest := room[2*n:3*n], room[3*n:]
		if refusal := x.least(part, least, cheapest); refusal != nil {
			return refusal
		}
		for i := range areas {
			areas[i] = berth.AddAreas(areas[i], least[i])
			charges[i] = state.AddCharges(charges[i], cheapest[i])
		}
	}
	for i := range areas {
		a := &x.allowed[i]
		over := x.overArea(a, areas[i])
		if over == nil {
			over = x.overBudget(a, charges[i])
		}
		if over != nil {
			return &berth.Refusal{Reason: berth.Quota, Wanted: fewest(x.variants(0)), Exceeded: over}
		}
	}
	return nil
}

// least sets the least area that a part takes of each holder in any pool that could serve it, and the least that is charged for it,
// or returns the refusal of the limit that it exceeds in all of them.
func (x *search) least(part int, least, cheapest []int64) (refusal *berth.Refusal) {
	for i := range least {
		least[i], cheapest[i] = int64(berth.Endless), int64(berth.Endless)
	}
	allowed := false
	for i := range x.pools {
		p := &x.pools[i]
		if o := x.obstacle(part, p, x.state.Now()); o.reason != "" {
			continue
		}
		eligible := x.widest(part, p)
		for _, v := range x.variants(part) {
			if v = x.scaled(p, v); v.NPE > eligible || !x.permits(p, v) {
				continue
			}
			if no := x.limited(p, v); no == nil {
				allowed = true
				for i := range least {
					least[i] = min(least[i], x.areaOf(&x.allowed[i], policy.ByPESeconds, p, v))
					cheapest[i] = min(cheapest[i], x.areaOf(&x.allowed[i], policy.ByBudget, p, v))
				}
			} else if refusal == nil || no.Wanted < refusal.Wanted {
				refusal = no
			}
		}
	}
	if allowed {
		return nil
	}
	return refusal
}

// areaOf returns how many PE-seconds of a holder a variant takes in a pool, or is charged for where a budget is meant.
func (x *search) areaOf(a *allowance, limit policy.LimitIndex, p *pool, v berth.Variant) int64 {
	switch {
	case !x.in(p, a):
		return 0
	case limit == policy.ByPESeconds:
		return v.Area()
	}
	return x.price(p, v.Area())
}

// noRoomBeside is the refusal of a part that finds no room beside the others, in
// the first pool that could serve it, or that of the policy that denies it there.
func (x *search) noRoomBeside(part int) *berth.Refusal {
	var denied *berth.Refusal
	for i := range x.pools {
		p := &x.pools[i]
		if o := x.obstacle(part, p, x.state.Now()); o.reason != "" {
			continue
		}
		if no := x.denies(p, x.narrowest(part, p)); no != nil {
			if denied == nil {
				denied = no
			}
			continue
		}
		return x.noCapacity(part, p)
	}
	if denied == nil {
		panic("engine: a part that nothing could serve was to be placed")
	}
	return denied
}
