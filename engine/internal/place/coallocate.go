package place

import (
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// coallocate finds the earliest common start of several parts, all or none.
// Whatever the placement, co-allocated parts take the first start at which each of
// them, in order, fits beside those before it; a part takes the earliest of its
// pools and variants, ties in their order. Each part needs a pool that has all that
// the request requires; a user's quota counts the parts together.
//
// The search moves a common start s from the window's beginning: if a part cannot
// start at s beside the parts before it, s becomes the earliest time at which it
// can, and all begin anew. Under late binding no common start is skipped: a block
// that starts later covers what remains of one that starts earlier. Where parts are
// in each other's way only, such steps are as short as a part is long; all those
// that must lead to the same are taken at once. Under early binding the numbers that
// an earlier part takes may be the wrong ones for a later part, so a refusal there
// is not a proof.
func (x *search) coallocate(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	if refusal := x.overQuota(); refusal != nil {
		return nil, refusal
	}
	bare := t.Mark()
	defer t.Undo(bare)
	allotments := make([]berth.Allotment, 0, len(x.r.Parts))
	var seen *corners
	for start, steps := max(x.notBefore, x.state.Now()), 0; ; steps++ {
		allotments = allotments[:0]
		next := start
		for part := range x.r.Parts {
			a, ok := x.earliestFrom(part, start, allotments)
			if !ok {
				t.Undo(bare)
				return nil, x.noRoomBeside(part)
			}
			if next = a.Start; next > start {
				break
			}
			t.Book(&a)
			allotments = append(allotments, a)
		}
		if next == start {
			stocked, ok := x.stockedFrom(t, allotments, start)
			switch {
			case !ok:
				t.Undo(bare)
				return nil, x.noRoomBeside(0)
			case stocked == start:
				return allotments, nil
			}
			t.Undo(bare)
			start = stocked
			continue
		}
		t.Undo(bare)
		if steps == 0 && x.tooMany() || x.quietFrom(start) { // no others are in the way: they are in each other's
			return nil, x.noRoomBeside(len(allotments))
		}
		if steps > singleSteps {
			if seen == nil {
				seen = x.corners()
			}
			next = seen.leap(start, next)
		}
		start = next
	}
}

// overQuota refuses parts of which the smallest variants together exceed the quota.
func (x *search) overQuota() *berth.Refusal {
	if !x.admit {
		return nil
	}
	var area int64
	for part := range x.r.Parts {
		area += x.least(part)
	}
	if x.withinQuota(area) {
		return nil
	}
	return &berth.Refusal{Reason: berth.Quota, Wanted: fewest(x.variants(0))}
}

// least returns the least area of a part in any pool that could serve it.
func (x *search) least(part int) int64 {
	least := int64(berth.Forever)
	for i := range x.pools {
		p := &x.pools[i]
		if o := x.obstacle(part, p, x.state.Now()); o.reason != "" {
			continue
		}
		eligible := x.eligibleCount(part, p)
		for _, v := range x.variants(part) {
			if v = x.scaled(p, v); v.NPE <= eligible && x.permits(p, v) {
				least = min(least, v.Area())
			}
		}
	}
	return least
}

// quotaFor reports whether a variant of a part is within the quota beside the parts
// before it, and the least that the parts after it take.
func (x *search) quotaFor(part int, v berth.Variant, earlier []berth.Allotment) bool {
	if !x.admit || x.r.User == "" || x.Quota.PESeconds == 0 {
		return true
	}
	area := v.Area()
	for i := range earlier {
		area += berth.Area(earlier[i].NPE, earlier[i].End.Sub(earlier[i].Start))
	}
	for later := part + 1; later < len(x.r.Parts); later++ {
		area += x.least(later)
	}
	return x.withinQuota(area)
}

// earliestFrom returns the earliest allotment of a part that starts at a time or
// later, beside the parts before it.
func (x *search) earliestFrom(part int, from berth.Time, earlier []berth.Allotment) (best berth.Allotment, found bool) {
	for i := range x.pools {
		p := &x.pools[i]
		if x.unmet(p) != "" {
			continue
		}
		eligible := x.eligibleCount(part, p)
		for _, v := range x.variants(part) {
			v = x.scaled(p, v)
			if v.NPE > eligible || !x.permits(p, v) || x.admit && x.Eager != nil && !x.eager(p, v) || !x.quotaFor(part, v, earlier) {
				continue
			}
			q := x.query(part, v, p)
			q.Ready = max(from, q.Ready)
			fit, ok := x.view(p).Earliest(q)
			if ok && fit.End.Valid() && (!found || fit.Start < best.Start) {
				o := offer{pool: p, variant: v, fit: fit}
				best, found = o.allotment(), true
			}
		}
	}
	return best, found
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

// singleSteps is how many steps are taken one by one before looking where something
// changes is worth its cost.
const singleSteps = 16

// corners tells for which common starts a search must find the same as for the
// start before: those for which no part, of any of its lengths, begins or ends
// where something changes.
type corners struct {
	times   []berth.Time // at which something changes, ascending
	lengths []berth.Duration
}

// corners returns the corners of a request among what is booked. Cost: O(n log n)
// for n records.
func (x *search) corners() *corners {
	c := &corners{times: []berth.Time{x.deadline}, lengths: []berth.Duration{0}}
	for i := range x.pools {
		p := &x.pools[i]
		for record := range x.view(p).Records() {
			c.times = append(c.times, record.Time)
		}
		c.times = append(c.times, x.arrival(p))
		for part := range x.r.Parts {
			for _, v := range x.variants(part) {
				c.lengths = append(c.lengths, x.scaled(p, v).Duration)
			}
		}
	}
	slices.Sort(c.times)
	slices.Sort(c.lengths)
	c.lengths = slices.Compact(c.lengths)
	return c
}

// leap returns the last of the steps from a start, all as long as that to next,
// that does not reach a corner; next if that does.
func (c *corners) leap(start, next berth.Time) berth.Time {
	corner := berth.Time(berth.Forever)
	for _, length := range c.lengths {
		if i := sort.Search(len(c.times), func(i int) bool { return c.times[i] > start.Add(length) }); i < len(c.times) {
			corner = min(corner, c.times[i].Add(-length))
		}
	}
	if next >= corner {
		return next
	}
	return next + (corner-1-next)/(next-start)*(next-start)
}

// tooMany reports whether the parts together want more PEs than there are where
// they could go.
func (x *search) tooMany() bool {
	wanted, there := int64(0), int64(0)
	for part := range x.r.Parts {
		wanted += int64(fewest(x.variants(part)))
	}
	for i := range x.pools {
		p := &x.pools[i]
		for part := range x.r.Parts {
			if o := x.obstacle(part, p, x.state.Now()); o.reason == "" {
				there += int64(p.config.PEs)
				break
			}
		}
	}
	return wanted > there
}

// quietFrom reports whether nothing changes from a time on: in each pool the PEs
// that are free throughout are as many as are ever free, and data could be there.
// Cost: O(log n) each.
func (x *search) quietFrom(from berth.Time) bool {
	for i := range x.pools {
		p := &x.pools[i]
		view := x.view(p)
		always, _ := view.Free(berth.Interval{Start: from, End: berth.Forever})
		most, _ := view.MostFree(calendar.Query{Now: x.state.Now(), Ready: from, Deadline: berth.Forever, Duration: 1, NPE: 1})
		if always < most || x.unmet(p) == "" && x.arrival(p) > from {
			return false
		}
	}
	return true
}
