package calendar

import "github.com/berth-hpc/berth"

// prune forgets the points before now; the value in force at now begins there.
// It costs O(1) if there is nothing to forget, else O(log n) and a share of
// what the forgotten points cost when they were made: whole subtrees go at once.
func (t *lateTree) prune(now berth.Time) {
	if t.successor(lateDawn) >= now {
		return
	}
	var sum berth.Count
	nd := t.root
	for {
		for nd.n > 1 && nd.sep[1] <= now+1 {
			sum += nd.sum[0]
			nd.drop(0)
		}
		nd.forget(0)
		if nd.level == 0 {
			break
		}
		nd = nd.kid[0]
		nd.sep[0] = lateDawn
	}
	leaf := nd.leaf[0]
	gone, key := 0, leaf.after(now)
	for _, p := range leaf.points() {
		if p >= key {
			break
		}
		sum += p.delta()
		gone++
	}
	leaf.n = int32(copy(leaf.pts[:], leaf.points()[gone:]))
	t.feed()
	if sum != 0 {
		t.point(now, sum, true, lateDusk, allLateClasses)
	}
}

// feed gives the first nodes of all levels the least number of children again,
// from the top down, and sums them up.
func (t *lateTree) feed() {
	for nd := t.root; nd.level > 0; {
		switch kid := nd.kid[0]; {
		case nd.n == 1: // the root alone, since the others have been given more
			t.root, nd = kid, kid
		case kid.n < lateMinFan:
			t.balance(nd, 0)
		default:
			nd = kid
		}
	}
	var path latePath
	leaf := t.lead(&path, lateDawn)
	for level := range int(t.root.level) + 1 {
		path[level].nd.refresh(0)
	}
	t.settle(&path, leaf)
}
