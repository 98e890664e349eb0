package calendar

import (
	"iter"
	"math/bits"

	"github.com/berth-hpc/berth"
)

// Find passes over rectangles that cannot win by the order that the rule
// declares (spec 1, e): a start is compared by a bound on its key before the
// ends of its rectangle are looked for, and the search is over where no key
// can be smaller.
func (c *early) Find(q Query, rule Rule) (Fit, bool) {
	if q.Validate(berth.Early) != nil {
		return Fit{}, false
	}
	c.settle(q.Now)
	order := rule.Order()
	if order == (Order{By: ByStart}) {
		start, ready, ok := c.first(&q)
		if !ok {
			return Fit{}, false
		}
		return c.prove(Fit{Start: start, End: start.Add(q.Duration), PEs: c.take(c.scratch.busy, q.NPE), Key: int64(start)}, ready), true
	}
	if q.NPE > c.size {
		return Fit{}, false
	}
	at := whereItMay
	if order.By == ByStart || order.By == Custom {
		at = everyRecord
		c.settle(-berth.Forever) // the rule may ask this calendar while it is asked
	}
	s := c.newSweep(&q, at)
	defer c.giveBack(s)
	var w winner
	switch order {
	case Order{By: ByFree}:
		w.fewest(s)
	case Order{By: ByFree, Largest: true}:
		w.most(s)
	case Order{By: ByLength}:
		w.smallest(s, false)
	case Order{By: ByArea}:
		w.smallest(s, true)
	case Order{By: ByLength, Largest: true}:
		w.largest(s, false)
	case Order{By: ByArea, Largest: true}:
		w.largest(s, true)
	default:
		if weigher, ok := rule.(Weigher); ok {
			w.lightest(s, weigher)
		} else {
			w.any(s, rule)
		}
	}
	if !w.found {
		return Fit{}, false
	}
	fit := Fit{Start: w.start, End: w.start.Add(q.Duration), Key: w.key}
	fit.PEs = c.take(c.freeFrom(s.rim.ready, &q, fit.Start), q.NPE)
	return c.prove(fit, s.rim.ready), true
}

// freeFrom returns the PEs that a query may use from a start for its duration. The place is one not
// after that. To find them once costs less than to keep those of each start that is the best so far.
func (c *early) freeFrom(at place, q *Query, start berth.Time) words {
	busy, eligible := c.scratch.busy, c.eligible(q)
	if c.tree.empty() {
		clear(busy)
	} else {
		c.tree.union(busy, c.tree.onwards(at, start), start.Add(q.Duration))
	}
	for i := range busy {
		busy[i] = eligible[i] &^ busy[i]
	}
	return busy
}

// winner is the best candidate so far.
type winner struct {
	found bool
	start berth.Time
	key   int64
}

// better reports whether a key would win.
func (w *winner) better(key int64) bool { return !w.found || key < w.key }

func (w *winner) take(s *sweep, key int64) {
	w.found, w.start, w.key = true, s.start, key
}

func (w *winner) any(s *sweep, rule Rule) {
	for ok := true; ok; ok = s.advance() {
		if s.free < s.query.NPE {
			continue
		}
		if key := rule.Key(s.rectangle()); w.better(key) {
			w.take(s, key)
		}
	}
}

// lightest asks a weigher about every start.
func (w *winner) lightest(s *sweep, rule Weigher) {
	load := s.query.load(s.everything())
	load.Booked = s.beginLoad()
	for ok := true; ok; ok = s.advanceLoad(&load.Booked) {
		if s.free < s.query.NPE {
			continue
		}
		load.Start, load.Free = s.start, s.free
		if key := rule.Weigh(load); w.better(key) {
			w.take(s, key)
		}
	}
}

// fewest is over where nothing is free beyond what the query needs.
func (w *winner) fewest(s *sweep) {
	for ok := true; ok; ok = s.advance() {
		if s.free < s.query.NPE || !w.better(int64(s.free)) {
			continue
		}
		w.take(s, int64(s.free))
		if s.free == s.query.NPE {
			return
		}
	}
}

// most is over where every eligible PE is free.
func (w *winner) most(s *sweep) {
	everything := s.everything()
	for ok := true; ok; ok = s.advanceToGain() {
		if s.free < s.query.NPE || !w.better(-int64(s.free)) {
			continue
		}
		w.take(s, -int64(s.free))
		if s.free == everything {
			return
		}
	}
}

// smallest takes the shortest rectangle or the one of least area. None is
// shorter than the query's duration or narrower than its PEs.
func (w *winner) smallest(s *sweep, area bool) {
	measure := func(n berth.Count, d berth.Duration) int64 {
		if area {
			return berth.Area(n, d)
		}
		return int64(d)
	}
	least := measure(s.query.NPE, s.query.Duration)
	for ok := true; ok; ok = s.advance() {
		if s.free < s.query.NPE {
			continue
		}
		end := s.start.Add(s.query.Duration)
		if !w.better(measure(s.free, end.Sub(s.rim.bound))) {
			continue
		}
		begin := s.findBegin()
		if !w.better(measure(s.free, end.Sub(begin))) {
			continue
		}
		if key := measure(s.free, s.findEnd().Sub(begin)); w.better(key) {
			w.take(s, key)
			if key == least {
				return
			}
		}
	}
}

// largest takes the longest rectangle or the one of most area.
func (w *winner) largest(s *sweep, area bool) {
	measure := func(n berth.Count, d berth.Duration) int64 {
		if area {
			return -berth.Area(n, d)
		}
		return -int64(d)
	}
	for ok := true; ok; ok = s.advance() {
		if s.free < s.query.NPE {
			continue
		}
		bound := s.endBound()
		if !w.better(measure(s.free, bound.Sub(s.query.Now))) {
			continue
		}
		begin := s.findBegin()
		if !w.better(measure(s.free, bound.Sub(begin))) {
			continue
		}
		// Mostly the next record is the end already.
		if next := s.time(s.right); !w.better(measure(s.free, next.Sub(begin))) && s.meetsNext() {
			continue
		}
		if key := measure(s.free, s.findEnd().Sub(begin)); w.better(key) {
			w.take(s, key)
		}
	}
}

// everything returns the number of eligible PEs.
func (s *sweep) everything() berth.Count {
	if !s.cut {
		return s.size
	}
	n := 0
	for i := s.used.lo; i < s.used.hi; i++ {
		n += bits.OnesCount64(^s.cells[i].shut)
	}
	return berth.Count(n)
}

// MostFree has a candidate wherever the query is valid: its ready time.
func (c *early) MostFree(q Query) (berth.Count, berth.Time) {
	if q.Validate(berth.Early) != nil {
		return 0, q.Ready
	}
	c.settle(q.Now)
	s := c.newSweep(&q, whereItMay)
	defer c.giveBack(s)
	most, start, everything := s.free, s.start, s.everything()
	for most < everything && s.advanceToGain() {
		if s.free > most {
			most, start = s.free, s.start
		}
	}
	return most, start
}

func (c *early) Rectangles(q Query) iter.Seq2[berth.Rectangle, berth.PESet] {
	return func(yield func(berth.Rectangle, berth.PESet) bool) {
		if q.Validate(berth.Early) != nil || q.NPE > c.size {
			return
		}
		c.settle(-berth.Forever)
		s := c.newSweep(&q, everyRecord)
		defer c.giveBack(s)
		free := make(words, c.tree.words)
		for ok := true; ok; ok = s.advance() {
			if s.free < q.NPE {
				continue
			}
			r := s.rectangle()
			s.copyFree(free)
			if !yield(r, free.pes(c.size)) {
				return
			}
		}
	}
}
