package calendar

import (
	"math/bits"

	"github.com/berth-hpc/berth"
)

// union makes w the set of PEs that are busy at some time from the place, which may be
// before the first record, to a time after it: what is busy there, and whatever changes
// later.
func (t *tree) union(w words, at place, until berth.Time) {
	l := t.leaf(at)
	t.busyAt(w, at)
	next, end := t.following(at)
	for end < until {
		w.join(l.set[l.from(at.r+1):])
		at, l = next, t.leaf(next)
		next, end = t.following(at)
	}
	w.join(l.set[l.from(at.r+1):l.from(l.onwards(at.r, until-1, end)+1)])
}

// eligible returns the PEs that a query may use. The words are not to be
// changed and last until the next call.
func (c *early) eligible(q *Query) words {
	if q.Eligible.Empty() {
		return c.all
	}
	w := c.scratch.eligible
	clear(w)
	for _, run := range q.Eligible.Runs() {
		run.Hi = min(run.Hi, berth.PE(c.size))
		if run.Lo < run.Hi {
			w.add(run)
		}
	}
	return w
}

// add adds a run of PEs that is not empty.
func (w words) add(run berth.Run) {
	first, last := uint(run.Lo)/64, uint(run.Hi-1)/64
	mask := ^uint64(0) << (uint(run.Lo) % 64)
	for ; first < last; first++ {
		w[first] |= mask
		mask = ^uint64(0)
	}
	w[last] |= mask & (^uint64(0) >> (63 - uint(run.Hi-1)%64))
}

// enough makes busy the free ones among the eligible PEs and reports whether
// they are n at least. It counts no further than it must.
func enough(busy, eligible words, n berth.Count) bool {
	found := 0
	i := 0
	for ; i < len(busy) && found < int(n); i++ {
		free := eligible[i] &^ busy[i]
		busy[i] = free
		found += bits.OnesCount64(free)
	}
	return found >= int(n)
}

// crowded says how many busy PEs leave no room for the query.
func (c *early) crowded(q *Query) int32 { return int32(c.size - q.NPE) }

// first returns the earliest feasible start, and the place of the ready time. The lowest
// words of c.scratch.busy then hold the free PEs, enough of them.
//
// It tries a window from its end towards its start and stops where too few PEs
// are left, as Boyer and Moore search text: no start before that point can
// succeed, since its window would hold all that was just seen. Segments
// crowded by their number alone are found without looking at sets.
func (c *early) first(q *Query) (start berth.Time, ready place, ok bool) {
	if q.NPE > c.size {
		return 0, place{}, false
	}
	t, eligible, free := &c.tree, c.eligible(q), c.scratch.busy
	last := berth.Forever
	if q.Deadline < berth.Forever {
		last = q.Deadline - berth.Time(q.Duration)
	}
	start = q.Ready
	if t.empty() {
		clear(free)
		return start, place{}, enough(free, eligible, q.NPE)
	}
	ready = t.locate(start)
	t.union(free, ready, start.Add(q.Duration))
	if enough(free, eligible, q.NPE) {
		return start, ready, true
	}
	if eligible.count() < q.NPE {
		return 0, ready, false
	}
	most := c.crowded(q)
	end := ready
	known := place{p: -1}
	for start <= last {
		end = t.onwards(end, start.Add(q.Duration)-1)
		if at, found := t.lastCrowded(end, start, most); found {
			start = t.firstRoomy(at, most)
			continue
		}
		t.busyFrom(c.scratch.front, known, end)
		known = end
		left := -int(q.NPE)
		for i, busy := range c.scratch.front {
			free[i] = busy | ^eligible[i]
			left += bits.OnesCount64(^free[i])
		}
		blocked, found := t.lastBlocked(end, start, free, left)
		if !found {
			for i := range free {
				free[i] = ^free[i]
			}
			return start, ready, true
		}
		start = blocked
	}
	return 0, ready, false
}

// onwards returns the last record not after a time at or after the place.
func (t *tree) onwards(at place, to berth.Time) place {
	next, end := t.following(at)
	if end <= to {
		at = next
		if _, end = t.following(at); end <= to {
			return t.locate(to)
		}
	}
	at.r = t.leaf(at).onwards(at.r, to, end)
	return at
}

// busyFrom makes w what is busy at a place, if it is now what is busy at
// another, earlier one. That one's p is −1 if it is not.
func (t *tree) busyFrom(w words, known, at place) {
	if known.p != at.p || known.l != at.l {
		t.busyAt(w, at)
		return
	}
	l := t.leaf(at)
	w.toggle(l.set[l.from(known.r+1):l.from(at.r+1)])
}

// lastCrowded returns the last place, from at back to the one in force at
// start, with more than most busy PEs.
func (t *tree) lastCrowded(at place, start berth.Time, most int32) (place, bool) {
	for ok := true; ok; at, ok = t.previousLeaf(at) {
		pg := t.pages[at.p]
		if pg.most[at.l] > most {
			l := pg.leaves[at.l]
			for r := at.r; r >= 0; r-- {
				if l.before+l.level[r] > most {
					return place{at.p, at.l, r}, true
				}
				if l.times[r] <= start {
					return at, false
				}
			}
		}
		if pg.first[at.l] <= start {
			return at, false
		}
	}
	return at, false
}

// firstRoomy returns the time of the first record after the place with at most
// that many busy PEs. There is one, for the last record has none.
func (t *tree) firstRoomy(at place, most int32) berth.Time {
	at.r++
	for {
		pg := t.pages[at.p]
		if pg.least[at.l] <= most {
			l := pg.leaves[at.l]
			for r := at.r; r < int(l.n); r++ {
				if l.before+l.level[r] <= most {
					return l.times[r]
				}
			}
		}
		at.r = 0
		at.l++
		for at.l == int(pg.n) {
			at.p++
			at.l = 0
			pg = t.pages[at.p]
			if t.least[at.p] > most {
				at.l = int(pg.n)
			}
		}
	}
}

// lastBlocked goes from a place back to the one in force at start and joins
// what is busy into w, which holds what is busy at the place or may not be
// used, and leaves left more PEs than needed. Where too few are left it stops
// and returns the time of the record behind, before which no start can
// succeed. Not found means that the whole window has room.
func (t *tree) lastBlocked(at place, start berth.Time, w words, left int) (berth.Time, bool) {
	if left < 0 {
		return t.timeAfter(at), true
	}
	for ok := true; ok; at, ok = t.previousLeaf(at) {
		l := t.leaf(at)
		from, last := 0, t.pages[at.p].first[at.l] <= start
		if last {
			from = l.from(upTo(l.times[:at.r+1], start))
		}
		set := l.set[:l.from(at.r+1)]
		for i := len(set) - 1; i >= from; i-- {
			piece := &set[i]
			there := w[piece.word]
			w[piece.word] = there | piece.mask
			if left -= bits.OnesCount64(piece.mask &^ there); left < 0 {
				return l.times[upTo(l.ends[:l.n], int32(i))], true
			}
		}
		if last {
			break
		}
	}
	return 0, false
}

// take returns the n lowest PEs of a set that has them.
func (c *early) take(free words, n berth.Count) berth.PESet {
	runs := free.appendLowest(c.scratch.runs[:0], n)
	c.scratch.runs = runs
	return berth.NewPESet(runs...)
}

// appendLowest appends the n lowest PEs of w as runs.
func (w words) appendLowest(runs []berth.Run, n berth.Count) []berth.Run {
	for i, x := range w {
		base := berth.PE(i * 64)
		for x != 0 {
			lo := bits.TrailingZeros64(x)
			length := min(bits.TrailingZeros64(^(x >> lo)), int(n))
			run := berth.Run{Lo: base + berth.PE(lo), Hi: base + berth.PE(lo+length)}
			if k := len(runs) - 1; k >= 0 && runs[k].Hi == run.Lo {
				runs[k].Hi = run.Hi
			} else {
				runs = append(runs, run)
			}
			if n -= berth.Count(length); n == 0 {
				return runs
			}
			x &= x + 1<<lo // the carry clears the run
		}
	}
	return runs
}
