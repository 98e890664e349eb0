package engine_test

import (
	"errors"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// followed is what an open series should have come to, by its changes alone.
type followed struct {
	s       *berth.Series
	decided map[int]bool // had their turn, or get none
	waiting map[int]bool // refused, and asked for again
}

// awaits returns whether an occurrence is still to be asked for.
func (f *followed) awaits(number int) bool {
	return f != nil && (!f.decided[number] || f.waiting[number])
}

// follow follows what changes say of open series: each occurrence has its turn when it is near enough, and not before, and
// one that has a reservation is not asked for again.
func (m *seriesMachine) follow(changes []change.Change) {
	if m.open == nil {
		m.open = map[string]*followed{}
	}
	now := m.followedAt
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case change.Advanced:
			now = c.Now
		case change.SeriesPromised:
			if c.Series.Ahead > 0 {
				f := &followed{s: c.Series, decided: map[int]bool{}, waiting: map[int]bool{}}
				for _, u := range c.Unfit {
					f.decided[u.Number], f.waiting[u.Number] = true, true
				}
				m.open[c.Series.ID] = f
			}
		case change.SeriesProlonged:
			m.reached["prolonged"]++
			if c.Progress.Over() {
				m.reached["over"]++
			}
		case change.Accepted, change.Refused:
			ref := requestOf(c).Series
			if ref == nil || m.open[ref.Series] == nil || m.open[ref.Series].s.Ahead == 0 {
				continue
			}
			f := m.open[ref.Series]
			if c.Kind == change.Accepted && !f.awaits(ref.Number) || c.Kind == change.Refused && f.decided[ref.Number] {
				m.t.Fatalf("at %d occurrence %d of %s has another turn: %s", now, ref.Number, ref.Series, c.Kind)
			}
			o := &f.s.Occurrences[ref.Number-1]
			if o.Ready > now.Add(f.s.Ahead) {
				m.t.Fatalf("at %d occurrence %d of %s is %s; it is ready at %d, and asked for %d s ahead", now, ref.Number, ref.Series, c.Kind, o.Ready, f.s.Ahead)
			}
			switch {
			case c.Kind == change.Refused:
				m.reached["refused at its turn"]++
			case c.Reservation.Start() < o.Ready || c.Reservation.End() > o.Deadline:
				m.t.Fatalf("occurrence %d of %s is from %d to %d, in a window from %d to %d", ref.Number, ref.Series, c.Reservation.Start(), c.Reservation.End(), o.Ready, o.Deadline)
			case f.waiting[ref.Number]:
				m.reached["promised later"]++
			}
			f.decided[ref.Number], f.waiting[ref.Number] = true, c.Kind == change.Refused
		}
	}
	m.followedAt = now
	for _, f := range m.open {
		for n := range f.s.Occurrences {
			if o := &f.s.Occurrences[n]; !f.decided[n+1] && o.Ready.Add(-f.s.Ahead) < now {
				m.t.Fatalf("at %d occurrence %d of %s has had no turn; it is ready at %d, and asked for %d s ahead", now, n+1, f.s.ID, o.Ready, f.s.Ahead)
			}
		}
	}
}

// requestOf returns the request that is decided about.
func requestOf(c *change.Change) *berth.Request {
	if c.Kind == change.Accepted {
		return c.Reservation.Request
	}
	return c.Request
}

// giveBack returns an event that gives back occurrences of a series: reservations of it and, of an open one, some that
// have had no turn.
func (m *seriesMachine) giveBack(s *berth.Series, of []string) engine.Event {
	if m.open[s.ID] == nil && rapid.Bool().Draw(m.t, "as before") {
		return engine.CancelSeries(s.ID, of, 0, 0)
	}
	for _, other := range m.all { // rather one that goes on
		if f := m.open[other.ID]; f != nil && slices.ContainsFunc(other.Occurrences, func(o berth.Occurrence) bool { return o.Ready.Add(-other.Ahead) > m.now }) {
			s = f.s
		}
	}
	f := m.open[s.ID]
	if f == nil {
		return engine.CancelSeries(s.ID, nil, 0, 0)
	}
	_, _ = m.apply(engine.Wake())
	first := rapid.IntRange(1, len(s.Occurrences)).Draw(m.t, "first")
	for n := range s.Occurrences { // rather one that is to come
		if !f.decided[n+1] && rapid.Bool().Draw(m.t, "to come") {
			first = n + 1
			break
		}
	}
	last := rapid.SampledFrom([]int{first, first, len(s.Occurrences), 1000}).Draw(m.t, "last")
	of = nil
	for n := first; n <= min(last, len(s.Occurrences)); n++ {
		of = append(of, berth.OccurrenceID(s.ID, n))
		if !f.decided[n] {
			m.reached[map[bool]string{true: "cut", false: "skipped ahead"}[last > first]]++
		}
		f.decided[n], f.waiting[n] = true, false
	}
	return engine.CancelSeries(s.ID, slices.DeleteFunc(of, func(id string) bool {
		_, is := m.e.Reservation(id)
		return !is
	}), first, last)
}

// modify changes occurrences of a series together. If all can, each is as it was asked for; if one cannot, nothing has
// changed. Where each is does not depend on whether they are tried together or on a copy.
func (m *seriesMachine) modify() {
	_, _ = m.apply(engine.Wake())
	s := rapid.SampledFrom(m.all).Draw(m.t, "series")
	f := m.open[s.ID]
	if f != nil {
		s = f.s
	}
	first := rapid.IntRange(1, len(s.Occurrences)).Draw(m.t, "first")
	by := berth.Duration(rapid.SampledFrom([]int{0, -5, 3, 20, 60}).Draw(m.t, "by"))
	shape, sharing, all := drawRequest(m.t, "", m.now), m.sharing(), rapid.Bool().Draw(m.t, "requirements")
	change := func(r *berth.Request) berth.Request {
		own := *r.Clone()
		own.Arrival, own.Ready, own.Deadline = m.now, max(m.now, r.Ready.Add(by)), max(m.now+1, r.Deadline.Add(by))
		if own.Parts = shape.Parts; all {
			own.Requirements, own.Sharing, own.Hold, own.NoShow = shape.Requirements, sharing, shape.Hold, shape.NoShow
		}
		return own
	}
	var list []berth.Request
	for n := first; n <= len(s.Occurrences); n++ {
		if r, is := m.e.Reservation(berth.OccurrenceID(s.ID, n)); is && r.State != berth.Active && r.Start() >= m.e.Now() { // what has held PEs stays as it is
			list = append(list, change(r.Request))
		}
	}
	next := m.next(f, first, by, shape.Parts)
	if len(list) == 0 && next == nil {
		return
	}
	apart, err := engine.ChangedApart(m.e, list)
	if err != nil {
		m.t.Fatal(err)
	}
	before := m.e.Hash()
	changes, err := m.apply(engine.ModifySeries(s.ID, list, next))
	if err != nil {
		var e *berth.Error
		if next != nil && errors.As(err, &e) && e.Code == berth.Conflict { // it asks for nothing more
			return
		}
		m.t.Fatalf("a change of %s at %d: %v", s.ID, m.now, err)
	}
	m.asApart(changes, apart)
	var refused, modified []string
	for i := range changes {
		switch c := &changes[i]; c.Kind {
		case "change_refused":
			refused = append(refused, c.ID)
		case "modified":
			modified = append(modified, c.ID)
		}
	}
	if len(refused) > 0 {
		m.reached["none modified"]++
		if len(modified) > 0 || m.e.Hash() != before {
			m.t.Fatalf("%v cannot change, and %v have", refused, modified)
		}
		return
	}
	if len(modified) != len(list) {
		m.t.Fatalf("of %d %v have changed", len(list), modified)
	}
	m.reached["modified"]++
	if next != nil {
		m.reached["modified with what is to come"]++
		f.s = next
	}
}

// asApart compares the changes of a series with what each comes to where all have left their places and are placed by themselves.
func (m *seriesMachine) asApart(changes, apart []change.Change) {
	isRefused := func(c change.Change) bool { return c.Kind == change.ChangeRefused }
	if want := slices.ContainsFunc(apart, isRefused); want {
		apart = slices.DeleteFunc(apart, func(c change.Change) bool { return !isRefused(c) })
	} else if len(apart) > 1 {
		m.reached["modified like apart"]++
	}
	var got []change.Change
	for i := range changes {
		if c := changes[i]; c.Kind == change.ChangeRefused || c.Kind == change.Modified {
			got = append(got, c)
		}
	}
	if len(got)+len(apart) > 0 && !reflect.DeepEqual(got, apart) {
		m.t.Fatalf("together:\n%+v\napart:\n%+v", got, apart)
	}
}

// next returns what an open series is to ask for when its occurrences change from one on; nil if that stays.
func (m *seriesMachine) next(f *followed, first int, by berth.Duration, parts []berth.Part) *berth.Series {
	if f == nil || !rapid.Bool().Draw(m.t, "to come") {
		return nil
	}
	own := f.s.Clone()
	decided := 0
	for n := range own.Occurrences {
		if f.decided[n+1] {
			decided = n + 1
		}
	}
	if decided >= len(own.Occurrences) || first > decided+1 || m.e.Ahead() == 0 {
		return nil
	}
	for n := range own.Occurrences {
		if n >= decided {
			own.Occurrences[n].Ready = own.Occurrences[n].Ready.Add(by)
			own.Occurrences[n].Deadline = own.Occurrences[n].Deadline.Add(by)
		}
	}
	own.Request.Parts = parts
	if own.Validate() != nil {
		return nil
	}
	return own
}
