package calendar

import "github.com/berth-hpc/berth"

// lateBounds is the lowest and the highest value over a stretch of time.
type lateBounds struct{ low, high berth.Count }

func (b *lateBounds) take(o lateBounds) {
	b.low, b.high = min(b.low, o.low), max(b.high, o.high)
}

// over returns the bounds over a non-empty interval in O(log n).
func (t *lateTree) over(iv berth.Interval) lateBounds {
	return t.root.over(iv, t.base)
}

// over returns the bounds over the part of iv from the node's first span on,
// beginning with the value in force at iv.Start or before the node.
func (nd *lateNode) over(iv berth.Interval, v berth.Count) lateBounds {
	i, before := nd.child(iv.Start)
	v += before
	bounds := nd.overChild(i, iv, v)
	for v += nd.sum[i]; i+1 < int(nd.n) && nd.sep[i+1] < iv.End; v += nd.sum[i] {
		i++
		if i+1 < int(nd.n) && nd.sep[i+1] <= iv.End {
			bounds.take(lateBounds{v + nd.low[i], v + nd.high[i]})
		} else {
			bounds.take(nd.overChild(i, iv, v))
		}
	}
	return bounds
}

func (nd *lateNode) overChild(i int, iv berth.Interval, v berth.Count) lateBounds {
	if nd.level > 0 {
		return nd.kid[i].over(iv, v)
	}
	l := nd.leaf[i]
	first, end := l.after(iv.Start), l.key(iv.End)
	pts := l.points()
	for len(pts) > 0 && pts[0] < first {
		v += pts[0].delta()
		pts = pts[1:]
	}
	bounds := lateBounds{v, v}
	for _, p := range pts {
		if p >= end {
			break
		}
		v += p.delta()
		bounds.take(lateBounds{v, v})
	}
	return bounds
}

// next returns the first time from at on at which the value is below n, or
// lateDusk.
func (t *lateTree) next(at berth.Time, n berth.Count) berth.Time {
	when, ok := t.root.next(at, n, t.base, true)
	if !ok {
		return lateDusk
	}
	return when
}

// next searches the node from the time at on if first, else from its first
// point on.
func (nd *lateNode) next(at berth.Time, n, v berth.Count, first bool) (berth.Time, bool) {
	i := 0
	if first {
		var before berth.Count
		i, before = nd.child(at)
		v += before
	}
	for ; i < int(nd.n); i++ {
		if first || v+nd.low[i] < n {
			var when berth.Time
			var ok bool
			if nd.level > 0 {
				when, ok = nd.kid[i].next(at, n, v, first)
			} else {
				when, ok = nd.leaf[i].next(at, n, v, first)
			}
			if ok {
				return when, true
			}
		}
		v += nd.sum[i]
		first = false
	}
	return 0, false
}

func (l *lateLeaf) next(at berth.Time, n, v berth.Count, first bool) (berth.Time, bool) {
	pts := l.points()
	if first {
		key := l.after(at)
		for len(pts) > 0 && pts[0] < key {
			v += pts[0].delta()
			pts = pts[1:]
		}
		if v < n {
			return at, true
		}
	}
	for _, p := range pts {
		v += p.delta()
		if v < n {
			return l.time(p), true
		}
	}
	return 0, false
}

// clearSince returns the earliest time from which on, up to before at, at least
// n PEs are free, and lateDawn if they are from the beginning. It is the end of
// the last step below n that begins before at, which may lie beyond at. The base
// is at least n.
func (t *lateTree) clearSince(at berth.Time, n berth.Count) berth.Time {
	when, ok := t.root.prev(at, n, t.base, true)
	if !ok {
		return lateDawn
	}
	return t.successor(when)
}

// prev returns the last point before at from which on the value is below n; if
// not last, the node ends before at.
func (nd *lateNode) prev(at berth.Time, n, v berth.Count, last bool) (berth.Time, bool) {
	i, before := int(nd.n)-1, berth.Count(0)
	if last {
		i, before = nd.child(at - 1)
	} else {
		for _, sum := range nd.sum[:i] {
			before += sum
		}
	}
	v += before
	for ; i >= 0; i-- {
		if last || v+nd.low[i] < n {
			var when berth.Time
			var ok bool
			if nd.level > 0 {
				when, ok = nd.kid[i].prev(at, n, v, last)
			} else {
				when, ok = nd.leaf[i].prev(at, n, v)
			}
			if ok {
				return when, true
			}
		}
		if i > 0 {
			v -= nd.sum[i-1]
		}
		last = false
	}
	return 0, false
}

func (l *lateLeaf) prev(at berth.Time, n, v berth.Count) (when berth.Time, ok bool) {
	key := l.key(at)
	for _, p := range l.points() {
		if p >= key {
			break
		}
		v += p.delta()
		if v < n {
			when, ok = l.time(p), true
		}
	}
	return when, ok
}

// successor returns the first point after at, or lateDusk.
func (t *lateTree) successor(at berth.Time) berth.Time {
	c := t.cursor(at)
	return c.time()
}

// before returns the last point before at, if there is any.
func (t *lateTree) before(at berth.Time) (berth.Time, bool) {
	return t.root.prev(at, lateNoLow, 0, true)
}

// value returns the value at a time.
func (t *lateTree) value(at berth.Time) berth.Count {
	c := t.cursor(at)
	return c.v
}

// lateCursor walks the points in order of time. It stands before a point, and
// v is the value in force until then. A change of the tree makes it worthless.
type lateCursor struct {
	path [lateHeight]lateTurn
	leaf *lateLeaf
	j    int
	v    berth.Count
	top  int
}

// lateTurn is a node and the child a cursor is in.
type lateTurn struct {
	nd *lateNode
	i  int
}

// cursor returns a cursor before the first point after at.
func (t *lateTree) cursor(at berth.Time) (c lateCursor) {
	c.v, c.top = t.base, int(t.root.level)
	nd := t.root
	for {
		i, before := nd.child(at)
		c.path[nd.level] = lateTurn{nd, i}
		c.v += before
		if nd.level == 0 {
			c.leaf = nd.leaf[i]
			break
		}
		nd = nd.kid[i]
	}
	key := c.leaf.after(at)
	for _, p := range c.leaf.points() {
		if p >= key {
			break
		}
		c.v += p.delta()
		c.j++
	}
	c.skip()
	return c
}

// skip leaves a leaf that is used up.
func (c *lateCursor) skip() {
	for c.leaf != nil && c.j == int(c.leaf.n) {
		level := 0
		for level <= c.top && c.path[level].i+1 == int(c.path[level].nd.n) {
			level++
		}
		if level > c.top {
			c.leaf = nil
			return
		}
		c.path[level].i++
		for ; level > 0; level-- {
			c.path[level-1] = lateTurn{c.path[level].nd.kid[c.path[level].i], 0}
		}
		c.leaf, c.j = c.path[0].nd.leaf[c.path[0].i], 0
	}
}

// time returns the time of the point ahead, lateDusk if there is none.
func (c *lateCursor) time() berth.Time {
	if c.leaf == nil {
		return lateDusk
	}
	return c.leaf.time(c.leaf.pts[c.j])
}

// step moves past the point ahead, which must exist.
func (c *lateCursor) step() {
	c.v += c.leaf.pts[c.j].delta()
	c.j++
	c.skip()
}
