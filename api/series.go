package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/recurrence"
	"github.com/berth-hpc/berth/service"
)

// recurring is how something repeats, as it was read.
type recurring struct {
	how  recurrence.Asked
	zone string
}

// repeats reports whether it says that.
func (a *recurring) repeats() bool { return a.how.Rule != "" || len(a.how.Add) > 0 }

// settle has what repeats by no clock that is named repeat by UTC.
func (a *recurring) settle() {
	if a.how.Zone == nil {
		a.zone, a.how.Zone = "UTC", time.UTC
	}
}

// recurringBody is what a repetition may say that occurs at most so often.
func recurringBody(most int64) body[recurring] {
	return body[recurring]{
		{"repeat", "How it repeats: words such as every weekday 09:00, every 2 weeks on monday 09:00 or first monday of the month 18:00, or an RRULE of RFC 5545 behind RRULE:. docs/series.md lists the forms.", text("every weekday 09:00"), func(a *recurring, v value) (err error) {
			a.how.Rule, err = v.word()
			return err
		}},
		{"time_zone", "By whose clock it repeats; UTC if it is not given.", text("Europe/Berlin"), func(a *recurring, v value) (err error) {
			if a.zone, err = v.word(); err != nil {
				return err
			}
			zone, err := time.LoadLocation(a.zone)
			if err != nil || a.zone == "Local" {
				return fmt.Errorf("%.80q is no time zone that is known here; want one such as Europe/Berlin or UTC", a.zone)
			}
			a.how.Zone = zone
			return nil
		}},
		{"until", "The latest start.", instant(), func(a *recurring, v value) error {
			t, err := v.instant(down)
			a.how.Until = time.Unix(int64(t), 0)
			return err
		}},
		{"times", "How often the rule occurs, before exceptions are taken out.", whole(1, most), func(a *recurring, v value) error {
			n, err := v.whole(1, most)
			a.how.Times = int(n)
			return err
		}},
		{"except", "Days or times at which it does not occur, by the clock of the zone.", listOf(text("2026-12-24")), func(a *recurring, v value) (err error) {
			a.how.Except, err = someTexts(v)
			return err
		}},
		{"add", "Further times at which it occurs, by the clock of the zone.", listOf(text("2026-12-23 09:00")), func(a *recurring, v value) (err error) {
			a.how.Add, err = someTexts(v)
			return err
		}},
	}
}

// repeated is a series as it was read.
type repeated struct {
	asked
	recurring
	window *berth.Duration
	least  int
	ahead  berth.Duration
}

// seriesBody is what a series may say: a request without a deadline, and how it repeats.
var seriesBody = slices.Concat(lifted(requestBody, func(a *repeated) *asked { return &a.asked }, "deadline", "deadline_in", "ready_in", "kind"), lifted(recurringBody(berth.MaxOccurrences), func(a *repeated) *recurring { return &a.recurring }), body[repeated]{
	{"ahead", "Makes an open series: each occurrence is asked for once it is no further ahead than this, and the series goes on without an end if none is given. What cannot be promised then is refused, and asked for again a 42nd of this later, a day at most and a minute at least.", duration(), func(a *repeated, v value) error {
		d, err := v.length(1)
		a.ahead, a.how.Open = d, true
		return err
	}},
	{"window", "How long after its time each occurrence must have ended at the latest; as long as it lasts if it is not given.", duration(), func(a *repeated, v value) error {
		d, err := v.length(1)
		a.window = &d
		return err
	}},
	{"at_least", "How many occurrences must be possible, or none is promised; all if it is not given. Of an open series it is about those that are near enough when it is asked for.", whole(1, berth.MaxOccurrences), func(a *repeated, v value) error {
		n, err := v.whole(1, berth.MaxOccurrences)
		a.least = int(n)
		return err
	}},
})

// lifted is the fields of a part of something, but for some, as its own.
func lifted[Part, Whole any](b body[Part], of func(*Whole) *Part, but ...string) (list body[Whole]) {
	for _, f := range b {
		if !slices.Contains(but, f.name) {
			list = append(list, field[Whole]{f.name, f.about, f.form, func(a *Whole, v value) error { return f.set(of(a), v) }})
		}
	}
	return list
}

// someTexts reads a list of times that is no longer than a series may be.
func someTexts(v value) ([]string, error) {
	list, err := v.texts()
	if err == nil && len(list) > berth.MaxOccurrences {
		err = fmt.Errorf("%d items; want at most %d", len(list), berth.MaxOccurrences)
	}
	return list, err
}

// series makes a series of what was asked at a time.
func (a *repeated) series(now berth.Time) (berth.Series, error) {
	a.deadline.at = new(berth.Time(berth.TimeLimit - 2)) // each occurrence has its own
	r, err := a.request(now)
	if err != nil {
		return berth.Series{}, err
	}
	a.settle()
	a.how.From = time.Unix(int64(r.Ready), 0)
	list, err := recurrence.Expand(&a.how)
	if err != nil {
		return berth.Series{}, err
	}
	lasts := berth.Duration(0)
	for i := range r.Parts {
		shortest := r.Parts[i].Variants[0].Duration
		for _, v := range r.Parts[i].Variants {
			shortest = min(shortest, v.Duration)
		}
		lasts = max(lasts, shortest)
	}
	window := lasts
	if a.window != nil {
		if window = *a.window; window < lasts {
			return berth.Series{}, berth.Errorf(berth.Invalid, "window", "%s is less than the duration, %s; want that or more", hpctime.Format(window), hpctime.Format(lasts))
		}
	}
	s := berth.Series{Rule: a.how.Rule, Zone: a.zone, Least: a.least, Ahead: a.ahead}
	for _, o := range list {
		ready := berth.Time(o.At.Unix())
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready.Add(window), Shift: o.Shift})
	}
	due := s.Due(now)
	switch {
	case due == 0:
		return s, berth.Errorf(berth.Invalid, "ahead", "%s; the first occurrence is further ahead, on %s, want more or an earlier ready", hpctime.Format(s.Ahead), list[0].At.In(a.how.Zone).Format(time.RFC3339))
	case s.Least > due && s.Ahead > 0:
		return s, berth.Errorf(berth.Invalid, "at_least", "%d, but %d occurrences are no further ahead than %s; want that or fewer", s.Least, due, hpctime.Format(s.Ahead))
	case s.Least > due:
		return s, berth.Errorf(berth.Invalid, "at_least", "%d, but it occurs %d times; want that or fewer", s.Least, due)
	case s.Least == 0 && s.Ahead == 0:
		s.Least = due
	}
	if r.Ready, r.Deadline = s.Occurrences[0].Ready, s.Occurrences[0].Deadline; r.Name != "" && len(r.Name) > berth.MaxName-5 {
		return s, berth.Errorf(berth.Invalid, "name", "%.80q is too long for a series, whose occurrences have their numbers behind it; want at most %d letters", r.Name, berth.MaxName-5)
	}
	s.Request = r
	return s, nil
}

func (c *call) submitSeries() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	if was, err := c.RecallSeries(c.r.Context(), ask); err != nil || was != nil {
		if err != nil {
			return err
		}
		return c.seriesDecided(http.StatusCreated, was)
	}
	var a repeated
	var wrong faults
	seriesBody.read(c.body, &a, &wrong)
	if err := wrong.err(); err != nil {
		return err
	}
	if err := c.begin(); err != nil { // a rule of thousands of times takes milliseconds
		return err
	}
	s, err := a.series(c.Now())
	if err != nil {
		return err
	}
	c.rest()
	n := s.Due(c.Now()) // each counts as a request
	if most := c.rates.most(c.asker()); n > most {
		return berth.Errorf(berth.Invalid, "repeat", "%d occurrences; a %s may ask for %d at once here, so ask for several series", n, c.by.Role, most)
	}
	if !c.rates.allow(c.asker(), n-1) {
		return tooFast(c.asker())
	}
	answer, err := c.SubmitSeries(c.r.Context(), ask, s)
	if err != nil {
		return err
	}
	return c.seriesDecided(http.StatusCreated, &answer)
}

func (c *call) seriesDecided(status int, a *service.SeriesAnswer) error {
	if err := c.telling(len(a.Series.Series.Occurrences)); err != nil {
		return err
	}
	f := form.SeriesAnswer{Series: seriesView(&a.Series, a.Offers)}
	f.Decision = f.Series.Decision
	if status == http.StatusCreated {
		c.w.Header().Set("Location", "/v1/series/"+f.Series.ID)
	}
	return c.answer(status, &f)
}

var seriesParams = []param{
	{"user", "Only of this user.", text("alice")},
	{"limit", "How many at most; 100 by default.", whole(1, maxPage)},
	{"cursor", "The next of the page before.", text("")},
}

func (c *call) listSeries() error {
	query, err := c.query(seriesParams)
	if err != nil {
		return err
	}
	var wrong faults
	limit, after := pageOf(query, &wrong)
	if err := wrong.err(); err != nil {
		return err
	}
	list, looked, err := c.ListSeries(c.r.Context(), c.by, service.SeriesFilter{User: query["user"], After: after, Limit: min(limit+1, maxPage)})
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	f := form.SeriesList{Series: []form.Series{}}
	if len(list) > limit {
		list = list[:limit]
		f.Next = cursor(list[limit-1].Series.ID)
	}
	for i := range list {
		s := seriesView(&list[i], nil)
		s.Occurrences = nil
		f.Series = append(f.Series, s)
	}
	return c.answer(http.StatusOK, &f)
}

// getSeries answers with a series by its id, or by a word that can be no other; then it says which it is by Content-Location.
func (c *call) getSeries() error {
	word := c.r.PathValue("id")
	s, err := c.GetSeries(c.r.Context(), c.by, word)
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
		if err := c.begin(); err != nil {
			return err
		}
		var looked int
		s, looked, err = c.FindSeries(c.r.Context(), c.by, word)
		c.rates.charge(c.asker(), looked/lookedAtOnce)
		if err == nil {
			c.w.Header().Set("Content-Location", "/v1/series/"+s.Series.ID)
		}
	}
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, new(seriesView(&s, nil)))
}

var seriesCancelBody = body[form.SeriesCancel]{
	{"from", "The first occurrence that is given back, by its number; the first of all if it is not given.", whole(1, berth.MaxOccurrences), func(a *form.SeriesCancel, v value) error {
		n, err := v.whole(1, berth.MaxOccurrences)
		a.From = int(n)
		return err
	}},
	{"to", "The last occurrence that is given back; the last of all if it is not given.", whole(1, berth.MaxOccurrences), func(a *form.SeriesCancel, v value) error {
		n, err := v.whole(1, berth.MaxOccurrences)
		a.To = int(n)
		return err
	}},
}

func (c *call) cancelSeries() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	var a form.SeriesCancel
	var wrong faults
	if len(c.body) > 0 {
		seriesCancelBody.read(c.body, &a, &wrong)
	}
	if a.From > 0 && a.To > 0 && a.From > a.To {
		wrong.add("from", fmt.Errorf("%d is behind to, %d; want a first number and a last one", a.From, a.To))
	}
	if err := wrong.err(); err != nil {
		return err
	}
	answer, err := c.CancelSeries(c.r.Context(), ask, c.r.PathValue("id"), a.From, a.To)
	if err != nil {
		return err
	}
	return c.seriesDecided(http.StatusOK, &answer)
}

var seriesModifyBody = body[service.SeriesEdit]{
	{"from", "The first occurrence that changes, by its number; the first of all if it is not given.", whole(1, berth.MaxOccurrences), func(a *service.SeriesEdit, v value) error {
		n, err := v.whole(1, berth.MaxOccurrences)
		a.From = int(n)
		return err
	}},
	{"to", "The last occurrence that changes; the last of all if it is not given. Of an open series that is also what it is still to ask for.", whole(1, berth.MaxOccurrences), func(a *service.SeriesEdit, v value) error {
		n, err := v.whole(1, berth.MaxOccurrences)
		a.To = int(n)
		return err
	}},
	{"by", "By how many seconds they come later; earlier, if it is negative.", whole(-int64(berth.TimeLimit)+1, int64(berth.TimeLimit)-1), func(a *service.SeriesEdit, v value) error {
		n, err := v.whole(-int64(berth.TimeLimit)+1, int64(berth.TimeLimit)-1)
		a.By = berth.Duration(n)
		return err
	}},
	{"npe", "How many PEs each has from then on, of what has one shape.", whole(1, int64(berth.MaxPEs)), func(a *service.SeriesEdit, v value) error {
		n, err := v.whole(1, int64(berth.MaxPEs))
		a.NPE = berth.Count(n)
		return err
	}},
	{"duration", "How long each lasts from then on, of what has one shape. Its window is as much longer.", duration(), func(a *service.SeriesEdit, v value) (err error) {
		a.Duration, err = v.length(1)
		return err
	}},
}

func (c *call) modifySeries() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	var a service.SeriesEdit
	var wrong faults
	seriesModifyBody.read(c.body, &a, &wrong)
	if a.From > 0 && a.To > 0 && a.From > a.To {
		wrong.add("from", fmt.Errorf("%d is behind to, %d; want a first number and a last one", a.From, a.To))
	}
	if len(wrong) == 0 && a.By == 0 && a.NPE == 0 && a.Duration == 0 {
		wrong.add("by", errors.New("missing; want by, npe or duration, which say what changes"))
	}
	if err := wrong.err(); err != nil {
		return err
	}
	answer, err := c.ModifySeries(c.r.Context(), ask, c.r.PathValue("id"), a)
	if err != nil {
		return err
	}
	f := form.SeriesAnswer{Series: seriesView(&answer.Series, nil), Decision: form.Accepted}
	for i := range answer.Refusals {
		u := &answer.Refusals[i]
		f.Decision = form.Refused
		f.Refusals = append(f.Refusals, form.OccurrenceRefusal{Number: u.Number, Reason: u.Refusal.Reason, Refusal: refusal(&u.Refusal, &answer.Series.Series.Request)})
	}
	return c.answer(http.StatusOK, &f)
}

// seriesView shows a series, with what some of its occurrences could be instead.
func seriesView(s *service.Series, instead []service.OccurrenceOffers) form.Series {
	q := &s.Series.Request
	f := form.Series{
		ID: s.Series.ID, Name: q.Name, User: q.User, Repeat: s.Series.Rule, TimeZone: s.Series.Zone, AtLeast: s.Series.Least,
		Decision: form.Accepted, Created: form.TimeOf(s.Created), Count: len(s.Series.Occurrences), Ahead: s.Series.Ahead,
	}
	switch p := s.Progress; {
	case p != nil:
		prolonged(&f, s)
	case s.Refused:
		f.Count = s.Series.Due(s.Series.Request.Arrival)
	}
	switch {
	case s.Refused:
		f.Decision = form.Refused
	case len(s.Unfit) > 0:
		f.Decision = form.Partly
	}
	f.Moved = movedOccurrences(s)
	for i := range f.Count {
		o := &s.Series.Occurrences[i]
		window, _ := s.Window(i + 1)
		one := form.Occurrence{Number: i + 1, Ready: form.TimeOf(window.Start), Deadline: form.TimeOf(window.End), Shift: o.Shift, Note: shiftNote(o.Shift, s.Series.Zone)}
		if r := &s.Reservations[i]; r.ID != "" {
			one.ID, one.State, one.Expires = r.ID, string(r.State), form.TimeOf(r.Expires)
			places(&one.Place, &one.Parts, r.Allotments)
			if one.Charge = r.Charge; r.Charge != nil {
				if f.Charge == nil {
					f.Charge = new(int64)
				}
				*f.Charge = berth.AddAreas(*f.Charge, *r.Charge)
			}
			if !r.State.Over() {
				f.Live++
			}
		} else if slices.Contains(f.Skipped, i+1) {
			one.State = form.Skipped
		}
		f.Occurrences = append(f.Occurrences, one)
	}
	for i := range s.Unfit {
		u := &s.Unfit[i]
		one := &f.Occurrences[u.Number-1]
		one.Refusal = refusal(&u.Refusal, q)
		one.Reason = u.Refusal.Reason
	}
	for i := range instead {
		f.Occurrences[instead[i].Number-1].Offers = offers(instead[i].Offers)
	}
	return f
}

// prolonged shows how far an open series has come: its occurrences are those that have had their turn.
func prolonged(f *form.Series, s *service.Series) {
	p, list := s.Progress, s.Series.Occurrences
	f.Count, f.Open, f.Skipped = p.Decided, !p.Over(), p.Skipped
	if p.Decided > 0 {
		f.PromisedUntil = startOf(s, p.Decided)
	}
	if p.Decided < p.Last {
		f.Prolonged = form.TimeOf(list[p.Decided].Ready.Add(-s.Series.Ahead))
	}
	if len(p.Waiting) > 0 {
		f.Again = form.TimeOf(p.Again)
	}
	if last := p.Last; last > 0 {
		f.Ends = startOf(s, last)
	}
}

// startOf returns from when on an occurrence may start.
func startOf(s *service.Series, number int) form.Time {
	window, _ := s.Window(number)
	return form.TimeOf(window.Start)
}

// movedOccurrences returns which occurrences come at another time than the rule says, those that follow each other
// together.
func movedOccurrences(s *service.Series) (list []form.MovedOccurrences) {
	last := len(s.Series.Occurrences)
	if s.Progress != nil {
		last = s.Progress.Last
	}
	for n := 1; n <= last; n++ {
		_, by := s.Window(n)
		switch end := len(list) - 1; {
		case by == 0:
		case end >= 0 && list[end].To == n-1 && list[end].By == by:
			list[end].To = n
		default:
			list = append(list, form.MovedOccurrences{From: n, To: n, By: by})
		}
	}
	return list
}

// shiftNote says what a change of the clock has made of a time.
func shiftNote(s berth.Shift, zone string) string {
	switch s {
	case berth.ShiftLater:
		return "the clocks of " + zone + " are put forward and never show the time of the rule on that day; it is as much later"
	case berth.ShiftFirst:
		return "the clocks of " + zone + " are put back and show the time of the rule twice on that day; it is the first"
	}
	return ""
}
