package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// SubmitSeries brings a series. It is decided when it arrives, whatever the trigger is: if at least as many
// occurrences as it says can be promised beside each other, all that can be are, else none is.
func SubmitSeries(s *berth.Series) Event { return Event{Kind: EventSubmitSeries, Series: s} }

// CancelSeries gives back reservations of a series in one step: what runs ends, and what was to run is cancelled.
// Those that are over are left out.
func CancelSeries(id string, of []string) Event {
	return Event{Kind: EventCancelSeries, ID: id, Of: of}
}

func (e *Engine) submitSeries(s *berth.Series) error {
	if s == nil {
		return berth.Errorf(berth.Invalid, "series", "missing")
	}
	if err := e.hasCome(s.Request.Arrival); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if e.isTaken(s.ID) {
		return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already", s.ID)
	}
	own := s.Clone()
	requests := own.Requests()
	for i := range requests {
		if id := requests[i].ID; e.isTaken(id) {
			return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already; it would be occurrence %d of the series", id, i+1)
		}
	}
	places, refusals := e.finder.Series(requests)
	c := change.Change{Kind: change.SeriesPromised, Series: own}
	for i, refusal := range refusals {
		if refusal != nil {
			c.Unfit = append(c.Unfit, berth.RefusedOccurrence{Number: i + 1, Refusal: *refusal})
		}
	}
	if len(requests)-len(c.Unfit) < own.Least {
		c.Kind = change.SeriesRefused
		e.emit(c)
		return nil
	}
	e.changes = slices.Grow(e.changes, 1+2*len(requests))
	e.emit(c)
	for i := range requests {
		if refusals[i] == nil {
			r := &requests[i]
			e.emit(change.Change{Kind: change.Queued, ID: r.ID, Request: r})
			e.promise(r, &places[i])
		}
	}
	e.jobs.Plan()
	return nil
}

func (e *Engine) cancelSeries(id string, of []string) error {
	var live []*state.Entry
	for _, one := range of {
		r := e.state.Request(one)
		d := e.state.Entry(one)
		switch {
		case d != nil && d.Request().Series != nil && d.Request().Series.Series == id:
			live = append(live, d)
		case d != nil || r != nil || e.isTaken(one):
			return berth.Errorf(berth.Invalid, "of", "%q is no reservation of series %q", one, id)
		}
	}
	for _, d := range live {
		if d.State() != berth.Active {
			e.emitOf(d, change.Change{Kind: change.Cancelled})
			continue
		}
		for part := range d.Parts() {
			if d.Holds(part) {
				e.emitOf(d, change.Change{Kind: change.Ended, Part: part})
			}
		}
	}
	if len(live) > 0 {
		e.freed()
	}
	return nil
}
