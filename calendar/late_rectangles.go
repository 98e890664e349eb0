package calendar

import "github.com/berth-hpc/berth"

// lateWalkStarts is how many infeasible candidates in a row are looked at one
// by one before a search for the next feasible one.
const lateWalkStarts = 16

// lateStarts goes through the candidate starts of a query in order, and keeps
// the least free count of the window that begins there. Two cursors walk the
// points: one at the start, one where the window ends. low holds the steps
// that are or may become the least of the window: times and counts ascend, the
// first, at head, is the least.
type lateStarts struct {
	q    *Query
	tree *lateTree
	last berth.Time

	at   berth.Time
	ok   bool // at is a candidate
	low  []lateLow
	head int

	begin lateCursor // before the first point after at
	end   lateCursor // before the first point not before the window's end
}

// lateLow is a step of the free count that ends where the next one begins, or
// lateDusk while that is not known. bounds is the rectangle of the windows in
// which it is the least, once measured.
type lateLow struct {
	free     berth.Count
	end      berth.Time
	measured bool
	bounds   berth.Interval
}

// starts returns the candidates of a valid query from the candidate at on.
func (c *fastLate) starts(q *Query, at berth.Time) *lateStarts {
	s := c.walk
	if c.walk = nil; s == nil { // a rule or a caller may ask again meanwhile
		s = new(lateStarts)
	}
	*s = lateStarts{q: q, tree: &c.free, last: q.last(), low: s.low}
	s.enter(at)
	return s
}

// enter goes to the candidate at.
func (s *lateStarts) enter(at berth.Time) {
	s.at, s.ok = at, at <= s.last
	s.begin = s.tree.cursor(at)
	s.end = s.begin
	s.head, s.low = 0, append(s.low[:0], lateLow{free: s.begin.v, end: lateDusk})
	s.extend(at.Add(s.q.Duration))
}

// extend takes the points before to into the window.
func (s *lateStarts) extend(to berth.Time) {
	for t := s.end.time(); t < to; t = s.end.time() {
		s.end.step()
		s.low[len(s.low)-1].end = t
		next := lateLow{free: s.end.v, end: lateDusk}
		k := len(s.low)
		for k > s.head && s.low[k-1].free >= next.free {
			k--
			if o := &s.low[k]; o.free == next.free && o.measured {
				next.measured, next.bounds = true, o.bounds
			}
		}
		s.low = append(s.low[:k], next)
	}
}

// idle returns the PE-seconds that are free in the window.
func (s *lateStarts) idle() int64 {
	var sum int64
	since := s.at
	c := s.begin
	for end := s.at.Add(s.q.Duration); ; c.step() {
		t := min(c.time(), end)
		sum += berth.Area(c.v, t.Sub(since))
		if since = t; t == end {
			return sum
		}
	}
}

// stepIdle goes to the next candidate, and returns how many PE-seconds more are free in its
// window: there is no point between two candidates at either end.
func (s *lateStarts) stepIdle() int64 {
	at, left := s.at, s.begin.v
	s.step()
	return int64(s.end.v-left) * int64(s.at.Sub(at))
}

// step goes to the next candidate.
func (s *lateStarts) step() {
	d := berth.Time(s.q.Duration)
	s.extend(s.at + d + 1)
	next := s.begin.time()
	if t := s.end.time(); t < lateDusk {
		next = min(next, t-d)
	}
	if s.last < berth.Forever && s.at < s.last {
		next = min(next, s.last)
	}
	if next > s.last || next >= lateDusk {
		s.ok = false
		return
	}
	s.at = next
	for s.begin.time() <= next {
		s.begin.step()
	}
	for s.low[s.head].end <= next {
		s.head++
	}
}

// each yields the rectangles of the feasible candidates in order, or with an
// order by a figure of the rectangle the earliest of each.
func (c *fastLate) each(q *Query, order Order, yield func(berth.Rectangle) bool) {
	all := order.By == Custom || order.By == ByStart
	horizon := berth.Forever
	if q.Horizon == Capped {
		horizon = q.Deadline
		if t, ok := c.free.before(lateDusk); ok {
			horizon = max(horizon, t)
		}
	}
	poor := 0
	s := c.starts(q, q.Ready)
	defer func() { s.q, c.walk = nil, s }()
	for ; s.ok; s.step() {
		low := &s.low[s.head]
		if low.free < q.NPE {
			if poor++; poor < lateWalkStarts {
				continue
			}
			poor = 0
			at, ok := c.first(q, q.NPE, s.at)
			if !ok {
				return
			}
			s.enter(at)
			low = &s.low[s.head]
		}
		if low.measured && !all {
			continue // the rectangle of an earlier start
		}
		if !low.measured {
			low.measured = true
			if all || order.NeedsEnds() {
				low.bounds = c.bounds(s.at, q, low.free, horizon)
			}
		}
		r := berth.Rectangle{Start: s.at, Begin: low.bounds.Start, End: low.bounds.End, Free: low.free}
		if !yield(r) {
			return
		}
	}
}

// bounds extends the window at a start both ways as long as n PEs are free.
func (c *fastLate) bounds(at berth.Time, q *Query, n berth.Count, horizon berth.Time) berth.Interval {
	return berth.Interval{
		Start: max(c.free.clearSince(at+1, n), q.Now),
		End:   min(c.free.next(at.Add(q.Duration)-1, n), horizon),
	}
}
