package workflow

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// plain is the paper's own form of every planner: each number of PEs tried one
// by one, each question answered by a scan of all records, bottom levels and
// areas computed anew at each step, CPA's schedules anew for each task. It is
// the oracle against which the fast form is tested, and what its speed is
// compared with.
//
// Source: spec 2, b.1 to b.6, step for step. Counts that give a task no shorter
// duration than a smaller count are passed over, as there.
type plain struct {
	in    *Instance
	times []berth.Time
	free  []berth.Count
}

func (s *plain) reset() {
	s.times, s.free = slices.Clone(s.in.room.steps.times), slices.Clone(s.in.room.steps.free)
}

// end returns when record i ends.
func (s *plain) end(i int) berth.Time {
	if i+1 < len(s.times) {
		return s.times[i+1]
	}
	return berth.Forever
}

// take books n PEs throughout [from, to).
func (s *plain) take(from, to berth.Time, n berth.Count) {
	for _, t := range []berth.Time{from, to} {
		i, found := slices.BinarySearch(s.times, t)
		if !found {
			s.times = slices.Insert(s.times, i, t)
			s.free = slices.Insert(s.free, i, s.free[i-1])
		}
	}
	for i, t := range s.times {
		if from <= t && t < to {
			s.free[i] -= n
		}
	}
}

// earliest returns the first start from ready on at which n PEs are free for d.
func (s *plain) earliest(ready berth.Time, d berth.Duration, n berth.Count) (berth.Time, bool) {
	start := ready
	for i := range s.times {
		switch {
		case s.end(i) <= ready:
		case s.free[i] < n:
			start = s.end(i)
		case s.end(i) >= start.Add(d):
			return start, true
		}
	}
	return 0, false
}

// latest returns the last start from ready on at which n PEs are free for d,
// before due.
func (s *plain) latest(ready, due berth.Time, d berth.Duration, n berth.Count) (berth.Time, bool) {
	start := due - berth.Time(d)
	for start >= ready {
		blocking := -1
		for i := range s.times {
			if s.times[i] < start.Add(d) && s.end(i) > start && s.free[i] < n {
				blocking = i
			}
		}
		if blocking < 0 {
			return start, true
		}
		start = s.times[blocking] - berth.Time(d)
	}
	return 0, false
}

// dominated reports whether one PE less is as fast, or the task does not run on
// so few.
func (s *plain) dominated(i int32, m berth.Count) bool {
	t := s.in.w.tasks[i]
	few := t.Fewest()
	return m < few || m > few && t.Duration(m) >= t.Duration(m-1)
}

// levels is b.1.
func (s *plain) levels(npe []berth.Count, part []bool) []berth.Duration {
	bl := make([]berth.Duration, len(npe))
	for _, i := range slices.Backward(s.in.w.topological) {
		if part[i] {
			bl[i] = s.in.w.tasks[i].Duration(npe[i])
			below := berth.Duration(0)
			for _, child := range s.in.w.children.of(i) {
				if part[child] {
					below = max(below, bl[child])
				}
			}
			bl[i] += below
		}
	}
	return bl
}

// order is the order of b.1: at each turn the largest bottom level, ties by
// topological place.
func (s *plain) order(npe []berth.Count, part []bool) []int32 {
	bl := s.levels(npe, part)
	var order []int32
	left := slices.Clone(part)
	for {
		first := int32(-1)
		for _, i := range s.in.w.topological {
			if left[i] && (first < 0 || bl[i] > bl[first]) {
				first = i
			}
		}
		if first < 0 {
			return order
		}
		order = append(order, first)
		left[first] = false
	}
}

func (s *plain) everything() []bool {
	part := make([]bool, s.in.w.Len())
	for i := range part {
		part[i] = true
	}
	return part
}

// alloc is phase 1 of CPA (b.2) for the tasks of part on q PEs, or another rule.
func (s *plain) alloc(q berth.Count, part []bool, by rule) []berth.Count {
	w := s.in.w
	npe := s.in.uniform(1)
	tasks := 0
	for _, in := range part {
		if in {
			tasks++
		}
	}
	depth := s.depths()
	for {
		bl := make([]float64, len(npe))
		for _, i := range slices.Backward(w.topological) {
			if !part[i] {
				continue
			}
			below := 0.0
			for _, child := range w.children.of(i) {
				if part[child] {
					below = max(below, bl[child])
				}
			}
			bl[i] = w.tasks[i].Time(npe[i]) + below
		}
		at, area := int32(-1), 0.0
		for i := range npe {
			if !part[i] {
				continue
			}
			if len(w.Parents(i)) == 0 && (at < 0 || bl[i] > bl[at]) {
				at = int32(i)
			}
			area += float64(float64(npe[i]) * w.tasks[i].Time(npe[i]))
		}
		if at < 0 || bl[at] <= float64(1/s.in.problem.Epsilon.divisor(q, tasks)*area)+1e-9 {
			return npe
		}
		grow, best := int32(-1), 0.0
		for at >= 0 {
			m := npe[at]
			gain := w.tasks[at].Time(m)/float64(m) - w.tasks[at].Time(m+1)/float64(m+1)
			if by == thrifty {
				gain = s.in.curves[at].thrift(m, by.more(&s.in.curves[at], m, q))
			}
			if m < min(q, s.in.curves[at].most()) && gain > best && (by != levelled || s.width(depth, npe, depth[at]) < q) {
				grow, best = at, gain
			}
			next := int32(-1)
			for _, child := range w.children.of(at) {
				if part[child] && (next < 0 || bl[child] > bl[next]) {
					next = child
				}
			}
			at = next
		}
		if grow < 0 {
			return npe
		}
		npe[grow] = by.more(&s.in.curves[grow], npe[grow], q)
	}
}

// depths returns the longest distance of each task from an entry.
func (s *plain) depths() []int {
	depth := make([]int, s.in.w.Len())
	for _, i := range s.in.w.topological {
		for _, child := range s.in.w.children.of(i) {
			depth[child] = max(depth[child], depth[i]+1)
		}
	}
	return depth
}

// width returns the PEs of all tasks of one depth.
func (s *plain) width(depth []int, npe []berth.Count, of int) berth.Count {
	sum := berth.Count(0)
	for i, d := range depth {
		if d == of {
			sum += npe[i]
		}
	}
	return sum
}

// schedule is phase 2 of CPA (b.2), on q PEs one by one.
func (s *plain) schedule(npe []berth.Count, q berth.Count, part []bool) []berth.Time {
	available := make([]berth.Time, q)
	for i := range available {
		available[i] = s.in.now
	}
	start, end := make([]berth.Time, len(npe)), make([]berth.Time, len(npe))
	for _, i := range s.order(npe, part) {
		ready := s.in.now
		for _, parent := range s.in.w.parents.of(i) {
			ready = max(ready, end[parent])
		}
		sorted := slices.Sorted(slices.Values(available))
		start[i] = max(ready, sorted[npe[i]-1])
		end[i] = start[i].Add(s.in.w.tasks[i].Duration(npe[i]))
		for range npe[i] {
			pe := -1
			for k, t := range available {
				if t <= start[i] && (pe < 0 || t > available[pe]) {
					pe = k
				}
			}
			// Taken: not among those available by the start any more, not even
			// for the same task, since a task lasts at least a second.
			available[pe] = end[i]
		}
	}
	return start
}

// allot returns the allocations and bounds of b.3.
func (s *plain) allot(a allotment) []berth.Count {
	in := s.in
	switch a {
	case fixed1:
		return in.uniform(1)
	case fixedAll:
		return in.uniform(in.size)
	case half:
		return in.uniform(max(1, berth.Count(math.Floor(float64(in.size)/2))))
	case cpa:
		return s.alloc(in.size, s.everything(), steepest)
	case mcpar:
		return s.alloc(in.q, s.everything(), levelled)
	case thrift:
		return s.alloc(in.q, s.everything(), thrifty)
	default:
		return s.alloc(in.q, s.everything(), steepest)
	}
}

// forward is b.3.
func (s *plain) forward(f forward, out []Placement) bool {
	s.reset()
	bound := s.allot(f.bound)
	for _, i := range s.order(s.allot(f.levels), s.everything()) {
		ready := s.in.now
		for _, parent := range s.in.w.parents.of(i) {
			ready = max(ready, out[parent].End)
		}
		best := fit{end: berth.Forever}
		for m := berth.Count(1); m <= bound[i]; m++ {
			if s.dominated(i, m) {
				continue
			}
			d := s.in.w.tasks[i].Duration(m)
			if start, ok := s.earliest(ready, d, m); ok && start.Add(d) < best.end {
				best = fit{start, start.Add(d), m}
			}
		}
		if best.npe == 0 {
			return false
		}
		out[i] = best.of(i)
		s.take(best.start, best.end, best.npe)
	}
	return true
}

// backward is b.4 and b.5 for one λ.
func (s *plain) backward(b backward, deadline berth.Time, k int, out []Placement) bool {
	in := s.in
	s.reset()
	bound := s.allot(b.bound)
	part := s.everything()
	q, by := in.basis(b.reserve)
	var reserved []berth.Count
	if b.reserve != fixed1 {
		reserved = s.alloc(q, part, by)
	}
	for _, i := range slices.Backward(s.order(s.allot(b.levels()), part)) {
		due := deadline
		for _, child := range in.w.children.of(i) {
			due = min(due, out[child].Start)
		}
		best := fit{start: in.now - 1}
		if b.reserve != fixed1 {
			if in.problem.Anew {
				reserved = s.alloc(q, part, by)
			}
			theta := reserve(s.schedule(reserved, q, part)[i], due, k)
			for m := berth.Count(1); m <= in.size && best.npe == 0; m++ {
				d := in.w.tasks[i].Duration(m)
				if start, ok := s.latest(max(in.now, theta), due, d, m); ok && !s.dominated(i, m) {
					best = fit{start, start.Add(d), m}
				}
			}
		}
		fallback := best.npe == 0
		for m := berth.Count(1); fallback && m <= bound[i]; m++ {
			if s.dominated(i, m) {
				continue
			}
			d := in.w.tasks[i].Duration(m)
			if start, ok := s.latest(in.now, due, d, m); ok && start > best.start {
				best = fit{start, start.Add(d), m}
			}
		}
		if best.npe == 0 {
			return false
		}
		out[i] = best.of(i)
		s.take(best.start, best.end, best.npe)
		part[i] = false
	}
	return true
}
