package check

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
)

// Pairs of lines that share a PE are looked for one by one only after it is
// clear that a line takes a PE already taken. maxPairWork bounds the work of
// that, about 0.2 s: a comparison of two runs costs 1 and a pair found
// pairWork, so at most 100,000 pairs are found in this way.
const (
	maxPairWork = 20_000_000
	pairWork    = 200
)

// event is the start or the end of the interval of a record.
type event struct {
	at     int64
	place  int32
	record int32 // complemented for an end
}

func (e event) isStart() bool { return e.record >= 0 }

// use is what records take of the things of one kind: of PEs, of licences or of
// storage. A record takes of one thing of a kind.
type use struct {
	class    Class // of taking more than there is
	events   []event
	amounts  []int64 // by record
	identity bool    // no PE may be taken twice
	size     func(place int32) int64
	name     func(place int32) string
}

// sweepAll checks that nothing is taken that is not there.
func (c *checker) sweepAll() {
	records := c.file.records
	s := sweeper{
		checker: c,
		next:    make([]int32, len(records)+1),
		prev:    make([]int32, len(records)+1),
	}
	head := int32(len(records))
	s.next[head], s.prev[head] = head, head
	s.sweep(s.pes())
	if c.file.needy {
		c.sweepNeeds(&s)
	}
	if c.opts.Uplink > 0 {
		c.sweepUplink(&s)
	}
}

// pes returns what is taken of the PEs of the pools.
func (s *sweeper) pes() use {
	records := s.file.records
	u := use{
		class:    Capacity,
		events:   make([]event, 0, 2*len(records)),
		amounts:  make([]int64, len(records)),
		identity: true,
		size:     func(place int32) int64 { return s.places[place].size },
		name:     func(place int32) string { return "PEs of " + s.places[place].String() },
	}
	s.owners.ends = make([]int64, len(records))
	for i := range records {
		rec := &records[i]
		from, to, ok := rec.interval()
		if stretches := rec.stretches(); len(stretches) > 0 {
			to = min(to, stretches[0].from) // then they are records of their own
			ok = ok && from < to
		}
		if !ok || rec.place < 0 || !s.places[rec.place].known {
			continue
		}
		s.owners.ends[i], u.amounts[i] = to, max(0, rec.npe)
		u.events = append(u.events, event{from, rec.place, int32(i)}, event{to, rec.place, ^int32(i)})
	}
	return u
}

// sweeper is the state at one instant of one pool, or of another thing that is
// taken. Between them nothing is active.
type sweeper struct {
	*checker
	use *use
	// The active records as a ring, in order of their starts; the ring's head
	// stands behind the last record.
	next, prev []int32
	active     int
	owners     owners
	work       int // see maxPairWork
	load       int64
	excess     excess
}

// sweep checks each thing of one kind in one pass over time. Intervals are
// half-open: at one instant ends come before starts, and the load is judged after
// both.
func (s *sweeper) sweep(u use) {
	s.use = &u
	slices.SortFunc(u.events, func(a, b event) int {
		// A complement is negative, so ends come first.
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.at, b.at), cmp.Compare(a.record, b.record))
	})
	for events := u.events; len(events) > 0; {
		n := 1
		for n < len(events) && events[n].place == events[0].place {
			n++
		}
		s.thing(events[:n])
		events = events[n:]
	}
}

// excess is a time during which more is taken than there is.
type excess struct {
	open    bool
	from    int64
	peak    int64
	peakAt  int64
	records []int32
	more    int
}

// thing follows the events of one thing.
func (s *sweeper) thing(events []event) {
	at := events[0].place
	if s.use.identity {
		s.owners.reset(s.highest(events))
	}
	for len(events) > 0 {
		now := events[0].at
		n := 0
		for ; n < len(events) && events[n].at == now && !events[n].isStart(); n++ {
			s.remove(^events[n].record)
		}
		starts := n
		for ; n < len(events) && events[n].at == now; n++ {
			if s.use.identity {
				s.checkIdentity(events[n].record)
			}
			s.insert(events[n].record)
		}
		s.checkLoad(at, now, events[starts:n])
		events = events[n:]
	}
}

// highest returns a PE number above all that the records of the events name.
func (s *sweeper) highest(events []event) int32 {
	var highest int32
	for _, e := range events {
		if e.isStart() {
			if runs := s.file.records[e.record].runs; len(runs) > 0 {
				highest = max(highest, runs[len(runs)-1].hi)
			}
		}
	}
	return highest
}

func (s *sweeper) insert(k int32) {
	head := int32(len(s.next) - 1)
	last := s.prev[head]
	s.next[last], s.prev[k] = k, last
	s.next[k], s.prev[head] = head, k
	s.active++
	s.load += s.use.amounts[k]
}

func (s *sweeper) remove(k int32) {
	s.next[s.prev[k]], s.prev[s.next[k]] = s.next[k], s.prev[k]
	s.active--
	s.load -= s.use.amounts[k]
}

// checkLoad follows the times of excess. It runs after all events of an
// instant, with the starts among them. A violation names every line that takes
// its part at some time of the excess, the last to start first if they are too
// many.
func (s *sweeper) checkLoad(at int32, now int64, starts []event) {
	x, size := &s.excess, s.use.size(at)
	switch {
	case x.open && s.load <= size:
		s.add(s.use.class, x.records, x.more, "up to %d of %d %s taken in [%d,%s), the most first at %d",
			x.peak, size, s.use.name(at), x.from, timeText(now), x.peakAt)
		*x = excess{}
		return
	case x.open:
		for _, e := range starts {
			x.include(e.record, s.room())
		}
	case s.load > size:
		x.open, x.from = true, now
		head := int32(len(s.next) - 1)
		room := s.room()
		for k := s.prev[head]; k != head && len(x.records) < room; k = s.prev[k] {
			x.records = append(x.records, k)
		}
		x.more = s.active - len(x.records)
	default:
		return
	}
	if s.load > x.peak {
		x.peak, x.peakAt = s.load, now
	}
}

func (x *excess) include(k int32, room int) {
	if len(x.records) < room {
		x.records = append(x.records, k)
	} else {
		x.more++
	}
}

// checkIdentity reports the active records with which record k, which starts
// now, shares a PE.
func (s *sweeper) checkIdentity(k int32) {
	records := s.file.records
	rec := &records[k]
	witness := int32(-1)
	for _, r := range rec.runs {
		if owner := s.owners.give(r, k); owner >= 0 && s.owners.ends[owner] > rec.start {
			witness = owner
		}
	}
	if witness < 0 {
		return
	}
	head := int32(len(s.next) - 1)
	for o := s.next[head]; o != head && s.work < maxPairWork; o = s.next[o] {
		shared, found, steps := common(records[o].runs, rec.runs)
		s.work += steps
		if found {
			s.work += pairWork
			s.addPair(o, k, shared)
			if o == witness {
				witness = -1
			}
		}
	}
	if witness >= 0 {
		shared, _, _ := common(records[witness].runs, rec.runs)
		s.addPair(witness, k, shared)
	}
}

func (s *sweeper) addPair(first, second int32, shared run) {
	a, b := &s.file.records[first], &s.file.records[second]
	until := min(s.owners.ends[first], s.owners.ends[second])
	s.add(Identity, []int32{first, second}, 0, "%s and %s both have PE %d in [%d,%s)",
		printable(a.id), printable(b.id), shared.lo, b.start, timeText(until))
}

func timeText(at int64) string {
	if at >= forever {
		return "forever"
	}
	return strconv.FormatInt(at, 10)
}

// owners knows for every PE which of the records seen so far holds it for
// the longest time. It is a segment tree over the PE numbers whose nodes are
// made when they are needed, so that its size follows the runs handed out and not
// the size of the pool. Runs are handed out in the order of their starts; then
// a PE is taken twice exactly if its holder ends after the next one starts.
type owners struct {
	ends  []int64     // of every record's interval
	nodes []ownerNode // the root first; index 0 stands for no child
	width int32       // a power of two, more than any PE number
}

// ownerNode covers an aligned range of PEs.
type ownerNode struct {
	left, right int32
	whole       int32 // the last to end of the records that got the whole range, or -1
	any         int32 // the same for any part of it, or -1
}

func (t *owners) reset(highest int32) {
	t.width = 1 << bits.Len32(uint32(max(0, highest-1)))
	t.nodes = append(t.nodes[:0], ownerNode{whole: -1, any: -1})
}

// give hands the run to record k and returns the record that had a PE of it
// and ends last, or -1. Cost: O(log PEs).
func (t *owners) give(r run, k int32) int32 {
	return t.giveIn(0, 0, t.width, r, k)
}

func (t *owners) giveIn(n, lo, hi int32, r run, k int32) int32 {
	node := &t.nodes[n]
	before := node.any
	node.any = t.later(before, k)
	if r.lo <= lo && hi <= r.hi {
		node.whole = t.later(node.whole, k)
		return before
	}
	owner := node.whole
	mid := lo + (hi-lo)/2
	if r.lo < mid {
		owner = t.later(owner, t.giveIn(t.child(n, false), lo, mid, r, k))
	}
	if r.hi > mid {
		owner = t.later(owner, t.giveIn(t.child(n, true), mid, hi, r, k))
	}
	return owner
}

func (t *owners) child(n int32, right bool) int32 {
	child := &t.nodes[n].left
	if right {
		child = &t.nodes[n].right
	}
	if *child == 0 {
		*child = int32(len(t.nodes))
		t.nodes = append(t.nodes, ownerNode{whole: -1, any: -1})
		return int32(len(t.nodes) - 1)
	}
	return *child
}

// later returns the record that ends later, a if both end at once; -1 is none.
func (t *owners) later(a, b int32) int32 {
	if a < 0 || b >= 0 && t.ends[b] > t.ends[a] {
		return b
	}
	return a
}
