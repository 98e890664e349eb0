package calendar

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// leafRecords is the most records of a leaf. Measured at 100,000 bookings:
// from 64 to 128 nothing changes that is above the noise; with 32 a steady
// state on 1,024 PEs is a fifth slower and on 100,000 PEs a third.
const leafRecords = 96

// leaf is a stretch of consecutive records. What a record stores is not the
// busy set but the PEs that change at its time, so that a booking touches two
// records however many lie under it. From base, and the changes up to a
// record, follows what is busy there.
type leaf struct {
	before int32             // number of PEs in base
	n      int32             // records
	set    pieces            // the changes of record 0, of record 1, …
	seams  []wordSeam        // from its first record up to the next leaf
	base   words             // busy before the first record
	inside [nearWords]uint64 // base of a calendar with so few words
	times  [leafRecords]berth.Time
	level  [leafRecords]int32 // number of busy PEs from the record on, minus before
	ends   [leafRecords]int32 // the changes of record i are set[ends[i−1]:ends[i]]
}

// nearWords is how many words of base are kept within the leaf, next to what
// else is read of it: enough for 1,024 PEs.
const nearWords = 16

func newLeaf(words int) *leaf {
	l := &leaf{}
	if words <= nearWords {
		l.base = l.inside[:words]
	} else {
		l.base = make([]uint64, words)
	}
	return l
}

// from returns where the changes of record i begin in set; i may be n.
func (l *leaf) from(i int) int {
	if i == 0 {
		return 0
	}
	return int(l.ends[i-1])
}

// changes returns the PEs that change at record i.
func (l *leaf) changes(i int) pieces { return l.set[l.from(i):l.ends[i]] }

// index returns the last i with times[i] ≤ t, or −1.
func (l *leaf) index(t berth.Time) int { return upTo(l.times[:l.n], t) - 1 }

// upTo returns how many of the ascending values are ≤ t. The loop has no branch
// that depends on them, for a processor could not foresee it: the sign of a difference
// says whether to go on behind. No difference of two values must be too large for 64 bits.
func upTo[T ~int32 | ~int64](values []T, t T) int {
	base := uint(0)
	for n := uint(len(values)); n > 0; {
		half := (n + 1) / 2
		isBehind := (int64(values[base+half-1]) - int64(t) - 1) >> 63 // −1, or 0
		base += half & uint(isBehind)
		n -= half
	}
	return int(base)
}

// onwards returns the last record not after a time, at or after record i, which
// may be −1. The next leaf begins at end, behind that time.
func (l *leaf) onwards(i int, t, end berth.Time) int {
	rest := l.times[i+1 : l.n]
	if len(rest) == 0 || rest[0] > t {
		return i
	}
	return i + near(rest, t, end)
}

// pieceLimit is how many pieces fill a leaf whatever the number of records:
// reaching a record within a leaf shall cost about as much as copying a set.
func (l *leaf) pieceLimit() int { return max(8*leafRecords, 2*len(l.base)) }

// roomy reports whether two records may be added.
func (t *tree) roomy(l *leaf) bool {
	return l.n+2 <= t.full.records && (len(l.set) < l.pieceLimit() || l.n == 1)
}

// sparse reports whether the leaf is worth joining with another.
func (t *tree) sparse(l *leaf) bool { return l.n < t.full.records/4 }

// last returns the time of the last record.
func (l *leaf) last() berth.Time { return l.times[l.n-1] }

// busyAt makes w the busy set from record i on, or before all for −1.
func (l *leaf) busyAt(w words, i int) {
	copy(w, l.base)
	w.toggle(l.set[:l.from(i+1)])
}

// begins reports whether record i, which may be −1, is at that time, changes
// exactly the set and makes all of it busy: then as many PEs more are busy.
func (l *leaf) begins(i int, at berth.Time, set pieces) bool {
	if i < 0 || l.times[i] != at || !slices.Equal(l.changes(i), set) {
		return false
	}
	more := l.level[i]
	if i > 0 {
		more -= l.level[i-1]
	}
	return more == int32(set.count())
}

// insert puts a record before record i. Its level is the one before it.
func (l *leaf) insert(i int, t berth.Time, set pieces, spare *spare) {
	n := int(l.n)
	copy(l.times[i+1:n+1], l.times[i:n])
	copy(l.level[i+1:n+1], l.level[i:n])
	copy(l.ends[i+1:n+1], l.ends[i:n])
	at := l.from(i)
	l.times[i], l.level[i], l.ends[i] = t, 0, int32(at)
	if i > 0 {
		l.level[i] = l.level[i-1]
	}
	l.n++
	l.replace(i, set, spare)
}

// replace gives record i other changes.
func (l *leaf) replace(i int, set pieces, spare *spare) {
	lo, hi := l.from(i), int(l.ends[i])
	grown := len(set) - (hi - lo)
	size := len(l.set)
	if grown > 0 {
		if size+grown > cap(l.set) {
			roomy := spare.copy(l.set, size+grown+size/4+4)
			spare.putSet(l.set)
			l.set = roomy
		}
		l.set = l.set[:size+grown]
	}
	copy(l.set[hi+grown:], l.set[hi:size])
	l.set = l.set[:size+grown]
	copy(l.set[lo:], set)
	for k := i; k < int(l.n); k++ {
		l.ends[k] += int32(grown)
	}
}

// drop removes records lo..hi−1. Their changes are forgotten, not merged.
func (l *leaf) drop(lo, hi int) {
	from, to := l.from(lo), l.from(hi)
	l.set = append(l.set[:from], l.set[to:]...)
	n := int(l.n)
	copy(l.times[lo:], l.times[hi:n])
	copy(l.level[lo:], l.level[hi:n])
	copy(l.ends[lo:], l.ends[hi:n])
	l.n -= int32(hi - lo)
	for k := lo; k < int(l.n); k++ {
		l.ends[k] -= int32(to - from)
	}
}

// lead makes the leaf the first of all: before it nothing is busy any more.
func (l *leaf) lead() {
	clear(l.base)
	for k := range l.n {
		l.level[k] += l.before
	}
	l.before = 0
}

// split moves the records from i on to a new leaf.
func (l *leaf) split(i int, spare *spare) *leaf {
	right := spare.leaf(len(l.base))
	l.busyAt(right.base, i-1)
	lift := int32(0)
	if i > 0 {
		lift = l.level[i-1]
	}
	right.before = l.before + lift
	from := l.from(i)
	right.set = spare.copy(l.set[from:], (len(l.set)-from)*5/4+4)
	right.n = l.n - int32(i)
	for k := range int(right.n) {
		right.times[k] = l.times[i+k]
		right.level[k] = l.level[i+k] - lift
		right.ends[k] = l.ends[i+k] - int32(from)
	}
	whole := l.set
	l.set = spare.copy(l.set[:from], from*5/4+4)
	spare.putSet(whole)
	sewn := l.seamsFrom(right.times[0])
	right.seams = append(right.seams, l.seams[sewn:]...)
	l.seams = l.seams[:sewn]
	l.n = int32(i)
	return right
}

// absorb takes over the records of the leaf that follows.
func (l *leaf) absorb(right *leaf) {
	lift, from, n := right.before-l.before, int32(len(l.set)), l.n
	l.set = append(l.set, right.set...)
	for k := range right.n {
		l.times[n+k] = right.times[k]
		l.level[n+k] = right.level[k] + lift
		l.ends[n+k] = right.ends[k] + from
	}
	l.n += right.n
	l.seams = append(l.seams, right.seams...)
}

// span returns the least and the greatest number of busy PEs at the records.
func (l *leaf) span() (least, most int32) {
	least, most = extremes(l.level[:l.n])
	return least + l.before, most + l.before
}

// extremes returns the least and the greatest of some values.
func extremes(values []int32) (least, most int32) {
	least, most = values[0], values[0]
	least2, most2 := least, most
	for ; len(values) >= 2; values = values[2:] { // two chains run side by side
		a, b := values[0], values[1]
		least, most = min(least, a), max(most, a)
		least2, most2 = min(least2, b), max(most2, b)
	}
	if len(values) > 0 {
		least, most = min(least, values[0]), max(most, values[0])
	}
	return min(least, least2), max(most, most2)
}
