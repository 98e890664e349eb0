package calendar

import (
	"math/bits"

	"github.com/berth-hpc/berth"
)

// sides are how many eligible PEs are busy at the two ends of a sweep's window: from
// its start on, and from the record on the right on. Between two candidates there is
// no record at either end, so what is booked in the window grows by the difference
// for every second that it moves. Cost: as many pieces as pass the right end.
type sides struct {
	left, right berth.Count
	busy        words // at the right end
}

// beginLoad returns the PE-seconds booked in the first window of a sweep that visits every record.
func (s *sweep) beginLoad() int64 {
	b := &s.sides
	b.busy = append(b.busy[:0], make(words, len(s.cells))...)
	b.left = 0
	for i := s.used.lo; i < s.used.hi; i++ {
		b.busy[i] = s.cells[i].busy &^ s.cells[i].shut
		b.left += berth.Count(bits.OnesCount64(b.busy[i]))
	}
	b.right = b.left
	var booked int64
	since := s.start
	for i := range s.right {
		booked += berth.Area(b.right, s.times[i].Sub(since))
		since = s.times[i]
		s.turnRight(i)
	}
	return booked + berth.Area(b.right, s.start.Add(s.query.Duration).Sub(since))
}

// turnRight lets the right end pass a record.
func (s *sweep) turnRight(record int) {
	b := &s.sides
	b.right += s.flip(b.busy, record)
}

// flip changes the busy PEs by a record, and returns how many more there are.
func (s *sweep) flip(busy words, record int) (more berth.Count) {
	for _, p := range s.set[s.ends[record]:s.ends[record+1]] {
		was := busy[p.word] & p.mask
		busy[p.word] ^= p.mask
		more += berth.Count(bits.OnesCount64(p.mask) - 2*bits.OnesCount64(was))
	}
	return more
}

// advanceLoad is advance, and keeps what is booked in the window.
func (s *sweep) advanceLoad(booked *int64) bool {
	start, left, right := s.start, s.left, s.right
	if !s.advance() {
		return false
	}
	b := &s.sides
	if s.right > right { // the window's end stood at a record
		s.turnRight(right)
	}
	*booked += int64(b.right-b.left) * int64(s.start.Sub(start))
	if s.left > left {
		for _, p := range s.set[s.ends[left]:s.ends[left+1]] {
			b.left += berth.Count(2*bits.OnesCount64(s.cells[p.word].busy&p.mask) - bits.OnesCount64(p.mask))
		}
	}
	return true
}
