package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// ModifySeries asks for other requests in place of those of reservations of a series, as Modify does of one, and, if next is
// given, has an open series ask for that from now on: all of it, or nothing. What has started by then, or is over,
// stays as it is. Of next, what has had its turn is as it was, and so are id and Ahead.
func ModifySeries(id string, requests []berth.Request, next *berth.Series) Event {
	return Event{Kind: EventModifySeries, ID: id, Requests: requests, Series: next}
}

// modifySeries changes the requests of several reservations of a series in one step. They are placed one behind
// another, those first that move away from the others: the last where they become later. If one cannot be, each that
// cannot be gets a change_refused, and nothing else happens. Whether all can be is tried on a copy of the engine. Cost: that of
// Restore, and of the requests by themselves.
func (e *Engine) modifySeries(event *Event) error {
	type changed struct {
		d   *state.Entry
		own *berth.Request
	}
	var list []changed
	for i := range event.Requests {
		r := &event.Requests[i]
		d := e.state.Entry(r.ID)
		if d == nil && !e.isPending(r.ID) || d != nil && d.State() == berth.Active {
			continue // it is over, or has begun
		}
		if d == nil || d.Request().Series == nil || d.Request().Series.Series != event.ID {
			return berth.Errorf(berth.Invalid, "requests", "%q is no reservation of series %q", r.ID, event.ID)
		}
		if slices.ContainsFunc(list, func(c changed) bool { return c.d == d }) {
			return berth.Errorf(berth.Invalid, "requests", "%q is there twice", r.ID)
		}
		_, own, err := e.modifiable(r.ID, r)
		if err != nil {
			return err
		}
		list = append(list, changed{d, own})
	}
	next, err := e.nextOf(event)
	switch {
	case err != nil:
		return err
	case len(list) == 0 && next == nil:
		return berth.Errorf(berth.Conflict, "id", "no occurrence of series %q is to come", event.ID)
	case len(list) > 0 && list[0].own.Ready > list[0].d.Request().Ready:
		slices.Reverse(list)
	}
	bounded := e.BoundsCost(event)
	var added place.Cost
	if len(list) > 1 || bounded {
		trial, err := Restore(e.config, e.Snapshot())
		if err != nil {
			panic("engine: its own state is refused: " + err.Error())
		}
		refusals, refused := make([]*berth.Refusal, len(list)), false
		var places []berth.Allotment
		for i, c := range list {
			refusals[i], _ = trial.become(trial.state.Entry(c.own.ID), c.own, func(found *place.Place) (*berth.Refusal, error) {
				places = append(places, found.Allotments...)
				return nil, nil
			})
			refused = refused || refusals[i] != nil
		}
		if bounded && !refused {
			if added, err = e.addedBy(event, places); err != nil {
				return err
			}
			for i, c := range list {
				refusals[i] = e.finder.OverCost(c.own, places, added.With(c.d.Terms()))
				refused = refused || refusals[i] != nil
			}
		}
		if refused {
			for i, c := range list {
				if refusals[i] != nil {
					e.emitOf(c.d, change.Change{Kind: change.ChangeRefused, Refusal: refusals[i]})
				}
			}
			return nil
		}
	}
	for _, c := range list {
		refusal, _ := e.become(c.d, c.own, func(found *place.Place) (*berth.Refusal, error) {
			if bounded {
				cost := added.With(found.Terms)
				found.Terms.Delay, found.Terms.Idle = cost.Delay, cost.Idle
			}
			return nil, nil
		})
		if refusal == nil {
			continue
		}
		if len(list) > 1 || bounded {
			panic("engine: what a copy found is not there: " + string(refusal.Reason))
		}
		e.emitOf(c.d, change.Change{Kind: change.ChangeRefused, Refusal: refusal})
		return nil
	}
	if next != nil {
		p := *e.state.OpenSeries(event.ID).Progress()
		e.emit(change.Change{Kind: change.SeriesProlonged, Progress: &p, Series: next})
	}
	e.freed()
	return nil
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
