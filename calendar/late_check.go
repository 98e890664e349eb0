package calendar

import (
	"fmt"

	"github.com/berth-hpc/berth"
)

// check reports the first invariant of the structure that does not hold.
func (c *fastLate) check() error {
	if c.free.base != c.size {
		return fmt.Errorf("the base is %d", c.free.base)
	}
	if err := c.free.check(); err != nil {
		return err
	}
	least := berth.Count(1)
	for _, n := range c.seams.at {
		least = min(least, n)
	}
	if least < 1 {
		return fmt.Errorf("a seam of %d PEs is kept", least)
	}
	if c.fitPEs > 0 && c.free.over(c.fit).low < c.fitPEs {
		return fmt.Errorf("%d PEs are not free during %s", c.fitPEs, c.fit)
	}
	return nil
}

func (t *lateTree) check() error {
	if t.root.level > 0 && t.root.n < 2 {
		return fmt.Errorf("the root has one child")
	}
	return t.root.check(t, berth.Interval{Start: lateDawn, End: lateDusk}, t.base)
}

// check verifies a node of the given span with v before its first point.
func (nd *lateNode) check(t *lateTree, span berth.Interval, v berth.Count) error {
	if nd.n < 1 || nd.n > lateFan || (nd != t.root && nd.n < 2) || nd.sep[0] != span.Start {
		return fmt.Errorf("node of %s: %d children, from %d", span, nd.n, nd.sep[0])
	}
	for i := range int(nd.n) {
		part := berth.Interval{Start: nd.sep[i], End: nd.end(i, span.End)}
		if part.Start >= part.End {
			return fmt.Errorf("node of %s: child %d covers %s", span, i, part)
		}
		var err error
		var sums lateSums
		if nd.level == 0 {
			err, sums = nd.leaf[i].check(part), nd.leaf[i].sums()
			if nd.leaf[i].n == 0 && t.root.level > 0 && nd.n > 1 {
				return fmt.Errorf("empty leaf of %s", part)
			}
		} else {
			if nd.kid[i].level != nd.level-1 {
				return fmt.Errorf("node of %s: child on level %d", span, nd.kid[i].level)
			}
			err, sums = nd.kid[i].check(t, part, v), nd.kid[i].sums()
		}
		if err != nil {
			return err
		}
		if got := (lateSums{nd.sum[i], nd.low[i], nd.high[i]}); got != sums {
			return fmt.Errorf("child %s: figures %v, not %v", part, got, sums)
		}
		if err := nd.checkRuns(t, i, part, v); err != nil {
			return err
		}
		v += nd.sum[i]
	}
	for i := int(nd.n); i < lateFan; i++ {
		if nd.leaf[i] != nil || nd.kid[i] != nil {
			return fmt.Errorf("node of %s keeps child %d of %d", span, i, nd.n)
		}
	}
	return nil
}

func (l *lateLeaf) check(span berth.Interval) error {
	if l.n < 0 || l.n > lateLeafCap {
		return fmt.Errorf("leaf of %s: %d points", span, l.n)
	}
	previous := span.Start - 1
	for _, p := range l.points() {
		at := l.time(p)
		if at <= previous || !span.Contains(at) || p.delta() == 0 || p.offset() > maxLateOffset {
			return fmt.Errorf("leaf of %s: point %d at %d after %d", span, p.delta(), at, previous)
		}
		previous = at
	}
	return nil
}

// checkRuns compares what a node knows of child i's runs with the child.
func (nd *lateNode) checkRuns(t *lateTree, i int, part berth.Interval, v berth.Count) error {
	for class := range lateClasses {
		run, exact, ok := nd.runs.get(i, class, v)
		if !ok {
			continue
		}
		threshold := lateThreshold(class)
		if k, back := lateClass(threshold); k != class || back != threshold {
			return fmt.Errorf("class %d: threshold %d is %d of class %d", class, threshold, back, k)
		}
		is := lateTruth(t, part, threshold)
		if is.head > run.head || is.best > run.best || is.tail > run.tail || (exact && is != run) {
			return fmt.Errorf("runs of %d in %s: %v (exact %t), is %v", threshold, part, run, exact, is)
		}
	}
	return nil
}

// lateTruth measures the runs of a span point by point.
func lateTruth(t *lateTree, span berth.Interval, threshold berth.Count) lateRun {
	at := t.cursor(span.Start - 1)
	start, before, v := span.Start, at.v, at.v
	var run lateRun
	for begin := start; begin < span.End; {
		end := min(at.time(), span.End)
		if v < threshold {
			start = end
		} else {
			length := cutLateRun(end - start)
			if start == span.Start && before >= threshold {
				run.head = length
			}
			run.best = max(run.best, length)
			if end == span.End {
				run.tail = length
			}
		}
		if begin = end; begin < span.End {
			at.step()
			v = at.v
		}
	}
	return run
}
