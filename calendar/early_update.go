package calendar

import "github.com/berth-hpc/berth"

// flip turns the PEs of a set from free to busy, or from busy to free,
// throughout iv, whose stretch is st; by more (fewer if negative) are busy
// then. They must all be free, or busy, throughout. Cost for m records under
// iv: O(log n + leafRecords + pieces of set × m/leafRecords).
func (t *tree) flip(iv berth.Interval, st stretch, set pieces, by int32) {
	if t.empty() {
		l := t.spare.leaf(t.words)
		clear(l.base)
		t.plant(l)
		st = stretch{}
		t.leaf(st.from).insert(0, iv.Start, set, &t.spare)
		t.leaf(st.from).insert(1, iv.End, set, &t.spare)
		t.leaf(st.from).level[0] = by
		t.refresh(st.from)
		t.refreshPage(0)
		return
	}
	if !t.roomy(t.leaf(st.from)) || !t.roomy(t.leaf(st.to)) {
		t.makeRoom(iv.Start)
		t.makeRoom(iv.End)
		st = t.stretch(t.locate(iv.Start), iv.End)
	}
	// A new record takes its level from the one before, which must not have
	// gone. So a new start comes first, and one that may go comes last.
	var whole bool // no leaf has gone
	if l := t.leaf(st.from); st.from.r < 0 || l.times[st.from.r] != iv.Start {
		t.change(st.from, iv.Start, set)
		if st.to.p == st.from.p && st.to.l == st.from.l {
			st.to.r++
		}
		whole = t.change(st.to, iv.End, set)
	} else {
		whole = t.change(st.to, iv.End, set)
		if !t.change(st.from, iv.Start, set) {
			if whole = false; t.empty() {
				return
			}
			st.from = t.locate(iv.Start)
		}
	}
	t.lift(iv, st.from, set, by)
	if !whole || t.sparse(t.leaf(st.from)) || t.sparse(t.leaf(st.to)) {
		t.thin(iv.End)
		t.thin(iv.Start)
	}
}

// change flips the set at one time, whose place is given: records exist where
// something changes. A leaf that lost its first record this way still has its
// base from before there, and its page still says so: lift needs to know and
// sets it right. It reports false if a leaf became empty and is no more.
func (t *tree) change(to place, at berth.Time, set pieces) bool {
	l := t.leaf(to)
	if to.r < 0 || l.times[to.r] != at {
		l.insert(to.r+1, at, set, &t.spare)
		if to.r < 0 {
			t.pages[to.p].first[to.l] = at
			if to.l == 0 {
				t.first[to.p] = at
			}
		}
		return true
	}
	var buffer [24]piece
	merged := appendXor(buffer[:0], l.changes(to.r), set)
	if len(merged) > 0 {
		l.replace(to.r, merged, &t.spare)
		return true
	}
	l.drop(to.r, to.r+1)
	if to.r == 0 {
		t.passSeams(to)
	}
	if l.n == 0 {
		t.deleteLeaf(to)
		return false
	}
	return true
}

// makeRoom splits the leaf at that time if it has no room for two records
// more. A leaf that grows at the end of all records is left nearly full.
func (t *tree) makeRoom(at berth.Time) {
	to := t.locate(at)
	l := t.leaf(to)
	if t.roomy(l) {
		return
	}
	n := int(l.n)
	half := n / 2
	if to.r == n-1 && to.p == len(t.pages)-1 && to.l == int(t.pages[to.p].n)-1 {
		half = n - 1
	}
	right := t.leaf(to).split(half, &t.spare)
	t.refresh(to)
	t.insertLeaf(place{to.p, to.l + 1, 0}, right)
}

// lift adjusts what leaves remember of the busy sets within iv, whose start is
// at the place.
func (t *tree) lift(iv berth.Interval, at place, set pieces, by int32) {
	stale := false
	for more := t.pages[at.p].first[at.l] <= iv.End; more; {
		next, ok := t.nextLeaf(at)
		more = ok && t.pages[next.p].first[next.l] <= iv.End
		if t.liftLeaf(at, iv, set, by, more) {
			stale = true
		}
		if stale && (!more || next.p != at.p) {
			t.refreshPage(at.p)
			stale = false
		}
		at = next
	}
}

// liftLeaf adjusts one leaf; before means that all its records are before the
// end of iv and that none went there. It reports whether the page is stale.
func (t *tree) liftLeaf(at place, iv berth.Interval, set pieces, by int32, before bool) (stale bool) {
	l := t.leaf(at)
	pg := t.pages[at.p]
	if pg.first[at.l] > iv.Start {
		l.base.toggle(set)
		l.before += by
		if before {
			pg.least[at.l] += by
			pg.most[at.l] += by
			return true
		}
		for k := int(l.n) - 1; k >= 0 && l.times[k] >= iv.End; k-- {
			l.level[k] -= by
		}
	} else {
		for k := l.index(iv.Start-1) + 1; k < int(l.n) && l.times[k] < iv.End; k++ {
			l.level[k] += by
		}
	}
	return t.refresh(at)
}

// thin joins the leaf at that time with a neighbour on its page if both are
// nearly empty.
func (t *tree) thin(at berth.Time) {
	here := t.locate(at)
	pg := t.pages[here.p]
	if pg.n == 1 || !t.sparse(t.leaf(here)) {
		return
	}
	left := here
	if left.l > 0 {
		left.l--
	}
	right := place{left.p, left.l + 1, 0}
	a, b := t.leaf(left), t.leaf(right)
	if a.n+b.n > t.full.records*3/4 || len(a.set)+len(b.set) > a.pieceLimit()*3/4 {
		return
	}
	t.leaf(left).absorb(b)
	t.refresh(left)
	t.deleteLeaf(right)
}

// prune forgets all records before now; what is busy at now begins there.
// Cost: O(1) if nothing but the time of the first record changes, else O(size
// of a leaf) and the pages dropped. It uses the buffer, and returns it.
func (t *tree) prune(now berth.Time, buffer pieces) pieces {
	if t.empty() || t.first[0] >= now {
		return buffer
	}
	at := t.locate(now)
	t.leaf(at).dropSeams(now)
	if at == (place{}) {
		t.leaf(at).times[0] = now
		t.pages[0].first[0], t.first[0] = now, now
		return buffer
	}
	t.forget(at)
	at.p, at.l = 0, 0
	l := t.leaf(at)
	busy := appendWords(buffer[:0], l.base, l.set[:l.ends[at.r]])
	l.drop(0, at.r)
	if len(busy) == 0 {
		l.drop(0, 1)
	} else {
		l.times[0] = now
		l.replace(0, busy, &t.spare)
	}
	if l.n == 0 {
		t.deleteLeaf(at)
		return busy
	}
	l.lead()
	t.refresh(at)
	t.refreshPage(0)
	return busy
}

// within reports whether a time, not before the first record, is before the second leaf.
func (t *tree) within(at berth.Time) bool {
	_, end := t.following(place{})
	return at < end
}

// forget drops all leaves before the one at the place.
func (t *tree) forget(at place) {
	pg := t.pages[at.p]
	for _, l := range pg.leaves[:at.l] {
		t.spare.put(l)
	}
	if at.p > 0 {
		t.first = append(t.first[:0], t.first[at.p:]...)
		t.least = append(t.least[:0], t.least[at.p:]...)
		t.most = append(t.most[:0], t.most[at.p:]...)
		kept := append(t.pages[:0], t.pages[at.p:]...)
		clear(t.pages[len(kept):])
		t.pages = kept
	}
	if at.l > 0 {
		copy(pg.first[:], pg.first[at.l:pg.n])
		copy(pg.least[:], pg.least[at.l:pg.n])
		copy(pg.most[:], pg.most[at.l:pg.n])
		copy(pg.leaves[:], pg.leaves[at.l:pg.n])
		clear(pg.leaves[pg.n-int32(at.l) : pg.n])
		pg.n -= int32(at.l)
	}
}
