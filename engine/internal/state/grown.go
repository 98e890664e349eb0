package state

import "github.com/berth-hpc/berth"

// Room is where room for jobs has grown on the calendars with their plans: nothing can move to an earlier start that does
// not gain from there. Of each pool one interval is kept that contains all of it.
type Room struct {
	planned *layered
	pools   []poolRoom
	under   bool  // a compression is under way
	open    []int // the pools with any room that has grown, while it is
}

// poolRoom is the room of a pool: what has grown since the last compression began, in which what was looked at early has
// not seen what moved later, and, while one is under way, since it began.
type poolRoom struct {
	before, grown Growth
	since         Growth // both, while a compression is under way
	most          berth.Count
	known         bool // most is that of since
}

func newRoom(l *layered, pools int) Room {
	r := Room{planned: l, pools: make([]poolRoom, pools)}
	for i := range r.pools { // of new calendars nothing is known
		r.pools[i].before, r.pools[i].grown, r.pools[i].since = nowhere, everywhere, nowhere
	}
	return r
}

// grow notes that PEs of a pool are given back.
func (r *Room) grow(i int, g Growth) {
	p := &r.pools[i]
	p.grown = p.grown.and(g)
	if !r.under {
		return
	}
	if p.since.Empty() {
		r.open = append(r.open, i)
	}
	p.since, p.known = p.since.and(g), false
}

// Begin begins a compression.
func (r *Room) Begin() {
	r.under, r.open = true, r.open[:0]
	for i := range r.pools {
		p := &r.pools[i]
		p.since, p.known = p.before.and(p.grown), false
		p.before, p.grown = nowhere, nowhere
		if !p.since.Empty() && p.since.To > r.planned.state.now {
			r.open = append(r.open, i)
		}
	}
}

// End ends it.
func (r *Room) End() {
	for i := range r.pools {
		p := &r.pools[i]
		p.before, p.grown = p.grown, nowhere
	}
	r.under = false
}

// Nowhere reports whether no room has grown at all.
func (r *Room) Nowhere() bool { return len(r.open) == 0 }

// Offers reports whether a planned job could move at all: whether enough PEs for it are free at some time
// where room has grown. In the pool of its plan those of the plan count, too.
func (r *Room) Offers(j *Job) bool {
	for _, i := range r.open {
		if j.Variant().NPE <= r.Most(i) || r.planned.state.pools[i].id == j.plan.Resource {
			return true
		}
	}
	return false
}

// In returns where room has grown in a pool.
func (r *Room) In(i int) Growth { return r.pools[i].since }

// Most returns the most PEs that are free anywhere there. Cost: a walk over the records of that time, once for each time
// that room grows.
func (r *Room) Most(i int) berth.Count {
	p := &r.pools[i]
	if p.known {
		return p.most
	}
	p.known, p.most = true, 0
	c := r.planned.calendars[i] // pruned when PEs were given back
	free := c.Size()
	for record := range c.Records() {
		if record.Time > p.since.From { // free is what was free until then
			p.most = max(p.most, free)
		}
		if free = record.Free; record.Time >= p.since.To {
			return p.most
		}
	}
	p.most = max(p.most, free)
	return p.most
}

// Room returns where room for planned jobs has grown; nil where the state keeps no calendars of plans.
func (s *State) Room() *Room {
	if l, is := s.planned.(*layered); is {
		return &l.room
	}
	return nil
}
