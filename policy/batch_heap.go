package policy

// heap is a binary heap without boxing: the element that comes before all
// others is at index 0.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
}

// settle makes a heap of elements in any order. Cost: O(n).
func (h *heap[T]) settle() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// sink moves an element that comes too early to where it belongs.
func (h *heap[T]) sink(i int) {
	s := h.items
	for {
		child := 2*i + 1
		if child >= len(s) {
			return
		}
		if child+1 < len(s) && h.before(s[child+1], s[child]) {
			child++
		}
		if !h.before(s[child], s[i]) {
			return
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}

// add puts an element in.
func (h *heap[T]) add(x T) {
	h.items = append(h.items, x)
	s := h.items
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(s[i], s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

// drop takes the first element out.
func (h *heap[T]) drop() {
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	h.sink(0)
}
