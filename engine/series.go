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
// Those that are over are left out. Of an open series the occurrences from one number to another are not asked for any
// more; if last is its last one or behind it, it ends with the one before first.
func CancelSeries(id string, of []string, first, last int) Event {
	return Event{Kind: EventCancelSeries, ID: id, Of: of, First: first, Last: last}
}

func (e *Engine) submitSeries(event *Event) error {
	s := event.Series
	if s == nil {
		return berth.Errorf(berth.Invalid, "series", "missing")
	}
	if err := e.hasCome(s.Request.Arrival); err != nil {
		return err
	}
	own := s.Clone()
	if own.Ahead > 0 { // which counts from when it is decided
		own.Request.Arrival = e.state.Now()
		if e.BoundsCost(event) {
			return berth.Errorf(berth.Invalid, "ahead", "%d s; a limit bounds by how much you may delay ordinary jobs or what may be left idle, and that cannot be foreseen for occurrences that are promised later, so ask for a series with an end", own.Ahead)
		}
	}
	if err := own.Validate(); err != nil {
		return err
	}
	if e.isTaken(s.ID) {
		return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already", s.ID)
	}
	requests := own.Requests()
	for i := range requests {
		if id := requests[i].ID; e.isTaken(id) {
			return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already; it would be occurrence %d of the series", id, i+1)
		}
	}
	requests = requests[:own.Due(own.Request.Arrival)]
	places, refusals := e.finder.Series(requests, nil)
	if err := e.dearSeries(event, requests, places, refusals); err != nil {
		return err
	}
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

func (e *Engine) cancelSeries(event *Event) error {
	id := event.ID
	open := e.state.OpenSeries(id)
	if open != nil && (event.First < 0 || event.Last < event.First) {
		return berth.Errorf(berth.Invalid, "first", "occurrences %d to %d; want a first number and a last one", event.First, event.Last)
	}
	var live []*state.Entry
	for _, one := range event.Of {
		r := e.state.Request(one)
		d := e.state.Entry(one)
		switch {
		case d != nil && d.Request().Series != nil && d.Request().Series.Series == id:
			live = append(live, d)
		case d != nil || r != nil || e.isTaken(one):
			return berth.Errorf(berth.Invalid, "of", "%q is no reservation of series %q", one, id)
		}
	}
	if open != nil && awaitsAny(open.Progress(), event.First, event.Last) {
		e.emit(change.Change{Kind: change.SeriesProlonged, Progress: open.Progress().Without(event.First, event.Last)})
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

// awaitsAny reports whether an occurrence from one number to another is still to be asked for.
func awaitsAny(p *berth.Progress, first, last int) bool {
	for n := max(first, 1); n <= min(last, p.Last); n++ {
		if p.Awaits(n) {
			return first > 0
		}
	}
	return false
}

// prolong asks for the occurrences of an open series that have their turn: those that are near enough now, and, every
// so often, those that could not be promised before. What cannot be promised for the first time is refused like any
// request; what is refused again stays as it is, and is left out once its window is too short.
func (e *Engine) prolong(open *state.Open) {
	s, p, now := open.Series(), open.Progress(), e.state.Now()
	decided := min(max(s.Due(now), p.Decided), p.Last)
	var numbers []int
	if len(p.Waiting) > 0 && p.Again <= now {
		numbers = append(numbers, p.Waiting...)
	}
	for n := p.Decided + 1; n <= decided; n++ {
		if p.Awaits(n) {
			numbers = append(numbers, n)
		}
	}
	requests := make([]berth.Request, 0, len(numbers))
	for _, n := range numbers {
		if r, ok := s.Occurrence(n, now); ok {
			requests = append(requests, r)
		}
	}
	places, refusals := e.finder.Series(requests, nil)
	for i := range requests {
		if refusals[i] == nil {
			refusals[i] = e.tooDearAtItsTurn(&requests[i], &places[i])
		}
	}
	var waiting []int
	if p.Again > now {
		waiting = slices.Clone(p.Waiting)
	}
	for i, refusal := range refusals {
		if refusal != nil {
			waiting = append(waiting, requests[i].Series.Number)
		}
	}
	e.emit(change.Change{Kind: change.SeriesProlonged, Progress: p.At(now, s, decided, waiting)})
	promised := false
	for i := range requests {
		r := &requests[i]
		if refusals[i] != nil && r.Series.Number <= p.Decided {
			continue // which was told before
		}
		e.emit(change.Change{Kind: change.Queued, ID: r.ID, Request: r})
		if refusals[i] != nil {
			e.refuse(r, refusals[i])
			continue
		}
		e.promise(r, &places[i])
		promised = true
	}
	if promised {
		e.jobs.Plan()
	}
}

// Ahead returns how far ahead open series have their occurrences promised at the most, with the window of the
// last one; 0 if none is open.
func (e *Engine) Ahead() berth.Duration {
	var most berth.Duration
	for _, open := range e.state.AllOpen() {
		s := open.Series()
		last := &s.Occurrences[len(s.Occurrences)-1]
		most = max(most, s.Ahead+last.Deadline.Sub(last.Ready))
	}
	return most
}
