package engine

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// What its owner may do to a promise: change it, make it longer, use it. Every
// refusal leaves it as it is: a Kept change says why.

// modify asks for something else in the place of a promise that has not started:
// all of it or nothing.
func (e *Engine) modify(id string, r *berth.Request) error {
	d, live := e.state.ledger.live[id]
	switch {
	case r == nil:
		return berth.Errorf(berth.Invalid, "request", "missing")
	case !live || d.Request.IsJob():
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	case d.State == berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q has started; it can be extended or released", id)
	case r.ID != id || r.IsJob() || r.User != d.Request.User:
		return berth.Errorf(berth.Invalid, "request", "of %q by %q; a modification keeps id, kind and user", r.ID, r.User)
	case r.Arrival > e.state.now:
		return berth.Errorf(berth.Invalid, "arrival", "%d is after now, %d", r.Arrival, e.state.now)
	}
	if err := r.Validate(); err != nil {
		return err
	}
	var allotments []berth.Allotment
	var refusal *berth.Refusal
	e.without(d, func() { allotments, refusal = e.placed(r) })
	if refusal != nil {
		e.emit(Change{Kind: Kept, ID: id, Refusal: refusal, entry: d})
		return nil
	}
	e.emit(Change{Kind: Moved, ID: id, entry: d})
	e.preempt(allotments)
	e.yield(allotments)
	held, staging := e.further(d, r, allotments)
	e.emit(Change{Kind: Modified, ID: id, Request: r, Moved: allotments, Held: held, Staging: staging, entry: d})
	e.effect(EffectReserve, &d.Reservation)
	e.released()
	return nil
}

// avoid places a promise anew, apart from PEs that its site will not give it.
func (e *Engine) avoid(event *Event) error {
	d, live := e.state.ledger.live[event.ID]
	switch {
	case !live || d.Request.IsJob():
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", event.ID)
	case d.State == berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q has started; it stays where it is", event.ID)
	}
	res, err := e.outOf(event)
	switch {
	case err != nil:
		return err
	case res.pool.Binding == berth.Late:
		return berth.Errorf(berth.Invalid, "pes", "%q; the PEs of pool %s of %s have no numbers before they start", event.PEs, res.id.Name, res.id.Site)
	}
	var allotments []berth.Allotment
	var refusal *berth.Refusal
	e.state.placing = placing{apart: res, from: event.PEs}
	e.without(d, func() { allotments, refusal = e.place(d.Request) })
	e.state.placing = placing{}
	if refusal != nil {
		e.emit(Change{Kind: Kept, ID: event.ID, entry: d, Refusal: &berth.Refusal{
			Reason: berth.RefusedConflict, Resource: event.Resource, Wanted: refusal.Wanted, Nearest: refusal.Nearest,
		}})
		return nil
	}
	e.emit(Change{Kind: Moved, ID: event.ID, entry: d})
	e.yield(allotments)
	e.relocate(d, allotments)
	e.effect(EffectReserve, &d.Reservation)
	e.released()
	return nil
}

// without does something as if a reservation that has not started held nothing.
func (e *Engine) without(d *entry, do func()) {
	each := func(change func(calendar.Calendar, calendar.Block) error) {
		for i := range d.Allotments {
			a := &d.Allotments[i]
			if left := blockOf(a, max(a.Start, e.state.now)); left.Start < left.End && left.NPE > 0 {
				must(change(e.state.calendar(a.Resource), left))
			}
		}
	}
	e.state.ledger.hold(d, -1)
	each(calendar.Calendar.Remove)
	movable := e.state.movable(d)
	must(e.state.besides(movable, e.state.now, calendar.Calendar.Remove))
	e.state.placing.again = d
	e.state.aside(d, do)
	e.state.placing.again = nil
	must(e.state.besides(movable, e.state.now, calendar.Calendar.Add))
	each(calendar.Calendar.Add)
	e.state.ledger.hold(d, 1)
}

// prolong lets a promise, started or not, last until a later end, on the PEs
// that it has. Its deadline goes with it.
func (e *Engine) prolong(id string, until berth.Time) error {
	d, live := e.state.ledger.live[id]
	switch {
	case !live || d.Request.IsJob():
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	case len(d.Allotments) > 1:
		return berth.Errorf(berth.Conflict, "id", "reservation %q has several parts; only one of one part can be extended", id)
	case until <= d.End() || !until.Valid():
		return berth.Errorf(berth.Invalid, "until", "%d; it must be after the end, %d, and before 2^42", until, d.End())
	}
	a := &d.Allotments[0]
	further := *a
	further.Start, further.End = a.End, until
	held := e.state.ledger.held[d.Request.User]
	switch {
	case d.Request.User != "" && !e.config.Quota.Allows(held.reservations-1, held.peSeconds, berth.Area(a.NPE, until.Sub(a.End))):
		e.emit(Change{Kind: Kept, ID: id, Refusal: &berth.Refusal{Reason: berth.Quota, Resource: a.Resource, Wanted: a.NPE}, entry: d})
		return nil
	case !e.longer(d.Held, until):
		e.emit(Change{Kind: Kept, ID: id, Refusal: &berth.Refusal{Reason: berth.NoLicence, Resource: d.Held[0].Resource, Wanted: a.NPE}, entry: d})
		return nil
	case !canTake(e.state.calendar(a.Resource), blockOf(&further, further.Start)):
		e.emit(Change{Kind: Kept, ID: id, Refusal: &berth.Refusal{
			Reason: berth.NoCapacity, Resource: a.Resource, Wanted: a.NPE,
			Nearest: &berth.Nearest{NPE: a.NPE, Start: a.End, Duration: e.longest(&further)},
		}, entry: d})
		return nil
	}
	e.yield([]berth.Allotment{further})
	e.emit(Change{Kind: Extended, ID: id, Until: until, entry: d})
	e.effect(EffectReserve, &d.Reservation)
	return nil
}

// longest returns for how long an allotment's PEs are free from its start.
func (e *Engine) longest(a *berth.Allotment) berth.Duration {
	c := e.state.calendar(a.Resource)
	low, high := berth.Duration(0), a.End.Sub(a.Start)
	for high-low > 1 {
		middle := low + (high-low)/2
		b := blockOf(a, a.Start)
		if b.End = a.Start.Add(middle); canTake(c, b) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// show notes that a reservation is in use.
func (e *Engine) show(id string) error {
	d, live := e.state.ledger.live[id]
	switch {
	case !live:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	case d.State != berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not active", id, d.State)
	case d.Shown:
		return nil
	}
	e.emit(Change{Kind: Shown, ID: id, entry: d})
	return nil
}

// noShow gives up a reservation that nobody has used in time.
func (e *Engine) noShow(d *entry) {
	e.effect(EffectRelease, &d.Reservation)
	e.emit(Change{Kind: NoShow, ID: d.Request.ID, entry: d})
	e.released()
}

// modify folds Modified: the reservation, which has no place for the moment, is
// for another request and has another place.
func (s *state) modify(e *entry, r *berth.Request, to, held []berth.Allotment, staging *berth.Staging) error {
	if r == nil || len(to) != len(r.Parts) {
		return fmt.Errorf("reservation %q is modified to nothing", e.Request.ID)
	}
	e.Request, e.running, e.further = r, int32(len(to)), nil
	return s.move(e, to, held, staging)
}

// prolong folds Extended of a reservation that has not started.
func (s *state) prolong(e *entry, until berth.Time) error {
	further := e.Allotments[0]
	further.Start, further.End = further.End, until
	s.ledger.hold(e, -1)
	if err := s.book(&further, max(further.Start, s.now)); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	if err := s.lengthen(e, until); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	e.Allotments = slices.Clone(e.Allotments) // they are shared with the change that brought them
	e.Allotments[0].End = until
	e.Generation++
	s.ledger.hold(e, 1)
	return nil
}

// shown folds Shown.
func (s *state) shown(e *entry) error {
	e.Shown = true
	s.dropNoShow(e)
	return nil
}

// awaitShow sets the timer of a reservation that has started and is given up if
// nobody uses it.
func (s *state) awaitShow(e *entry) {
	if wait := e.Request.NoShow; wait > 0 && !e.Shown {
		e.noShow = &timer{At: e.Start().Add(wait), Class: ClassExpiry, Sequence: e.Sequence, Part: ofNoShow, entry: e}
		s.timers.add(e.noShow)
	}
}

func (s *state) dropNoShow(e *entry) {
	if e.noShow != nil {
		s.timers.drop(e.noShow)
		e.noShow = nil
	}
}
