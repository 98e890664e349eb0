package calendar

import (
	"math"
	"math/bits"

	"github.com/berth-hpc/berth"
)

// lateLeafCap fills a leaf up to a 512-byte size class of the allocator, which
// is eight cache lines. It is about what a booking of a narrow machine spans.
const lateLeafCap = 62

// maxLateOffset is the last offset a leaf can hold; the one above it is kept
// free as an upper bound.
const maxLateOffset = math.MaxUint32 - 1

// latePoint is one change of the free count, packed: the time as an offset
// from its leaf's base in the upper half, the signed change in 22 bits below it,
// which hold ±berth.MaxPEs, and in the last 10 how many PEs end and begin there
// besides, up to maxLateSeam. Packed points of one leaf are ordered as their times.
type latePoint uint64

func (p latePoint) offset() berth.Time { return berth.Time(p >> 32) }
func (p latePoint) delta() berth.Count { return berth.Count(int32(uint32(p)) >> lateSeamBits) }
func (p latePoint) seam() berth.Count  { return berth.Count(p & maxLateSeam) }

// lateChange packs a change and a seam, for a point that lacks its time only.
func lateChange(delta, seam berth.Count) latePoint {
	return latePoint(uint32(delta)<<lateSeamBits | uint32(seam))
}

const (
	lateSeamBits = 10
	maxLateSeam  = 1<<lateSeamBits - 1
)

// lateLeaf holds consecutive points. A point's change is never 0, which is all
// it takes to be canonical. base is at most the first point's time.
type lateLeaf struct {
	base berth.Time
	n    int32
	pts  [lateLeafCap]latePoint
}

// lateSums sums up a run of points: the total change, and the lowest and
// highest of the running totals after each point.
type lateSums struct{ sum, low, high berth.Count }

// Of no points there is no lowest and no highest running total. The bounds
// leave room to add any free count.
const (
	lateNoLow  berth.Count = 1 << 28
	lateNoHigh berth.Count = -1 << 28
)

// points returns the points in use.
func (l *lateLeaf) points() []latePoint { return l.pts[:l.n] }

// time returns the time of a point of this leaf.
func (l *lateLeaf) time(p latePoint) berth.Time { return l.base + p.offset() }

// key returns the bound that parts the leaf's points before t from the rest.
func (l *lateLeaf) key(t berth.Time) latePoint {
	off := t - l.base
	if off <= 0 {
		return 0
	}
	return latePoint(min(off, maxLateOffset+1)) << 32
}

// after returns the bound that parts the points up to and at t from the rest.
func (l *lateLeaf) after(t berth.Time) latePoint { return l.key(t + 1) }

// index returns the position of the first point not before key. It counts
// without branches, which on so few points is faster than halving.
func (l *lateLeaf) index(key latePoint) int {
	var i uint64
	for _, p := range l.points() {
		_, before := bits.Sub64(uint64(p), uint64(key), 0)
		i += before
	}
	return int(i)
}

// sums sums up the leaf in one pass.
func (l *lateLeaf) sums() lateSums {
	s := lateSums{low: lateNoLow, high: lateNoHigh}
	for _, p := range l.points() {
		s.sum += p.delta()
		s.low = min(s.low, s.sum)
		s.high = max(s.high, s.sum)
	}
	return s
}

// fits reports whether points from first to last can be expressed in this leaf
// beside those it has, and moves the base of the leaf where that helps.
func (l *lateLeaf) fits(first, last berth.Time) bool {
	if l.n == 0 {
		l.base = first
		return last-first <= maxLateOffset
	}
	if first >= l.base && last-l.base <= maxLateOffset {
		return true
	}
	first = min(first, l.time(l.pts[0]))
	last = max(last, l.time(l.pts[l.n-1]))
	if last-first > maxLateOffset {
		return false
	}
	shift := latePoint(l.base-first) << 32
	for i := range l.points() {
		l.pts[i] += shift
	}
	l.base = first
	return true
}

// takes reports whether there is room for two more points, one of them at t.
func (l *lateLeaf) takes(t berth.Time) bool { return l.n+2 <= lateLeafCap && l.fits(t, t) }

// add changes the free count by delta from t on, for a booking that is made or, if
// not made, given back. The leaf must have room for a point there. It returns by how
// much more PEs end and begin at t than the leaf can say; where that is negative,
// the leaf has too few that begin or end there.
func (l *lateLeaf) add(t berth.Time, delta berth.Count, made bool) (rest berth.Count) {
	key := l.key(t)
	i, n := l.index(key), int(l.n)
	if i == n || l.pts[i]>>32 != key>>32 {
		copy(l.pts[i+1:n+1], l.pts[i:n])
		l.pts[i] = key | lateChange(delta, 0)
		l.n++
		if made {
			return 0
		}
		return -max(delta, -delta)
	}
	was, seam := l.pts[i].delta(), l.pts[i].seam()
	against := min(max(delta, 0), max(-was, 0)) + min(max(-delta, 0), max(was, 0))
	if made {
		seam += against
	} else {
		seam += against - max(delta, -delta)
	}
	if delta += was; delta == 0 {
		copy(l.pts[i:n-1], l.pts[i+1:n])
		l.n--
		return seam
	}
	known := min(max(seam, 0), maxLateSeam)
	l.pts[i] = key | lateChange(delta, known)
	return seam - known
}

// unsew makes n PEs fewer end and begin at the time of a point.
func (l *lateLeaf) unsew(t berth.Time, n berth.Count) { l.pts[l.index(l.key(t))] -= latePoint(n) }
