package engine

import (
	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// timer is something that will happen at a known time unless it is dropped:
// the start of a reservation, the end of one of its parts, the planned start of
// a job, the end of its waiting limit, the end of an outage, or a pass over what
// is pending. Its place in the order is (At, rank of Class, Sequence, Part),
// which is total: the classes of reservations, jobs and outages are different
// ones but for expiry, and a pass has no number.
type timer struct {
	At       berth.Time
	Class    Class
	Sequence uint64 // of the reservation; of a job or outage its number
	Part     int
	entry    *entry // the reservation
	job      *job   // or the job
	outage   *Outage
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

// timers is the ordered set of what is to come. It follows from the ledger:
// a confirmed reservation has a start timer, each running part an end timer;
// and from the queue of jobs, where a job with a waiting limit has one.
type timers struct {
	tree   *btree.BTreeG[timer]
	before func(a, b timer) bool
}

func newTimers(ranks *ranks) timers {
	before := func(t, u timer) bool {
		switch {
		case t.At != u.At:
			return t.At < u.At
		case t.Class != u.Class:
			return ranks[t.Class] < ranks[u.Class]
		case t.Sequence != u.Sequence:
			return t.Sequence < u.Sequence
		}
		return t.Part < u.Part
	}
	return timers{btree.NewBTreeGOptions(before, btree.Options{NoLocks: true}), before}
}

func (t timers) add(x timer)  { t.tree.Set(x) }
func (t timers) drop(x timer) { t.tree.Delete(x) }

// next returns the first timer; the plans of jobs have theirs in the queue.
func (s *state) next() (timer, bool) {
	first, ok := s.timers.tree.Min()
	plan, planned := s.jobs.next()
	if planned && (!ok || s.timers.before(plan, first)) {
		return plan, true
	}
	return first, ok
}

// waitTimer is due when a reservation starts or, as long as it is only held,
// when it expires.
func waitTimer(e *entry) timer {
	if e.State == berth.Held {
		return timer{At: e.Expires, Class: ClassExpiry, Sequence: e.Sequence, Part: ofReservation, entry: e}
	}
	return timer{At: e.Start(), Class: ClassStart, Sequence: e.Sequence, entry: e}
}

// ofReservation is the part of the expiry of reservations, whose numbers are
// not those of jobs.
const ofReservation = -1

func endTimer(e *entry, part int) timer {
	return timer{At: e.Allotments[part].End, Class: ClassEnd, Sequence: e.Sequence, Part: part, entry: e}
}

// planTimer is due when a job's plan says that it starts.
func planTimer(j *job) timer {
	return timer{At: j.plan.Start, Class: ClassPeriod, Sequence: j.number, job: j}
}

// expiryTimer is due when a job can no longer start in time.
func expiryTimer(j *job, at berth.Time) timer {
	return timer{At: at, Class: ClassExpiry, Sequence: j.number, job: j}
}

// outageTimer is due when PEs come back by themselves.
func outageTimer(o *Outage) timer {
	return timer{At: o.Until, Class: ClassCapacity, Sequence: o.Number, outage: o}
}
