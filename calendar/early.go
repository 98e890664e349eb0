package calendar

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// early is the fast form of early binding: a tree of records that store what
// changes, not what is busy. See docs/calendar-early.md for the plan, the
// invariants and the measurements.
//
// With n records, m of them in question, k pieces (words of 64 PEs) in an
// ordinary booking and W = Size/64 words in a set: Add and Remove O(log n + W
// + m·k), with m under the block, and a constant of a nanosecond or so; Find O(log n + W +
// m·k), with m in the window and around the rectangles that can win; Prune O(W)
// amortised.
type early struct {
	size    berth.Count
	tree    tree
	floor   berth.Time // what lies before it is forgotten, though the tree still has it
	all     words
	found   proof
	scratch scratch
}

// proof remembers the answer to a Find: to book it needs no second look whether
// that block is free, nor where. A change of the bookings forgets it.
type proof struct {
	start, end berth.Time
	pes        *berth.Run // of the set, which is immutable; nil for no proof
	runs       int
	ready      place // of the query's ready time, which is not after start
}

func (c *early) prove(fit Fit, ready place) Fit {
	if runs := fit.PEs.Runs(); len(runs) > 0 {
		c.found = proof{fit.Start, fit.End, &runs[0], len(runs), ready}
	}
	return fit
}

// stretch returns the stretch of a block if it is known to be free.
func (p *proof) stretch(c *early, b *Block) (stretch, bool) {
	runs := b.PEs.Runs()
	if p.pes != &runs[0] || p.runs != len(runs) || p.start != b.Start || p.end != b.End {
		return stretch{}, false
	}
	if c.tree.empty() {
		return stretch{}, true
	}
	return c.tree.stretch(c.tree.onwards(p.ready, b.Start), b.End), true
}

// scratch is memory for one operation. A sweep is taken from here while it runs,
// so a question that is asked within its answer makes another.
type scratch struct {
	set      pieces // of the block under way
	probe    words  // 0 between operations
	busy     words
	front    words
	eligible words
	runs     []berth.Run
	sweep    *sweep
}

// newFastEarly returns an empty calendar of early binding.
func newFastEarly(size berth.Count) Calendar {
	if size < 1 || size > berth.MaxPEs {
		panic("calendar: size outside 1..berth.MaxPEs")
	}
	n := wordsFor(size)
	c := &early{size: size, tree: newTree(n), floor: -berth.Forever, all: make(words, n)}
	c.all.fill(size)
	c.scratch = newScratch(n)
	return c
}

func newScratch(n int) scratch {
	return scratch{probe: make(words, n), busy: make(words, n), front: make(words, n), eligible: make(words, n)}
}

func (c *early) Size() berth.Count      { return c.size }
func (c *early) Binding() berth.Binding { return berth.Early }

func (c *early) Add(b Block) error {
	if err := b.check(c.size, berth.Early); err != nil {
		return err
	}
	c.settle(b.Start)
	set := appendPieces(c.scratch.set[:0], b.PEs)
	c.scratch.set = set
	iv := berth.Interval{Start: b.Start, End: b.End}
	st, ok := c.found.stretch(c, &b)
	if !ok {
		st, ok = c.steady(iv, set, false)
	}
	if !ok {
		return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are taken during %s", b.NPE, c.offending(iv, set, false))
	}
	c.sew(iv.Start, st.from, set)
	c.sew(iv.End, st.to, set)
	c.tree.flip(iv, st, set, int32(b.NPE))
	c.found.pes = nil
	return nil
}

func (c *early) Remove(b Block) error {
	if err := b.check(c.size, berth.Early); err != nil {
		return err
	}
	c.settle(b.Start)
	set := appendPieces(c.scratch.set[:0], b.PEs)
	c.scratch.set = set
	iv := berth.Interval{Start: b.Start, End: b.End}
	st, ok := c.steady(iv, set, true)
	if !ok {
		return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are not booked during %s", b.NPE, c.offending(iv, set, true))
	}
	probe := c.scratch.probe
	probe.join(set)
	at, isParted := c.tree.across(iv, st, probe)
	probe.without(set)
	if isParted {
		return parted(&b, at)
	}
	var buffers [2][24]piece
	start := c.unchanged(buffers[0][:0], iv.Start, st.from, set)
	end := c.unchanged(buffers[1][:0], iv.End, st.to, set)
	switch {
	case iv.Start > c.floor && !c.tree.leaf(st.from).sewn(iv.Start, start):
		return notBegun(&b)
	case !c.tree.leaf(st.to).sewn(iv.End, end):
		return notEnded(&b)
	}
	if iv.Start > c.floor {
		c.tree.leaf(st.from).flipSeam(iv.Start, start)
	} else { // all that is busy there begins there
		c.tree.leaf(st.from).dropSeams(iv.Start)
	}
	c.tree.leaf(st.to).flipSeam(iv.End, end)
	c.tree.flip(iv, st, set, -int32(b.NPE))
	c.found.pes = nil
	return nil
}

// Prune forgets what lies before now once whole leaves do. Until then it only notes the time, and
// whatever would look before it has the rest forgotten first: to take the records of a leaf
// one by one costs as much as a set each.
func (c *early) Prune(now berth.Time) {
	switch {
	case now <= c.floor || c.tree.empty() || c.tree.first[0] >= now:
	case c.tree.within(now):
		c.floor = now
	default:
		c.floor = now
		c.forget()
	}
}

// settle makes the tree forget what lies before the floor, for an operation that looks at a time
// before it.
func (c *early) settle(at berth.Time) {
	if at < c.floor {
		c.forget()
	}
}

func (c *early) forget() {
	c.scratch.set = c.tree.prune(c.floor, c.scratch.set)
	c.floor = -berth.Forever
	c.found.pes = nil
}

// steady reports whether all PEs of the set are busy, or all free, throughout
// iv, and returns the stretch of iv if there are records.
func (c *early) steady(iv berth.Interval, set pieces, busy bool) (stretch, bool) {
	t := &c.tree
	if t.empty() {
		return stretch{}, !busy
	}
	st := t.stretch(t.locate(iv.Start), iv.End)
	at, l, w := st.from, t.leaf(st.from), c.scratch.busy
	if !busy || !l.begins(at.r, iv.Start, set) {
		base, flips := t.nearest(at)
		for i := range set {
			w[set[i].word] = base[set[i].word]
		}
		w.toggle(flips)
		var wrong uint64
		for i := range set {
			there := w[set[i].word]
			if busy {
				there = ^there
			}
			wrong |= there & set[i].mask
		}
		if wrong != 0 {
			return st, false
		}
	}
	// They are at the start, and stay so if none of them changes.
	probe := c.scratch.probe
	probe.join(set)
	same := true
	for same && (at.p != st.to.p || at.l != st.to.l) {
		same = !probe.meets(l.set[l.from(at.r+1):])
		at, _ = t.nextLeaf(at)
		l = t.leaf(at)
	}
	if same {
		to := st.to.r
		if to >= 0 && l.times[to] == iv.End {
			to--
		}
		same = to <= at.r || !probe.meets(l.set[l.from(at.r+1):l.ends[to]])
	}
	probe.without(set)
	return st, same
}

// offending returns the first step of iv at which some PE of the set is free,
// or busy, against expectation.
func (c *early) offending(iv berth.Interval, set pieces, busy bool) berth.Interval {
	var bad berth.Interval
	c.tree.steps(iv, func(step berth.Interval, w words) bool {
		for i := range set {
			there := w[set[i].word] & set[i].mask
			if busy {
				there ^= set[i].mask
			}
			if there != 0 {
				bad = step
				return false
			}
		}
		return true
	})
	return bad
}

// steps calls visit for every step within iv, cut to iv, with its busy set,
// until visit returns false.
func (t *tree) steps(iv berth.Interval, visit func(berth.Interval, words) bool) {
	w := make(words, t.words)
	step := iv
	if t.empty() {
		visit(step, w)
		return
	}
	at := t.locate(iv.Start)
	t.busyAt(w, at)
	for ok := true; ok; at, ok = t.nextLeaf(at) {
		for l := t.leaf(at); at.r+1 < int(l.n); at.r++ {
			next := l.times[at.r+1]
			if next >= iv.End {
				visit(berth.Interval{Start: step.Start, End: iv.End}, w)
				return
			}
			if !visit(berth.Interval{Start: step.Start, End: next}, w) {
				return
			}
			w.toggle(l.changes(at.r + 1))
			step.Start = next
		}
	}
	visit(step, w)
}

func (c *early) Free(iv berth.Interval) (berth.Count, berth.PESet) {
	c.settle(min(iv.Start, iv.End-1))
	busy := c.scratch.busy
	if iv.Start >= iv.End {
		// The value in force counts if its record is before the end.
		if at := (place{}); !c.tree.empty() {
			if at = c.tree.locate(iv.Start); at.r >= 0 && c.tree.leaf(at).times[at.r] < iv.End {
				c.tree.busyAt(busy, at)
				return c.freeSet(busy)
			}
		}
		clear(busy)
		return c.freeSet(busy)
	}
	if c.tree.empty() {
		clear(busy)
	} else {
		c.tree.union(busy, c.tree.locate(iv.Start), iv.End)
	}
	return c.freeSet(busy)
}

func (c *early) freeSet(busy words) (berth.Count, berth.PESet) {
	for i := range busy {
		busy[i] = c.all[i] &^ busy[i]
	}
	return busy.count(), busy.pes(c.size)
}

func (c *early) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		c.settle(-berth.Forever)
		w := make(words, c.tree.words)
		for _, pg := range c.tree.pages {
			for _, l := range pg.leaves[:pg.n] {
				for i := range int(l.n) {
					w.toggle(l.changes(i))
					busy := w.pes(c.size)
					if !yield(Record{Time: l.times[i], Free: c.size - berth.Count(l.before+l.level[i]), Busy: busy}) {
						return
					}
				}
			}
		}
	}
}

// Changes yields times of records; the calendar must not change meanwhile.
func (c *early) Changes(iv berth.Interval) iter.Seq[berth.Time] {
	return func(yield func(berth.Time) bool) {
		c.settle(-berth.Forever)
		if c.tree.empty() {
			return
		}
		for at, more := c.tree.locate(iv.Start-1), true; more; at, more = c.tree.nextLeaf(at) {
			l := c.tree.leaf(at)
			for _, t := range l.times[at.r+1 : l.n] {
				if t >= iv.End || !yield(t) {
					return
				}
			}
		}
	}
}

var _ Calendar = (*early)(nil)
