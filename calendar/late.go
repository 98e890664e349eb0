package calendar

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// fastLate is the calendar of newFastLate: the free count and the capacity as
// two trees of changes.
type fastLate struct {
	size    berth.Count
	version uint64
	free    lateTree
	limit   lateTree // the capacity
	resized bool     // the capacity may not be size everywhere

	low []lateLow // scratch of the walk over candidates

	// fit is a window the last search found to have fitPEs free, while the
	// version is fitVersion. Booking it needs no second look.
	fit        berth.Interval
	fitPEs     berth.Count
	fitVersion uint64
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
	return &fastLate{size: size, free: newLateTree(size), limit: newLateTree(size)}
}

// Size returns the number of PEs.
func (c *fastLate) Size() berth.Count { return c.size }

// Binding returns Late.
func (c *fastLate) Binding() berth.Binding { return berth.Late }

// Version grows with every change.
func (c *fastLate) Version() uint64 { return c.version }

// Add books a block in O(log n), however many records lie under it.
func (c *fastLate) Add(b Block) error {
	if err := b.check(c.size, berth.Late); err != nil {
		return err
	}
	iv := berth.Interval{Start: b.Start, End: b.End}
	var path latePath
	leaf := c.free.own(&path, iv.Start)
	touched := allLateClasses
	if !c.fits(iv, b.NPE) {
		bounds := c.free.overPath(&path, iv)
		if bounds.low < b.NPE {
			return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are taken during %s", b.NPE, iv)
		}
		touched = lateTouched(bounds, -b.NPE)
	}
	c.free.shiftPath(&path, leaf, iv, -b.NPE, touched)
	c.version++
	return nil
}

// fits reports whether the last search has shown that n PEs are free.
func (c *fastLate) fits(iv berth.Interval, n berth.Count) bool {
	return c.fitVersion == c.version && n <= c.fitPEs && c.fit.Start <= iv.Start && iv.End <= c.fit.End
}

// Remove gives a block back in O(log n), and O(log n) for each change of the
// capacity during it.
func (c *fastLate) Remove(b Block) error {
	if err := b.check(c.size, berth.Late); err != nil {
		return err
	}
	iv := berth.Interval{Start: b.Start, End: b.End}
	var path latePath
	leaf := c.free.own(&path, iv.Start)
	bounds := c.free.overPath(&path, iv)
	if bounds.high+b.NPE > c.size || c.resized && !c.booked(iv, b.NPE) {
		return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are not booked during %s", b.NPE, iv)
	}
	c.free.shiftPath(&path, leaf, iv, b.NPE, lateTouched(bounds, b.NPE))
	c.version++
	return nil
}

// booked reports whether n PEs can be given back without leaving more free
// than there are.
func (c *fastLate) booked(iv berth.Interval, n berth.Count) bool {
	for at := c.limit.cursor(iv.Start); ; at.step() {
		part := berth.Interval{Start: iv.Start, End: min(at.time(), iv.End)}
		if c.free.over(part).high+n > at.v {
			return false
		}
		if part.End == iv.End {
			return true
		}
		iv.Start = part.End
	}
}

// Resize changes the capacity in O(log n).
func (c *fastLate) Resize(iv berth.Interval, by berth.Count) error {
	if iv.Start >= iv.End || !iv.Start.Valid() || (!iv.End.Valid() && iv.End != berth.Forever) {
		return berth.Errorf(berth.Invalid, "end", "%s is not an interval", iv)
	}
	limits := c.limit.over(iv)
	switch {
	case limits.low+by < 0 || limits.high+by > c.size:
		return berth.Errorf(berth.Invalid, "npe", "a change by %d would leave 0..%d PEs", by, c.size)
	case by == 0:
		return nil
	}
	c.limit.shift(iv, by)
	c.resized = true
	c.free.shift(iv, by)
	c.version++
	return nil
}

// Prune forgets what was before now, see lateTree.prune.
func (c *fastLate) Prune(now berth.Time) {
	c.free.prune(now)
	c.limit.prune(now)
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

// Snapshot returns a copy in O(1). Both calendars copy the nodes that they
// write to from then on, so they may be used by two readers at once.
func (c *fastLate) Snapshot() Calendar {
	copied := *c
	copied.low = nil
	copied.free = c.free.snapshot()
	copied.limit = c.limit.snapshot()
	return &copied
}

var (
	_ Calendar = (*fastLate)(nil)
	_ Resizer  = (*fastLate)(nil)
)
