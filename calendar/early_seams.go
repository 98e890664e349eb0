package calendar

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// wordSeam is a word of PEs that are given back at a time and taken again there: PEs that
// the records do not show, since they do not change. With them it is known for every PE
// where its bookings begin and end.
//
// A leaf has those from its first record up to that of the next leaf, in order of time and of
// word: what is taken again was busy before, so there is a record before every seam.
type wordSeam struct {
	time berth.Time
	mask uint64 // never 0
	word uint32
}

// seamsFrom returns the position of the first seam not before a time.
func (l *leaf) seamsFrom(t berth.Time) int {
	base := uint(0)
	for n := uint(len(l.seams)); n > 0; {
		half := (n + 1) / 2
		isBefore := (l.seams[base+half-1].time - t) >> 63 // −1, or 0
		base += half & uint(isBefore)
		n -= half
	}
	return int(base)
}

// flipSeam takes PEs into the seam at a time, or out of it if they are in it.
func (l *leaf) flipSeam(t berth.Time, set pieces) {
	if len(set) == 0 {
		return
	}
	from := l.seamsFrom(t)
	to := from
	var buffer [24]wordSeam // most sets have a few pieces
	flipped := buffer[:0]
	for _, p := range set {
		for ; to < len(l.seams) && l.seams[to].time == t && l.seams[to].word < p.word; to++ {
			flipped = append(flipped, l.seams[to])
		}
		if to < len(l.seams) && l.seams[to].time == t && l.seams[to].word == p.word {
			p.mask ^= l.seams[to].mask
			to++
		}
		if p.mask != 0 {
			flipped = append(flipped, wordSeam{t, p.mask, p.word})
		}
	}
	l.seams = slices.Replace(l.seams, from, to, flipped...)
}

// seamsAt returns the position of the first seam from i on that is not of an earlier word
// of the time.
func (l *leaf) seamsAt(i int, t berth.Time, word uint32) int {
	for i < len(l.seams) && l.seams[i].time == t && l.seams[i].word < word {
		i++
	}
	return i
}

// sewn reports whether all PEs of a set are in the seam at a time.
func (l *leaf) sewn(t berth.Time, set pieces) bool {
	if len(set) == 0 {
		return true
	}
	i := l.seamsFrom(t)
	for _, p := range set {
		i = l.seamsAt(i, t, p.word)
		if i == len(l.seams) || l.seams[i].time != t || l.seams[i].word != p.word || p.mask&^l.seams[i].mask != 0 {
			return false
		}
	}
	return true
}

// passSeams moves the seams before a leaf's first record, all if none is left, to the leaf
// before. The first leaf has none.
func (t *tree) passSeams(at place) {
	l := t.leaf(at)
	gone := len(l.seams)
	if l.n > 0 {
		gone = l.seamsFrom(l.times[0])
	}
	if gone == 0 {
		return
	}
	before, _ := t.previousLeaf(at)
	left := t.leaf(before)
	left.seams = append(left.seams, l.seams[:gone]...)
	l.seams = slices.Delete(l.seams, 0, gone)
}

// dropSeams forgets the seams up to a time.
func (l *leaf) dropSeams(now berth.Time) {
	l.seams = slices.Delete(l.seams, 0, l.seamsFrom(now+1))
}

// across returns the first time inside an interval, whose stretch is st, at which a PE of
// the probe is given back and taken; ok is false if there is none. Cost: O(seams in the
// leaves of the stretch), which are read one after the other: to look for the first one
// inside would wait longer for memory.
func (t *tree) across(iv berth.Interval, st stretch, probe words) (first berth.Time, ok bool) {
	for at := st.from; ; at, _ = t.nextLeaf(at) {
		seams := t.leaf(at).seams
		for i := range seams {
			if s := &seams[i]; probe[s.word]&s.mask != 0 && iv.Start < s.time && s.time < iv.End {
				return s.time, true
			}
		}
		if at.p == st.to.p && at.l == st.to.l {
			return 0, false
		}
	}
}

// changesAt returns the PEs that change at a time, none if no record is there. The
// place is that of the last record not after it.
func (t *tree) changesAt(at berth.Time, to place) pieces {
	if t.empty() || to.r < 0 {
		return nil
	}
	if l := t.leaf(to); l.times[to.r] == at {
		return l.changes(to.r)
	}
	return nil
}

// sew remembers which PEs of a set that is about to be booked from or up to a time
// change there already: with that, they are given back and taken again.
func (c *early) sew(at berth.Time, to place, set pieces) {
	changes := c.tree.changesAt(at, to)
	if len(changes) == 0 {
		return
	}
	var buffer [24]piece
	if both := appendAnd(buffer[:0], changes, set); len(both) > 0 {
		c.tree.leaf(to).flipSeam(at, both)
	}
}

// unchanged appends the PEs of a set that do not change at a time.
func (c *early) unchanged(dst pieces, at berth.Time, to place, set pieces) pieces {
	changes := c.tree.changesAt(at, to)
	if slices.Equal(changes, set) {
		return dst
	}
	return appendMinus(dst, set, changes)
}
