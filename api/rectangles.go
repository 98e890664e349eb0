package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

const (
	maxStretches     = 1000
	defaultStretches = 200
	// stretchesForOne is how many stretches are told for the price of one call: of 30,000
	// promises about as many as offers for one request cost.
	stretchesForOne = 64
)

var rectanglesParams = []param{
	{"from", "The first start that is told about; the ready time if it is not given.", instant()},
	{"to", "The last start that is told about. Without it and from, only starts are told that end by the deadline.", instant()},
	{"most", fmt.Sprintf("The largest number of stretches for each shape in each pool; %d by default.", defaultStretches), whole(1, maxStretches)},
}

// rectangles answers when a request would be promised, and what is short at other times.
func (c *call) rectangles() error {
	query, err := c.query(rectanglesParams)
	if err != nil {
		return err
	}
	r, a, err := c.asked(requestBody)
	if err != nil {
		return err
	}
	if r.IsJob() {
		return berth.Errorf(berth.Invalid, "kind", "%q; starts are told of requests", r.Kind)
	}
	w, err := readWindow(query, &r, c.Now())
	if err != nil {
		return err
	}
	list, err := c.Starts(c.r.Context(), service.Ask{By: c.by, FromNow: a.fromNow()}, r, w)
	if err != nil {
		return err
	}
	f := form.Rectangles{From: form.TimeOf(list[0].First), Pools: make([]form.Starts, len(list))}
	if !w.InTime() {
		f.To = form.TimeOf(list[0].Last)
	}
	told := 0
	for i := range list {
		s := &list[i]
		told += len(s.Stretches)
		p := form.Starts{Site: s.Pool.Site, Pool: s.Pool.Name, NPE: s.NPE, Duration: s.Duration, Refusal: refusal(s.Refusal, &r), Stretches: make([]form.Stretch, len(s.Stretches))}
		for k, x := range s.Stretches {
			p.Stretches[k] = form.Stretch{First: form.TimeOf(x.First), Last: form.TimeOf(x.Last), Refusal: refusal(x.Refusal, &r)}
			if x.Refusal == nil {
				p.Stretches[k].End = form.TimeOf(x.Last.Add(s.Duration))
			}
		}
		f.Pools[i] = p
	}
	c.rates.charge(c.asker(), told/stretchesForOne)
	return c.answer(http.StatusOK, &f)
}

// readWindow reads which starts are asked about.
func readWindow(query map[string]string, r *berth.Request, now berth.Time) (service.Window, error) {
	var wrong faults
	w := service.Window{Most: defaultStretches}
	for _, end := range []struct {
		name string
		of   *berth.Time
		to   rounding
	}{{"from", &w.First, down}, {"to", &w.Last, up}} {
		if text, given := query[end.name]; given {
			t, err := parseInstant(text, end.to)
			wrong.add(end.name, err)
			*end.of = t
		}
	}
	if text, given := query["most"]; given {
		n, err := value(text).whole(1, maxStretches)
		wrong.add("most", err)
		w.Most = int(n)
	}
	first, last := w.Of(r)
	first = max(first, now) // what is over is no start
	switch {
	case len(wrong) > 0:
	case last < first:
		wrong.add("to", errors.New(stamp(last)+" is before "+stamp(first)+", the first start; want a later time"))
	case last.Sub(first) > maxSight:
		wrong.add("to", errors.New("more than ten years after the first start; want an earlier time"))
	}
	return w, wrong.err()
}
