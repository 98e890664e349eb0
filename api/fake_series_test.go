package api_test

import (
	"context"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// series are the series of the fake, which promises each occurrence at its time, and refuses those of more than 100 PEs.
type series struct {
	made     []*service.Series
	answered map[string]service.SeriesAnswer // by user and key
}

func (s *series) answer(ask *service.Ask, a service.SeriesAnswer) service.SeriesAnswer {
	if ask.Key != "" {
		if s.answered == nil {
			s.answered = map[string]service.SeriesAnswer{}
		}
		s.answered[ask.By.User+"\x00"+ask.Key] = a
	}
	return a
}

func (f *fake) RecallSeries(_ context.Context, ask service.Ask) (*service.SeriesAnswer, error) {
	defer f.lock()()
	if a, known := f.series.answered[ask.By.User+"\x00"+ask.Key]; known {
		return &a, nil
	}
	return nil, nil
}

func (f *fake) SubmitSeries(_ context.Context, ask service.Ask, s berth.Series) (service.SeriesAnswer, error) {
	defer f.lock()()
	switch {
	case f.fails != nil:
		return service.SeriesAnswer{}, f.fails
	case s.Request.User == "":
		s.Request.User = ask.By.User
	case !ask.By.Owns(s.Request.User):
		return service.SeriesAnswer{}, berth.Errorf(berth.Denied, "user", "not yours")
	}
	s.ID = "series" + strconv.Itoa(len(f.series.made)+1)
	if s.Request.Arrival = f.now; s.Least == 0 {
		s.Least = s.Due(f.now)
	}
	v := &service.Series{Series: s, Created: f.now, Reservations: make([]service.Reservation, len(s.Occurrences))}
	for i, r := range s.Requests()[:s.Due(f.now)] {
		shape := r.Parts[0].Variants[0]
		if shape.NPE > 100 {
			v.Refused = true
			v.Unfit = append(v.Unfit, berth.RefusedOccurrence{Number: i + 1, Refusal: berth.Refusal{Reason: berth.TooLarge, Wanted: shape.NPE, Limit: 100}})
			continue
		}
		v.Reservations[i] = service.Reservation{
			ID: r.ID, State: service.Confirmed, Version: 1, Request: r, Created: f.now, Changed: f.now,
			Allotments: []berth.Allotment{{Resource: berth.PoolID("cm5", "batch"), Start: r.Ready, End: r.Ready.Add(shape.Duration), NPE: shape.NPE}},
		}
	}
	if !v.Refused {
		v.Progress = s.Begun(f.now, nil)
	}
	f.series.made = append(f.series.made, v)
	return f.series.answer(&ask, service.SeriesAnswer{Series: *v}), nil
}

func (f *fake) findSeries(by service.Principal, id string) (*service.Series, error) {
	if f.fails != nil {
		return nil, f.fails
	}
	for _, s := range f.series.made {
		if s.Series.ID == id && by.Owns(s.Series.Request.User) {
			return s, nil
		}
	}
	return nil, berth.Errorf(berth.NotFound, "id", "no series %q", id)
}

func (f *fake) ModifySeries(_ context.Context, ask service.Ask, id string, x service.SeriesEdit) (service.SeriesAnswer, error) {
	defer f.lock()()
	s, err := f.findSeries(ask.By, id)
	if err != nil {
		return service.SeriesAnswer{}, err
	}
	answer := service.SeriesAnswer{Series: *s}
	for i := range s.Reservations {
		r := &s.Reservations[i]
		switch {
		case r.ID == "", i+1 < x.From, x.To > 0 && i+1 > x.To:
		case x.NPE > 100:
			answer.Refusals = append(answer.Refusals, berth.RefusedOccurrence{Number: i + 1, Refusal: berth.Refusal{Reason: berth.TooLarge, Wanted: x.NPE, Limit: 100}})
		default:
			r.Allotments = []berth.Allotment{{Resource: r.Allotments[0].Resource, Start: r.Allotments[0].Start.Add(x.By), End: r.Allotments[0].End.Add(x.By), NPE: max(x.NPE, r.Allotments[0].NPE)}}
			r.Request.Ready, r.Request.Deadline = r.Request.Ready.Add(x.By), r.Request.Deadline.Add(x.By)
		}
	}
	if s.Progress != nil && x.To == 0 {
		for i := s.Progress.Decided; i < s.Progress.Last; i++ {
			o := &s.Series.Occurrences[i]
			o.Ready, o.Deadline, o.Moved = o.Ready.Add(x.By), o.Deadline.Add(x.By), o.Moved+x.By
		}
		answer.Series = *s
	}
	return f.series.answer(&ask, answer), nil
}

func (f *fake) CancelSeries(_ context.Context, ask service.Ask, id string, from, to int) (service.SeriesAnswer, error) {
	defer f.lock()()
	s, err := f.findSeries(ask.By, id)
	if err != nil {
		return service.SeriesAnswer{}, err
	}
	if s.Progress != nil {
		last := to
		if to == 0 {
			last = len(s.Reservations)
		}
		s.Progress = s.Progress.Without(max(from, 1), last)
	}
	for i := range s.Reservations {
		if s.Reservations[i].ID != "" && i+1 >= from && (to == 0 || i+1 <= to) {
			s.Reservations[i].State = service.Cancelled
		}
	}
	return f.series.answer(&ask, service.SeriesAnswer{Series: *s}), nil
}

func (f *fake) GetSeries(_ context.Context, by service.Principal, id string) (service.Series, error) {
	defer f.lock()()
	s, err := f.findSeries(by, id)
	if err != nil {
		return service.Series{}, err
	}
	return *s, nil
}

func (f *fake) FindSeries(_ context.Context, by service.Principal, word string) (service.Series, int, error) {
	defer f.lock()()
	for _, s := range f.series.made {
		if s.Series.Request.Name == word && by.Owns(s.Series.Request.User) {
			return *s, len(f.series.made), nil
		}
	}
	return service.Series{}, len(f.series.made), berth.Errorf(berth.NotFound, "id", "no series %q", word)
}

func (f *fake) ListSeries(_ context.Context, by service.Principal, filter service.SeriesFilter) (list []service.Series, looked int, err error) {
	defer f.lock()()
	for _, s := range f.series.made {
		if by.Owns(s.Series.Request.User) && s.Series.ID > filter.After && (filter.User == "" || filter.User == s.Series.Request.User) && len(list) < filter.Limit {
			list = append(list, *s)
		}
	}
	return list, len(list), f.fails
}
