package calendar

import (
	"math"
	"math/bits"

	"github.com/berth-hpc/berth"
)

// A run of class k is a stretch of time throughout which at least
// lateThreshold(k) PEs are free. What a node knows of the runs in a child lets
// a search for n PEs pass over the child, if no run of the class just at or
// below n is long enough.

// lateClasses is the number of classes a node can know of.
const lateClasses = 64

// noLateClass stands for a search whose runs have no class.
const noLateClass = -1

// lateSteps is how many classes lie within one power of two, as a power of two
// itself. Fewer are measured sooner again after a change; more hold up fewer
// searches for sizes between them. Two were best for sizes of both kinds.
const lateSteps = 1

// lateClass returns the class of the largest threshold not above n, and the
// threshold.
func lateClass(n berth.Count) (class int, threshold berth.Count) {
	if n < 1 {
		return noLateClass, 0
	}
	octave := bits.Len32(uint32(n)) - 1
	drop := max(octave-lateSteps, 0)
	threshold = n >> drop << drop
	within := (int(n) << lateSteps >> octave) & (1<<lateSteps - 1)
	return octave<<lateSteps + within, threshold
}

// lateThreshold returns the threshold of a class.
func lateThreshold(class int) berth.Count {
	octave, within := class>>lateSteps, class&(1<<lateSteps-1)
	return berth.Count(1)<<octave + berth.Count(within<<octave>>lateSteps)
}

// lateSet is a set of classes: bit k stands for class k.
type lateSet uint64

const allLateClasses = ^lateSet(0)

// lateTouched returns the classes whose runs change where free counts within
// the bounds change by delta.
func lateTouched(b lateBounds, delta berth.Count) lateSet {
	if delta < 0 {
		b.low += delta
	} else {
		b.high += delta
	}
	top, _ := lateClass(b.high)
	below, _ := lateClass(b.low)
	return lateSet(1)<<(top+1) - lateSet(1)<<(below+1)
}

// lateRun is what is known of the runs of one class within a span: the length
// of the one that reaches into the span from before, of the longest, and of
// the one that reaches its end, in seconds; endlessLateRun is that or more.
type lateRun struct{ head, best, tail uint32 }

const endlessLateRun = math.MaxUint32

func cutLateRun(d berth.Time) uint32 { return uint32(min(d, endlessLateRun)) }

// lateRuns is what a node knows of the runs in its children. The lengths of
// child i in a valid class are upper bounds as long as the free count just
// before the child is at most at[i], and they are exact if the class is exact
// and that count is at[i]. A booking shortens runs, so it leaves bounds what
// they are; only what gives PEs back makes them worthless, by lowering at[i].
type lateRuns struct {
	at    [lateFan]berth.Count
	valid [lateFan]lateSet
	exact [lateFan]lateSet
	class [lateClasses]*lateLengths // nil for classes never wanted
}

// lateLengths is what is known of all children in one class. Most children are
// passed by their longest run alone, so these lie together.
type lateLengths struct{ best, head, tail [lateFan]uint32 }

// change notes a point that changes by delta within child i, one end of an
// interval throughout which the free count changes; old and now are the count
// just before the child until now and from now on. In classes not touched the
// runs are what they were.
func (r *lateRuns) change(i int, old, now, delta berth.Count, touched lateSet) {
	switch {
	case old > r.at[i]:
		r.valid[i] = 0
	case old < r.at[i]:
		r.exact[i] = 0
	}
	if (delta < 0) == (old == now) {
		// A booking: it begins here, or it began before and the count follows.
		r.at[i] = max(r.at[i]+now-old, lateNoHigh)
	} else {
		r.at[i] = now
		r.valid[i] &^= touched
	}
	r.exact[i] &^= touched
}

// bounds reports whether the lengths of child i in a class are upper bounds
// when before PEs are free just before it.
func (r *lateRuns) bounds(i, class int, before berth.Count) bool {
	return class >= 0 && r.valid[i]>>class&1 != 0 && before <= r.at[i]
}

// sharp reports whether lengths that are bounds are exact.
func (r *lateRuns) sharp(i, class int, before berth.Count) bool {
	return r.exact[i]>>class&1 != 0 && before == r.at[i]
}

// get returns what is known of child i in a class when before PEs are free
// just before it, and whether anything is.
func (r *lateRuns) get(i, class int, before berth.Count) (run lateRun, exact, ok bool) {
	if r == nil || !r.bounds(i, class, before) {
		return run, false, false
	}
	known := r.class[class]
	run = lateRun{head: known.head[i], best: known.best[i], tail: known.tail[i]}
	return run, r.sharp(i, class, before), true
}

// put stores what was found out about child i in a class when before PEs are
// free just before it.
func (r *lateRuns) put(i, class int, before berth.Count, run lateRun, exact bool) {
	bit := lateSet(1) << class
	if before != r.at[i] {
		if before > r.at[i] {
			r.valid[i] = 0
		}
		r.at[i] = before
		r.exact[i] = 0
	}
	r.valid[i] |= bit
	r.exact[i] &^= bit
	if exact {
		r.exact[i] |= bit
	}
	if r.class[class] == nil {
		r.class[class] = new(lateLengths)
	}
	known := r.class[class]
	known.head[i], known.best[i], known.tail[i] = run.head, run.best, run.tail
}

// move copies what src knows of count children from j on to position i.
// Nothing is known if src is nil.
func (r *lateRuns) move(i int, src *lateRuns, j, count int) {
	if src == nil {
		clear(r.valid[i : i+count])
		return
	}
	copy(r.at[i:i+count], src.at[j:j+count])
	copy(r.valid[i:i+count], src.valid[j:j+count])
	copy(r.exact[i:i+count], src.exact[j:j+count])
	for k := range r.class {
		if src.class[k] == nil {
			continue // then no valid bit of this class is set either
		}
		if r.class[k] == nil {
			r.class[k] = new(lateLengths)
		}
		to, from := r.class[k], src.class[k]
		copy(to.best[i:i+count], from.best[j:j+count])
		copy(to.head[i:i+count], from.head[j:j+count])
		copy(to.tail[i:i+count], from.tail[j:j+count])
	}
}

// runs measures the runs of at least threshold free PEs in a leaf of the span
// [lo, hi), before whose first point before PEs are free.
func (l *lateLeaf) runs(lo, hi berth.Time, before, threshold berth.Count) lateRun {
	var head, best berth.Time
	start, spare := lo, before-threshold
	for _, p := range l.points() {
		was := spare
		spare += p.delta()
		if was^spare >= 0 { // of one sign
			continue
		}
		t := l.time(p)
		if was >= 0 {
			if start == lo && before >= threshold {
				head = t - lo
			}
			best = max(best, t-start)
		}
		start = t
	}
	var tail berth.Time
	if spare >= 0 {
		tail = hi - start
		best = max(best, tail)
		if start == lo && before >= threshold {
			head = tail
		}
	}
	return lateRun{cutLateRun(head), cutLateRun(best), cutLateRun(tail)}
}

// join puts together what is known of the runs in the children of a node that
// covers [lo, hi). ok is false if something is not known.
func (nd *lateNode) join(hi berth.Time, before, threshold berth.Count, class int) (whole lateRun, exact, ok bool) {
	var best, tail berth.Time
	lo, v := nd.sep[0], before
	exact = true
	head, unbroken := berth.Time(0), true
	for i := range int(nd.n) {
		begin, end := nd.sep[i], nd.end(i, hi)
		switch {
		case v >= threshold && v+nd.low[i] >= threshold:
			tail += end - begin
			best = max(best, tail)
		case v < threshold && v+nd.high[i] < threshold:
			if unbroken {
				head, unbroken = tail, false
			}
			tail = 0
		default:
			run, sharp, known := nd.runs.get(i, class, v)
			if !known { // nor is the whole
				return run, sharp, known
			}
			exact = exact && sharp
			tail += berth.Time(run.head)
			best = max(best, tail, berth.Time(run.best))
			if unbroken {
				head, unbroken = tail, false
			}
			tail = berth.Time(run.tail)
		}
		v += nd.sum[i]
	}
	best = max(best, tail)
	if unbroken {
		head = hi - lo
	}
	return lateRun{cutLateRun(head), cutLateRun(best), cutLateRun(tail)}, exact, true
}
