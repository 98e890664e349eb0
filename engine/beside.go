package engine

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// What a promise takes beside PEs: licences of its program while it runs, room
// for its data at the site, and of a shared uplink while they are moved. Each is
// a renewable resource with a calendar of its own, of late binding since one
// licence is as good as another (beyond Tang and Liao, who compare licences with
// what a site has and count storage free at the moment). A request of several
// parts takes them once, at the site of the first. Ordinary jobs take none and do
// not run where what they want is counted.

// stock is a renewable resource of a site beside its PEs.
type stock struct {
	id       berth.ResourceID
	calendar calendar.Calendar
	unit     int64 // how much one of it is
}

// take is what a request would take of a stock: n units while it runs, and for
// the lead before.
type take struct {
	stock *stock
	n     berth.Count
	lead  berth.Duration
	// length, if not 0, is for how long from the start on it is taken.
	length berth.Duration
	// fromNow says that it is taken from now on, since data are there.
	fromNow bool
	// moves, if not nil, is where so much is to be moved before the start, at a
	// rate that follows from when that is; n does not count.
	moves     *resource
	kilobytes int64
}

// newStock returns a stock of so much, nil if that is no limit. What is larger
// than a calendar can be is counted in larger units, rounded in favour of keeping
// within it.
func (s *state) newStock(id berth.ResourceID, amount int64, form calendar.Form) *stock {
	if amount <= 0 {
		return nil
	}
	if known := s.stocks[id]; known != nil {
		return known
	}
	unit := (amount + berth.MaxPEs - 1) / berth.MaxPEs
	st := &stock{id: id, calendar: form.New(berth.Count(amount/unit), berth.Late), unit: unit}
	s.stocks[id], s.calendars[id] = st, st.calendar
	s.stockOrder = append(s.stockOrder, st)
	return st
}

// newStocks returns the stock of licences of each program of a site, in their
// order, and that of its storage.
func (s *state) newStocks(site *berth.Site, form calendar.Form) (licences []*stock, storage *stock) {
	for i := range site.Software {
		program := &site.Software[i]
		licences = append(licences, s.newStock(berth.LicenceID(site.Name, program), int64(program.Licences), form))
	}
	return licences, s.newStock(berth.StorageID(site.Name), site.StorageMB, form)
}

// takes returns what a request takes at the site of a resource that has what it
// requires. Its data are there before it starts if they are moved.
func (e *Engine) takes(r *berth.Request, res *resource) []take {
	if r.Licences == 0 && r.StorageMB == 0 || r.IsJob() {
		return nil
	}
	var list []take
	defer func() {
		for _, t := range list {
			t.stock.calendar.Prune(e.state.now) // nothing may prune under an open draft
		}
	}()
	if i := res.program(r); i >= 0 && res.licences[i] != nil && r.Licences > 0 {
		list = append(list, take{stock: res.licences[i], n: units(int64(r.Licences), res.licences[i].unit)})
	}
	if res.storage != nil && r.StorageMB > 0 {
		t := take{stock: res.storage, n: units(r.StorageMB, res.storage.unit)}
		switch d := e.state.placing.again; {
		case d != nil && e.state.dataAt(d, res.id.Site, r):
			t.fromNow = true
		case e.state.uplink == nil:
			t.lead = res.before(r) // else it is needed from whenever they are moved
		}
		list = append(list, t)
	}
	if moved := res.transfer(r); moved.stock != nil {
		list = append(list, moved)
	}
	return list
}

func units(amount, unit int64) berth.Count { return berth.Count((amount + unit - 1) / unit) }

// beside goes on from a fit to one, of the same length, beside which there is
// what the request takes of stocks: the fit itself if there is, else the earliest
// later start. Then the placement does not choose.
func (e *Engine) beside(c calendar.Calendar, takes []take, q calendar.Query, fit calendar.Fit, ok bool) (calendar.Fit, bool) {
	for first := true; ok && len(takes) > 0; first = false {
		start, possible := e.stocked(takes, q, fit.Start)
		if possible && start == fit.Start {
			return fit, true
		}
		if first { // what the placement chose will not do; begin with the earliest
			start, possible = e.stocked(takes, q, q.Ready)
		}
		if !possible {
			return fit, false
		}
		q.Ready = start
		fit, ok = calendar.Earliest(c, q)
	}
	return fit, ok
}

// stocked returns the earliest start from a time on at which every stock has
// what is taken of it; false if none is left by the query's deadline.
func (e *Engine) stocked(takes []take, q calendar.Query, from berth.Time) (berth.Time, bool) {
	for agreed := 0; agreed < len(takes); {
		for i := range takes {
			t := &takes[i]
			if t.moves != nil {
				if at := t.arrival(takes, from, q.Duration); at > from {
					from, agreed = at, 0
				}
				if agreed++; from.Add(q.Duration) > q.Deadline {
					return 0, false
				}
				continue
			}
			if t.fromNow {
				free, _ := t.stock.calendar.Free(berth.Interval{Start: e.state.now, End: from.Add(q.Duration)})
				if agreed++; free < t.n {
					return 0, false
				}
				continue
			}
			length := q.Duration + t.lead
			if t.length > 0 {
				length = t.length
			}
			of := calendar.Query{
				Now: q.Now, Ready: max(from.Add(-t.lead), q.Now), Deadline: q.Deadline, Duration: length, NPE: t.n, Horizon: calendar.Unbounded,
			}
			fit, ok := calendar.Earliest(t.stock.calendar, of)
			if !ok {
				return 0, false
			}
			if start := fit.Start.Add(t.lead); start > from {
				from, agreed = start, 0
			}
			agreed++
		}
	}
	return from, true
}

// scarce returns the stock that keeps a request from a resource that has the
// PEs: the first that is wanting by itself, else the first; nil if it is the PEs.
func (e *Engine) scarce(r *berth.Request, res *resource, q calendar.Query) *take {
	takes := e.takes(r, res)
	if e.state.uplink != nil && q.Ready.Add(q.Duration) > q.Deadline { // with the uplink for itself it would not be so
		return &take{stock: e.state.uplink, n: e.state.uplink.calendar.Size()}
	}
	if _, ok := e.state.calendar(res.id).Find(q, e.settings.place); !ok || len(takes) == 0 {
		return nil
	}
	for i := range takes {
		if _, ok := e.stocked(takes[i:i+1], q, q.Ready); !ok {
			return &takes[i]
		}
	}
	return &takes[0]
}

// held returns what a request holds beside the allotments that it gets.
func (e *Engine) held(r *berth.Request, allotments []berth.Allotment) []berth.Allotment {
	var held []berth.Allotment
	if r.Licences == 0 && r.StorageMB == 0 || r.IsJob() {
		return nil
	}
	end := lastEnd(allotments)
	for _, t := range e.takes(r, e.resourceOf(allotments[0].Resource)) {
		if t.moves != nil {
			continue
		}
		a := berth.Allotment{
			Resource: t.stock.id, Start: max(allotments[0].Start.Add(-t.lead), e.state.now), End: end, NPE: t.n,
		}
		if t.length > 0 {
			a.End = a.Start.Add(t.length)
		}
		held = append(held, a)
	}
	return held
}

// longer reports whether what a reservation holds beside its PEs is there until
// a later end.
func (e *Engine) longer(held []berth.Allotment, until berth.Time) bool {
	for i := range held {
		a := &held[i]
		if a.Resource.Kind == berth.UplinkKind {
			continue // a transfer does not go on for longer
		}
		if free, _ := e.state.calendar(a.Resource).Free(berth.Interval{Start: max(a.End, e.state.now), End: until}); free < a.NPE {
			return false
		}
	}
	return true
}

// besides takes from stocks what a reservation holds, from a time on, or gives
// it back.
func (s *state) besides(held []berth.Allotment, from berth.Time, change func(calendar.Calendar, calendar.Block) error) error {
	for i := range held {
		a := &held[i]
		c := s.calendars[a.Resource]
		if c == nil {
			return fmt.Errorf("no resource %v", a.Resource)
		}
		if begin := max(a.Start, from); begin < a.End {
			if err := change(c, blockOf(a, begin)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lengthen lets what a reservation holds beside its PEs last until a later end.
func (s *state) lengthen(e *entry, until berth.Time) error {
	if len(e.Held) == 0 {
		return nil
	}
	held := slices.Clone(e.Held) // it is shared with the change that brought it
	for i := range held {
		if held[i].Resource.Kind == berth.UplinkKind {
			continue
		}
		further := held[i]
		further.Start, further.End, held[i].End = max(held[i].End, s.now), until, until
		if err := s.besides([]berth.Allotment{further}, further.Start, calendar.Calendar.Add); err != nil {
			return err
		}
	}
	e.Held = held
	return nil
}
