package state

import (
	"fmt"
	"iter"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// planned is what the passes for jobs know of availability beyond the calendars of
// promises. It hears of everything that those take and give back.
type planned interface {
	// complete makes the calendars of promises complete.
	complete()
	// expectJobs is called before a job becomes pending.
	expectJobs()
	// take and give follow a promise or a running job, from a time on.
	take(a *berth.Allotment, from berth.Time) error
	give(a *berth.Allotment, from berth.Time) error
	// run takes what a job that starts holds, in the calendar of promises too.
	run(e *Entry, a *berth.Allotment, planned bool) error
	// stop gives back what is left of it from a time on; done is false if it is to be
	// given back like any other.
	stop(e *Entry, a *berth.Allotment, from berth.Time) (done bool)
	// plan replaces one plan by another; nil is none.
	plan(old, next *berth.Allotment) error
	// fits reports whether allotments are free beside the plans, together.
	fits(allotments []berth.Allotment) bool
	// view returns a pool's calendar with the plans booked; ok is false if there is none.
	view(i int) (c calendar.Calendar, ok bool)
	// records yields the records of a pool with the plans booked, none without plans.
	records(i int) iter.Seq[calendar.Record]
}

func newPlanned(s *State, config *Config) planned {
	switch {
	case config.Flat:
		return &flat{state: s, plans: config.Plans}
	case config.Plans:
		b := &layered{state: s}
		for i := range s.pools {
			p := &s.pools[i]
			b.calendars = append(b.calendars, config.Form.New(p.size, p.config.Binding))
		}
		b.room = newRoom(b, len(s.pools))
		return b
	}
	return promisesOnly{s}
}

// promisesOnly knows of no plans.
type promisesOnly struct{ state *State }

func (promisesOnly) complete()                               {}
func (promisesOnly) expectJobs()                             {}
func (promisesOnly) take(*berth.Allotment, berth.Time) error { return nil }
func (promisesOnly) give(*berth.Allotment, berth.Time) error { return nil }
func (p promisesOnly) run(_ *Entry, a *berth.Allotment, _ bool) error {
	return p.state.book(a, a.Start)
}
func (promisesOnly) stop(*Entry, *berth.Allotment, berth.Time) bool { return false }
func (promisesOnly) plan(_, _ *berth.Allotment) error {
	return fmt.Errorf("the pass for jobs makes no plans")
}
func (promisesOnly) fits([]berth.Allotment) bool           { return true }
func (promisesOnly) view(int) (calendar.Calendar, bool)    { return nil, false }
func (promisesOnly) records(int) iter.Seq[calendar.Record] { return noRecords }

func noRecords(func(calendar.Record) bool) {}

// layered keeps a second calendar of each pool, with the plans booked on top.
type layered struct {
	state     *State
	calendars []calendar.Calendar
	room      Room
}

func (l *layered) complete()   {}
func (l *layered) expectJobs() {}

func (l *layered) of(a *berth.Allotment) (c calendar.Calendar, index int, err error) {
	i, ok := l.state.Index(a.Resource)
	if !ok {
		return nil, 0, fmt.Errorf("no pool %v", a.Resource)
	}
	return l.calendars[i], i, nil
}

func (l *layered) take(a *berth.Allotment, from berth.Time) error {
	c, _, err := l.of(a)
	if err != nil {
		return err
	}
	return c.Add(blockOf(a, from))
}

func (l *layered) give(a *berth.Allotment, from berth.Time) error {
	c, i, err := l.of(a)
	if err != nil {
		return err
	}
	c.Prune(l.state.now) // what began before now begins now
	l.room.grow(i, Growth{from, a.End})
	return c.Remove(blockOf(a, from))
}

// run takes over the block of a plan that comes true.
func (l *layered) run(_ *Entry, a *berth.Allotment, planned bool) error {
	if !planned {
		return l.state.book(a, a.Start)
	}
	i, _ := l.state.Index(a.Resource)
	return l.state.pools[i].calendar.Add(blockOf(a, a.Start))
}

func (l *layered) stop(*Entry, *berth.Allotment, berth.Time) bool { return false }

func (l *layered) plan(old, next *berth.Allotment) error {
	if old != nil {
		if from := max(old.Start, l.state.now); from < old.End {
			if err := l.give(old, from); err != nil {
				return err
			}
		}
	}
	if next == nil {
		return nil
	}
	return l.take(next, next.Start)
}

func (l *layered) fits(allotments []berth.Allotment) bool {
	booked := 0
	for ; booked < len(allotments); booked++ {
		if l.take(&allotments[booked], allotments[booked].Start) != nil {
			break
		}
	}
	for i := range allotments[:booked] {
		must(l.give(&allotments[i], allotments[i].Start))
	}
	return booked == len(allotments)
}

func (l *layered) view(i int) (calendar.Calendar, bool) {
	l.calendars[i].Prune(l.state.now)
	return l.calendars[i], true
}

func (l *layered) records(i int) iter.Seq[calendar.Record] {
	c, _ := l.view(i)
	return c.Records()
}

// flat is the form for one pool of late binding: a profile, from the first job on.
// Only jobs come and go most of the time, and only their passes ask then, so a job
// that starts is taken off the profile alone, and the calendar of promises hears of
// those that still run when it is asked again.
type flat struct {
	state    *State
	plans    bool
	profile  *Profile // nil until the first job
	unbooked []*Entry // running jobs that the calendar does not know
}

// complete tells the calendar of the jobs that it does not know.
func (f *flat) complete() {
	for i, e := range f.unbooked {
		a := &e.r.Allotments[0]
		if from := max(a.Start, f.state.now); from < a.End {
			must(f.state.pools[0].calendar.Add(blockOf(a, from)))
		}
		e.unbooked = 0
		f.unbooked[i] = nil
	}
	f.unbooked = f.unbooked[:0]
}

func (f *flat) expectJobs() {
	if f.profile == nil {
		f.state.prune(0)
		f.profile = newProfile(f.state.pools[0].calendar)
	}
}

func (f *flat) take(a *berth.Allotment, from berth.Time) error {
	if f.profile == nil {
		return nil
	}
	return f.profile.take(from, a.End, a.NPE)
}

func (f *flat) give(a *berth.Allotment, from berth.Time) error {
	if f.profile != nil {
		f.profile.give(from, a.End, a.NPE)
	}
	return nil
}

func (f *flat) run(e *Entry, a *berth.Allotment, planned bool) error {
	if f.profile == nil {
		return f.state.book(a, a.Start)
	}
	if a.Start >= a.End || !a.Start.Valid() || !a.End.Valid() || a.NPE < 1 || a.NPE > f.profile.size {
		return fmt.Errorf("%d PEs throughout [%d,%d)", a.NPE, a.Start, a.End)
	}
	if !planned {
		if err := f.profile.take(a.Start, a.End, a.NPE); err != nil {
			return err
		}
	}
	f.unbooked = append(f.unbooked, e)
	e.unbooked = int32(len(f.unbooked))
	return nil
}

func (f *flat) stop(e *Entry, a *berth.Allotment, from berth.Time) bool {
	if e.unbooked == 0 {
		return false
	}
	last := len(f.unbooked) - 1
	moved := f.unbooked[last]
	f.unbooked[e.unbooked-1] = moved
	moved.unbooked, e.unbooked = e.unbooked, 0
	f.unbooked[last] = nil
	f.unbooked = f.unbooked[:last]
	f.profile.give(from, a.End, a.NPE)
	return true
}

func (f *flat) plan(old, next *berth.Allotment) error {
	switch {
	case !f.plans:
		return fmt.Errorf("the pass for jobs makes no plans")
	case next != nil && next.Resource != f.state.pools[0].id:
		return fmt.Errorf("no pool %v", next.Resource)
	}
	return f.profile.replace(old, next)
}

func (f *flat) fits(allotments []berth.Allotment) bool {
	if f.profile == nil {
		return true
	}
	p := f.profile
	p.prune(f.state.now)
	booked := 0
	for ; booked < len(allotments); booked++ {
		a := &allotments[booked]
		if !p.Fits(a.NPE, a.Start, a.End) {
			break
		}
		p.add(a.Start, a.End, -a.NPE)
	}
	for i := range allotments[:booked] {
		a := &allotments[i]
		p.add(a.Start, a.End, a.NPE)
	}
	return booked == len(allotments)
}

func (f *flat) view(int) (calendar.Calendar, bool) { return nil, false }

func (f *flat) records(i int) iter.Seq[calendar.Record] {
	if f.profile == nil {
		return f.state.View(i).Records()
	}
	return f.profile.records(f.state.now)
}

// FitsBesidePlans reports whether allotments are free beside the plans of jobs,
// all together.
func (s *State) FitsBesidePlans(allotments []berth.Allotment) bool {
	return s.planned.fits(allotments)
}

// Profile returns the profile that passes for jobs look at; nil where they look at
// calendars, and before the first job.
func (s *State) Profile() *Profile {
	f, is := s.planned.(*flat)
	if !is || f.profile == nil {
		return nil
	}
	f.profile.prune(s.now)
	return f.profile
}

// must panics where the state contradicts itself.
func must(err error) {
	if err != nil {
		panic("engine: " + err.Error())
	}
}
