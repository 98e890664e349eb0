package engine

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// timer is something that will happen at a known time unless it is dropped:
// the start of a reservation, or the end of one of its parts. Its place in
// the order is (At, Class, Sequence, Part), which is total.
type timer struct {
	At       berth.Time
	Class    Class
	Sequence uint64 // of the reservation
	Part     int
	ID       string
}

func (t timer) before(u timer) bool {
	return cmp.Or(
		cmp.Compare(t.At, u.At), cmp.Compare(t.Class, u.Class),
		cmp.Compare(t.Sequence, u.Sequence), cmp.Compare(t.Part, u.Part),
	) < 0
}

// timers is the ordered set of what is to come. It follows from the ledger:
// a confirmed reservation has a start timer, each running part an end timer.
type timers struct{ tree *btree.BTreeG[timer] }

func newTimers() timers {
	return timers{btree.NewBTreeGOptions(timer.before, btree.Options{NoLocks: true})}
}

func (t timers) add(x timer)  { t.tree.Set(x) }
func (t timers) drop(x timer) { t.tree.Delete(x) }

// next returns the first timer.
func (t timers) next() (timer, bool) { return t.tree.Min() }

func startTimer(r *berth.Reservation) timer {
	return timer{At: r.Start(), Class: ClassStart, Sequence: r.Sequence, ID: r.Request.ID}
}

func endTimer(r *berth.Reservation, part int) timer {
	return timer{At: r.Allotments[part].End, Class: ClassEnd, Sequence: r.Sequence, Part: part, ID: r.Request.ID}
}
