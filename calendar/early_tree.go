package calendar

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// pageLeaves is the most leaves of a page.
const pageLeaves = 64

// page is a stretch of consecutive leaves with what is worth knowing about
// each without looking at it.
type page struct {
	n      int32
	first  [pageLeaves]berth.Time // time of the leaf's first record
	least  [pageLeaves]int32      // fewest busy PEs at a record of the leaf
	most   [pageLeaves]int32      // and most
	leaves [pageLeaves]*leaf
}

// tree holds the records of a calendar in three levels: the tree's own list of
// pages, pages of leaves, leaves of records.
type tree struct {
	words int // of a set
	first []berth.Time
	least []int32
	most  []int32
	pages []*page
	full  limits
	spare spare
}

// limits says when a node is full: at the most it can hold, or in tests long
// before, so that few records make a deep tree.
type limits struct{ records, leaves int32 }

// place is where a record stands: record r of leaf l of page p. The place
// before all records of a leaf has r = −1.
type place struct{ p, l, r int }

func newTree(words int) tree {
	return tree{words: words, full: limits{leafRecords, pageLeaves}}
}

func (t *tree) empty() bool { return len(t.pages) == 0 }

func (t *tree) leaf(at place) *leaf { return t.pages[at.p].leaves[at.l] }

// end returns the time of the last record of a tree that is not empty.
func (t *tree) end() berth.Time {
	pg := t.pages[len(t.pages)-1]
	return pg.leaves[pg.n-1].last()
}

// locate returns the last record not after t; r is −1 if all are after t,
// which happens in the first leaf only. The tree is not empty.
func (t *tree) locate(at berth.Time) place {
	to := place{p: upTo(t.first, at) - 1}
	if to.p < 0 {
		return place{r: -1}
	}
	pg := t.pages[to.p]
	end := berth.Forever
	if to.p+1 < len(t.pages) {
		end = t.first[to.p+1]
	}
	to.l = near(pg.first[:pg.n], at, end) - 1
	if to.l+1 < int(pg.n) {
		end = pg.first[to.l+1]
	}
	l := pg.leaves[to.l]
	to.r = near(l.times[:l.n], at, end) - 1
	return to
}

// near returns upTo(times, t) for a time in [times[0], end), expected at its
// fraction of that span. Records being spread evenly, it is most often near
// there, which spares the reading of times far off in memory.
func near(times []berth.Time, t, end berth.Time) int {
	const reach = 8 // one and a half times the deviation of a random record in a full leaf
	guess := 0
	if end < berth.Forever {
		guess = int(int64(t-times[0]) * int64(len(times)) / int64(end-times[0]))
	}
	lo, hi := max(guess-reach, 0), min(guess+reach, len(times))
	if times[lo] > t || (hi < len(times) && times[hi] <= t) {
		return upTo(times, t)
	}
	// None of these waits for another, as halving would.
	n := uint64(lo)
	for _, x := range times[lo:hi] {
		n += uint64(x-t-1) >> 63
	}
	return int(n)
}

// stretch is where an interval begins and ends among the records: the last one
// not after its start, and the last one not after its end.
type stretch struct{ from, to place }

// stretch returns the stretch that begins at the place, up to a time.
func (t *tree) stretch(from place, until berth.Time) stretch {
	to := from
	next, end := t.following(to)
	for end <= until {
		to = next
		next, end = t.following(to)
	}
	to.r = t.leaf(to).onwards(to.r, until, end)
	return stretch{from, to}
}

// following returns the leaf after that of the place, before its first record,
// and when that is: Forever if there is none.
func (t *tree) following(at place) (place, berth.Time) {
	next, ok := t.nextLeaf(at)
	if !ok {
		return next, berth.Forever
	}
	return next, t.pages[next.p].first[next.l]
}

// nextLeaf moves to the leaf after, before its first record.
func (t *tree) nextLeaf(at place) (place, bool) {
	if at.l+1 < int(t.pages[at.p].n) {
		return place{at.p, at.l + 1, -1}, true
	}
	return place{at.p + 1, 0, -1}, at.p+1 < len(t.pages)
}

// previousLeaf moves to the last record of the leaf before.
func (t *tree) previousLeaf(at place) (place, bool) {
	switch {
	case at.l > 0:
		at.l--
	case at.p > 0:
		at.p--
		at.l = int(t.pages[at.p].n) - 1
	default:
		return at, false
	}
	at.r = int(t.leaf(at).n) - 1
	return at, true
}

// timeAfter returns the time of the record after the place.
func (t *tree) timeAfter(at place) berth.Time {
	if l := t.leaf(at); at.r+1 < int(l.n) {
		return l.times[at.r+1]
	}
	if next, ok := t.nextLeaf(at); ok {
		return t.pages[next.p].first[next.l]
	}
	return berth.Forever
}

// busyAt makes w the set that is busy from the record at the place on.
func (t *tree) busyAt(w words, at place) {
	base, flips := t.nearest(at)
	copy(w, base)
	w.toggle(flips)
}

// nearest returns a set and what to flip in it to get what is busy from the
// record at the place on: the base of its leaf with what changes up to there,
// or if that is less, the base of the next one with what changes from there.
func (t *tree) nearest(at place) (base words, flips pieces) {
	l := t.leaf(at)
	k := l.from(at.r + 1)
	if 2*k > len(l.set) {
		if next, ok := t.nextLeaf(at); ok {
			return t.leaf(next).base, l.set[k:]
		}
	}
	return l.base, l.set[:k]
}

// refresh brings the summary of a changed leaf up to date, and that of its page
// too unless it is to be refreshed anyway, which is reported: where the leaf
// was an extreme of its page, or is now.
func (t *tree) refresh(at place) (stale bool) {
	pg := t.pages[at.p]
	l := pg.leaves[at.l]
	least, most := l.span()
	stale = at.l == 0 || pg.least[at.l] == t.least[at.p] || pg.most[at.l] == t.most[at.p] ||
		least < t.least[at.p] || most > t.most[at.p]
	pg.first[at.l], pg.least[at.l], pg.most[at.l] = l.times[0], least, most
	return stale
}

// refreshPage brings the summary of a page up to date.
func (t *tree) refreshPage(p int) {
	pg := t.pages[p]
	t.first[p] = pg.first[0]
	t.least[p], _ = extremes(pg.least[:pg.n])
	_, t.most[p] = extremes(pg.most[:pg.n])
}

// insertLeaf puts a leaf before the one at the place, splitting a full page,
// and returns where it came to stand.
func (t *tree) insertLeaf(at place, l *leaf) place {
	pg := t.pages[at.p]
	if pg.n >= t.full.leaves {
		half := int(pg.n) / 2
		right := &page{n: pg.n - int32(half)}
		copy(right.first[:], pg.first[half:pg.n])
		copy(right.least[:], pg.least[half:pg.n])
		copy(right.most[:], pg.most[half:pg.n])
		copy(right.leaves[:], pg.leaves[half:pg.n])
		clear(pg.leaves[half:])
		pg.n = int32(half)
		t.insertPage(at.p+1, right)
		t.refreshPage(at.p)
		if at.l > half {
			at.p, at.l, pg = at.p+1, at.l-half, right
		}
	}
	copy(pg.first[at.l+1:pg.n+1], pg.first[at.l:pg.n])
	copy(pg.least[at.l+1:pg.n+1], pg.least[at.l:pg.n])
	copy(pg.most[at.l+1:pg.n+1], pg.most[at.l:pg.n])
	copy(pg.leaves[at.l+1:pg.n+1], pg.leaves[at.l:pg.n])
	pg.leaves[at.l] = l
	pg.n++
	t.refresh(at)
	t.refreshPage(at.p)
	return at
}

func (t *tree) insertPage(p int, pg *page) {
	t.first = slices.Insert(t.first, p, 0)
	t.least = slices.Insert(t.least, p, 0)
	t.most = slices.Insert(t.most, p, 0)
	t.pages = slices.Insert(t.pages, p, pg)
	t.refreshPage(p)
}

// plant makes an empty tree hold one leaf, which is not refreshed.
func (t *tree) plant(l *leaf) {
	pg := &page{n: 1}
	pg.leaves[0] = l
	t.first, t.pages = []berth.Time{0}, []*page{pg}
	t.least, t.most = []int32{0}, []int32{0}
}

// deleteLeaf drops the leaf at the place, and its page if nothing is left of
// it.
func (t *tree) deleteLeaf(at place) {
	pg := t.pages[at.p]
	t.spare.put(pg.leaves[at.l])
	if pg.n == 1 {
		t.first = slices.Delete(t.first, at.p, at.p+1)
		t.least = slices.Delete(t.least, at.p, at.p+1)
		t.most = slices.Delete(t.most, at.p, at.p+1)
		t.pages = slices.Delete(t.pages, at.p, at.p+1)
		return
	}
	copy(pg.first[at.l:], pg.first[at.l+1:pg.n])
	copy(pg.least[at.l:], pg.least[at.l+1:pg.n])
	copy(pg.most[at.l:], pg.most[at.l+1:pg.n])
	copy(pg.leaves[at.l:], pg.leaves[at.l+1:pg.n])
	pg.n--
	pg.leaves[pg.n] = nil
	t.refreshPage(at.p)
}
