package service

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// Occupied says that what holds PEs of a pool may have changed in [From, To). It names no
// reservation, so everybody who sees the site is told.
type Occupied struct {
	Site, Pool string
	From, To   berth.Time // Forever if there is no end
	Generation uint64     // of the pool's picture
}

// touch is a change of what holds PEs of a pool.
type touch struct {
	pool     berth.ResourceID
	from, to berth.Time
}

// touched notes the pools of a list of allotments.
func (c *Core) touched(allotments []berth.Allotment, now berth.Time) {
	for i := range allotments {
		if a := &allotments[i]; a.Resource.Kind == berth.PoolKind {
			c.touchPool(touch{a.Resource, a.Start, max(a.End, now)})
		}
	}
}

// touchPool notes that a pool has changed with the next record. Promises that begin later
// move in the picture of a pool that binds late, since their PEs are not chosen yet.
func (c *Core) touchPool(t touch) {
	if c.late(t.pool) {
		t.to = berth.Forever
	}
	for i := range c.touches {
		if was := &c.touches[i]; was.pool == t.pool {
			was.from, was.to = min(was.from, t.from), max(was.to, t.to)
			return
		}
	}
	c.touches = append(c.touches, t)
}

// touchOutage notes the pool of a change of an outage.
func (c *Core) touchOutage(x *change.Change, now berth.Time) {
	if o := x.Outage; o != nil {
		from := o.From
		if from == 0 {
			from = now
		}
		c.touchPool(touch{o.Resource, from, max(o.Until, now)})
	}
}

func (c *Core) late(id berth.ResourceID) bool {
	for i := range c.config.Sites {
		s := &c.config.Sites[i]
		if s.Name != id.Site {
			continue
		}
		for j := range s.Pools {
			if s.Pools[j].Name == id.Name {
				return s.Pools[j].Binding == berth.Late
			}
		}
	}
	return false
}

// generation returns the record with which the picture of a pool changed last, by what
// this start of the service knows: all before it is one generation.
func (m *model) generation(id berth.ResourceID) uint64 { return max(m.base, m.generations[id]) }

const (
	// gathering is for how long changes of a pool are gathered before they are told: four
	// times a second is as often as readers want to redraw.
	gathering = 250 * time.Millisecond
	// together is for how long the first change after a pause is held back: what is done by
	// one act comes in that time, and the wait is not noticed.
	together = 20 * time.Millisecond
	// maxOccupied is how many are kept for those who read slowly.
	maxOccupied = 4096
)

// occupancy tells those who listen which pools have changed.
type occupancy struct {
	mu      sync.Mutex
	pending map[berth.ResourceID]*Occupied
	log     []Occupied
	first   uint64 // number of the first in the log
	more    chan struct{}
	timer   *time.Timer // while something is pending
	last    time.Time   // when something was told last
	closed  bool
	guard   func(doing string, f func()) // the boundary for faults
}

// tell takes in what has changed with a record.
func (o *occupancy) tell(touches []touch, number uint64) {
	if len(touches) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending == nil {
		o.pending = map[berth.ResourceID]*Occupied{}
	}
	for _, t := range touches {
		p := o.pending[t.pool]
		if p == nil {
			o.pending[t.pool] = &Occupied{t.pool.Site, t.pool.Name, t.from, t.to, number}
			continue
		}
		p.Generation = max(p.Generation, number)
		switch {
		case t.from == t.to: // only the site looks different
		case p.From == p.To:
			p.From, p.To = t.from, t.to
		default:
			p.From, p.To = min(p.From, t.from), max(p.To, t.to)
		}
	}
	if o.timer == nil && !o.closed {
		o.timer = time.AfterFunc(max(together, gathering-time.Since(o.last)), func() { o.guard("telling which pools have changed", o.publish) })
	}
}

// tellSite tells those who look at a site that it looks different from afar: it answers no more,
// or again. Its pictures are the same.
func (h *Host) tellSite(name string) {
	m, err := h.seen()
	if err != nil {
		return // the service has stopped, and no one listens
	}
	now := h.Now()
	for i := range m.config.Sites {
		s := &m.config.Sites[i]
		if s.Name != name {
			continue
		}
		for j := range s.Pools {
			id := berth.PoolID(name, s.Pools[j].Name)
			h.occupancy.tell([]touch{{id, now, now}}, m.generation(id))
		}
	}
}

// publish tells what was gathered.
func (o *occupancy) publish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer, o.last = nil, time.Now()
	if o.closed {
		return
	}
	pools := slices.SortedFunc(maps.Keys(o.pending), func(a, b berth.ResourceID) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	for _, id := range pools {
		o.log = append(o.log, *o.pending[id])
	}
	clear(o.pending)
	if n := len(o.log) - maxOccupied; n > maxOccupied/4 {
		o.log, o.first = slices.Clone(o.log[n:]), o.first+uint64(n)
	}
	o.wake()
}

func (o *occupancy) wake() {
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
}

func (o *occupancy) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
	o.wake()
}

// end returns where a listener begins that listens from now on.
func (o *occupancy) end() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first + uint64(len(o.log))
}

// read returns what is behind a place, which must not be written, or a channel that is
// closed once there may be something. The error says that there will be no more.
func (o *occupancy) read(at uint64) (list []Occupied, more <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil, nil, berth.Errorf(berth.Unavailable, "events", "the service stops; go on behind the last one")
	case at < o.first:
		return nil, nil, berth.Errorf(berth.Unavailable, "events", "too far behind; look at everything anew")
	}
	if list = o.log[at-o.first : len(o.log) : len(o.log)]; len(list) > 0 {
		return list, nil, nil
	}
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return nil, o.more, nil
}

// Occupied yields which pools, of sites that a principal may see, have changed from the call
// on, until ctx ends: each pool at most four times a second. The last pair carries an
// error: the listener was too slow, or the service stops. The sequence can be read once.
func (h *Host) Occupied(ctx context.Context, by Principal) iter.Seq2[Occupied, error] {
	at := h.occupancy.end()
	return func(yield func(Occupied, error) bool) {
		for {
			list, more, err := h.occupancy.read(at)
			if err != nil {
				yield(Occupied{}, err)
				return
			}
			for i := range list {
				at++
				if by.Sites.Has(list[i].Site) && (ctx.Err() != nil || !yield(list[i], nil)) {
					return
				}
			}
			if len(list) > 0 {
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}
