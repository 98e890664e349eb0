package state

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// in reports whether a part is in a pool.
func (e *Entry) in(pool berth.ResourceID) bool {
	for i := range e.r.Allotments {
		if e.r.Allotments[i].Resource == pool {
			return true
		}
	}
	return false
}

// ActiveIn is Active for those alone with a part in a pool, over or not. Cost: O(n) for n of one part that are
// active in the pool, and those of several parts that are active in any.
func (s *State) ActiveIn(pool berth.ResourceID, wanted func(*Entry) bool) []*Entry {
	var list []*Entry
	i, _ := s.Index(pool)
	for _, e := range s.pools[i].active {
		if wanted(e) {
			list = append(list, e)
		}
	}
	for _, e := range s.several {
		if e.in(pool) && wanted(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.r.Sequence, b.r.Sequence) })
	return list
}
