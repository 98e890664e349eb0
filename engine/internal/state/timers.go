package state

import (
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
)

// Class is what happens at one instant in one go.
type Class uint8

// The classes, in their default order.
const (
	ClassEnd      Class = iota // ends of reservations free their PEs
	ClassExpiry                // holds, no-shows and waiting limits run out
	ClassCapacity              // outages begin and end
	ClassArrival               // requests arrive, and all other events; occurrences of open series have their turn
	ClassPeriod                // scheduling points; plans of jobs come true; PEs get names
	ClassStart                 // reservations start
	Classes       = iota
)

// Ranks is the place of each class in the order of an instant.
type Ranks [Classes]uint8

// timer is something that happens at a known time unless it is dropped: the
// start of a reservation, the end of one of its parts, the planned start of a
// job, the end of its waiting limit, the beginning and the end of an outage, the turn of
// occurrences of an open series, or a scheduling point. Its place in the order is (At, rank of Class, Sequence, Part),
// which is total: the classes of reservations, jobs and outages are different
// ones but for expiry, and a scheduling point has the number 0. It lies in what it
// is about.
type timer struct {
	At       berth.Time
	Sequence uint64 // of the reservation; of a job, outage or open series its number
	Part     int
	Class    Class
	place    int32 // in the heap, from 1; 0 while it is not set
	entry    *Entry
	job      *Job
}

// Timer is a timer that is due, with what it is about: a reservation, a job, an
// outage or, if there is none of these, a scheduling point.
type Timer struct {
	At     berth.Time
	Class  Class
	Part   int // of the reservation; OfHold, OfNoShow; of an outage OfBegin or OfEnd
	Entry  *Entry
	Job    *Job
	Outage uint64 // its number, from 1
	Open   *Open  // an open series, some of whose occurrences have their turn
}

// The parts of timers that are not about a part of a reservation. Those of
// expiries differ from those of jobs.
const (
	OfHold   = -1 // the reservation was not confirmed
	OfNoShow = -2 // the reservation is not used
	OfNaming = -3 // the PEs of the reservation get names
	OfBegin  = -1 // the outage begins
	OfEnd    = 0  // the outage ends
)

// id returns the name of what the timer is about.
func (t *timer) id() string {
	switch {
	case t.job != nil:
		return t.job.request.ID
	case t.entry != nil:
		return t.entry.ID()
	}
	return "" // an outage or an open series, which its number identifies, or a scheduling point
}

// timers is what is to come, a heap with the first at its root. It follows from
// the ledger, the queue of jobs and the outages. Adding and dropping cost O(log n).
type timers struct {
	heap  []timerSlot
	ranks Ranks
	reach berth.Duration // from the timer of what waits for its start, and is not only held, to its end: never more than this
}

// timerSlot is a timer and its time, so that most comparisons look nowhere else.
type timerSlot struct {
	at    berth.Time
	timer *timer
}

func (ts *timers) before(a, b timerSlot) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	t, u := a.timer, b.timer
	switch {
	case t.Class != u.Class:
		return ts.ranks[t.Class] < ts.ranks[u.Class]
	case t.Sequence != u.Sequence:
		return t.Sequence < u.Sequence
	}
	return t.Part < u.Part
}

// add sets a timer that is not set.
func (ts *timers) add(t *timer) {
	if t.place != 0 {
		panic("engine: a timer is set twice")
	}
	ts.heap = append(ts.heap, timerSlot{})
	ts.rise(len(ts.heap)-1, timerSlot{t.At, t})
}

// until yields the timers that are due until a time, in no particular order. Cost: O(what is due).
func (ts *timers) until(at berth.Time) iter.Seq[*timer] {
	return func(yield func(*timer) bool) {
		for look := []int{0}; len(look) > 0; {
			i := look[len(look)-1]
			look = look[:len(look)-1]
			if i >= len(ts.heap) || ts.heap[i].at > at { // nor is what is below it due
				continue
			}
			if !yield(ts.heap[i].timer) {
				return
			}
			look = append(look, 2*i+1, 2*i+2)
		}
	}
}

// between yields the timers that are due from a time until another, in no particular order. Cost: O(n) for n timers,
// looking at none of the others but at its time.
func (ts *timers) between(from, until berth.Time) iter.Seq[*timer] {
	return func(yield func(*timer) bool) {
		for i := range ts.heap {
			if slot := &ts.heap[i]; from <= slot.at && slot.at <= until && !yield(slot.timer) {
				return
			}
		}
	}
}

// drop takes out a timer, if it is set.
func (ts *timers) drop(t *timer) {
	if t.place == 0 {
		return
	}
	i, last := int(t.place)-1, len(ts.heap)-1
	t.place = 0
	x := ts.heap[last]
	ts.heap[last] = timerSlot{}
	ts.heap = ts.heap[:last]
	if i < last {
		ts.put(i, x)
	}
}

// reset makes a timer another one; it is set then, whether it was before or not.
func (ts *timers) reset(t *timer, into timer) {
	into.place = t.place
	if *t = into; t.place == 0 {
		ts.add(t)
		return
	}
	ts.put(int(t.place)-1, timerSlot{t.At, t})
}

// put puts a slot where i is, or where it belongs.
func (ts *timers) put(i int, x timerSlot) {
	if i > 0 && ts.before(x, ts.heap[(i-1)/2]) {
		ts.rise(i, x)
	} else {
		ts.sink(i, x)
	}
}

// move sets a timer for another time, whether it is set already or not.
func (ts *timers) move(t *timer, at berth.Time) {
	was := t.At
	t.At = at
	switch i := int(t.place) - 1; {
	case i < 0:
		ts.add(t)
	case at < was:
		ts.rise(i, timerSlot{at, t})
	default:
		ts.sink(i, timerSlot{at, t})
	}
}

// inOrder returns the timers in their order.
func (ts *timers) inOrder() []*timer {
	slots := slices.Clone(ts.heap)
	slices.SortFunc(slots, func(a, b timerSlot) int {
		switch {
		case ts.before(a, b):
			return -1
		case ts.before(b, a):
			return 1
		}
		return 0
	})
	sorted := make([]*timer, len(slots))
	for i, x := range slots {
		sorted[i] = x.timer
	}
	return sorted
}

// rise puts a slot where i is, or above.
func (ts *timers) rise(i int, x timerSlot) {
	h := ts.heap
	for i > 0 {
		above := (i - 1) / 2
		if !ts.before(x, h[above]) {
			break
		}
		h[i] = h[above]
		h[i].timer.place = int32(i + 1)
		i = above
	}
	h[i] = x
	x.timer.place = int32(i + 1)
}

// sink puts a slot where i is, or below.
func (ts *timers) sink(i int, x timerSlot) {
	h := ts.heap
	for {
		below := 2*i + 1
		if below+1 < len(h) && ts.before(h[below+1], h[below]) {
			below++
		}
		if below >= len(h) || !ts.before(h[below], x) {
			break
		}
		h[i] = h[below]
		h[i].timer.place = int32(i + 1)
		i = below
	}
	h[i] = x
	x.timer.place = int32(i + 1)
}

// Due returns the time of the first timer; Forever and false if there is none.
func (s *State) Due() (berth.Time, bool) {
	if len(s.timers.heap) == 0 {
		return berth.Forever, false
	}
	return s.timers.heap[0].at, true
}

// Next returns the first timer; there must be one.
func (s *State) Next() Timer {
	t := s.timers.heap[0].timer
	next := Timer{At: t.At, Class: t.Class, Part: t.Part, Entry: t.entry, Job: t.job}
	switch t.Class {
	case ClassCapacity:
		next.Outage = t.Sequence
	case ClassArrival:
		next.Open = s.openOf(t.Sequence)
	}
	return next
}

// waitFor is due when a reservation starts, before that when its PEs get names, or, while it
// is only held, when it expires; a hold that is confirmed after its start, at once.
func (s *State) waitFor(e *Entry) *timer {
	t := e.timer(0)
	*t = timer{At: max(e.Start(), s.now), Class: ClassStart, Sequence: e.r.Sequence, entry: e}
	if at, unnamed := s.nameAt(e); unnamed {
		*t = timer{At: at, Class: ClassPeriod, Sequence: e.r.Sequence, Part: OfNaming, entry: e}
	}
	if e.r.State == berth.Held {
		*t = timer{At: e.r.Expires, Class: ClassExpiry, Sequence: e.r.Sequence, Part: OfHold, entry: e}
		return t
	}
	s.timers.reach = max(s.timers.reach, berth.Duration(e.End()-t.At))
	return t
}

// endOf is due when a part of a reservation reaches its end.
func endOf(e *Entry, part int) timer {
	return timer{At: e.r.Allotments[part].End, Class: ClassEnd, Sequence: e.r.Sequence, Part: part, entry: e}
}

// Pass returns when the next scheduling point is, Forever if none is set.
func (s *State) Pass() berth.Time {
	if s.pass.place == 0 {
		return berth.Forever
	}
	return s.pass.At
}

// schedule folds Scheduled.
func (s *State) schedule(at berth.Time) {
	s.timers.drop(&s.pass)
	// It comes before the plans of jobs, whose numbers begin with 1.
	if s.pass = (timer{At: at, Class: ClassPeriod}); at < berth.Forever {
		s.timers.add(&s.pass)
	}
}
