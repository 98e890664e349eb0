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
// A query that may use some PEs only is answered from their changes: pieces are cut to them as
// they are gathered, and a record at which none of them changes is left out. A start there has
// the rectangle of the candidate before it, unless the window's end passed a loss since then, so
// one such start is visited behind each loss. A class of a pool then costs what a pool of its
// own would, beside one look at each piece and time of the others.
//
//	          left            middle              right
//	records ──┴─┴──┴─────┴──────┴───┴──┴───────┴────┴─────
//	          [start            |       start+duration)
//	            shadow: union   |  ahead: union of all
//	            up to middle    |  changes from middle on
type sweep struct {
	tree  *tree
	size  berth.Count // of the machine
	query Query
	start berth.Time
	last  berth.Time // latest start, Forever if there is no deadline

	free  berth.Count // number of PEs in all cells' free
	cells []cell
	used  span // the words with eligible PEs; free is 0 in every other cell
	cut   bool // pieces are cut to the eligible PEs
	every bool // every record is a candidate, also where no eligible PE changes

	// The records after query.Ready, gathered leaf by leaf when needed.
	times  []berth.Time
	ends   []int // as in leaf; ends[0] is 0, the changes of record i end at ends[i+1]
	set    pieces
	all    []berth.Time // the times of those that were left out too
	shadow []uint64
	next   place // the leaf to gather next
	more   bool
	seen   berth.Time // no record up to it is still to be gathered

	left, middle, right int        // records: the first after start, the border, the first not before the window's end
	arrive, leave       berth.Time // the start at which the window comes to the one on the left, and from which it reaches the one on the right

	soonLeft, soonRight int // of all, the first after start and the first after the window's end, or before these

	rim   rim
	sides sides
}

// cell is one word of the sets that a sweep keeps.
type cell struct {
	free  uint64 // eligible and free throughout the window
	busy  uint64 // busy at start
	ahead uint64 // changing at a record in [middle, right)
	shut  uint64 // not eligible; says nothing beyond sweep.used
}

// span is the words from lo up to hi.
type span struct{ lo, hi int }

// candidates says which starts a sweep visits.
type candidates bool

const (
	everyRecord candidates = true  // all of them, for a rule that may look at the start itself
	whereItMay  candidates = false // the first with each rectangle
)

// newSweep returns c's spare sweep, set to the first candidate of the query.
// It must be given back.
func (c *early) newSweep(q *Query, at candidates) *sweep {
	s := c.scratch.sweep
	c.scratch.sweep = nil
	if s == nil {
		s = &sweep{tree: &c.tree, size: c.size, cells: make([]cell, c.tree.words), ends: []int{0}}
	}
	eligible := c.eligible(q)
	s.cut = !q.Eligible.Empty()
	s.every = at == everyRecord
	s.begin(q, eligible)
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
	s.all, s.soonLeft, s.soonRight = s.all[:0], 0, 0
	s.more, s.seen = !t.empty(), -berth.Forever
	at := place{}
	if !s.more {
		s.take(eligible, nil)
	} else {
		at = t.locate(q.Ready)
		base, flips := t.nearest(at)
		s.take(eligible, base)
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
	s.shade()
	s.middle = s.right
	free := 0
	cells := s.cells[s.used.lo:s.used.hi]
	for i := range cells {
		cell := &cells[i]
		cell.free = ^(cell.busy | cell.ahead | cell.shut)
		cell.ahead = 0
		free += bits.OnesCount64(cell.free)
	}
	s.free = berth.Count(free)
	s.arrive, s.leave = s.time(s.left), s.leaving()
}

// take clears what the last query left, shuts the PEs that this one may not use and notes which are busy,
// none for nil. Cells without eligible PEs are not touched, so that a small class of a large machine costs little.
func (s *sweep) take(eligible, busy words) {
	last := s.used
	s.used = span{0, len(eligible)}
	if s.cut {
		for s.used.lo < s.used.hi && eligible[s.used.lo] == 0 {
			s.used.lo++
		}
		for s.used.lo < s.used.hi && eligible[s.used.hi-1] == 0 {
			s.used.hi--
		}
	}
	clear(s.cells[last.lo:max(last.lo, min(s.used.lo, last.hi))])
	clear(s.cells[min(max(s.used.hi, last.lo), last.hi):last.hi])
	cells, eligible := s.cells[s.used.lo:s.used.hi], eligible[s.used.lo:s.used.hi]
	if busy == nil {
		for i := range cells {
			cells[i] = cell{shut: ^eligible[i]}
		}
		return
	}
	busy = busy[s.used.lo:s.used.hi]
	for i := range cells {
		cells[i] = cell{shut: ^eligible[i], busy: busy[i]}
	}
}

// gatherRecords is how many records are gathered at once: a quarter of a leaf,
// since windows end within one.
const gatherRecords = leafRecords / 4

// gather appends the records after the place, at most to the end of its leaf.
func (s *sweep) gather() {
	l, from := s.tree.leaf(s.next), s.next.r+1
	to := min(from+gatherRecords, int(l.n))
	if s.cut {
		s.gatherCut(l, from, to)
	} else {
		s.times = append(s.times, l.times[from:to]...)
		skip := l.from(from)
		shift := len(s.set) - skip
		for _, end := range l.ends[from:to] {
			s.ends = append(s.ends, int(end)+shift)
		}
		s.set = append(s.set, l.set[skip:l.from(to)]...)
	}
	s.shadow = slices.Grow(s.shadow, len(s.set)-len(s.shadow))[:len(s.set)]
	if to > from {
		s.seen = l.times[to-1]
	}
	if s.next.r = to - 1; to == int(l.n) {
		s.next, s.more = s.tree.nextLeaf(s.next)
	}
}

// gatherCut appends what changes of the eligible PEs at records from up to to. Whether a piece
// has any of them cannot be foreseen, so each is written, and kept by counting it.
func (s *sweep) gatherCut(l *leaf, from, to int) {
	at, n := l.from(from), len(s.set)
	if !s.every {
		s.all = append(s.all, l.times[from:to]...)
	}
	set := slices.Grow(s.set, l.from(to)-at)[:n+l.from(to)-at]
	lo, cells := uint32(s.used.lo), s.cells[s.used.lo:s.used.hi]
	for i := from; i < to; i++ {
		first, end := n, int(l.ends[i])
		for _, p := range l.set[at:end] {
			if word := p.word - lo; word < uint32(len(cells)) { // else below lo or not below hi
				p.mask &^= cells[word].shut
				set[n] = p
				if p.mask != 0 {
					n++
				}
			}
		}
		at = end
		if n > first || s.every {
			s.times, s.ends = append(s.times, l.times[i]), append(s.ends, n)
		}
	}
	s.set = set[:n]
}

// time returns the time of a record, Forever behind the last of those that a window reaches.
func (s *sweep) time(i int) berth.Time {
	for i >= len(s.times) {
		if !s.gatherOn() {
			return berth.Forever
		}
	}
	return s.times[i]
}

// gatherOn gathers more if there is more that a window reaches, and reports whether. Beyond that
// may be many bookings of other classes before the next one of this. It is kept out of line, so
// that time and timeOfAll, which every step asks, are small enough to be in line.
//
//go:noinline
func (s *sweep) gatherOn() bool {
	if !s.more || s.seen >= s.query.Deadline {
		return false
	}
	s.gather()
	return true
}

// turn moves the middle to the right end.
func (s *sweep) turn() {
	s.forget(s.set[s.ends[s.middle]:s.ends[s.right]])
	s.shade()
	s.forget(s.set[s.ends[s.left]:s.ends[s.right]])
	s.middle = s.right
}

// shade notes for every piece in the window what changes later in it, and leaves the union of all
// in ahead, which was 0.
func (s *sweep) shade() {
	from, to := s.ends[s.left], s.ends[s.right]
	cells, set, shadow := s.cells, s.set[from:to], s.shadow[from:to]
	for i := len(set) - 1; i >= 0; i-- {
		ahead := &cells[set[i].word].ahead
		shadow[i] = *ahead
		*ahead |= set[i].mask
	}
}

// forget clears what is ahead in the words that have a piece, in which alone there is any.
func (s *sweep) forget(set pieces) {
	if used := s.cells[s.used.lo:s.used.hi]; len(used) < len(set) {
		for i := range used {
			used[i].ahead = 0
		}
		return
	}
	for i := range set {
		s.cells[set[i].word].ahead = 0
	}
}

// advance moves to the next candidate, if there is one.
func (s *sweep) advance() bool {
	next := s.last
	if s.start == s.leave { // the present window ends there, every later one reaches beyond
		if fewer := s.pass(); fewer && s.cut && !s.every {
			next = min(next, s.soon())
		}
	}
	next = min(next, s.arrive, s.leave)
	if next == s.start || next >= berth.Forever {
		return false
	}
	s.start = next
	if next == s.arrive {
		s.enter()
	}
	return true
}

// soon returns the next start, after the present one, at which the window begins or ends with
// a record, whichever PEs change there.
func (s *sweep) soon() berth.Time {
	for s.timeOfAll(s.soonLeft) <= s.start {
		s.soonLeft++
	}
	end := s.start.Add(s.query.Duration)
	for s.timeOfAll(s.soonRight) <= end {
		s.soonRight++
	}
	next := s.timeOfAll(s.soonLeft)
	if at := s.timeOfAll(s.soonRight); at < berth.Forever {
		next = min(next, at-berth.Time(s.query.Duration))
	}
	return next
}

// timeOfAll returns the time of a record among all, Forever behind the last that a window reaches.
func (s *sweep) timeOfAll(i int) berth.Time {
	for i >= len(s.all) {
		if !s.gatherOn() {
			return berth.Forever
		}
	}
	return s.all[i]
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

// pass lets the window's end pass the record on the right, and reports whether fewer PEs are free then.
func (s *sweep) pass() (fewer bool) {
	right := s.right
	lost := 0
	cells, set := s.cells, s.set[s.ends[right]:s.ends[right+1]]
	for i := range set {
		cell, mask := &cells[set[i].word], set[i].mask
		cell.ahead |= mask
		gone := cell.free & mask // mostly there is no telling whether it is 0, so it is not asked
		cell.free ^= gone
		lost += bits.OnesCount64(gone)
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
	return lost > 0
}

// enter lets the window's start come to the record on the left.
func (s *sweep) enter() {
	left := s.left
	if left == s.middle {
		s.turn()
	}
	gained := 0
	from, to := s.ends[left], s.ends[left+1]
	cells, set, shadow := s.cells, s.set[from:to], s.shadow[from:to]
	for i := range set {
		cell, mask := &cells[set[i].word], set[i].mask
		cell.busy ^= mask
		came := mask &^ (cell.busy | cell.ahead | shadow[i] | cell.shut)
		cell.free |= came
		gained += bits.OnesCount64(came)
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
	for i := s.used.lo; i < s.used.hi; i++ {
		w[i] = s.cells[i].free
	}
}

// unknown is the record of an end that was not looked for.
const unknown = math.MaxInt
