package engine

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Overrun says what becomes of a reservation or job that has reached its limit
// and was not told to be finished.
type Overrun string

// The ways. What extends goes on for Config.Extension at a time, until it
// finishes or can be extended no more, and then ends. Co-allocated parts always
// end at their limit.
const (
	Kill   Overrun = "kill"   // it ends, which keeps every promise; also the empty string
	Extend Overrun = "extend" // it goes on while nobody else was promised its PEs
	Delay  Overrun = "delay"  // it goes on, and promises that have not started yield to it
)

// defaultExtension is a minute: schedulers kill with about that precision
// (Slurm's OverTimeLimit counts minutes).
const defaultExtension berth.Duration = 60

// limit deals with a part whose time is over.
func (e *Engine) limit(entry *entry, part int) {
	if rest, cut := e.cut(entry); cut {
		e.effect(EffectRelease, &entry.Reservation)
		e.emit(Change{Kind: Preempted, ID: entry.Request.ID, Request: rest, entry: entry})
	} else if !e.extend(entry) {
		e.end(entry, part)
	}
	e.released()
}

// extend lets a reservation go on beyond its limit, if that is allowed.
func (e *Engine) extend(over *entry) bool {
	if e.config.Overrun == "" || e.config.Overrun == Kill || len(over.Allotments) > 1 {
		return false
	}
	a := &over.Allotments[0]
	further := calendar.Block{
		Start: a.End, End: a.End.Add(cmp.Or(e.config.Extension, defaultExtension)), NPE: a.NPE, PEs: a.PEs,
	}
	if !further.End.Valid() {
		return false
	}
	if !e.longer(over.Held, further.End) {
		return false
	}
	var displaced []*entry
	if !canTake(e.state.calendar(a.Resource), further) {
		if e.config.Overrun == Extend {
			return false
		}
		if displaced = e.inTheWay(a.Resource, further, false); displaced == nil {
			return false
		}
	}
	for _, d := range displaced {
		e.emit(Change{Kind: Moved, ID: d.Request.ID})
	}
	e.yield([]berth.Allotment{{Resource: a.Resource, Start: further.Start, End: further.End, NPE: a.NPE, PEs: a.PEs}})
	e.emit(Change{Kind: Extended, ID: over.Request.ID, Until: further.End})
	slices.SortFunc(displaced, byStart)
	for _, d := range displaced {
		if d.Request.IsJob() {
			e.emit(Change{Kind: Requeued, ID: d.Request.ID, Request: d.Request, entry: d})
			continue
		}
		at, ok := e.later(d)
		if !ok {
			e.emit(Change{Kind: Lost, ID: d.Request.ID, Refusal: &berth.Refusal{Reason: berth.NoCapacity, Resource: a.Resource, Wanted: d.Allotments[0].NPE}})
			e.effect(EffectRelease, &d.Reservation)
			continue
		}
		e.yield([]berth.Allotment{at})
		e.relocate(d, []berth.Allotment{at})
	}
	return true
}

// canTake reports whether a block is free.
func canTake(c calendar.Calendar, b calendar.Block) bool {
	n, pes := c.Free(berth.Interval{Start: b.Start, End: b.End})
	if c.Binding() == berth.Late {
		return n >= b.NPE
	}
	return b.PEs.Count() == common(pes, b.PEs)
}

// common returns how many PEs are in both sets.
func common(a, b berth.PESet) berth.Count {
	var n berth.Count
	as, bs := a.Runs(), b.Runs()
	for len(as) > 0 && len(bs) > 0 {
		if lo, hi := max(as[0].Lo, bs[0].Lo), min(as[0].Hi, bs[0].Hi); lo < hi {
			n += berth.Count(hi - lo)
		}
		if as[0].Hi < bs[0].Hi {
			as = as[1:]
		} else {
			bs = bs[1:]
		}
	}
	return n
}

// inTheWay returns reservations that have not started and without which a block
// is free: those that start last go first, of equals those accepted last, and
// none more than needed. Co-allocated ones are left alone, unless several is
// set; nil means that no choice of them is enough, or that none is needed.
func (e *Engine) inTheWay(resource berth.ResourceID, b calendar.Block, several bool) []*entry {
	c := e.state.calendar(resource)
	var candidates []*entry
	for _, d := range e.state.ledger.live {
		if d.State != berth.Active && (several || len(d.Allotments) == 1) &&
			slices.ContainsFunc(d.Allotments, func(a berth.Allotment) bool {
				return a.Resource == resource && a.Start < b.End && a.End > b.Start && (c.Binding() == berth.Late || common(a.PEs, b.PEs) > 0)
			}) {
			candidates = append(candidates, d)
		}
	}
	slices.SortFunc(candidates, func(a, b *entry) int { return byStart(b, a) })
	each := func(d *entry, do func(calendar.Block) error) {
		for i := range d.Allotments {
			a := &d.Allotments[i]
			left := blockOf(a, max(a.Start, e.state.now)) // one that is held may have begun, and a part of it ended
			if a.Resource == resource && left.Start < left.End && left.NPE > 0 {
				must(do(left))
			}
		}
	}
	taken := 0
	for ; taken < len(candidates) && !canTake(c, b); taken++ {
		each(candidates[taken], c.Remove)
	}
	enough := canTake(c, b)
	for _, d := range candidates[:taken] {
		each(d, c.Add)
	}
	if !enough {
		return nil
	}
	return candidates[:taken]
}

// later finds the earliest place for a displaced reservation from its start on,
// in the same shape on the same resource. Its deadline does not count any more.
func (e *Engine) later(d *entry) (at berth.Allotment, ok bool) {
	a := d.Allotments[0]
	res := e.resourceOf(a.Resource)
	q := calendar.Query{
		Now: e.state.now, Ready: max(a.Start, e.state.now), Deadline: berth.Forever,
		Duration: a.End.Sub(a.Start), NPE: a.NPE, Eligible: res.eligible(d.Request, &d.Request.Parts[0]),
	}
	c := e.state.calendar(a.Resource)
	fit, ok := calendar.Earliest(c, q)
	e.state.placing.again = d
	fit, ok = e.beside(c, e.takes(d.Request, res), q, fit, ok)
	e.state.placing.again = nil
	a.Start, a.End, a.PEs = fit.Start, fit.End, fit.PEs
	return a, ok && fit.End.Valid()
}

// must panics where the engine contradicts itself.
func must(err error) {
	if err != nil {
		panic("engine: " + err.Error())
	}
}
