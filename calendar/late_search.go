package calendar

import "github.com/berth-hpc/berth"

// lateEasyLeaves is how many leaves a search reads before it considers it
// worth its while to learn about runs.
const lateEasyLeaves = 3

// lateSearch looks for the earliest start in [ready, last] from which at least
// n PEs are free for duration d. It goes through time once, from ready on,
// with c the start of the run it is in, if n PEs are free at all.
//
// A child whose free count stays below n, or does not fall below it, is
// passed by its lowest and highest count; a child without a long enough run
// by what its node knows of runs. Bounds on runs may be too high, for n lies
// above the threshold of its class or bookings came since. Then c may be too
// early; so a fit that rests on such a bound is verified, and where it fails
// the bound is made exact and the search begins again behind the obstacle.
type lateSearch struct {
	tree      *lateTree
	n         berth.Count
	d         berth.Time
	ready     berth.Time
	last      berth.Time
	class     int
	threshold berth.Count

	c      berth.Time
	sure   bool // c is not a bound but the start of the run
	learn  bool // measure runs
	leaves int  // read so far
}

// lateVerdict says how far a search is.
type lateVerdict uint8

const (
	lateGoOn  lateVerdict = iota
	lateFound             // from c on, perhaps
	lateNever             // not before last
)

// firstFit returns the earliest start in [ready, last] with n PEs free for d.
// It costs O(log n) where nothing is in the way,
// and about that per obstacle no earlier search has measured otherwise.
func (t *lateTree) firstFit(n berth.Count, d berth.Duration, ready, last berth.Time) (berth.Time, bool) {
	if n > t.base {
		return 0, false // the value never exceeds it
	}
	s := lateSearch{tree: t, n: n, d: berth.Time(d), ready: ready, last: last, class: noLateClass}
	if d < endlessLateRun {
		s.class, s.threshold = lateClass(n)
	}
	for s.ready <= last {
		s.sure = true
		if s.node(t.root, t.base, lateDusk, true) != lateFound || s.c > last {
			return 0, false
		}
		if s.sure {
			return s.c, true
		}
		begin := t.clearSince(s.c+s.d, n)
		if begin <= s.c {
			return s.c, true
		}
		if s.learn {
			t.measure(begin-1, s.class, s.threshold)
		}
		s.ready = begin
	}
	return 0, false
}

// node searches a node whose span ends at hi and before whose first point v
// PEs are free. first is true on the path to ready; a search enters all other
// nodes at their beginning.
func (s *lateSearch) node(nd *lateNode, v berth.Count, hi berth.Time, first bool) lateVerdict {
	i := 0
	if first {
		var before berth.Count
		i, before = nd.child(s.ready)
		v += before
	}
	for ; i < int(nd.n); i++ {
		end := nd.end(i, hi)
		if !first {
			lo := nd.sep[i]
			switch {
			case v < s.n && lo > s.last, v >= s.n && s.c > s.last:
				return lateNever
			case v >= s.n && v+nd.low[i] >= s.n:
				if end-s.c >= s.d {
					return lateFound
				}
				v += nd.sum[i]
				continue
			case v < s.n && v+nd.high[i] < s.n:
				v += nd.sum[i]
				continue
			}
			s.learn = s.learn || s.leaves >= lateEasyLeaves && s.class >= 0
			passed := s.pass(nd, i, v, lo, end)
			if !passed && s.learn && nd.level == 0 && s.tree.study(nd, i, v, end, s.class, s.threshold) {
				passed = s.pass(nd, i, v, lo, end)
			}
			if passed {
				v += nd.sum[i]
				continue
			}
		}
		var verdict lateVerdict
		if nd.level == 0 {
			verdict = s.leaf(nd.leaf[i], v, end, first)
		} else {
			verdict = s.node(nd.kid[i], v, end, first)
		}
		if verdict != lateGoOn {
			return verdict
		}
		if s.learn && nd.level > 0 {
			s.tree.study(nd, i, v, end, s.class, s.threshold)
		}
		v += nd.sum[i]
		first = false
	}
	return lateGoOn
}

// pass reports whether child i, of span [lo, end) and with v PEs free before
// it, is known to have no run that is long enough, and goes to its end then.
func (s *lateSearch) pass(nd *lateNode, i int, v berth.Count, lo, end berth.Time) bool {
	r := nd.runs
	if r == nil || !r.bounds(i, s.class, v) {
		return false
	}
	known := r.class[s.class]
	if berth.Time(known.best[i]) >= s.d || (v >= s.n && lo-s.c+berth.Time(known.head[i]) >= s.d) {
		return false
	}
	if v+nd.sum[i] >= s.n {
		s.c, s.sure = end-berth.Time(known.tail[i]), s.threshold == s.n && r.sharp(i, s.class, v)
	}
	return true
}

// leaf searches a leaf whose span ends at end, from ready on if first.
func (s *lateSearch) leaf(l *lateLeaf, v berth.Count, end berth.Time, first bool) lateVerdict {
	s.leaves++
	pts, i := l.points(), 0
	if first {
		key := l.after(s.ready)
		for ; i < len(pts) && pts[i] < key; i++ {
			v += pts[i].delta()
		}
		s.c = s.ready
	}
	for {
		if v >= s.n {
			// In a run: it breaks at the first point that brings v below n.
			enough := l.key(s.c + s.d)
			for ; i < len(pts) && pts[i] < enough; i++ {
				if v += pts[i].delta(); v < s.n {
					break
				}
			}
			if i == len(pts) {
				if end-s.c >= s.d {
					return lateFound
				}
				return lateGoOn
			}
			if v >= s.n {
				return lateFound
			}
			i++
		}
		for ; i < len(pts); i++ {
			if v += pts[i].delta(); v >= s.n {
				break
			}
		}
		if i == len(pts) {
			return lateGoOn
		}
		s.c, s.sure = l.time(pts[i]), true
		i++
		if s.c > s.last {
			return lateNever
		}
	}
}

// study measures the runs in child i of a node, where v PEs are free before it
// and its span ends at end, and reports whether that was needed and possible.
func (t *lateTree) study(nd *lateNode, i int, v berth.Count, end berth.Time, class int, threshold berth.Count) bool {
	if _, exact, ok := nd.runs.get(i, class, v); ok && exact {
		return false
	}
	var run lateRun
	exact, ok := true, true
	if nd.level == 0 {
		run = nd.leaf[i].runs(nd.sep[i], end, v, threshold)
	} else {
		run, exact, ok = nd.kid[i].join(end, v, threshold, class)
	}
	if !ok {
		return false
	}
	if nd.runs == nil {
		nd.runs = new(lateRuns)
	}
	nd.runs.put(i, class, v, run, exact)
	return true
}

// measure makes what is known of the runs of a class at a time exact, in the
// leaf, and as sharp as can be above it.
func (t *lateTree) measure(at berth.Time, class int, threshold berth.Count) {
	t.measureIn(t.root, at, t.base, lateDusk, class, threshold)
}

func (t *lateTree) measureIn(nd *lateNode, at berth.Time, v berth.Count, hi berth.Time, class int, threshold berth.Count) {
	i, before := nd.child(at)
	v += before
	end := nd.end(i, hi)
	if nd.level > 0 {
		t.measureIn(nd.kid[i], at, v, end, class, threshold)
	}
	t.study(nd, i, v, end, class, threshold)
}
