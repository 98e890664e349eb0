package calendar

import (
	"cmp"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bitset"
)

// NewPlain returns an empty calendar in the paper's own form: sorted records,
// each question answered by walking them. It is the oracle against which
// every faster form is tested.
//
// Source: Li et al., sections 3 and 4, as specified in spec 1, (b). With n
// records, m of them under a block, p candidates and v records under a
// window: Add and Remove O(n + m·W), Find O(p·v·W), where a set has W words
// (one number under late binding). Deviations: one ordered list replaces the
// paper's two redundant ones; records exist at both borders of a block before
// it is applied, so the case "first time = t_e" needs no rule of its own;
// records merge iff their PE sets are equal, not merely their sizes (the
// paper's step 3 compares sizes); both ends of the window are always
// candidates.
func NewPlain(size berth.Count, binding berth.Binding) Calendar {
	if size < 1 || size > berth.MaxPEs {
		panic("calendar: size outside 1..berth.MaxPEs")
	}
	if binding == berth.Late {
		return newPlain(size, binding, counts{size: size})
	}
	return newPlain(size, binding, newSets(size))
}

// room is what plain must know of the value "free PEs": a set under early
// binding, a number under late binding. Both are ordered by inclusion, and
// meet is the greatest value contained in two others.
type room[S any] interface {
	everything(eligible berth.PESet) S // all PEs, or all eligible ones; meet may overwrite it
	meet(acc, v S) S                   // PEs free in both; may reuse acc's memory
	covers(v, free S) bool             // all of free is free in v
	equal(a, b S) bool
	count(S) berth.Count
	lowest(v S, n berth.Count) berth.PESet // the n lowest PEs, none under late binding
	busy(S) berth.PESet                    // the PEs not in v, none under late binding

	amount(*Block) S
	canTake(v, amount S) bool
	take(v, amount S) S // a new value
	canGive(v, amount S) bool
	give(v, amount S) S // a new value
	less(a, b S) S      // what of a is not in b; a new value
}

type plain[S any] struct {
	size    berth.Count
	binding berth.Binding
	room    room[S]
	free    steps[S]
	seams   []seam[S] // in order of time
}

// seam is how much is given back at a time and taken again there, with another
// booking: what the records do not show, since it does not change.
type seam[S any] struct {
	time   berth.Time
	amount S
}

func newPlain[S any](size berth.Count, binding berth.Binding, room room[S]) *plain[S] {
	return &plain[S]{
		size: size, binding: binding, room: room,
		free: steps[S]{base: room.everything(berth.PESet{})},
	}
}

func (c *plain[S]) Size() berth.Count      { return c.size }
func (c *plain[S]) Binding() berth.Binding { return c.binding }

func (c *plain[S]) Add(b Block) error {
	if err := b.check(c.size, c.binding); err != nil {
		return err
	}
	amount, iv := c.room.amount(&b), berth.Interval{Start: b.Start, End: b.End}
	var taken berth.Interval
	if !c.free.each(iv, func(step berth.Interval, v S) bool {
		taken = step
		return c.room.canTake(v, amount)
	}) {
		return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are taken during %s", b.NPE, taken)
	}
	if ends, _, ok := c.changes(b.Start); ok {
		c.sew(b.Start, c.room.meet(ends, amount))
	}
	if _, begins, ok := c.changes(b.End); ok {
		c.sew(b.End, c.room.meet(begins, amount))
	}
	c.free.update(iv, func(v S) S { return c.room.take(v, amount) }, c.room.equal)
	return nil
}

// changes returns how much more ends than begins at a time, and how much more begins
// than ends; ok is false if nothing changes there.
func (c *plain[S]) changes(t berth.Time) (ends, begins S, ok bool) {
	i := c.free.index(t)
	if i < 0 || c.free.times[i] != t {
		return ends, begins, false
	}
	before, after := c.free.value(i-1), c.free.values[i]
	return c.room.less(after, before), c.room.less(before, after), true
}

// sew makes an amount more end and begin at a time.
func (c *plain[S]) sew(t berth.Time, amount S) {
	if c.room.count(amount) == 0 {
		return
	}
	i, found := c.seam(t)
	if found {
		c.seams[i].amount = c.room.give(c.seams[i].amount, amount)
		return
	}
	c.seams = slices.Insert(c.seams, i, seam[S]{t, amount})
}

// sewn reports whether an amount ends and begins at a time.
func (c *plain[S]) sewn(t berth.Time, amount S) bool {
	if c.room.count(amount) == 0 {
		return true
	}
	i, found := c.seam(t)
	return found && c.room.covers(c.seams[i].amount, amount)
}

// unpick makes an amount less end and begin at a time.
func (c *plain[S]) unpick(t berth.Time, amount S) {
	if c.room.count(amount) == 0 {
		return
	}
	i, _ := c.seam(t)
	c.seams[i].amount = c.room.less(c.seams[i].amount, amount)
	if c.room.count(c.seams[i].amount) == 0 {
		c.seams = slices.Delete(c.seams, i, i+1)
	}
}

// seam returns the position of the first seam not before t.
func (c *plain[S]) seam(t berth.Time) (i int, found bool) {
	return slices.BinarySearchFunc(c.seams, t, func(s seam[S], t berth.Time) int { return cmp.Compare(s.time, t) })
}

func (c *plain[S]) Remove(b Block) error {
	if err := b.check(c.size, c.binding); err != nil {
		return err
	}
	amount, iv := c.room.amount(&b), berth.Interval{Start: b.Start, End: b.End}
	var missing berth.Interval
	if !c.free.each(iv, func(step berth.Interval, v S) bool {
		missing = step
		return c.room.canGive(v, amount)
	}) {
		return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are not booked during %s", b.NPE, missing)
	}
	start, end := amount, amount // what begins and ends there as others end and begin
	if _, begins, ok := c.changes(b.Start); ok {
		start = c.room.less(amount, begins)
	}
	if ends, _, ok := c.changes(b.End); ok {
		end = c.room.less(amount, ends)
	}
	switch at, ok := c.parted(iv, amount); {
	case ok:
		return parted(&b, at)
	case !c.sewn(b.Start, start):
		return notBegun(&b)
	case !c.sewn(b.End, end):
		return notEnded(&b)
	}
	c.unpick(b.Start, start)
	c.unpick(b.End, end)
	c.free.update(iv, func(v S) S { return c.room.give(v, amount) }, c.room.equal)
	return nil
}

// parted returns the first time inside iv at which a PE of the amount ends with one
// booking and begins with another. Under late binding there are no such PEs.
func (c *plain[S]) parted(iv berth.Interval, amount S) (at berth.Time, ok bool) {
	i, _ := c.seam(iv.Start + 1)
	for ; c.binding == berth.Early && i < len(c.seams) && c.seams[i].time < iv.End; i++ {
		if !c.room.canGive(c.seams[i].amount, amount) {
			return c.seams[i].time, true
		}
	}
	return 0, false
}

func (c *plain[S]) Prune(now berth.Time) {
	c.free.prune(now, c.room.equal)
	i, _ := c.seam(now + 1)
	c.seams = slices.Delete(c.seams, 0, i)
}

func (c *plain[S]) Find(q Query, rule Rule) (Fit, bool) {
	if q.Validate(c.binding) != nil {
		return Fit{}, false
	}
	earliest := rule.Order() == Order{By: ByStart}
	var best Fit
	var bestFree S
	found := false
	for _, start := range c.candidates(q) {
		rectangle, free, ok := c.rectangle(&q, start)
		if !ok {
			continue
		}
		if key := c.key(rule, &q, rectangle); !found || key < best.Key {
			best = Fit{Start: start, End: start.Add(q.Duration), Key: key}
			bestFree, found = free, true
		}
		if earliest {
			break
		}
	}
	if found {
		best.PEs = c.room.lowest(bestFree, q.NPE)
	}
	return best, found
}

// key asks the rule about a rectangle.
func (c *plain[S]) key(rule Rule, q *Query, r berth.Rectangle) int64 {
	w, ok := rule.(Weigher)
	if !ok {
		return rule.Key(r)
	}
	load := q.load(c.room.count(c.room.everything(q.Eligible)))
	load.Start, load.Free = r.Start, r.Free
	c.free.each(berth.Interval{Start: r.Start, End: r.Start.Add(q.Duration)}, func(step berth.Interval, v S) bool {
		load.Booked += berth.Area(load.PEs-c.room.count(c.room.meet(c.room.everything(q.Eligible), v)), step.Length())
		return true
	})
	return w.Weigh(load)
}

func (c *plain[S]) MostFree(q Query) (most berth.Count, start berth.Time) {
	start = q.Ready
	for i, candidate := range c.candidates(q) {
		if n := c.room.count(c.window(&q, candidate)); i == 0 || n > most {
			most, start = n, candidate
		}
	}
	return most, start
}

// candidates follows spec 1, b.4: both ends of the window, every record time
// x in it, and x − duration. A query without a deadline has no right end.
func (c *plain[S]) candidates(q Query) []berth.Time {
	if q.Validate(c.binding) != nil {
		return nil
	}
	last := q.Deadline
	starts := []berth.Time{q.Ready}
	if q.Deadline < berth.Forever {
		last = q.Deadline - berth.Time(q.Duration)
		starts = append(starts, last)
	}
	for i := c.free.index(q.Ready-1) + 1; i < len(c.free.times) && c.free.times[i] <= q.Deadline; i++ {
		x := c.free.times[i]
		starts = append(starts, x, x-berth.Time(q.Duration))
	}
	starts = slices.DeleteFunc(starts, func(s berth.Time) bool { return s < q.Ready || s > last })
	slices.Sort(starts)
	return slices.Compact(starts)
}

func (c *plain[S]) Rectangles(q Query) iter.Seq2[berth.Rectangle, berth.PESet] {
	return func(yield func(berth.Rectangle, berth.PESet) bool) {
		for _, start := range c.candidates(q) {
			if r, free, ok := c.rectangle(&q, start); ok && !yield(r, c.room.lowest(free, c.size)) {
				return
			}
		}
	}
}

// window returns the PEs free throughout [start, start+q.Duration).
func (c *plain[S]) window(q *Query, start berth.Time) S {
	free := c.room.everything(q.Eligible)
	c.free.each(berth.Interval{Start: start, End: start.Add(q.Duration)}, func(_ berth.Interval, v S) bool {
		free = c.room.meet(free, v)
		return true
	})
	return free
}

// rectangle returns the maximum availability rectangle of a start (spec 1,
// b.5): the PE set is fixed first, then time is extended both ways.
func (c *plain[S]) rectangle(q *Query, start berth.Time) (berth.Rectangle, S, bool) {
	free := c.window(q, start)
	n := c.room.count(free)
	if n < q.NPE {
		return berth.Rectangle{}, free, false
	}
	begin := start
	for i := c.free.index(start); c.room.covers(c.free.value(i), free); i-- {
		if i < 0 || c.free.times[i] <= q.Now {
			begin = q.Now
			break
		}
		begin = c.free.times[i]
	}
	end := start.Add(q.Duration)
	for i := c.free.index(end - 1); i < len(c.free.times) && c.room.covers(c.free.value(i), free); i++ {
		end = max(end, c.free.end(i))
	}
	if q.Horizon == Capped {
		end = min(end, c.horizon(q.Deadline))
	}
	return berth.Rectangle{Start: start, Begin: begin, End: end, Free: n}, free, true
}

// horizon returns the later of the last record and the deadline.
func (c *plain[S]) horizon(deadline berth.Time) berth.Time {
	if n := len(c.free.times); n > 0 {
		return max(c.free.times[n-1], deadline)
	}
	return deadline
}

func (c *plain[S]) Free(iv berth.Interval) (berth.Count, berth.PESet) {
	free := c.room.everything(berth.PESet{})
	c.free.each(iv, func(_ berth.Interval, v S) bool {
		free = c.room.meet(free, v)
		return true
	})
	return c.room.count(free), c.room.lowest(free, c.size)
}

// Changes yields times of records.
func (c *plain[S]) Changes(iv berth.Interval) iter.Seq[berth.Time] {
	return func(yield func(berth.Time) bool) {
		for _, t := range c.free.times {
			if iv.Start <= t && t < iv.End && !yield(t) {
				return
			}
		}
	}
}

func (c *plain[S]) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i, t := range c.free.times {
			v := c.free.values[i]
			if !yield(Record{Time: t, Free: c.room.count(v), Busy: c.room.busy(v)}) {
				return
			}
		}
	}
}

var (
	_ Calendar = (*plain[bitset.Set])(nil)
	_ Calendar = (*plain[berth.Count])(nil)
)
