package calendar

import "github.com/berth-hpc/berth"

// lateFan is the number of children a node can have. The separators of one
// node then fill four cache lines.
const lateFan = 16

// lateMinFan is what a node that is not the root has at least.
const lateMinFan = lateFan / 4

// lateHeight bounds the levels of nodes: 8⁸ leaves never fit a machine.
const lateHeight = 16

// lateNode is an inner node. Child i covers the times [sep[i], sep[i+1]), the
// last child up to the end of the node's span; all changes within that span are in
// it, and sep[0] is where the node's own span begins. The figures of a child
// are relative to the free count just before its first point, so that nothing
// here depends on what happens elsewhere.
type lateNode struct {
	n     int32
	level int32 // 0 if the children are leaves

	sep  [lateFan]berth.Time
	sum  [lateFan]berth.Count
	low  [lateFan]berth.Count
	high [lateFan]berth.Count

	leaf [lateFan]*lateLeaf // on level 0
	kid  [lateFan]*lateNode // above

	runs *lateRuns // nil until a search wanted them
}

// child returns the child whose span contains at, and the change of the free
// count over the children before it.
func (nd *lateNode) child(at berth.Time) (i int, before berth.Count) {
	for _, sep := range nd.sep[1:nd.n] {
		if sep > at {
			break
		}
		before += nd.sum[i&(lateFan-1)]
		i++
	}
	return i, before
}

// end returns the end of child i's span, given that of the node.
func (nd *lateNode) end(i int, hi berth.Time) berth.Time {
	if i+1 < int(nd.n) {
		return nd.sep[i+1]
	}
	return hi
}

// sums sums up the children.
func (nd *lateNode) sums() lateSums {
	s := lateSums{low: lateNoLow, high: lateNoHigh}
	for i, sum := range nd.sum[:nd.n] {
		s.low = min(s.low, s.sum+nd.low[i&(lateFan-1)])
		s.high = max(s.high, s.sum+nd.high[i&(lateFan-1)])
		s.sum += sum
	}
	return s
}

// put replaces the figures of child i and reports whether they were others.
func (nd *lateNode) put(i int, s lateSums) bool {
	if nd.sum[i] == s.sum && nd.low[i] == s.low && nd.high[i] == s.high {
		return false
	}
	nd.sum[i], nd.low[i], nd.high[i] = s.sum, s.low, s.high
	return true
}

// refresh sums up child i anew and reports whether anything changed.
func (nd *lateNode) refresh(i int) bool {
	if nd.level == 0 {
		return nd.put(i, nd.leaf[i].sums())
	}
	return nd.put(i, nd.kid[i].sums())
}

// move copies count children of src from position j on to position i of nd.
// The two may be the same node, and the runs overlap.
func (nd *lateNode) move(i int, src *lateNode, j, count int) {
	copy(nd.sep[i:i+count], src.sep[j:j+count])
	copy(nd.sum[i:i+count], src.sum[j:j+count])
	copy(nd.low[i:i+count], src.low[j:j+count])
	copy(nd.high[i:i+count], src.high[j:j+count])
	if nd.level == 0 {
		copy(nd.leaf[i:i+count], src.leaf[j:j+count])
	} else {
		copy(nd.kid[i:i+count], src.kid[j:j+count])
	}
	if src.runs != nil && nd.runs == nil {
		nd.runs = new(lateRuns)
	}
	if nd.runs != nil {
		nd.runs.move(i, src.runs, j, count)
	}
}

// open makes room for a child at i and forgets what was known of its runs.
func (nd *lateNode) open(i int) {
	nd.move(i+1, nd, i, int(nd.n)-i)
	nd.n++
	nd.forget(i)
}

// drop takes child i out. Its span goes to the child before it, or to the one
// after it if it was the first.
func (nd *lateNode) drop(i int) {
	sep := nd.sep[i]
	nd.move(i, nd, i+1, int(nd.n)-i-1)
	nd.n--
	nd.clear(int(nd.n))
	if i == 0 {
		nd.sep[0] = sep
	}
	nd.forget(max(i-1, 0))
}

// clear lets go of the children from i on.
func (nd *lateNode) clear(i int) {
	clear(nd.leaf[i:])
	clear(nd.kid[i:])
}

// forget drops what is known of child i's runs.
func (nd *lateNode) forget(i int) {
	if nd.runs != nil {
		nd.runs.valid[i] = 0
	}
}
