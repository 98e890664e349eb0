package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
)

// SeriesAnswer is the answer about a series.
type SeriesAnswer struct {
	Series Series
	// Offers are what could be held instead of occurrences that cannot be promised: of the first of them.
	Offers []OccurrenceOffers
	// Refusals say which occurrences cannot change as was asked, by number: then none has.
	Refusals []berth.RefusedOccurrence
}

// OccurrenceOffers are what could be held instead of an occurrence.
type OccurrenceOffers struct {
	Number int
	Offers []Offer
}

// mostOffered is of how many occurrences that cannot be promised an answer says what each could be instead.
const mostOffered = 10

// SubmitSeries decides about a series, or answers again what was decided under the same key: at least as many
// occurrences as it says are promised, or none is. An open one with a Least of 0 wants all that are near enough. One without an ID gets one; one without a user is the asker's. It is
// the service's from then on. An occurrence whose ready time has passed until it is decided is ready then, and due as much
// later. Errors: Denied, and those of engine.EventSubmitSeries.
func (h *Host) SubmitSeries(ctx context.Context, ask Ask, s berth.Series) (SeriesAnswer, error) {
	err := h.mayAsk(&ask, &s.Request)
	if err == nil {
		err = h.admit(ctx, &s.Request)
	}
	if err != nil {
		return h.wrongSeries(ctx, ask, err)
	}
	if s.ID == "" {
		s.ID = h.newID()
	}
	a, err := call(ctx, h, ask.By.User, func(answer func(SeriesAnswer, error)) { h.decideSeries(ask, &s, answer) })
	return a, err
}

// wrongSeries answers what is wrong with what was asked, unless something was answered under its key before.
func (h *Host) wrongSeries(ctx context.Context, ask Ask, wrong error) (SeriesAnswer, error) {
	switch was, err := h.RecallSeries(ctx, ask); {
	case err != nil:
		return SeriesAnswer{}, err
	case was == nil:
		return SeriesAnswer{}, h.Refuse(ctx, ask, wrong)
	default:
		return *was, nil
	}
}

// decideSeries is SubmitSeries of the loop.
func (h *Host) decideSeries(ask Ask, s *berth.Series, answer func(SeriesAnswer, error)) {
	a := ask.asked()
	if h.seriesAgain(a, answer) || h.bounded.waits(a.key, func() { h.decideSeries(ask, s, answer) }) {
		return
	}
	defer h.inOneMoment()()
	a.id = s.ID
	if h.core.series.byID[s.ID] != nil || h.core.flows.byID[s.ID] != nil || h.core.card(s.ID) != nil {
		h.denySeries(a, berth.Errorf(berth.Conflict, "id", "%q is taken; give another one, or none", s.ID), answer)
		return
	}
	event := func(now berth.Time) engine.Event { return engine.SubmitSeries(arrivedSeries(s, now)) }
	if now := event(h.clock()); !h.isBounded(&now) {
		_ = h.stepSeries(now, a, s.ID, answer)
		return
	}
	h.ahead(a.key, ask.By.User, event, func(look *lookedAhead) error {
		now := event(h.clock())
		now.Foreseen = look.foreseen
		return h.stepSeries(now, a, s.ID, answer)
	}, func(err error) { h.denySeries(a, err, answer) })
}

// arrivedSeries returns a series as it arrives at a time.
func arrivedSeries(s *berth.Series, now berth.Time) *berth.Series {
	own := *s
	own.Request.Arrival = now
	own.Occurrences = slices.Clone(s.Occurrences)
	for i := range own.Occurrences {
		if o := &own.Occurrences[i]; o.Ready < now {
			o.Ready, o.Deadline = now, o.Deadline.Add(now.Sub(o.Ready))
		}
	}
	if own.Ahead > 0 && own.Least == 0 { // all that are near enough by then
		own.Least = own.Due(now)
	}
	return &own
}

// RecallSeries returns what was answered about a series under a key, in what the asker may see of it by now; nil if
// nothing was. The error may be what was answered.
func (h *Host) RecallSeries(ctx context.Context, ask Ask) (*SeriesAnswer, error) {
	if ask.Key == "" {
		return nil, nil
	}
	was, err := call(ctx, h, ask.By.User, func(answer func(*SeriesAnswer, error)) {
		if !h.seriesAgain(ask.asked(), func(was SeriesAnswer, err error) {
			if err != nil {
				answer(nil, err)
				return
			}
			answer(&was, nil)
		}) {
			answer(nil, nil)
		}
	})
	return was, err
}

// CancelSeries gives back the occurrences of a series from one number to another, 0 for the first and the last: what runs ends, what was to run is
// cancelled. Of what is over there is nothing to give back, which is no error.
func (h *Host) CancelSeries(ctx context.Context, ask Ask, id string, from, to int) (SeriesAnswer, error) {
	done, err := call(ctx, h, ask.By.User, func(answer func(SeriesAnswer, error)) {
		a := ask.asked()
		a.id = id
		if h.seriesAgain(a, answer) {
			return
		}
		s := h.core.series.byID[id]
		from := max(from, 1)
		to := to
		if s != nil && to == 0 {
			to = len(s.reservations)
		}
		switch {
		case !ask.By.Can(User):
			h.denySeries(a, berth.Errorf(berth.Denied, "role", "a %s may only look; ask with the token of a user or an operator", ask.By.Role), answer)
			return
		case s == nil || !s.seenBy(ask.By, h.core.card):
			h.denySeries(a, noSeries(id), answer)
			return
		case from < 1 || from > to || to > len(s.reservations):
			h.denySeries(a, berth.Errorf(berth.Invalid, "from", "occurrences %d to %d; series %s has those from 1 to %d", from, to, id, len(s.reservations)), answer)
			return
		}
		var of []string
		for _, id := range s.reservations[from-1 : to] {
			if k := h.core.card(id); id != "" && k != nil && k.end == "" && k.promise != nil {
				of = append(of, id)
			}
		}
		_ = h.stepSeries(engine.CancelSeries(id, of, from, to), a, id, answer) // which is answered
	})
	return done, err
}

// stepSeries applies an event to a series, or makes one of it, and answers with what it is then; the answer is on
// record with the event, under the key. Where what it costs was foreseen for other places it is not answered.
func (h *Host) stepSeries(event engine.Event, a asked, id string, answer func(SeriesAnswer, error)) error {
	var result *SeriesAnswer
	err := h.step(event, a, func(list []news, err error) (outcome, bool) {
		if isForeseenElsewhere(err) {
			return outcome{}, false
		}
		if err != nil {
			return outcomeOf(Answer{}, err)
		}
		result = h.seriesAnswer(h.core.series.byID[id], event.Kind == engine.EventSubmitSeries)
		if event.Kind == engine.EventModifySeries {
			result.Refusals = refusedChanges(list)
		}
		return outcome{Series: result}, true
	})
	if isForeseenElsewhere(err) {
		return err
	}
	h.whenDurable(func(failed error) {
		if failed = cmp.Or(failed, err); failed != nil {
			answer(SeriesAnswer{}, failed)
			return
		}
		answer(*result, nil)
	})
	return err
}

// seriesAnswer returns the answer about a series as it is, with offers if that is asked for.
func (h *Host) seriesAnswer(s *seriesCard, offers bool) *SeriesAnswer {
	a := &SeriesAnswer{Series: s.view(h.core.card, &h.core.config)}
	if !offers {
		return a
	}
	requests := s.s.Requests()
	for i := range s.unfit[:min(len(s.unfit), mostOffered)] {
		number := s.unfit[i].Number
		if list := h.alternativesWithin(&requests[number-1], s.s.Near(number)); len(list) > 0 {
			a.Offers = append(a.Offers, OccurrenceOffers{Number: number, Offers: list})
		}
	}
	return a
}

// seriesAgain answers about a series as it was answered before under the same key, and reports whether it does.
func (h *Host) seriesAgain(a asked, answer func(SeriesAnswer, error)) bool {
	var o outcome
	was, err := h.known(&a)
	switch {
	case err == nil && was == nil:
		return false
	case err == nil && was.answered():
		if o, err = was.outcome(); err == nil {
			err = o.err()
		}
	}
	if err == nil && o.Series == nil {
		err = berth.Errorf(berth.NotFound, "idempotency_key", "what was asked under it is no longer remembered")
	}
	var result SeriesAnswer
	if err == nil {
		if result = *o.Series; !a.asker.seesSeries(&result.Series) {
			result, err = SeriesAnswer{}, noSeries(result.Series.Series.ID)
		}
	}
	h.whenDurable(func(failed error) { answer(result, cmp.Or(failed, err)) })
	return true
}

// seesSeries reports whether a principal may see a series as it was answered.
func (p Principal) seesSeries(s *Series) bool {
	if !p.sees(&s.Series.Request, nil, nil) {
		return false
	}
	for i := range s.Unfit {
		if !p.sees(&s.Series.Request, nil, &s.Unfit[i].Refusal) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Reservations, func(r Reservation) bool { return r.ID != "" && !p.sees(&r.Request, r.Allotments, r.Refusal) })
}

// denySeries answers with an error, which is remembered.
func (h *Host) denySeries(a asked, err error, answer func(SeriesAnswer, error)) {
	_ = h.deny(a, err, func(_ *Answer, err error) { answer(SeriesAnswer{}, err) })
}

// codeReservations is the form of the reservations of a series, of those that there are.
func codeReservations(c *wire.Coder, number byte, s *Series) {
	type of struct {
		at          int
		reservation *Reservation
	}
	var there []of
	for i := range s.Reservations {
		if s.Reservations[i].ID != "" {
			there = append(there, of{i + 1, &s.Reservations[i]})
		}
	}
	wire.List(c, number, &there, func(c *wire.Coder, o *of) {
		if c.Reading() {
			o.reservation = new(Reservation)
		}
		wire.Int(c, 1, &o.at)
		wire.Struct(c, 2, o.reservation, false, codeReservation)
		c.End()
	})
	if !c.Reading() {
		return
	}
	s.Reservations = make([]Reservation, len(s.Series.Occurrences))
	for _, o := range there {
		if o.at < 1 || o.at > len(s.Reservations) {
			c.Fail("a reservation of occurrence %d of %d", o.at, len(s.Reservations))
			return
		}
		s.Reservations[o.at-1] = *o.reservation
	}
}

// codeSeriesAnswer is the form of an answer about a series.
func codeSeriesAnswer(c *wire.Coder, a *SeriesAnswer) {
	wire.Struct(c, 1, &a.Series, false, func(c *wire.Coder, s *Series) {
		wire.Struct(c, 1, &s.Series, false, wire.Series)
		wire.Bool(c, 2, &s.Refused)
		wire.List(c, 3, &s.Unfit, wire.RefusedOccurrence)
		wire.Int(c, 4, &s.Created)
		codeReservations(c, 5, s)
		wire.Pointer(c, 6, &s.Progress, wire.Progress)
		c.End()
	})
	wire.List(c, 2, &a.Offers, func(c *wire.Coder, o *OccurrenceOffers) {
		wire.Int(c, 1, &o.Number)
		wire.List(c, 2, &o.Offers, codeOffer)
		c.End()
	})
	wire.List(c, 3, &a.Refusals, wire.RefusedOccurrence)
	c.End()
}
