package chance

import (
	"github.com/berth-hpc/berth"
)

const (
	// slot is how finely the plan knows time: a quarter of an hour, as short as most requests are.
	slot = 900
	// ahead is how far the plan looks beyond what is over; what is booked later is left out.
	ahead = 400 * 86400 / slot
	// looks is how many slots of a window are looked at, from its beginning: three weeks.
	looks = 2016
)

// plan is how many PE-seconds are booked in each slot from about now on, on all pools together: coarser than a
// calendar.
type plan struct {
	pes    int64
	base   int64   // the slot of the first
	booked []int64 // but for what is in changes
	// changes are by how much more is booked in each slot than in the one before, throughout the slot: long bookings
	// are added to booked all at once, up to the slot that is asked for. The slots before settled have none.
	changes []int64
	settled int
}

// direct is how many whole slots a booking may have that is added to each of them.
const direct = 16

func slotOf(t berth.Time) int64 { return int64(t) / slot }

// add books npe PEs, or gives back -npe; what is before the first slot or too far beyond now is left out. Time only goes on: once as many
// slots are over as the plan looks ahead, they are forgotten.
func (p *plan) add(now berth.Time, iv berth.Interval, npe int64) {
	if over := slotOf(now) - p.base; over >= ahead {
		gone := int(min(over, int64(len(p.booked))))
		p.settle(gone)
		n := copy(p.booked, p.booked[gone:])
		copy(p.changes, p.changes[gone:])
		clear(p.changes[n:])
		p.booked, p.changes = p.booked[:n], p.changes[:n]
		p.base, p.settled = slotOf(now), max(0, p.settled-gone)
	}
	from, to := max(int64(iv.Start), p.base*slot), min(int64(iv.End), (slotOf(now)+ahead)*slot)
	if from >= to {
		return
	}
	first, last := int(from/slot-p.base), int((to-1)/slot-p.base)
	for len(p.booked) <= last+1 {
		p.booked, p.changes = append(p.booked, 0), append(p.changes, 0)
	}
	if last-first <= direct+1 {
		for i := first; i <= last; i++ {
			begins := (p.base + int64(i)) * slot
			p.booked[i] += (min(to, begins+slot) - max(from, begins)) * npe
		}
		return
	}
	p.booked[first] += ((p.base+int64(first)+1)*slot - from) * npe
	p.booked[last] += (to - (p.base+int64(last))*slot) * npe
	p.changes[first+1] += slot * npe
	p.changes[last] -= slot * npe
	p.settled = min(p.settled, first+1)
}

// settle adds the changes to the slots before a place.
func (p *plan) settle(until int) {
	until = min(until, len(p.booked))
	if until <= p.settled {
		return
	}
	var more int64
	for i := p.settled; i < until; i++ {
		more += p.changes[i]
		p.changes[i] = 0
		p.booked[i] += more
	}
	if until < len(p.changes) {
		p.changes[until] += more
	}
	p.settled = until
}

// at returns what is booked in a slot.
func (p *plan) at(s int64) int64 {
	if i := s - p.base; i >= 0 && i < int64(len(p.booked)) {
		p.settle(int(i) + 1)
		return p.booked[i]
	}
	return 0
}

// look is what a plan says of a window.
type look struct {
	// starts is how many of the slots of the window a request could begin in, and possible in
	// how many of them it would.
	starts, possible int64
	// booked and capacity are PE-seconds in the window.
	booked, capacity int64
}

// look looks at the window [from, until) for npe PEs for a duration.
func (p *plan) look(from, until berth.Time, npe berth.Count, d berth.Duration) look {
	first := slotOf(from)
	last := max(min(slotOf(until-1), first+looks-1), first)
	long := (int64(d) + slot - 1) / slot
	var l look
	run := int64(0) // of slots behind one another with enough PEs
	for s := first; s <= last; s++ {
		b := min(p.at(s), p.pes*slot)
		l.booked, l.capacity = l.booked+b, l.capacity+p.pes*slot
		if run++; b+int64(npe)*slot > p.pes*slot {
			run = 0
		}
		if s-first+1 >= long {
			if l.starts++; run >= long {
				l.possible++
			}
		}
	}
	return l
}
