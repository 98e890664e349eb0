package calendar

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// last returns the latest start of the window, Forever if it has no deadline.
func (q *Query) last() berth.Time {
	if q.Deadline >= berth.Forever {
		return berth.Forever
	}
	return q.Deadline - berth.Time(q.Duration)
}

// Find returns the best feasible start. First fit costs O(log n) and what
// lateTree.firstFit tells; most free PEs, such a search for each improvement;
// every other rule, a walk over the candidates and O(log n) per rectangle.
func (c *fastLate) Find(q Query, rule Rule) (Fit, bool) {
	if q.Validate(berth.Late) != nil {
		return Fit{}, false
	}
	var best berth.Rectangle
	var key int64
	found := false
	switch order := rule.Order(); order {
	case Order{By: ByStart}:
		if best.Start, found = c.first(&q, q.NPE, q.Ready); found {
			key = rule.Key(best)
		}
	case Order{By: ByFree, Largest: true}:
		if best.Free, best.Start, found = c.widest(&q); found {
			key = rule.Key(best)
		}
	default:
		if weigher, ok := rule.(Weigher); ok {
			best, key, found = c.lightest(q, weigher)
		} else {
			best, key, found = c.choose(q, rule)
		}
	}
	if !found {
		return Fit{}, false
	}
	fit := Fit{Start: best.Start, End: best.Start.Add(q.Duration), Key: key}
	c.fit = berth.Interval{Start: fit.Start, End: fit.End}
	c.fitPEs = q.NPE
	return fit, true
}

// choose compares the rectangles of the feasible candidates.
func (c *fastLate) choose(q Query, rule Rule) (best berth.Rectangle, key int64, found bool) {
	order := rule.Order()
	c.each(&q, order, func(r berth.Rectangle) bool {
		if k := rule.Key(r); !found || k < key {
			best, key, found = r, k, true
		}
		return !found || !q.ideal(order, best)
	})
	return best, key, found
}

// lightest asks a weigher about every feasible candidate.
func (c *fastLate) lightest(q Query, rule Weigher) (best berth.Rectangle, key int64, found bool) {
	s := c.starts(&q, q.Ready)
	defer func() { s.q, c.walk = nil, s }()
	load, all := q.load(c.size), berth.Area(c.size, q.Duration)
	for idle := s.idle(); s.ok; idle += s.stepIdle() {
		low := &s.low[s.head]
		if low.free < q.NPE {
			continue
		}
		load.Start, load.Free, load.Booked = s.at, low.free, all-idle
		if k := rule.Weigh(load); !found || k < key {
			best, key, found = berth.Rectangle{Start: s.at, Free: low.free}, k, true
		}
	}
	return best, key, found
}

// first returns the earliest feasible start of n PEs from ready on.
func (c *fastLate) first(q *Query, n berth.Count, ready berth.Time) (berth.Time, bool) {
	return c.free.firstFit(n, q.Duration, ready, q.last())
}

// widest returns the feasible start with the most PEs, the earliest of them.
// It asks for one PE more than the best so far until there is none: whatever
// beats the best starts later.
func (c *fastLate) widest(q *Query) (most berth.Count, start berth.Time, found bool) {
	n, at := q.NPE, q.Ready
	for {
		next, ok := c.first(q, n, at)
		if !ok {
			return most, start, found
		}
		at = next
		most = c.free.over(berth.Interval{Start: at, End: at.Add(q.Duration)}).low
		start, found = at, true
		n = most + 1
	}
}

// MostFree returns the most PEs free for the duration, see widest.
func (c *fastLate) MostFree(q Query) (berth.Count, berth.Time) {
	if q.Validate(berth.Late) != nil {
		return 0, q.Ready
	}
	q.NPE = 0
	most, start, _ := c.widest(&q)
	return most, start
}

// ideal reports whether no rectangle of the query can be better.
func (q *Query) ideal(order Order, r berth.Rectangle) bool {
	switch order {
	case Order{By: ByFree}:
		return r.Free == q.NPE
	case Order{By: ByLength}:
		return r.Length() == q.Duration
	case Order{By: ByArea}:
		return r.Area() == berth.Area(q.NPE, q.Duration)
	case Order{By: ByLength, Largest: true}, Order{By: ByArea, Largest: true}:
		return r.End >= berth.Forever
	}
	return false
}

// Rectangles yields the rectangles of the feasible candidates. The calendar
// must not change meanwhile.
func (c *fastLate) Rectangles(q Query) iter.Seq2[berth.Rectangle, berth.PESet] {
	return func(yield func(berth.Rectangle, berth.PESet) bool) {
		if q.Validate(berth.Late) != nil {
			return
		}
		c.each(&q, Order{By: Custom}, func(r berth.Rectangle) bool { return yield(r, berth.PESet{}) })
	}
}
