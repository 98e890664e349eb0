package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// SeriesEdit says what occurrences of a series become. Zero fields stay as they are.
type SeriesEdit struct {
	From, To int            // the first and the last occurrence, from 1; 0 is the first and the last of all
	By       berth.Duration // so much later, or earlier
	NPE      berth.Count
	Duration berth.Duration
}

// request returns what a request becomes at a time. Its window is as much longer as it lasts longer. The error says that it
// has several shapes.
func (x *SeriesEdit) request(r *berth.Request, now berth.Time) (berth.Request, error) {
	own := *r.Clone()
	own.Arrival, own.Ready, own.Deadline = now, max(r.Ready.Add(x.By), now), r.Deadline.Add(x.By+x.longer(r))
	switch {
	case x.By == 0 || r.Series == nil: // an open series has the times in its occurrences
	case !own.Ready.Valid() || !own.Deadline.Valid():
		return own, berth.Errorf(berth.Invalid, "by", "%d s; %s would be beyond ±2^42 s", x.By, occurrence(r))
	case own.Deadline <= own.Ready:
		return own, berth.Errorf(berth.Invalid, "by", "%d s; the window of %s would be over before %d, which is the earliest; want more than %d s", x.By, occurrence(r), own.Ready, own.Ready.Sub(r.Deadline)-x.longer(r))
	}
	if x.NPE == 0 && x.Duration == 0 {
		return own, nil
	}
	if len(own.Parts) != 1 || len(own.Parts[0].Variants) != 1 {
		field, value := "npe", int64(x.NPE)
		if x.NPE == 0 {
			field, value = "duration", int64(x.Duration)
		}
		return own, berth.Errorf(berth.Conflict, field, "%d; %s has several parts or variants; change each by itself, or when they are", value, occurrence(r))
	}
	v := &own.Parts[0].Variants[0]
	v.NPE, v.Duration = cmp.Or(x.NPE, v.NPE), cmp.Or(x.Duration, v.Duration)
	return own, nil
}

// occurrence names one of a series for people.
func occurrence(r *berth.Request) string {
	if r.Series == nil {
		return "each occurrence"
	}
	return fmt.Sprintf("occurrence %d", r.Series.Number)
}

// longer returns by how much longer a request lasts.
func (x *SeriesEdit) longer(r *berth.Request) berth.Duration {
	if x.Duration == 0 {
		return 0
	}
	return x.Duration - r.Parts[0].Variants[0].Duration
}

// next returns what an open series is to ask for: nil if nothing of that changes. The error says that it cannot
// change from there on alone.
func (x *SeriesEdit) next(s *seriesCard, from, to int) (*berth.Series, error) {
	if !s.open() || to <= s.progress.Decided {
		return nil, nil
	}
	decided := s.progress.Decided
	if to < s.progress.Last || from > decided+1 {
		return nil, berth.Errorf(berth.Invalid, "from", "occurrences %d to %d; number %d has had no turn yet, so change those that have had one, or all from number %d or before on", from, to, max(from, decided+1), decided+1)
	}
	own := s.s.Clone()
	r, err := x.request(&own.Request, own.Request.Arrival)
	if err != nil {
		return nil, err
	}
	for i := decided; i < len(own.Occurrences); i++ {
		o := &own.Occurrences[i]
		o.Ready, o.Deadline, o.Moved = o.Ready.Add(x.By), o.Deadline.Add(x.By+x.longer(&own.Request)), o.Moved+x.By
	}
	r.Ready, r.Deadline = own.Request.Ready, own.Request.Deadline
	own.Request = r
	return own, nil
}

// ModifySeries changes the occurrences of a series that an edit names, all that are to come or none: what has begun, or is
// over, stays as it is. Of an open series it changes what is still to be asked for too, if the edit goes on to the
// last. If Refusals are there, nothing has changed. Errors: Denied, NotFound, and those of engine.EventModifySeries.
func (h *Host) ModifySeries(ctx context.Context, ask Ask, id string, x SeriesEdit) (SeriesAnswer, error) {
	var checked berth.Request
	s, err := h.GetSeries(ctx, ask.By, id)
	switch {
	case err != nil:
	case !ask.By.Can(User):
		err = berth.Errorf(berth.Denied, "role", "a %s may only look; ask with the token of a user or an operator", ask.By.Role)
	default:
		if checked, err = x.request(&s.Series.Request, s.Series.Request.Arrival); err == nil {
			if err = h.mayAsk(&ask, &checked); err == nil {
				err = h.admit(ctx, &checked)
			}
		}
	}
	if err != nil {
		return h.wrongSeries(ctx, ask, err)
	}
	a, err := call(ctx, h, ask.By.User, func(answer func(SeriesAnswer, error)) { h.changeSeries(ask, id, &x, &checked, answer) })
	return a, err
}

// changeSeries is ModifySeries of the loop.
func (h *Host) changeSeries(ask Ask, id string, x *SeriesEdit, checked *berth.Request, answer func(SeriesAnswer, error)) {
	a := ask.asked()
	a.id = id
	if h.seriesAgain(a, answer) || h.bounded.waits(a.key, func() { h.changeSeries(ask, id, x, checked, answer) }) {
		return
	}
	defer h.inOneMoment()()
	first, err := h.seriesChange(id, x, checked)
	switch {
	case err != nil:
		h.denySeries(a, err, answer)
		return
	case !h.isBounded(&first):
		_ = h.stepSeries(first, a, id, answer) // which is answered
		return
	}
	h.ahead(a.key, ask.By.User, func(berth.Time) engine.Event {
		if now, err := h.seriesChange(id, x, checked); err == nil {
			return now
		}
		return first
	}, func(look *lookedAhead) error {
		now, err := h.seriesChange(id, x, checked)
		if err != nil {
			h.denySeries(a, err, answer)
			return nil
		}
		now.Foreseen = look.foreseen
		return h.stepSeries(now, a, id, answer)
	}, func(err error) { h.denySeries(a, err, answer) })
}

// seriesChange returns the event that an edit of a series comes to. Who may ask, and where it may be, was checked.
func (h *Host) seriesChange(id string, x *SeriesEdit, checked *berth.Request) (engine.Event, error) {
	s := h.core.series.byID[id]
	if s == nil {
		return engine.Event{}, noSeries(id)
	}
	from, to := max(x.From, 1), cmp.Or(x.To, len(s.reservations))
	if from > to || to > len(s.reservations) {
		return engine.Event{}, berth.Errorf(berth.Invalid, "from", "occurrences %d to %d; series %s has those from 1 to %d", from, to, id, len(s.reservations))
	}
	next, err := x.next(s, from, to)
	if err != nil {
		return engine.Event{}, err
	}
	if next != nil {
		next.Request.Role, next.Request.Sites = checked.Role, checked.Sites
	}
	now := h.clock()
	var list []berth.Request
	for _, one := range s.reservations[from-1 : to] {
		k := h.core.card(one)
		if one == "" || k == nil || k.end != "" || k.promise == nil || k.promise.State == berth.Active {
			continue
		}
		if err := k.open(); err != nil {
			return engine.Event{}, err
		}
		was := *k.request
		Keeps{Length: x.Duration == 0, Deadline: true}.lasting(&h.core.config, &was, k.promise)
		r, err := x.request(&was, now)
		if err != nil {
			return engine.Event{}, err
		}
		r.Role, r.Sites = checked.Role, checked.Sites
		list = append(list, r)
	}
	return engine.ModifySeries(id, list, next), nil
}

// refusedChanges returns which occurrences of a series cannot change, as the news of a step say.
func refusedChanges(list []news) (refused []berth.RefusedOccurrence) {
	for i := range list {
		n := &list[i]
		if n.what == string(change.ChangeRefused) && n.refusal != nil && n.card.request.Series != nil {
			refused = append(refused, berth.RefusedOccurrence{Number: n.card.request.Series.Number, Refusal: *n.refusal})
		}
	}
	slices.SortFunc(refused, func(a, b berth.RefusedOccurrence) int { return cmp.Compare(a.Number, b.Number) })
	return refused
}
