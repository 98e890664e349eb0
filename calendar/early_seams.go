package calendar

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// seams are the PEs that are given back at a time and taken again there: those that
// the records do not show, since they do not change. With them it is known for every
// PE where its bookings begin and end.
//
// Times ascend, in chunks. Cost for n seams: O(log n + seamsInChunk) to find or change
// one, and O(n/seamsInChunk) where a chunk comes or goes.
type seams struct {
	first  []berth.Time // of each chunk
	chunks []*seamChunk
}

const seamsInChunk = 32

type seamChunk struct {
	n     int
	times [seamsInChunk]berth.Time
	marks [seamsInChunk]uint64 // of the sets
	sets  [seamsInChunk]pieces // never empty; read only
}

// seamPlace is where a seam is, or where it would be inserted. It is valid until a
// seam comes or goes.
type seamPlace struct {
	c, i  int
	found bool
}

func (s *seams) empty() bool { return len(s.chunks) == 0 }

// place returns the place of a time.
func (s *seams) place(t berth.Time) seamPlace {
	if s.empty() {
		return seamPlace{}
	}
	return s.placeIn(max(upTo(s.first, t)-1, 0), t)
}

// placeIn returns the place of a time in a chunk.
func (s *seams) placeIn(c int, t berth.Time) seamPlace {
	k := s.chunks[c]
	i := upTo(k.times[:k.n], t)
	if i > 0 && k.times[i-1] == t {
		return seamPlace{c, i - 1, true}
	}
	return seamPlace{c, i, false}
}

// set returns the PEs of the seam at a place, none where there is no seam.
func (s *seams) set(p seamPlace) pieces {
	if !p.found {
		return nil
	}
	return s.chunks[p.c].sets[p.i]
}

// put makes the PEs of the seam at a time, of the given place, those of a set that it
// may keep.
func (s *seams) put(p seamPlace, t berth.Time, set pieces) {
	if !p.found {
		p = s.insert(p)
	}
	k := s.chunks[p.c]
	k.times[p.i], k.marks[p.i], k.sets[p.i] = t, set.mark(), set
	s.first[p.c] = k.times[0]
}

// insert makes room at a place.
func (s *seams) insert(p seamPlace) seamPlace {
	if s.empty() {
		s.first, s.chunks = append(s.first, 0), append(s.chunks, new(seamChunk))
	}
	if s.chunks[p.c].n == seamsInChunk {
		s.split(p)
		if n := s.chunks[p.c].n; p.i > n {
			p.c, p.i = p.c+1, p.i-n
		}
	}
	k := s.chunks[p.c]
	copy(k.times[p.i+1:k.n+1], k.times[p.i:k.n])
	copy(k.marks[p.i+1:k.n+1], k.marks[p.i:k.n])
	copy(k.sets[p.i+1:k.n+1], k.sets[p.i:k.n])
	k.n++
	return p
}

// split divides a full chunk in two. One that grows at the end of all is left nearly
// full.
func (s *seams) split(p seamPlace) {
	k, half := s.chunks[p.c], seamsInChunk/2
	if p.i == k.n && p.c == len(s.chunks)-1 {
		half = k.n - 1
	}
	right := &seamChunk{n: k.n - half}
	copy(right.times[:], k.times[half:])
	copy(right.marks[:], k.marks[half:])
	copy(right.sets[:], k.sets[half:])
	clear(k.sets[half:])
	k.n = half
	s.first = slices.Insert(s.first, p.c+1, right.times[0])
	s.chunks = slices.Insert(s.chunks, p.c+1, right)
}

// drop forgets the seam at a place, and joins chunks that have become small.
func (s *seams) drop(p seamPlace) {
	k, c := s.chunks[p.c], p.c
	k.cut(p.i, p.i+1)
	if left := max(c-1, 0); k.n <= seamsInChunk/4 && left+1 < len(s.chunks) && s.chunks[left].n+s.chunks[left+1].n <= seamsInChunk/2 {
		a, b := s.chunks[left], s.chunks[left+1]
		copy(a.times[a.n:], b.times[:b.n])
		copy(a.marks[a.n:], b.marks[:b.n])
		copy(a.sets[a.n:], b.sets[:b.n])
		a.n += b.n
		s.cut(left+1, left+2)
		c = left
	}
	if s.chunks[c].n == 0 {
		s.cut(c, c+1)
		return
	}
	s.first[c] = s.chunks[c].times[0]
}

// cut drops the seams lo..hi−1 of a chunk.
func (k *seamChunk) cut(lo, hi int) {
	copy(k.times[lo:], k.times[hi:k.n])
	copy(k.marks[lo:], k.marks[hi:k.n])
	copy(k.sets[lo:], k.sets[hi:k.n])
	clear(k.sets[k.n-(hi-lo) : k.n])
	k.n -= hi - lo
}

// cut drops the chunks lo..hi−1.
func (s *seams) cut(lo, hi int) {
	s.first = slices.Delete(s.first, lo, hi)
	s.chunks = slices.Delete(s.chunks, lo, hi)
}

// prune forgets the seams up to a time.
func (s *seams) prune(now berth.Time) {
	gone := upTo(s.first, now)
	if gone == 0 {
		return
	}
	if last := s.chunks[gone-1]; last.times[last.n-1] > now {
		last.cut(0, upTo(last.times[:last.n], now))
		gone--
		s.first[gone] = last.times[0]
	}
	s.cut(0, gone)
}

// across returns the places of both ends of an interval and the first time inside at
// which a PE of a set is given back and taken; ok is false if there is none. Cost:
// O(log n + seams inside).
func (s *seams) across(iv berth.Interval, set pieces) (from, to seamPlace, at berth.Time, ok bool) {
	from = s.place(iv.Start)
	if s.empty() {
		return from, from, 0, false
	}
	mark := set.mark()
	i := from.i
	if from.found {
		i++
	}
	for c := from.c; ; c++ {
		k := s.chunks[c]
		for ; i < k.n && k.times[i] < iv.End; i++ {
			if k.marks[i]&mark != 0 && set.meets(k.sets[i]) {
				return from, to, k.times[i], true
			}
		}
		if i < k.n || c+1 == len(s.chunks) || s.first[c+1] > iv.End {
			return from, seamPlace{c, i, i < k.n && k.times[i] == iv.End}, 0, false
		}
		i = 0
	}
}

// mark returns a figure that has no bit in common with that of a set of other words,
// or of other quarters of the same words, as long as there are 1,024 PEs or fewer.
func (s pieces) mark() (mark uint64) {
	for i := range s {
		quarters := s[i].mask | s[i].mask>>8
		quarters |= quarters >> 4
		quarters |= quarters >> 2
		quarters |= quarters >> 1
		quarters &= 0x0001_0001_0001_0001
		quarters = quarters | quarters>>15 | quarters>>30 | quarters>>45
		mark |= quarters & 15 << (s[i].word % 16 * 4)
	}
	return mark
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
		p := c.seams.place(at)
		c.seams.put(p, at, appendXor(nil, c.seams.set(p), both))
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

// unpick forgets that PEs are given back and taken again at a time. They all are.
func (c *early) unpick(p seamPlace, at berth.Time, set pieces) {
	if len(set) == 0 {
		return
	}
	if left := appendXor(nil, c.seams.set(p), set); len(left) > 0 {
		c.seams.put(p, at, left)
	} else {
		c.seams.drop(p)
	}
}
