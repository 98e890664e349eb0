package engine

import (
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// coallocate finds the earliest common start of several parts, all or none.
// Whatever the placement, co-allocated parts take the first start at which
// each of them, in order, fits beside those before it; a part takes the
// earliest of its resources and variants, ties in their order.
//
// The search moves a common start s from the window's beginning: if a part cannot
// start at s beside the parts before it, s becomes the earliest time at which it
// can, and all begin anew. Under late binding no common start is skipped: a block
// that starts later covers what remains of one that starts earlier. Where parts
// are in each other's way only, such steps are as short as a part is long; all
// those that must lead to the same are taken at once. Under early binding the
// numbers that an earlier part takes may be the wrong ones for a later part, so a
// refusal there is not a proof.
func (e *Engine) coallocate(r *berth.Request) ([]berth.Allotment, *berth.Refusal) {
	for i := range e.state.resources {
		e.state.calendar(e.state.resources[i].id) // prunes; nothing may prune under an open draft
	}
	draft := calendar.NewDraft(e.state.calendars)
	bare := draft.Mark()
	defer func() { draft.Undo(bare) }()

	allotments := make([]berth.Allotment, 0, len(r.Parts))
	var seen *corners
	for start, steps := max(r.Ready, e.state.now), 0; ; steps++ {
		allotments = allotments[:0]
		next := start
		for i := range r.Parts {
			a, ok := e.earliestFrom(draft, r, &r.Parts[i], start)
			if !ok {
				return nil, e.noRoomBeside(r, &r.Parts[i])
			}
			if next = a.Start; next > start {
				break
			}
			block := calendar.Block{Start: a.Start, End: a.End, NPE: a.NPE, PEs: a.PEs}
			if err := draft.Book(a.Resource, block); err != nil {
				panic("engine: what was found cannot be booked: " + err.Error())
			}
			allotments = append(allotments, a)
		}
		if next == start {
			stocked, ok := e.stockedFor(r, allotments)
			switch {
			case !ok:
				return nil, e.noRoomBeside(r, &r.Parts[0])
			case stocked == start:
				return allotments, nil
			}
			draft.Undo(bare)
			start = stocked
			continue
		}
		draft.Undo(bare)
		if steps == 0 && e.tooManyFor(r) || e.quietFrom(start) { // nobody else is in the way: they are in each other's
			return nil, e.noRoomBeside(r, &r.Parts[len(allotments)])
		}
		if steps > singleSteps {
			if seen == nil {
				seen = e.cornersFor(r)
			}
			next = seen.leap(start, next)
		}
		start = next
	}
}

// singleSteps is how many steps are taken one by one before it is worth while to
// look where something changes.
const singleSteps = 16

// corners tells for which common starts a search must find the same as for the
// start before: those for which no part, of any of its lengths, begins or ends
// where something changes.
type corners struct {
	times   []berth.Time // at which something changes, ascending
	lengths []berth.Duration
}

// cornersFor returns the corners of a request among what is booked. Cost:
// O(n log n) for n records.
func (e *Engine) cornersFor(r *berth.Request) *corners {
	c := &corners{times: []berth.Time{r.Deadline}, lengths: []berth.Duration{0}}
	for i := range e.state.resources {
		res := &e.state.resources[i]
		for record := range e.state.calendar(res.id).Records() {
			c.times = append(c.times, record.Time)
		}
		for k := range r.Parts {
			for _, v := range r.Parts[k].Variants {
				c.lengths = append(c.lengths, res.lasts(r, v).Duration)
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

// tooManyFor reports whether the parts of a request together want more PEs than
// there are where they could go.
func (e *Engine) tooManyFor(r *berth.Request) bool {
	wanted, there := int64(0), int64(0)
	for i := range r.Parts {
		wanted += int64(fewest(&r.Parts[i]))
	}
	for i := range e.state.resources {
		res := &e.state.resources[i]
		for k := range r.Parts {
			if o := res.obstacle(r, &r.Parts[k], e.state.now); o.reason == "" {
				there += int64(res.pool.PEs)
				break
			}
		}
	}
	return wanted > there
}

// stockedFor returns the earliest start, from that of the allotments on, at which
// there is what the request takes beside them.
func (e *Engine) stockedFor(r *berth.Request, allotments []berth.Allotment) (berth.Time, bool) {
	res := e.resourceOf(allotments[0].Resource)
	takes := e.takes(r, res)
	start := max(allotments[0].Start, res.earliest(r))
	q := calendar.Query{Now: e.state.now, Ready: start, Deadline: r.Deadline, Duration: lastEnd(allotments).Sub(allotments[0].Start)}
	if q.Ready.Add(q.Duration) > q.Deadline {
		return 0, false
	}
	return e.stocked(takes, q, start)
}

// quietFrom reports whether nothing changes from t on: on each resource the PEs
// that are free throughout are as many as are ever free. Cost: O(log n) each.
func (e *Engine) quietFrom(t berth.Time) bool {
	for i := range e.state.resources {
		c := e.state.resources[i].calendar
		always, _ := c.Free(berth.Interval{Start: t, End: berth.Forever})
		most, _ := c.MostFree(calendar.Query{Now: e.state.now, Ready: t, Deadline: berth.Forever, Duration: 1, NPE: 1})
		if always < most {
			return false
		}
	}
	return true
}

// noRoomBeside is the refusal of a part that finds no room beside the others,
// on the first resource that could serve it.
func (e *Engine) noRoomBeside(r *berth.Request, part *berth.Part) *berth.Refusal {
	for i := range e.state.resources {
		if res := &e.state.resources[i]; e.impossibleOn(r, part, res) == nil {
			return e.noCapacity(r, part, res)
		}
	}
	panic("engine: a part that nothing could serve was to be placed")
}

// earliestFrom returns the earliest allotment of a part on the draft that
// starts at from or later.
func (e *Engine) earliestFrom(draft *calendar.Draft, r *berth.Request, part *berth.Part, from berth.Time) (best berth.Allotment, found bool) {
	for i := range e.state.resources {
		res := &e.state.resources[i]
		for _, v := range part.Variants {
			v = res.lasts(r, v)
			if v.NPE > res.eligibleCount(r, part) || !res.permits(r, v) {
				continue
			}
			q := e.query(r, part, v, res)
			q.Ready = from
			fit, ok := calendar.Earliest(draft.Calendar(res.id), q)
			if ok && (!found || fit.Start < best.Start) {
				o := offer{res: res, variant: v, fit: fit}
				best, found = o.allotment(), true
			}
		}
	}
	return best, found
}
