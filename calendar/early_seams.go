package calendar

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// seams are the PEs that are given back at a time and taken again there: those that
// the records do not show, since they do not change. With them it is known for every
// PE where its bookings begin and end.
//
// They are a list of words of PEs in order of time and of word, in chunks. Cost for n of
// them: O(log n + seamsInChunk) to find or flip one, O(n/seamsInChunk) where a chunk comes
// or goes.
type seams struct {
	first  []berth.Time // of each chunk
	chunks []*seamChunk
}

const seamsInChunk = 64

type seamChunk struct {
	n     int
	times [seamsInChunk]berth.Time
	masks [seamsInChunk]uint64 // never 0
	words [seamsInChunk]uint32
}

// seamPlace is where something of the seams is. It is valid until a chunk comes or goes.
type seamPlace struct{ c, i int }

func (s *seams) empty() bool { return len(s.chunks) == 0 }

// from returns the place of the first word not before a time, which may be the end of a
// chunk.
func (s *seams) from(t berth.Time) seamPlace {
	if s.empty() {
		return seamPlace{}
	}
	c := max(upTo(s.first, t-1)-1, 0)
	k := s.chunks[c]
	return seamPlace{c, upTo(k.times[:k.n], t-1)}
}

// at makes the end of a chunk the begin of the next, and reports whether what is there is
// of a time.
func (s *seams) at(p seamPlace, t berth.Time) (seamPlace, bool) {
	if s.empty() {
		return p, false
	}
	if p.i == s.chunks[p.c].n {
		if p.c+1 == len(s.chunks) || s.first[p.c+1] != t {
			return p, false
		}
		p = seamPlace{p.c + 1, 0}
	}
	return p, s.chunks[p.c].times[p.i] == t
}

// flip takes PEs into the seam at a time, or out of it if they are in it.
func (s *seams) flip(t berth.Time, set pieces) {
	if len(set) == 0 {
		return
	}
	p := s.from(t)
	for _, piece := range set {
		there := false
		for p, there = s.at(p, t); there && s.chunks[p.c].words[p.i] < piece.word; p, there = s.at(p, t) {
			p.i++
		}
		if !there || s.chunks[p.c].words[p.i] != piece.word {
			p = s.insert(p, t, piece)
			continue
		}
		k := s.chunks[p.c]
		if k.masks[p.i] ^= piece.mask; k.masks[p.i] == 0 && s.drop(p) {
			p = s.from(t)
		}
	}
}

// covers reports whether all PEs of a set are in the seam at a time, the first of which
// are looked for at the place.
func (s *seams) covers(p seamPlace, t berth.Time, set pieces) bool {
	for _, piece := range set {
		there := false
		for p, there = s.at(p, t); there && s.chunks[p.c].words[p.i] < piece.word; p, there = s.at(p, t) {
			p.i++
		}
		if !there || s.chunks[p.c].words[p.i] != piece.word || piece.mask&^s.chunks[p.c].masks[p.i] != 0 {
			return false
		}
	}
	return true
}

// insert puts a word of PEs at a place.
func (s *seams) insert(p seamPlace, t berth.Time, piece piece) seamPlace {
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
	copy(k.masks[p.i+1:k.n+1], k.masks[p.i:k.n])
	copy(k.words[p.i+1:k.n+1], k.words[p.i:k.n])
	k.times[p.i], k.masks[p.i], k.words[p.i] = t, piece.mask, piece.word
	k.n++
	s.first[p.c] = k.times[0]
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
	copy(right.masks[:], k.masks[half:])
	copy(right.words[:], k.words[half:])
	k.n = half
	s.first = slices.Insert(s.first, p.c+1, right.times[0])
	s.chunks = slices.Insert(s.chunks, p.c+1, right)
}

// drop forgets the word at a place, and joins chunks that have become small. It reports
// whether a chunk is gone.
func (s *seams) drop(p seamPlace) bool {
	k, c := s.chunks[p.c], p.c
	k.cut(p.i, p.i+1)
	if k.n > seamsInChunk/4 {
		s.first[c] = k.times[0]
		return false
	}
	gone := false
	if left := max(c-1, 0); left+1 < len(s.chunks) && s.chunks[left].n+s.chunks[left+1].n <= seamsInChunk/2 {
		a, b := s.chunks[left], s.chunks[left+1]
		copy(a.times[a.n:], b.times[:b.n])
		copy(a.masks[a.n:], b.masks[:b.n])
		copy(a.words[a.n:], b.words[:b.n])
		a.n += b.n
		s.cut(left+1, left+2)
		c, gone = left, true
	}
	if s.chunks[c].n == 0 {
		s.cut(c, c+1)
		return true
	}
	s.first[c] = s.chunks[c].times[0]
	return gone
}

// cut drops the words lo..hi−1 of a chunk.
func (k *seamChunk) cut(lo, hi int) {
	copy(k.times[lo:], k.times[hi:k.n])
	copy(k.masks[lo:], k.masks[hi:k.n])
	copy(k.words[lo:], k.words[hi:k.n])
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

// across returns the first time inside an interval at which a PE of the probe is given
// back and taken, and where the seams of its end begin; ok is false if there is none.
// Cost: O(log n + words inside).
func (s *seams) across(iv berth.Interval, probe words) (end seamPlace, at berth.Time, ok bool) {
	end = s.from(iv.Start + 1)
	for c := end.c; c < len(s.chunks); c++ {
		k, i := s.chunks[c], end.i
		times, masks, words := k.times[:k.n], k.masks[:k.n], k.words[:k.n]
		for ; i < len(times) && times[i] < iv.End; i++ {
			if probe[words[i]]&masks[i] != 0 {
				return end, times[i], true
			}
		}
		if end = (seamPlace{c, i}); i < len(times) {
			break
		}
		if c+1 == len(s.chunks) || s.first[c+1] >= iv.End {
			break
		}
		end.i = 0
	}
	return end, 0, false
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
		c.seams.flip(at, both)
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
