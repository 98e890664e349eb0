package calendar

import (
	"math"
	"math/bits"
	"slices"

	"github.com/berth-hpc/berth"
)

// sweep visits the candidate starts of a query in ascending order and keeps
// the set of PEs that are free throughout the window of the present one.
//
// As the window [start, start+duration) moves on, the set loses PEs only where
// its end passes a record, and gains only where its start does, and only PEs
// that change there. So each step costs as many pieces as one record has, not
// a walk over the window nor over all words. What stands in the way of a gain
// is known from two halves of the window, as in a queue made of two stacks:
// of the records before middle, shadow tells for every piece what changes
// later (up to middle); of those from middle on, cell.ahead is the union.
//
//	          left            middle              right
//	records ──┴─┴──┴─────┴──────┴───┴──┴───────┴────┴─────
//	          [start            |       start+duration)
//	            shadow: union   |  ahead: union of all
//	            up to middle    |  changes from middle on
type sweep struct {
	tree  *tree
	query Query
	start berth.Time
	last  berth.Time // latest start, Forever if there is no deadline

	free  berth.Count // number of PEs in all cells' free
	cells []cell

	// The records after query.Ready, gathered leaf by leaf when needed.
	times  []berth.Time
	ends   []int // as in leaf; ends[0] is 0, the changes of record i end at ends[i+1]
	set    pieces
	shadow []uint64
	next   place // the leaf to gather next
	more   bool

	left, middle, right int        // records: the first after start, the border, the first not before the window's end
	arrive, leave       berth.Time // the start at which the window comes to the one on the left, and from which it reaches the one on the right

	rim  rim
	best words // the free PEs of the best candidate so far
}

// cell is one word of the sets that a sweep keeps.
type cell struct {
	free  uint64 // eligible and free throughout the window
	busy  uint64 // busy at start
	ahead uint64 // changing at a record in [middle, right)
	shut  uint64 // not eligible
}

// newSweep returns c's spare sweep, set to the first candidate of the query.
// It must be given back.
func (c *early) newSweep(q *Query) *sweep {
	s := c.scratch.sweep
	c.scratch.sweep = nil
	if s == nil {
		s = &sweep{tree: &c.tree, cells: make([]cell, c.tree.words), ends: []int{0}, best: make(words, c.tree.words)}
	}
	s.begin(q, c.eligible(q))
	return s
}

func (c *early) giveBack(s *sweep) { c.scratch.sweep = s }

func (s *sweep) begin(q *Query, eligible words) {
	t := s.tree
	s.query, s.start, s.last = *q, q.Ready, berth.Forever
	if q.Deadline < berth.Forever {
		s.last = q.Deadline - berth.Time(q.Duration)
	}
	s.times, s.ends, s.set, s.shadow = s.times[:0], s.ends[:1], s.set[:0], s.shadow[:0]
	s.left, s.middle, s.right = 0, 0, 0
	clear(s.cells)
	s.more = !t.empty()
	at := place{}
	if s.more {
		at = t.locate(q.Ready)
		base, flips := t.nearest(at)
		for i := range s.cells {
			s.cells[i].busy = base[i]
		}
		for i := range flips {
			s.cells[flips[i].word].busy ^= flips[i].mask
		}
		s.next = at
		s.gather()
	}
	s.rim.begin(s, at)
	for end := q.Ready.Add(q.Duration); s.time(s.right) < end; {
		s.right++
	}
	s.turn(func() {
		free := 0
		for i := range s.cells {
			cell := &s.cells[i]
			cell.shut = ^eligible[i]
			cell.free = eligible[i] &^ (cell.busy | cell.ahead)
			free += bits.OnesCount64(cell.free)
		}
		s.free = berth.Count(free)
	})
	s.arrive, s.leave = s.time(s.left), s.leaving()
}

// gatherRecords is how many records are gathered at once: a quarter of a leaf,
// since windows end within one.
const gatherRecords = leafRecords / 4

// gather appends the records after the place, at most to the end of its leaf.
func (s *sweep) gather() {
	l, from := s.tree.leaf(s.next), s.next.r+1
	to := min(from+gatherRecords, int(l.n))
	s.times = append(s.times, l.times[from:to]...)
	skip := l.from(from)
	shift := len(s.set) - skip
	for _, end := range l.ends[from:to] {
		s.ends = append(s.ends, int(end)+shift)
	}
	s.set = append(s.set, l.set[skip:l.from(to)]...)
	s.shadow = slices.Grow(s.shadow, len(s.set)-len(s.shadow))[:len(s.set)]
	if s.next.r = to - 1; to == int(l.n) {
		s.next, s.more = s.tree.nextLeaf(s.next)
	}
}

// time returns the time of a record, Forever behind the last.
func (s *sweep) time(i int) berth.Time {
	for i >= len(s.times) {
		if !s.more {
			return berth.Forever
		}
		s.gather()
	}
	return s.times[i]
}

func (s *sweep) changes(i int) pieces { return s.set[s.ends[i]:s.ends[i+1]] }

// turn moves the middle to the right end. full is called while ahead holds the
// union of all changes in the window.
func (s *sweep) turn(full func()) {
	for _, piece := range s.set[s.ends[s.middle]:s.ends[s.right]] {
		s.cells[piece.word].ahead = 0
	}
	from, to := s.ends[s.left], s.ends[s.right]
	cells, set, shadow := s.cells, s.set[from:to], s.shadow[from:to]
	for i := len(set) - 1; i >= 0; i-- {
		ahead := &cells[set[i].word].ahead
		shadow[i] = *ahead
		*ahead |= set[i].mask
	}
	if full != nil {
		full()
	}
	for i := range set {
		cells[set[i].word].ahead = 0
	}
	s.middle = s.right
}

// advance moves to the next candidate, if there is one.
func (s *sweep) advance() bool {
	if s.start == s.leave { // the present window ends there, every later one reaches beyond
		s.pass()
	}
	next := min(s.last, s.arrive, s.leave)
	if next == s.start || next >= berth.Forever {
		return false
	}
	s.start = next
	if next == s.arrive {
		s.enter()
	}
	return true
}

// advanceToGain moves to the next candidate at which PEs may have come free, if
// there is one. No other has more of them than the one before it.
func (s *sweep) advanceToGain() bool {
	if s.arrive > s.last || s.arrive >= berth.Forever {
		return false
	}
	for s.leave < s.arrive {
		s.pass()
	}
	s.start = s.arrive
	s.enter()
	return true
}

// pass lets the window's end pass the record on the right.
func (s *sweep) pass() {
	right := s.right
	lost := 0
	cells, set := s.cells, s.set[s.ends[right]:s.ends[right+1]]
	for i := range set {
		cell, mask := &cells[set[i].word], set[i].mask
		cell.ahead |= mask
		if gone := cell.free & mask; gone != 0 {
			cell.free ^= gone
			lost += bits.OnesCount64(gone)
		}
	}
	if lost > 0 {
		s.free -= berth.Count(lost)
		s.rim.begun = false
	}
	if s.rim.end == right {
		s.rim.end, s.rim.sure = unknown, false
	}
	s.right = right + 1
	s.leave = s.leaving()
}

// enter lets the window's start come to the record on the left.
func (s *sweep) enter() {
	left := s.left
	if left == s.middle {
		s.turn(nil)
	}
	gained := 0
	from, to := s.ends[left], s.ends[left+1]
	cells, set, shadow := s.cells, s.set[from:to], s.shadow[from:to]
	for i := range set {
		cell, mask := &cells[set[i].word], set[i].mask
		cell.busy ^= mask
		if came := mask &^ (cell.busy | cell.ahead | shadow[i] | cell.shut); came != 0 {
			cell.free |= came
			gained += bits.OnesCount64(came)
		}
	}
	if gained > 0 {
		s.free += berth.Count(gained)
		s.gained()
	}
	s.left = left + 1
	s.arrive = s.time(left + 1)
}

// leaving returns the start from which on the window reaches the record on the
// right: Forever if there is none.
func (s *sweep) leaving() berth.Time {
	if at := s.time(s.right); at < berth.Forever {
		return at - berth.Time(s.query.Duration)
	}
	return berth.Forever
}

// copyFree makes w the present set.
func (s *sweep) copyFree(w words) {
	for i := range s.cells {
		w[i] = s.cells[i].free
	}
}

// unknown is the record of an end that was not looked for.
const unknown = math.MaxInt
