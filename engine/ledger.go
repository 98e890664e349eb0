package engine

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// ledger holds the live reservations, by id and by where and when they hold
// PEs. A reservation that has ended leaves it; its history is in the changes.
type ledger struct {
	live  map[string]*entry
	holds *btree.BTreeG[hold]
	held  map[string]usage // by user
}

// usage is what a user's live reservations come to, as promised; running jobs
// are no promises.
type usage struct {
	reservations int
	peSeconds    int64
}

// entry is a live reservation and how many of its parts still hold PEs.
type entry struct {
	berth.Reservation
	running int
	own     [1]berth.Allotment // room for Allotments, of which most have one
}

// hold is one part's claim on a resource, ordered by resource, end, sequence
// and part, so that what is over lies before what is not.
type hold struct {
	resource berth.ResourceID
	end      berth.Time
	sequence uint64
	part     int
	owner    *entry
}

func (h hold) before(o hold) bool {
	switch {
	case h.resource != o.resource:
		return h.resource.Less(o.resource)
	case h.end != o.end:
		return h.end < o.end
	case h.sequence != o.sequence:
		return h.sequence < o.sequence
	}
	return h.part < o.part
}

func newLedger() ledger {
	return ledger{
		live:  map[string]*entry{},
		held:  map[string]usage{},
		holds: btree.NewBTreeGOptions(hold.before, btree.Options{NoLocks: true}),
	}
}

func (l *ledger) add(r berth.Reservation) *entry {
	e := &entry{Reservation: r, running: len(r.Allotments)}
	l.live[r.Request.ID] = e
	l.rehold(e)
	return e
}

// unhold takes out what a reservation holds, before its allotments change.
func (l *ledger) unhold(e *entry) {
	l.hold(e, -1)
	for part := range e.Allotments {
		l.holds.Delete(holdOf(e, part))
	}
}

// forget drops a reservation that holds nothing.
func (l *ledger) forget(e *entry) { delete(l.live, e.Request.ID) }

// rehold enters what a reservation holds now.
func (l *ledger) rehold(e *entry) {
	l.hold(e, 1)
	for part := range e.Allotments {
		l.holds.Set(holdOf(e, part))
	}
}

// dropPart ends one part's hold; with the last one the reservation leaves.
func (l *ledger) dropPart(e *entry, part int) {
	l.holds.Delete(holdOf(e, part))
	if e.running--; e.running == 0 {
		delete(l.live, e.Request.ID)
		l.hold(e, -1)
	}
}

// hold adds a reservation to its user's usage, or takes it out.
func (l *ledger) hold(e *entry, sign int64) {
	user := e.Request.User
	if user == "" || e.Request.IsJob() {
		return
	}
	u := l.held[user]
	u.reservations += int(sign)
	for i := range e.Allotments {
		a := &e.Allotments[i]
		u.peSeconds += sign * berth.Area(a.NPE, a.End.Sub(a.Start))
	}
	if l.held[user] = u; u.reservations == 0 {
		delete(l.held, user)
	}
}

func holdOf(e *entry, part int) hold {
	a := &e.Allotments[part]
	return hold{resource: a.Resource, end: a.End, sequence: e.Sequence, part: part, owner: e}
}

// holdsPart reports whether a part still holds its PEs.
func (l *ledger) holdsPart(e *entry, part int) bool {
	if e.running == len(e.Allotments) {
		return true
	}
	_, ok := l.holds.Get(holdOf(e, part))
	return ok
}

// at calls visit for every part that holds PEs of the resource at t, until
// visit returns false. Cost: O(log n + parts that end after t).
func (l *ledger) at(resource berth.ResourceID, t berth.Time, visit func(*entry, int) bool) {
	l.holds.Ascend(hold{resource: resource, end: t + 1}, func(h hold) bool {
		if h.resource != resource {
			return false
		}
		if h.owner.Allotments[h.part].Start > t {
			return true
		}
		return visit(h.owner, h.part)
	})
}

// inOrder returns the live reservations by sequence.
func (l *ledger) inOrder() []*entry {
	entries := make([]*entry, 0, len(l.live))
	for _, e := range l.live {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return entries
}
