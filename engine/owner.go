package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Changes that the owner of a reservation, or its site, may ask for. A refusal leaves
// the reservation as it is; a change_refused gives the reason.

// promised returns the live reservation of an id. A running job is not a reservation.
func (e *Engine) promised(id string) (*state.Entry, error) {
	d := e.state.Entry(id)
	if d == nil || d.Request().IsJob() {
		return nil, berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	}
	return d, nil
}

// Foretell returns what a reservation would become by an EventModify, EventExtend or EventConfirm
// that is applied now, or the refusal. Extended terms, and transfers that an extension moves, are left
// out. The engine does not change. The errors are those of Apply; another kind of event is Invalid.
// A reservation that gets names for its PEs by the change has them. Others may have to give way for
// that, which GiveWay tells.
func (e *Engine) Foretell(event *Event) (berth.Reservation, *berth.Refusal, error) {
	switch event.Kind {
	case EventConfirm:
		d, err := e.confirmable(event.ID)
		if err != nil {
			return berth.Reservation{}, nil, err
		}
		r := d.Reservation()
		if r.State, r.Expires, r.Terms.Expires = berth.Confirmed, 0, 0; r.Missing > 0 {
			r.State = berth.Degraded
		}
		r.CheckedIn = e.state.Now() > r.Start() // a late confirmation counts as check-in
		e.foretellNames(d, &r)
		return r, nil, nil
	case EventModify:
		d, own, err := e.modifiable(event.ID, event.Request)
		if err != nil {
			return berth.Reservation{}, nil, err
		}
		found, refusal := e.finder.Place(place.Want{Request: own, Again: d, Admit: true})
		r := d.Reservation()
		r.Request, r.Terms, r.Missing = own, found.Terms, 0
		r.Terms.Expires = d.Terms().Expires
		r.Allotments, r.Stocks, r.Transfers = slices.Clone(found.Allotments), found.Stocks, found.Transfers
		r.Generation++
		if refusal == nil {
			if r.State == berth.Degraded {
				r.State = berth.Confirmed // all is owed anew
			}
			state.CapHold(&r)
			e.foretellNames(d, &r)
		}
		return r, refusal, nil
	case EventExtend:
		d, err := e.extensible(event.ID, event.Until)
		if err != nil {
			return berth.Reservation{}, nil, err
		}
		r := d.Reservation()
		r.Allotments[0].End = event.Until
		r.Stocks = slices.Clone(r.Stocks)
		for i := range r.Stocks {
			r.Stocks[i].End = event.Until
		}
		state.CapHold(&r)
		r.Generation++
		return r, e.finder.Extension(d, event.Until, event.Role), nil
	}
	return berth.Reservation{}, nil, berth.Errorf(berth.Invalid, "kind", "%q; want %q, %q or %q", event.Kind, EventModify, EventExtend, EventConfirm)
}

// modifiable returns a reservation that may be modified to a request, with a copy of that.
func (e *Engine) modifiable(id string, r *berth.Request) (*state.Entry, *berth.Request, error) {
	if r == nil {
		return nil, nil, berth.Errorf(berth.Invalid, "request", "missing")
	}
	d, err := e.promised(id)
	switch {
	case err != nil:
	case e.hasBegun(d):
		err = berth.Errorf(berth.Conflict, "id", "reservation %q has started; it can be extended or released", id)
	case d.Request().Task != nil:
		err = berth.Errorf(berth.Conflict, "id", "reservation %q is a task of workflow %q, which moves it; cancel the workflow and submit another", id, d.Request().Task.Workflow)
	case r.ID != id || r.IsJob() || r.User != d.Request().User:
		err = berth.Errorf(berth.Invalid, "request", "%q of user %q; a modification keeps id, kind and user", r.ID, r.User)
	default:
		if err = e.hasCome(r.Arrival); err == nil {
			err = asked(r)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	own := r.Clone()
	own.Series, own.Owner = d.Request().Series, d.Request().Owner
	return d, own, nil
}

// hasBegun reports whether a reservation is active, or has held PEs since its start without being that: what it held is charged to
// its holders, so that it cannot become another one.
func (e *Engine) hasBegun(d *state.Entry) bool {
	return d.State() == berth.Active || d.Start() < e.state.Now()
}

// modify asks for another request in place of that of a reservation that has not
// started: all of it or nothing.
func (e *Engine) modify(event *Event) error {
	d, own, err := e.modifiable(event.ID, event.Request)
	if err != nil {
		return err
	}
	found, refusal := e.finder.Place(place.Want{Request: own, Again: d, Admit: true})
	if refusal == nil {
		if refusal, err = e.dearer(event, own, found.Allotments, &found.Terms); err != nil {
			return err
		}
	}
	if refusal != nil {
		e.emitOf(d, change.Change{Kind: change.ChangeRefused, Refusal: refusal})
		return nil
	}
	e.emitOf(d, change.Change{Kind: change.Vacated})
	e.makeRoom(found.Allotments)
	e.become(d, own, &found)
	e.freed()
	return nil
}

// become makes a reservation that has left its place one of another request, at a place that has room.
func (e *Engine) become(d *state.Entry, own *berth.Request, at *place.Place) {
	at.Terms.Expires = d.Terms().Expires
	e.emitOf(d, change.Change{Kind: change.Modified, Request: own, Moved: at.Allotments, Terms: &at.Terms, Stocks: at.Stocks, Transfers: at.Transfers})
	e.names.due = e.names.due || e.state.LacksNames(d) // what begins soon is answered with its PEs
}

// relocate places a reservation again, without PEs that its site does not give it.
func (e *Engine) relocate(event *Event) error {
	d, err := e.promised(event.ID)
	switch {
	case err != nil:
		return err
	case d.State() == berth.Active && (d.CheckedIn() || !e.outlives(d)):
		return berth.Errorf(berth.Conflict, "id", "reservation %q has started; it stays where it is", event.ID)
	}
	binding, err := e.poolOf(event)
	named := e.state.NamesAhead(event.Resource)
	switch {
	case err != nil:
		return err
	case binding == berth.Late && !named && d.State() != berth.Active:
		return berth.Errorf(berth.Invalid, "pes", "%q; the PEs of pool %s of %s have no numbers before they start", event.PEs, event.Resource.Name, event.Resource.Site)
	}
	switch {
	case !e.holdsAny(d, event.Resource, event.PEs):
		return nil
	case d.State() == berth.Active:
		e.exchange(d, event)
		return nil
	case named:
		e.rename(d, event)
		return nil
	}
	found, refusal := e.finder.Place(place.Want{Again: d, Pool: event.Resource, Avoid: event.PEs})
	if refusal != nil {
		e.emitOf(d, change.Change{Kind: change.ChangeRefused, Refusal: &berth.Refusal{
			Reason: berth.RefusedConflict, Resource: event.Resource, Wanted: refusal.Wanted, Nearest: refusal.Nearest,
		}})
		return nil
	}
	e.move(d, &found)
	e.freed()
	return nil
}

// exchange replaces PEs that a managed site does not give to a reservation that has
// started and is not in use yet, by as many as are free.
func (e *Engine) exchange(d *state.Entry, event *Event) {
	grown := e.finder.Grown(d, event.PEs, nil)
	if grown.NPE == 0 {
		e.emitOf(d, change.Change{Kind: change.ChangeRefused, Refusal: &berth.Refusal{Reason: berth.RefusedConflict, Resource: event.Resource, Wanted: d.Part(0).NPE}})
		return
	}
	e.resize(d, &grown)
	e.repair(d) // itself would get the same PEs again
	e.retry()
}

// extensible returns a reservation that may be extended until a later end.
func (e *Engine) extensible(id string, until berth.Time) (*state.Entry, error) {
	d, err := e.promised(id)
	switch {
	case err != nil:
		return nil, err
	case d.Parts() > 1:
		return nil, berth.Errorf(berth.Conflict, "id", "reservation %q has several parts; only one of one part can be extended", id)
	case until <= d.End() || until <= e.state.Now() || !until.Valid():
		return nil, berth.Errorf(berth.Invalid, "until", "%s; it must be after the end, %s, after now, and before 2^42 seconds after 1970", until.RFC3339(), d.End().RFC3339())
	}
	return d, nil
}

// extend lets a reservation, started or not, last until a later end, on the PEs that
// it has. The end of its window goes with it.
func (e *Engine) extend(event *Event) error {
	until := event.Until
	d, err := e.extensible(event.ID, until)
	if err != nil {
		return err
	}
	refusal := e.finder.Extension(d, until, event.Role)
	extra := d.Part(0)
	extra.Start, extra.End = max(extra.End, e.state.Now()), until
	var terms *berth.Terms
	if own := e.extended(d, event.Role); refusal == nil && e.finder.BoundsCost(own) {
		terms = new(d.Terms())
		if refusal, err = e.dearer(event, own, []berth.Allotment{extra}, terms); err != nil {
			return err
		}
	}
	if refusal != nil {
		e.emitOf(d, change.Change{Kind: change.ChangeRefused, Refusal: refusal})
		return nil
	}
	if extra.NPE > 0 { // else it has lost all of them
		e.makeRoom([]berth.Allotment{extra})
	}
	e.emitOf(d, change.Change{Kind: change.Extended, Until: until, Terms: terms})
	e.repair(nil) // what it lacks may be there until then
	e.jobs.Plan()
	return nil
}
