package engine_test

import (
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
	f := m.open[s.ID]
	if f == nil || rapid.Bool().Draw(m.t, "as before") {
		return engine.CancelSeries(s.ID, of, 0, 0)
	}
	first := rapid.IntRange(1, len(s.Occurrences)).Draw(m.t, "first")
	last := rapid.SampledFrom([]int{first, first, len(s.Occurrences), 1000}).Draw(m.t, "last")
	of = nil
	_, _ = m.apply(engine.Wake())
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
