package calendar

import "github.com/berth-hpc/berth"

// lateTree is a canonical step function of time: base before the first point,
// and from each point on another value. It is a B+-tree over the points. Since
// every figure in it is relative, taking n PEs throughout an interval changes
// two points and the figures above them, however many points lie between.
type lateTree struct {
	base berth.Count
	root *lateNode
}

// lateStep is a node on a path and the child the path goes through. v is the
// value before the child, hi where the node's span ends.
type lateStep struct {
	nd *lateNode
	i  int
	v  berth.Count
	hi berth.Time
}

// latePath leads from the root down to a leaf, indexed by the nodes' levels.
type latePath [lateHeight]lateStep

// The spans of the first and last leaf have no end.
const (
	lateDawn berth.Time = -2 * berth.TimeLimit
	lateDusk berth.Time = berth.Forever
)

func newLateTree(base berth.Count) lateTree {
	root := &lateNode{n: 1}
	root.sep[0] = lateDawn
	root.leaf[0] = &lateLeaf{}
	root.put(0, root.leaf[0].sums())
	return lateTree{base: base, root: root}
}

// lead makes path lead to the leaf whose span contains at, and returns the leaf.
func (t *lateTree) lead(path *latePath, at berth.Time) *lateLeaf {
	nd, v, hi := t.root, t.base, lateDusk
	for {
		i, before := nd.child(at)
		v += before
		path[nd.level&(lateHeight-1)] = lateStep{nd, i, v, hi}
		if nd.level == 0 {
			return nd.leaf[i]
		}
		hi = nd.end(i, hi)
		nd = nd.kid[i]
	}
}

// overPath is over(iv) for a path that leads to iv.Start.
func (t *lateTree) overPath(path *latePath, iv berth.Interval) lateBounds {
	level := 0
	for path[level].hi < iv.End {
		level++
	}
	v := t.base
	if level < int(t.root.level) {
		v = path[level+1].v
	}
	return path[level].nd.over(iv, v)
}

// shiftPath changes the value by delta throughout iv, for a path that leads to
// leaf at iv.Start: a booking is made if delta is negative, and given back if not.
// It returns for both ends what lateLeaf.add does. It costs O(log n): each end of iv touches one leaf and, where
// their figures change, the nodes above. Runs of classes other than those touched
// are the same before and after.
func (t *lateTree) shiftPath(path *latePath, leaf *lateLeaf, iv berth.Interval, delta berth.Count, touched lateSet) (start, end berth.Count) {
	made := delta < 0
	nd, i, hi := path[0].nd, path[0].i, path[0].hi
	j, other, v := i, leaf, path[0].v
	if iv.End < hi {
		for j+1 < int(nd.n) && nd.sep[j+1] <= iv.End {
			v += nd.sum[j]
			j++
		}
		if j != i {
			other = nd.leaf[j]
		}
	}
	if iv.End >= hi || !leaf.takes(iv.Start) || !other.takes(iv.End) || (j == i && !leaf.fits(iv.Start, iv.End)) {
		start = t.pointPath(path, leaf, iv.Start, delta, made, lateDusk, touched)
		end = t.point(iv.End, -delta, made, iv.Start, touched)
		return start, end
	}
	// Both ends lie in leaves of one node, perhaps in one leaf.
	t.known(path, lateDusk, delta, touched)
	start = leaf.add(iv.Start, delta, made)
	end = other.add(iv.End, -delta, made)
	if j != i {
		if nd.runs != nil {
			nd.runs.change(j, v, v+delta, -delta, touched)
		}
		t.settlePair(path, leaf, other, j)
		return start, end
	}
	t.settle(path, leaf)
	return start, end
}

// point changes the value by delta from at on, see lateLeaf.add. since is the start of the
// interval whose end this is, and lateDusk if this is a start.
func (t *lateTree) point(at berth.Time, delta berth.Count, made bool, since berth.Time, touched lateSet) berth.Count {
	var path latePath
	leaf := t.lead(&path, at)
	return t.pointPath(&path, leaf, at, delta, made, since, touched)
}

// pointPath is point for a path that leads to leaf at that time.
func (t *lateTree) pointPath(path *latePath, leaf *lateLeaf, at berth.Time, delta berth.Count, made bool, since berth.Time, touched lateSet) berth.Count {
	for leaf.n == lateLeafCap || !leaf.fits(at, at) {
		t.split(path, leaf, at)
		leaf = t.lead(path, at)
	}
	t.known(path, since, delta, touched)
	rest := leaf.add(at, delta, made)
	t.settle(path, leaf)
	return rest
}

// known adjusts what is known of the runs along the path for a point that
// changes by delta. Where the interval whose end it is began before the child,
// the value before the child has been changed the other way already; where it
// began inside, what is known has been adjusted for all of it.
func (t *lateTree) known(path *latePath, since berth.Time, delta berth.Count, touched lateSet) {
	for level := range int(t.root.level) + 1 {
		step := &path[level]
		switch r := step.nd.runs; {
		case r == nil:
		case since == lateDusk:
			r.change(step.i, step.v, step.v, delta, touched)
		case step.nd.sep[step.i] > since:
			r.change(step.i, step.v+delta, step.v, delta, touched)
		}
	}
}

// settle brings the figures above a changed leaf up to date and restores the
// shape of the tree.
func (t *lateTree) settle(path *latePath, leaf *lateLeaf) {
	nd, i := path[0].nd, path[0].i
	if leaf.n < lateLeafCap/4 && t.shrinkLeaf(nd, i) {
		t.shrink(path)
		return
	}
	if nd.put(i, leaf.sums()) {
		t.climb(path, 1)
	}
}

// settlePair is settle for a leaf and a later one, child j of the same node.
func (t *lateTree) settlePair(path *latePath, leaf, other *lateLeaf, j int) {
	nd, i := path[0].nd, path[0].i
	changed := nd.put(j, other.sums())
	changed = nd.put(i, leaf.sums()) || changed
	shrunk := other.n < lateLeafCap/4 && t.shrinkLeaf(nd, j)
	shrunk = leaf.n < lateLeafCap/4 && t.shrinkLeaf(nd, i) || shrunk
	switch {
	case shrunk:
		t.shrink(path)
	case changed:
		t.climb(path, 1)
	}
}

// climb sums up the children of the path from the level on, as long as that
// changes anything.
func (t *lateTree) climb(path *latePath, level int) {
	for ; level <= int(t.root.level); level++ {
		if step := &path[level]; !step.nd.refresh(step.i) {
			return
		}
	}
}

// leafAt returns the leaf whose span contains at.
func (t *lateTree) leafAt(at berth.Time) *lateLeaf {
	var path latePath
	return t.lead(&path, at)
}
