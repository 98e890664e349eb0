package engine

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// ledger holds the live reservations by id. A reservation that has ended leaves
// it; its history is in the changes.
type ledger struct {
	live map[string]*entry
	held map[string]usage // by user
}

// usage is what a user's live reservations come to, as promised; running jobs
// are no promises.
type usage struct {
	reservations int
	peSeconds    int64
}

// entry is a live reservation. Its allotments are shared with the change that
// brought them until it starts.
type entry struct {
	berth.Reservation
	running  int32              // parts that still hold PEs
	unbooked int32              // place in the state's list of that name, from 1
	own      [1]berth.Allotment // room for Allotments, of which most have one
	first    timer              // the start, then the end of the first part
	further  *further           // nil until it is needed
	noShow   *timer             // nil if nobody waits for its use
}

// further is what an entry of several parts needs beside.
type further struct {
	over   []bool  // by part
	timers []timer // the ends of the parts; the first is not used
}

// timer returns the timer of a part; that of the first part is also the one of
// the start.
func (e *entry) timer(part int) *timer {
	if part == 0 {
		return &e.first
	}
	return &e.beside().timers[part]
}

// beside returns what an entry of several parts needs beside.
func (e *entry) beside() *further {
	if e.further == nil {
		e.further = &further{over: make([]bool, len(e.Allotments)), timers: make([]timer, len(e.Allotments))}
	}
	return e.further
}

// holds reports whether a part still holds its PEs.
func (e *entry) holds(part int) bool {
	return e.running > 0 && (e.further == nil || !e.further.over[part])
}

func newLedger() ledger {
	return ledger{live: map[string]*entry{}, held: map[string]usage{}}
}

// expect makes room in an empty ledger.
func (l *ledger) expect(n int) { l.live = make(map[string]*entry, n) }

// add makes an entry that of a reservation.
func (l *ledger) add(e *entry, r *berth.Reservation) *entry {
	e.Reservation, e.running = *r, int32(len(r.Allotments))
	l.live[r.Request.ID] = e
	l.hold(e, 1)
	return e
}

// forget drops a reservation that holds nothing.
func (l *ledger) forget(e *entry) { delete(l.live, e.Request.ID) }

// dropPart ends one part's hold; with the last one the reservation leaves.
func (l *ledger) dropPart(e *entry, part int) {
	if e.running--; e.running == 0 {
		l.forget(e)
		l.hold(e, -1)
		return
	}
	e.beside().over[part] = true
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

// at calls visit for every part that holds PEs of the resource at t, in no
// particular order, until visit returns false. Cost: O(live reservations).
func (l *ledger) at(resource berth.ResourceID, t berth.Time, visit func(*entry, int) bool) {
	for _, e := range l.live {
		for part := range e.Allotments {
			a := &e.Allotments[part]
			if a.Start <= t && t < a.End && a.Resource == resource && e.holds(part) && !visit(e, part) {
				return
			}
		}
	}
}

// inOrder returns the live reservations by sequence.
func (l *ledger) inOrder() []*entry {
	type place struct {
		sequence uint64
		entry    *entry
	}
	order := make([]place, 0, len(l.live)) // to sort without looking at the entries
	for _, e := range l.live {
		order = append(order, place{e.Sequence, e})
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Compare(a.sequence, b.sequence) })
	entries := make([]*entry, len(order))
	for i := range order {
		entries[i] = order[i].entry
	}
	return entries
}
