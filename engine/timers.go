package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// timer is something that will happen at a known time unless it is dropped:
// the start of a reservation, the end of one of its parts, the planned start of
// a job, the end of its waiting limit, the end of an outage, or a pass over what
// is pending. Its place in the order is (At, rank of Class, Sequence, Part),
// which is total: the classes of reservations, jobs and outages are different
// ones but for expiry, and a pass has no number. It lies in what it is about.
type timer struct {
	At       berth.Time
	Sequence uint64 // of the reservation; of a job or outage its number
	Part     int
	Class    Class
	place    int32   // in the heap, from 1; 0 while it is not set
	entry    *entry  // the reservation
	job      *job    // or the job
	outage   *Outage // or the outage
}

// id returns the name of what the timer is about.
func (t *timer) id() string {
	switch {
	case t.job != nil:
		return t.job.request.ID
	case t.entry != nil:
		return t.entry.Request.ID
	}
	return "" // an outage, of which the number says it all, or a pass
}

// timers is what is to come, a heap with the first at its root. It follows from
// the ledger: a confirmed reservation has a start timer, each running part an
// end timer; from the queue of jobs, where a plan has one and so has a waiting
// limit; and from the outages. Adding and dropping cost O(log n).
type timers struct {
	heap  []slot
	ranks *ranks
}

// slot is a timer and its time, so that most comparisons look nowhere else.
type slot struct {
	at    berth.Time
	timer *timer
}

func (ts *timers) before(a, b slot) bool {
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
	ts.heap = append(ts.heap, slot{})
	ts.rise(len(ts.heap)-1, slot{t.At, t})
}

// drop takes out a timer, if it is set.
func (ts *timers) drop(t *timer) {
	if t.place == 0 {
		return
	}
	i, last := int(t.place)-1, len(ts.heap)-1
	t.place = 0
	x := ts.heap[last]
	ts.heap[last] = slot{}
	ts.heap = ts.heap[:last]
	if i < last {
		ts.put(i, x)
	}
}

// turn makes a timer another one; it is set then, whether it was before or not.
func (ts *timers) turn(t *timer, into timer) {
	into.place = t.place
	if *t = into; t.place == 0 {
		ts.add(t)
		return
	}
	ts.put(int(t.place)-1, slot{t.At, t})
}

// put puts a slot where i is, or where it belongs.
func (ts *timers) put(i int, x slot) {
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
		ts.rise(i, slot{at, t})
	default:
		ts.sink(i, slot{at, t})
	}
}

// inOrder returns the timers in their order.
func (ts *timers) inOrder() []*timer {
	slots := slices.Clone(ts.heap)
	slices.SortFunc(slots, func(a, b slot) int {
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
func (ts *timers) rise(i int, x slot) {
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
func (ts *timers) sink(i int, x slot) {
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

// due returns the time of the first timer, and Forever and false if there is
// none.
func (s *state) due() (berth.Time, bool) {
	if len(s.timers.heap) == 0 {
		return berth.Forever, false
	}
	return s.timers.heap[0].at, true
}

// next returns the first timer; there must be one.
func (s *state) next() timer { return *s.timers.heap[0].timer }

// waitTimer is due when a reservation starts or, as long as it is only held,
// when it expires.
func waitTimer(e *entry) *timer {
	t := e.timer(0)
	*t = timer{At: e.Start(), Class: ClassStart, Sequence: e.Sequence, entry: e}
	if e.State == berth.Held {
		*t = timer{At: e.Expires, Class: ClassExpiry, Sequence: e.Sequence, Part: ofReservation, entry: e}
	}
	return t
}

// The parts of expiries of reservations, whose numbers are not those of jobs.
const (
	ofReservation = -1 // it was not confirmed
	ofNoShow      = -2 // nobody uses it
)

// endTimer is due when a part of a reservation reaches its end.
func endTimer(e *entry, part int) *timer {
	t := e.timer(part)
	*t = endOf(e, part)
	return t
}

func endOf(e *entry, part int) timer {
	return timer{At: e.Allotments[part].End, Class: ClassEnd, Sequence: e.Sequence, Part: part, entry: e}
}

// expiryTimer is due when a job can no longer start in time.
func expiryTimer(j *job, at berth.Time) *timer {
	j.expiry = &timer{At: at, Class: ClassExpiry, Sequence: j.number, job: j}
	return j.expiry
}

// outageTimer is due when PEs come back by themselves.
func outageTimer(o *Outage) *timer {
	return &timer{At: o.Until, Class: ClassCapacity, Sequence: o.Number, outage: o}
}
