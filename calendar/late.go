package calendar

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// fastLate is the calendar of newFastLate: the free count as a tree of changes.
type fastLate struct {
	size berth.Count
	free lateTree

	// seams are the PEs that are given back at a time and taken again there.
	seams lateSeams

	walk *lateStarts // scratch: a walk over candidates that has ended, nil while one goes on

	// fit is a window in which the last search found fitPEs free: to book it
	// needs no second look. A change of the bookings forgets it: fitPEs is 0.
	fit    berth.Interval
	fitPEs berth.Count
}

// newFastLate returns an empty late-binding calendar whose operations cost
// O(log n) for n records, where the plain form walks the records.
//
// Source: Li et al., sections 3 and 4, as specified in spec 1, (b) and (e).
// Deviations: records are kept as changes of the count in a B+-tree with sums,
// lowest and highest counts, so a block touches its two ends only; the first
// feasible start is searched directly, passing over subtrees that cannot hold
// it, and the other rules look at one start of each rectangle. Ties are those
// of the specification: the earliest start.
func newFastLate(size berth.Count) Calendar {
	if size < 1 || size > berth.MaxPEs {
		panic("calendar: size outside 1..berth.MaxPEs")
	}
	return &fastLate{size: size, free: newLateTree(size), seams: newLateSeams()}
}

// Size returns the number of PEs.
func (c *fastLate) Size() berth.Count { return c.size }

// Binding returns Late.
func (c *fastLate) Binding() berth.Binding { return berth.Late }

// Add books a block in O(log n), however many records lie under it.
func (c *fastLate) Add(b Block) error {
	if err := b.check(c.size, berth.Late); err != nil {
		return err
	}
	iv := berth.Interval{Start: b.Start, End: b.End}
	var path latePath
	leaf := c.free.lead(&path, iv.Start)
	touched := allLateClasses
	if !c.fits(iv, b.NPE) {
		bounds := c.free.overPath(&path, iv)
		if bounds.low < b.NPE {
			return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are taken during %s", b.NPE, iv)
		}
		touched = lateTouched(bounds, -b.NPE)
	}
	start, end := c.free.shiftPath(&path, leaf, iv, -b.NPE, touched)
	c.seams.begin(iv.Start)
	c.sew(iv.Start, start)
	c.sew(iv.End, end)
	c.fitPEs = 0
	return nil
}

// fits reports whether the last search has shown that n PEs are free.
func (c *fastLate) fits(iv berth.Interval, n berth.Count) bool {
	return n <= c.fitPEs && c.fit.Start <= iv.Start && iv.End <= c.fit.End
}

// Remove gives a block back in O(log n).
func (c *fastLate) Remove(b Block) error {
	if err := b.check(c.size, berth.Late); err != nil {
		return err
	}
	iv := berth.Interval{Start: b.Start, End: b.End}
	var path latePath
	leaf := c.free.lead(&path, iv.Start)
	bounds := c.free.overPath(&path, iv)
	if bounds.high+b.NPE > c.size {
		return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are not booked during %s", b.NPE, iv)
	}
	touched := lateTouched(bounds, b.NPE)
	start, end := c.free.shiftPath(&path, leaf, iv, b.NPE, touched)
	c.fitPEs = 0
	begins := c.sew(iv.Start, start)
	if begins && c.sew(iv.End, end) {
		return nil
	}
	// What was given back is booked again.
	leaf = c.free.lead(&path, iv.Start)
	madeStart, madeEnd := c.free.shiftPath(&path, leaf, iv, -b.NPE, touched)
	c.mend(iv.End, madeEnd+end)
	if begins {
		c.mend(iv.Start, madeStart)
		return notEnded(&b)
	}
	c.mend(iv.Start, madeStart+start)
	return notBegun(&b)
}

// Prune forgets what was before now, see lateTree.prune.
func (c *fastLate) Prune(now berth.Time) {
	c.free.prune(now)
	c.seams.prune(now)
}

// Free returns the least free count of the interval in O(log n).
func (c *fastLate) Free(iv berth.Interval) (berth.Count, berth.PESet) {
	if iv.Start < iv.End {
		return c.free.over(iv).low, berth.PESet{}
	}
	// Of no time at all, the step that begins before the end counts.
	if at, ok := c.free.before(iv.Start + 1); ok && at < iv.End {
		return c.free.value(iv.Start), berth.PESet{}
	}
	return c.size, berth.PESet{}
}

// Records yields the records; the calendar must not change meanwhile.
func (c *fastLate) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for at := c.free.cursor(lateDawn); at.time() != lateDusk; {
			time := at.time()
			at.step()
			if !yield(Record{Time: time, Free: at.v}) {
				return
			}
		}
	}
}

// Changes yields times of records; the calendar must not change meanwhile.
func (c *fastLate) Changes(iv berth.Interval) iter.Seq[berth.Time] {
	return func(yield func(berth.Time) bool) {
		for at := c.free.cursor(iv.Start - 1); at.time() < min(iv.End, lateDusk); at.step() {
			if !yield(at.time()) {
				return
			}
		}
	}
}

var _ Calendar = (*fastLate)(nil)
