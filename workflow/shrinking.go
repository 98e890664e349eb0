package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// shrinking is a mapping of tasks with given numbers of PEs from which one after another is taken
// out, always one without children among those that are left. The starts are those of a mapping
// from nothing of the tasks that are left. Mostly few bottom levels change when a task goes, so
// the list is brought up to date rather than sorted, and what comes before the first place at
// which it differs is not placed again.
//
// Cost: a start O(stride + the tasks from the first difference on), each with as many steps as
// PEs become available at different times; a task taken out O(n), and k log k for k changed levels.
type shrinking struct {
	mapping
	w      *Workflow
	curves []curve
	npe    []berth.Count
	now    berth.Time

	in      []bool  // which tasks are left
	rank    []int32 // of each task, its place in topological order
	at      []int32 // of each task in the list
	dirty   []bool  // scratch space: tasks that have lost a child, or with one that has a lower level
	changed []ranked
	next    []ranked // scratch space of the list

	stride int // between two marks
	marks  []mark
	done   int // how many of the list are placed, as the list is now
}

// mark is what is available before a place of the list that is a multiple of the stride.
type mark struct {
	times []berth.Time
	count []berth.Count
}

// A mark is a copy of what is available, which is about as long as leastStride tasks take to
// place. There are at most mostMarks, since each may be as long as there are PEs.
const (
	leastStride = 16
	mostMarks   = 64
)

// newShrinking prepares the mapping of all tasks on q PEs.
func newShrinking(w *Workflow, curves []curve, npe []berth.Count, now berth.Time, q berth.Count) *shrinking {
	n := w.Len()
	s := &shrinking{
		w: w, curves: curves, npe: npe, now: now, in: make([]bool, n), rank: make([]int32, n), at: make([]int32, n), dirty: make([]bool, n),
		stride: max(leastStride, n/mostMarks+1),
	}
	s.end, s.bl = make([]berth.Time, n), make([]berth.Duration, n)
	levels(w, curves, npe, nil, s.bl)
	for place, task := range w.topological {
		s.in[task], s.rank[task] = true, int32(place)
		s.list = append(s.list, ranked{s.bl[task], int32(place), task})
	}
	sortRanked(s.list)
	s.number(0)
	s.begin(now, q)
	s.marks = append(s.marks, mark{slices.Clone(s.times), slices.Clone(s.count)})
	return s
}

// number notes where the tasks from a place of the list on are.
func (s *shrinking) number(from int) {
	for i := from; i < len(s.list); i++ {
		s.at[s.list[i].task] = int32(i)
	}
}

// start returns when a task that is left starts.
func (s *shrinking) start(task int32) berth.Time {
	last := int(s.at[task])
	if last >= s.done {
		k := min(s.done/s.stride, len(s.marks)-1)
		s.times, s.count = append(s.times[:0], s.marks[k].times...), append(s.count[:0], s.marks[k].count...)
		for i := k * s.stride; i <= last; i++ {
			if i == len(s.marks)*s.stride {
				s.keep()
			}
			s.put(s.list[i].task)
		}
		s.done = last + 1
	}
	return s.end[task].Add(-s.curves[task].duration(s.npe[task]))
}

// keep notes what is available now as the next mark.
func (s *shrinking) keep() {
	var m mark
	if n := len(s.marks); n < cap(s.marks) { // memory of one that was given up
		m = s.marks[:n+1][n]
	}
	s.marks = append(s.marks, mark{append(m.times[:0], s.times...), append(m.count[:0], s.count...)})
}

// put places a task behind its parents.
func (s *shrinking) put(task int32) {
	ready := s.now
	for _, parent := range s.w.parents.of(task) {
		ready = max(ready, s.end[parent])
	}
	d := s.curves[task].duration(s.npe[task])
	s.end[task] = s.mapping.place(ready, s.npe[task], d).Add(d)
}

// drop takes a task out that has no children left.
func (s *shrinking) drop(task int32) {
	s.in[task] = false
	s.lower(task)
	first := int(s.at[task])
	if len(s.changed) == 0 {
		s.list = slices.Delete(s.list, first, first+1)
	} else {
		first = s.merge(task)
	}
	s.number(first)
	s.done = min(s.done, first)
	s.marks = s.marks[:min(len(s.marks), first/s.stride+1)]
}

// lower finds the bottom levels that are lower without a task.
func (s *shrinking) lower(task int32) {
	s.changed = s.changed[:0]
	open := 0
	soil := func(of int32) {
		for _, parent := range s.w.parents.of(of) {
			if !s.dirty[parent] {
				s.dirty[parent] = true
				open++
			}
		}
	}
	soil(task)
	for place := s.rank[task] - 1; open > 0; place-- {
		i := s.w.topological[place]
		if !s.dirty[i] {
			continue
		}
		s.dirty[i] = false
		open--
		below := berth.Duration(0)
		for _, child := range s.w.children.of(i) {
			if s.in[child] {
				below = max(below, s.bl[child])
			}
		}
		if level := s.curves[i].duration(s.npe[i]) + below; level != s.bl[i] {
			s.bl[i] = level
			s.changed = append(s.changed, ranked{level, place, i})
			soil(i)
		}
	}
}

// merge brings the list up to date without a task, and returns where it first differs.
func (s *shrinking) merge(without int32) int {
	sortRanked(s.changed)
	s.next = s.next[:0]
	k := 0
	for _, r := range s.list {
		if r.task == without || s.bl[r.task] != r.level {
			continue
		}
		for k < len(s.changed) && before(s.changed[k], r) {
			s.next = append(s.next, s.changed[k])
			k++
		}
		s.next = append(s.next, r)
	}
	s.next = append(s.next, s.changed[k:]...)
	s.list, s.next = s.next, s.list
	first := 0
	for first < len(s.list) && s.list[first].task == s.next[first].task {
		first++
	}
	return first
}
