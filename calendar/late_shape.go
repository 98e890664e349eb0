package calendar

import "github.com/berth-hpc/berth"

// split makes room for a point at the time at in or beside a leaf that cannot
// take it: the leaf is full, or its offsets do not reach that far. What is
// known of the runs above the leaf stays right, for no value changes.
func (t *lateTree) split(path *latePath, leaf *lateLeaf, at berth.Time) {
	nd, i := path[0].nd, path[0].i
	if nd.n == lateFan {
		t.splitNode(path, 0)
		return // the caller looks for the leaf again
	}
	right := &lateLeaf{}
	half := int(leaf.n) / 2
	switch {
	case leaf.n < lateLeafCap && at < leaf.base:
		half = 0
	case leaf.n < lateLeafCap:
		half = int(leaf.n)
	}
	sep := at
	if half < int(leaf.n) {
		sep = leaf.time(leaf.pts[half])
		right.base = sep
		shift := leaf.pts[half] >> 32 << 32
		for _, p := range leaf.points()[half:] {
			right.pts[right.n] = p - shift
			right.n++
		}
		leaf.n = int32(half)
	}
	nd.open(i + 1)
	nd.sep[i+1] = sep
	nd.leaf[i+1] = right
	nd.forget(i)
	nd.refresh(i)
	nd.refresh(i + 1)
}

// splitNode splits the path's node of that level in two.
func (t *lateTree) splitNode(path *latePath, level int) {
	nd := path[level].nd
	if nd == t.root {
		root := &lateNode{n: 1, level: nd.level + 1}
		root.sep[0] = nd.sep[0]
		root.kid[0] = nd
		root.refresh(0)
		t.root = root
		path[level+1] = lateStep{nd: root}
	}
	if path[level+1].nd.n == lateFan {
		t.splitNode(path, level+1)
		return
	}
	parent, i := path[level+1].nd, path[level+1].i
	half := int(nd.n) / 2
	right := &lateNode{level: nd.level, n: nd.n - int32(half)}
	right.move(0, nd, half, int(right.n))
	nd.n = int32(half)
	nd.clear(half)
	parent.open(i + 1)
	parent.sep[i+1] = right.sep[0]
	parent.kid[i+1] = right
	parent.forget(i)
	parent.refresh(i)
	parent.refresh(i + 1)
}

// shrinkLeaf joins a leaf that has become small with a neighbour under the
// same node, or drops it if it is empty. It reports whether the node has
// changed; its figures are then right.
func (t *lateTree) shrinkLeaf(nd *lateNode, i int) bool {
	if nd.n == 1 {
		return false
	}
	if nd.leaf[i].n == 0 {
		nd.drop(i)
		return true
	}
	for _, left := range [2]int{i - 1, i} {
		if left < 0 || left+1 >= int(nd.n) || nd.leaf[left].n+nd.leaf[left+1].n > lateLeafCap*3/4 {
			continue
		}
		right := nd.leaf[left+1]
		into := nd.leaf[left]
		if !into.fits(right.time(right.pts[0]), right.time(right.pts[right.n-1])) {
			continue
		}
		shift := right.base - into.base
		for _, p := range right.points() {
			into.pts[into.n] = p + latePoint(shift)<<32
			into.n++
		}
		nd.drop(left + 1)
		nd.refresh(left)
		return true
	}
	return false
}

// shrink restores the least number of children along the path, after its
// lowest node has lost one, and brings the figures above up to date.
func (t *lateTree) shrink(path *latePath) {
	top := int(t.root.level)
	for level := range top {
		parent, i := path[level+1].nd, path[level+1].i
		parent.refresh(i)
		if path[level].nd.n >= lateMinFan || parent.n == 1 {
			continue
		}
		left := max(i-1, 0)
		t.balance(parent, left)
		path[level+1].i = left
	}
	for t.root.level > 0 && t.root.n == 1 {
		t.root = t.root.kid[0]
	}
}

// balance joins two neighbouring nodes, or shares their children out evenly
// where these are too many for one.
func (t *lateTree) balance(parent *lateNode, i int) {
	a, b := parent.kid[i], parent.kid[i+1]
	total := int(a.n + b.n)
	if total <= lateFan*3/4 {
		a.move(int(a.n), b, 0, int(b.n))
		a.n = int32(total)
		parent.drop(i + 1)
		parent.refresh(i)
		return
	}
	half := total / 2
	if count := half - int(a.n); count > 0 {
		a.move(int(a.n), b, 0, count)
		b.move(0, b, count, int(b.n)-count)
	} else {
		count = -count
		b.move(count, b, 0, int(b.n))
		b.move(0, a, half, count)
	}
	a.n, b.n = int32(half), int32(total-half)
	a.clear(half)
	b.clear(total - half)
	parent.sep[i+1] = b.sep[0]
	parent.forget(i)
	parent.forget(i + 1)
	parent.refresh(i)
	parent.refresh(i + 1)
}
