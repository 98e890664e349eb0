package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// levels computes into bl the bottom levels of the tasks with these numbers of
// PEs, in whole seconds as reserved: a task's own duration and the longest way
// from its end to the end of the workflow. Only the tasks of part
// take part; nil is all. Cost: O(n + e).
func levels(w *Workflow, curves []curve, npe []berth.Count, part []bool, bl []berth.Duration) {
	for _, i := range slices.Backward(w.topological) {
		if part != nil && !part[i] {
			continue
		}
		below := berth.Duration(0)
		for _, child := range w.children.of(i) {
			if part == nil || part[child] {
				below = max(below, bl[child])
			}
		}
		bl[i] = curves[i].duration(npe[i]) + below
	}
}

// ranked is a task on its way into an order.
type ranked struct {
	level berth.Duration
	place int32 // in topological order
	task  int32
}

// sortRanked sorts by decreasing level, ties by topological place. Every task
// lasts at least a second, so parents come before their children.
func sortRanked(list []ranked) {
	slices.SortFunc(list, func(a, b ranked) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
}

// before reports whether a comes before another one, b, in the order of sortRanked.
func before(a, b ranked) bool {
	return a.level > b.level || a.level == b.level && a.place < b.place
}

// orderOf returns the tasks by decreasing bottom level.
func orderOf(w *Workflow, bl []berth.Duration) []int32 {
	list := make([]ranked, 0, w.Len())
	for place, task := range w.topological {
		list = append(list, ranked{bl[task], int32(place), task})
	}
	sortRanked(list)
	order := make([]int32, len(list))
	for i, r := range list {
		order[i] = r.task
	}
	return order
}
