package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// ModifySeries asks for other requests in place of those of reservations of a series, as Modify does of one, and, if next is
// given, has an open series ask for that from now on: all of it, or nothing. What has started by then, or is over,
// stays as it is. Of next, what has had its turn is as it was, and so are id and Ahead.
func ModifySeries(id string, requests []berth.Request, next *berth.Series) Event {
	return Event{Kind: EventModifySeries, ID: id, Requests: requests, Series: next}
}

// modifySeries changes the requests of several reservations of a series in one step. All leave their places, and are
// placed one behind another. If one cannot be, each that cannot be gets a change_refused, and nothing else happens. Cost:
// that of the requests by themselves.
func (e *Engine) modifySeries(event *Event) error {
	requests, of, err := e.ofSeries(event)
	if err != nil {
		return err
	}
	next, err := e.nextOf(event)
	switch {
	case err != nil:
		return err
	case len(of) == 0 && next == nil:
		return berth.Errorf(berth.Conflict, "id", "no occurrence of series %q is to come", event.ID)
	}
	places, refusals := e.finder.Series(requests, of)
	if err := e.dearChange(event, requests, of, places, refusals); err != nil {
		return err
	}
	refused := false
	for i, refusal := range refusals {
		if refusal != nil {
			refused = true
			e.emitOf(of[i], change.Change{Kind: change.ChangeRefused, Refusal: refusal})
		}
	}
	if refused {
		return nil
	}
	e.changes = slices.Grow(e.changes, 2*len(of)+1)
	for _, d := range of {
		e.emitOf(d, change.Change{Kind: change.Vacated})
	}
	for i, d := range of {
		e.makeRoom(places[i].Allotments)
		e.become(d, &requests[i], &places[i])
	}
	if next != nil {
		p := *e.state.OpenSeries(event.ID).Progress()
		e.emit(change.Change{Kind: change.SeriesProlonged, Progress: &p, Series: next})
	}
	e.freed()
	return nil
}

// ofSeries returns the requests of an event that are of reservations of its series that have not started, and these.
func (e *Engine) ofSeries(event *Event) (requests []berth.Request, of []*state.Entry, err error) {
	seen := make(map[*state.Entry]bool, len(event.Requests))
	for i := range event.Requests {
		r := &event.Requests[i]
		d := e.state.Entry(r.ID)
		switch {
		case d == nil && !e.isPending(r.ID) || d != nil && e.hasBegun(d):
			continue // it is over, or has begun
		case d == nil || d.Request().Series == nil || d.Request().Series.Series != event.ID:
			return nil, nil, berth.Errorf(berth.Invalid, "requests", "%q is no reservation of series %q", r.ID, event.ID)
		case seen[d]:
			return nil, nil, berth.Errorf(berth.Invalid, "requests", "%q is there twice", r.ID)
		}
		seen[d] = true
		_, own, err := e.modifiable(r.ID, r)
		if err != nil {
			return nil, nil, err
		}
		requests, of = append(requests, *own), append(of, d)
	}
	return requests, of, nil
}

// nextOf returns what an open series is to ask for from now on, nil if that stays.
func (e *Engine) nextOf(event *Event) (*berth.Series, error) {
	if event.Series == nil {
		return nil, nil
	}
	open := e.state.OpenSeries(event.ID)
	if open == nil {
		return nil, berth.Errorf(berth.Conflict, "id", "series %q asks for nothing more", event.ID)
	}
	was, own, decided := open.Series(), event.Series.Clone(), open.Progress().Decided
	if own.ID != was.ID || own.Ahead != was.Ahead || len(own.Occurrences) != len(was.Occurrences) || !slices.Equal(own.Occurrences[:decided], was.Occurrences[:decided]) ||
		own.Request.User != was.Request.User || own.Request.Arrival != was.Request.Arrival {
		return nil, berth.Errorf(berth.Invalid, "series", "%q; its id, user, ahead and what has had its turn stay", own.ID)
	}
	return own, own.Validate()
}
