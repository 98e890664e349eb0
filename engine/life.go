package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// start makes a reservation active; parts bound late get the PEs that they have by name, else
// the lowest-numbered idle ones of their pools.
func (e *Engine) start(d *state.Entry) {
	if d.Missing() > 0 && d.Part(0).NPE == 0 { // none of its PEs came back
		e.end(d, change.Failed)
		return
	}
	var named []berth.PESet // of its parts
	freed := false          // PEs of an announced outage are counted once while it runs on them
	for part := range d.Parts() {
		a := d.Part(part)
		i, _ := e.state.Index(a.Resource)
		var taken berth.PESet // parts of one reservation in one pool do not share PEs
		for earlier := range part {
			if named != nil && d.Part(earlier).Resource == a.Resource {
				taken = taken.Or(named[earlier])
			}
		}
		pes, late := e.state.Idle(i, a.NPE, taken, a.End)
		if !late {
			continue
		}
		if !a.PEs.Empty() {
			pes = a.PEs
		}
		if named == nil {
			named = e.newPEs(d.Parts())
		}
		named[part] = pes
		a.PEs = pes
		freed = freed || len(e.state.Claimed(&a)) > 0
	}
	c := e.room(change.Started)
	c.ID, c.PEs = d.ID(), named
	e.fold(c, state.Ref{Entry: d})
	if freed {
		e.freed()
	}
}

// pesPiece is how many sets of PEs share a piece of memory.
const pesPiece = 64

// newPEs returns room for sets of PEs that a change takes along.
func (e *Engine) newPEs(n int) []berth.PESet {
	if len(e.pes)+n > cap(e.pes) {
		e.pes = make([]berth.PESet, 0, max(n, pesPiece))
	}
	at := len(e.pes)
	e.pes = e.pes[:at+n]
	return e.pes[at : at+n : at+n]
}

// end ends a whole reservation by a change of that kind.
func (e *Engine) end(d *state.Entry, kind change.Kind) {
	e.emitOf(d, change.Change{Kind: kind})
	e.freed()
}

// finish ends an active reservation.
func (e *Engine) finish(id string) error {
	d := e.state.Entry(id)
	switch {
	case d == nil:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	case d.State() != berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not active; only what runs can finish", id, d.State())
	}
	if f, i := e.state.FlowOf(d); f != nil && e.state.Managed(d.Part(0).Resource.Site) {
		e.failForGood(f, i, "its reservation was given back before it ended")
	}
	for part := range d.Parts() {
		if d.Holds(part) {
			c := e.room(change.Ended)
			c.ID, c.Part = d.ID(), part
			e.fold(c, state.Ref{Entry: d})
		}
	}
	e.freed()
	return nil
}

// cancel withdraws a pending request or job, or ends a reservation.
func (e *Engine) cancel(id string) error {
	if e.isPending(id) {
		e.emit(change.Change{Kind: change.Withdrawn, ID: id})
		e.freed()
		return nil
	}
	d := e.state.Entry(id)
	if d == nil {
		return berth.Errorf(berth.NotFound, "id", "no pending request or live reservation %q", id)
	}
	e.end(d, change.Cancelled)
	return nil
}

// reject ends a reservation that its site will not have.
func (e *Engine) reject(id string, why *berth.Refusal) error {
	d := e.state.Entry(id)
	switch {
	case why == nil:
		return berth.Errorf(berth.Invalid, "refusal", "missing; give the reason of the site")
	case d == nil:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	}
	refusal := *why // the event is the caller's
	e.emitOf(d, change.Change{Kind: change.Rejected, Refusal: &refusal})
	e.freed()
	return nil
}

// confirmable returns a held reservation that may be confirmed.
func (e *Engine) confirmable(id string) (*state.Entry, error) {
	d := e.state.Entry(id)
	switch {
	case d == nil:
		return nil, berth.Errorf(berth.NotFound, "id", "no live reservation %q; if it was held, it has expired", id)
	case d.State() != berth.Held:
		return nil, berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not held", id, d.State())
	case d.Request().Task != nil: // the workflow would expire with it all the same
		return nil, berth.Errorf(berth.Conflict, "id", "reservation %q is a task of workflow %q, which is promised as a whole; confirm the workflow", id, d.Request().Task.Workflow)
	case d.FirstEnd() <= e.state.Now(): // where arrivals come before expiries
		return nil, berth.Errorf(berth.Conflict, "id", "reservation %q is over at this moment", id)
	}
	return d, nil
}

// confirm makes a held reservation a confirmed one; one whose start has passed starts
// then.
func (e *Engine) confirm(id string) error {
	d, err := e.confirmable(id)
	if err != nil {
		return err
	}
	e.emitOf(d, change.Change{Kind: change.Confirmed})
	e.names.due = e.names.due || e.state.LacksNames(d)
	return nil
}

// checkIn notes that a reservation is in use.
func (e *Engine) checkIn(id string) error {
	d := e.state.Entry(id)
	switch {
	case d == nil:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	case d.State() != berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not active", id, d.State())
	case d.CheckedIn():
		return nil
	}
	e.emitOf(d, change.Change{Kind: change.CheckedIn})
	return nil
}
