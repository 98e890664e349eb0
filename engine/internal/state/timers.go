package state

import (
	"iter"
	"math"
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
	place    int32 // in the heap of its bucket, from 1; 0 while it is not set
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

// timers is what is to come, by time: each bucket has what is due within one stretch of time, a heap with the first at its root. It
// follows from the ledger, the queue of jobs and the outages. Adding and dropping cost O(log n), and what is due between two times
// is found without a look at the rest. See R. Brown, "Calendar Queues", Communications of the ACM 31 (1988); here a bucket is of one
// stretch alone, and all stretches get longer when there are too many.
type timers struct {
	buckets []bucket // in order of time; none is empty
	width   uint     // a bucket is of 2^width seconds
	ranks   Ranks
	reach   berth.Duration // from the timer of what waits for its start, and is not only held, to its end: never more than this
	spare   [][]timerSlot  // empty; their memory is for the next buckets
}

// bucket is what is due from number·2^width until before (number+1)·2^width.
type bucket struct {
	number int64
	heap   []timerSlot
}

// A bucket begins with four and a half hours. With as many of them as this, two years, what is moved when one comes or goes
// is some 100 KB.
const (
	firstWidth  = 14
	mostBuckets = 4096
	mostSpare   = 64 // empty heaps that are kept
)

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

// find returns the place of the bucket of a time; ok is false if there is none, and it would be there.
func (ts *timers) find(at berth.Time) (i int, ok bool) {
	number, below := int64(at)>>ts.width, len(ts.buckets)
	for i < below {
		if mid := int(uint(i+below) >> 1); ts.buckets[mid].number < number {
			i = mid + 1
		} else {
			below = mid
		}
	}
	return i, i < len(ts.buckets) && ts.buckets[i].number == number
}

// add sets a timer that is not set.
func (ts *timers) add(t *timer) {
	if t.place != 0 {
		panic("engine: a timer is set twice")
	}
	i, ok := ts.find(t.At)
	if !ok {
		if len(ts.buckets) == mostBuckets {
			ts.widen()
			ts.add(t)
			return
		}
		b := bucket{number: int64(t.At) >> ts.width}
		if last := len(ts.spare) - 1; last >= 0 {
			b.heap, ts.spare = ts.spare[last], ts.spare[:last]
		}
		ts.buckets = slices.Insert(ts.buckets, i, b)
	}
	h := append(ts.buckets[i].heap, timerSlot{})
	ts.buckets[i].heap = h
	ts.rise(h, len(h)-1, timerSlot{t.At, t})
}

// widen makes one bucket of all that are of the same stretch when stretches are twice as long, until there are fewer by half.
func (ts *timers) widen() {
	for len(ts.buckets) > mostBuckets/2 {
		ts.width++
		list := ts.buckets[:0]
		for _, b := range ts.buckets {
			b.number >>= 1
			if last := len(list) - 1; last >= 0 && list[last].number == b.number {
				into := &list[last]
				for _, x := range b.heap {
					into.heap = append(into.heap, timerSlot{})
					ts.rise(into.heap, len(into.heap)-1, x)
				}
			} else {
				list = append(list, b)
			}
		}
		clear(ts.buckets[len(list):])
		ts.buckets = list
	}
}

// until yields the timers that are due until a time, in no particular order. Cost: O(what is due).
func (ts *timers) until(at berth.Time) iter.Seq[*timer] { return ts.between(math.MinInt64, at) }

// between yields the timers that are due from a time until another, in no particular order. Cost: O(n) for n timers of the buckets
// that overlap that, and a search.
func (ts *timers) between(from, until berth.Time) iter.Seq[*timer] {
	return func(yield func(*timer) bool) {
		first, _ := ts.find(from)
		var look []int
		for i := first; i < len(ts.buckets) && ts.buckets[i].number <= int64(until)>>ts.width; i++ {
			h := ts.buckets[i].heap
			for look = append(look[:0], 0); len(look) > 0; {
				k := look[len(look)-1]
				look = look[:len(look)-1]
				if k >= len(h) || h[k].at > until { // nor is what is below it due
					continue
				}
				if h[k].at >= from && !yield(h[k].timer) {
					return
				}
				look = append(look, 2*k+1, 2*k+2)
			}
		}
	}
}

// drop takes out a timer, if it is set.
func (ts *timers) drop(t *timer) {
	if t.place != 0 {
		ts.take(t, t.At)
	}
}

// take takes out a timer that is set for a time.
func (ts *timers) take(t *timer, at berth.Time) {
	b, _ := ts.find(at)
	h := ts.buckets[b].heap
	i, last := int(t.place)-1, len(h)-1
	t.place = 0
	x := h[last]
	h[last] = timerSlot{}
	h = h[:last]
	ts.buckets[b].heap = h
	switch {
	case last == 0:
		if len(ts.spare) < mostSpare {
			ts.spare = append(ts.spare, h)
		}
		ts.buckets = slices.Delete(ts.buckets, b, b+1)
	case i < last:
		ts.put(h, i, x)
	}
}

// reset makes a timer another one; it is set then, whether it was before or not.
func (ts *timers) reset(t *timer, into timer) {
	ts.drop(t)
	into.place = 0
	*t = into
	ts.add(t)
}

// move sets a timer for another time, whether it is set already or not.
func (ts *timers) move(t *timer, at berth.Time) {
	was := t.At
	t.At = at
	switch {
	case t.place == 0:
		ts.add(t)
	case int64(was)>>ts.width != int64(at)>>ts.width:
		ts.take(t, was)
		ts.add(t)
	default:
		b, _ := ts.find(at)
		ts.put(ts.buckets[b].heap, int(t.place)-1, timerSlot{at, t})
	}
}

// inOrder returns the timers in their order.
func (ts *timers) inOrder() []*timer {
	var sorted []*timer
	for _, b := range ts.buckets {
		slots := slices.Clone(b.heap)
		slices.SortFunc(slots, func(a, b timerSlot) int {
			switch {
			case ts.before(a, b):
				return -1
			case ts.before(b, a):
				return 1
			}
			return 0
		})
		for _, x := range slots {
			sorted = append(sorted, x.timer)
		}
	}
	return sorted
}

// put puts a slot where i is in a heap, or where it belongs.
func (ts *timers) put(h []timerSlot, i int, x timerSlot) {
	if i > 0 && ts.before(x, h[(i-1)/2]) {
		ts.rise(h, i, x)
	} else {
		ts.sink(h, i, x)
	}
}

// rise puts a slot where i is, or above.
func (ts *timers) rise(h []timerSlot, i int, x timerSlot) {
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
func (ts *timers) sink(h []timerSlot, i int, x timerSlot) {
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
	if len(s.timers.buckets) == 0 {
		return berth.Forever, false
	}
	return s.timers.buckets[0].heap[0].at, true
}

// Next returns the first timer; there must be one.
func (s *State) Next() Timer {
	t := s.timers.buckets[0].heap[0].timer
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
