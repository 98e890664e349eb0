package workload

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// day is a day in seconds.
const day = 86_400

// history is how far back the average of free PEs looks: thirty days
// (specification of the mixed-parallel paper, section a).
const history berth.Duration = 30 * day

// Past returns the time over which the historical average of free PEs is
// taken: the thirty days before now, but not before begin, the start of the
// log. It is empty if now is not after begin.
func Past(begin, now berth.Time) berth.Interval {
	return berth.Interval{Start: min(now, max(begin, now-berth.Time(history))), End: now}
}

// AverageFree returns how many of the machine's PEs the bookings left free on
// average during an interval, rounded, halves up, and brought into 1..pes: q in
// the mixed-parallel paper, if the interval is Past. An empty interval gives
// pes. Cost: O(n).
func AverageFree(bookings []Booking, pes berth.Count, during berth.Interval) berth.Count {
	length := int64(during.Length())
	if length <= 0 {
		return pes
	}
	// Both terms stay below 2^62: 2^20 PEs, and at most thirty days, 2^22 s, or
	// as much as a caller asks for, saturating.
	free := berth.Area(pes, during.Length())
	for i := range bookings {
		b := &bookings[i]
		from, to := max(b.Start, during.Start), min(b.End, during.End)
		if from < to {
			free -= berth.Area(b.NPE, to.Sub(from))
		}
	}
	q := (free + length/2) / length
	return berth.Count(min(int64(pes), max(1, q)))
}

// CheckFit returns nil if at no time more than that many PEs are booked, and
// else an *berth.Error with code Invalid that names the first booking that does
// not fit. Cost: O(n log n).
func CheckFit(bookings []Booking, pes berth.Count) error {
	var running endings
	for _, i := range byStart(bookings) {
		b := &bookings[i]
		if !running.fits(b.Start, b.End, b.NPE, pes) {
			return berth.Errorf(berth.Invalid, "npe", "booking %q of %d PEs makes %d booked at %d; the machine has %d",
				b.ID, b.NPE, running.npe+int64(b.NPE), b.Start, pes)
		}
	}
	return nil
}

// byStart returns the indices of bookings in the order of their starts, those
// of one start in theirs.
func byStart(bookings []Booking) []int32 {
	order := make([]int32, len(bookings))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		return cmp.Or(cmp.Compare(bookings[i].Start, bookings[j].Start), cmp.Compare(i, j))
	})
	return order
}

// endings are the bookings under way, in a heap by end. Because they are taken
// in the order of their starts, what is under way when one starts is the most
// there will be until the next one starts.
type endings struct {
	heap []ending
	npe  int64 // of all
}

type ending struct {
	end berth.Time
	npe berth.Count
}

// fits adds a booking that starts no earlier than those before it, unless more
// than that many PEs would be taken.
func (e *endings) fits(start, end berth.Time, npe, machine berth.Count) bool {
	e.endBy(start)
	if e.npe+int64(npe) > int64(machine) {
		return false
	}
	e.add(end, npe)
	return true
}

// endBy drops what has ended at t.
func (e *endings) endBy(t berth.Time) {
	for len(e.heap) > 0 && e.heap[0].end <= t {
		e.npe -= int64(e.heap[0].npe)
		last := len(e.heap) - 1
		e.heap[0] = e.heap[last]
		e.heap = e.heap[:last]
		for i := 0; ; {
			least := i
			for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
				if e.heap[child].end < e.heap[least].end {
					least = child
				}
			}
			if least == i {
				break
			}
			e.heap[i], e.heap[least] = e.heap[least], e.heap[i]
			i = least
		}
	}
}

func (e *endings) add(end berth.Time, npe berth.Count) {
	e.npe += int64(npe)
	e.heap = append(e.heap, ending{end, npe})
	for i := len(e.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if e.heap[parent].end <= e.heap[i].end {
			break
		}
		e.heap[parent], e.heap[i] = e.heap[i], e.heap[parent]
		i = parent
	}
}

// load is how many PEs are booked over time, as steps: booked[i] from times[i]
// to times[i+1], the last for ever. Nothing is booked before times[0].
type load struct {
	times  []berth.Time
	booked []int64
}

// at returns the index of the step that holds t, or -1 before the first.
func (l *load) at(t berth.Time) int {
	i, found := slices.BinarySearch(l.times, t)
	if found {
		return i
	}
	return i - 1
}

// peak returns the most that is booked at any time of [start, end).
func (l *load) peak(start, end berth.Time) int64 {
	most := int64(0)
	for i := l.at(start); i < len(l.times); i++ {
		if i < 0 {
			continue
		}
		if l.times[i] >= end {
			break
		}
		most = max(most, l.booked[i])
	}
	return most
}

// split makes a step begin at t and returns its index.
func (l *load) split(t berth.Time) int {
	i := l.at(t)
	if i >= 0 && l.times[i] == t {
		return i
	}
	before := int64(0)
	if i >= 0 {
		before = l.booked[i]
	}
	l.times = slices.Insert(l.times, i+1, t)
	l.booked = slices.Insert(l.booked, i+1, before)
	return i + 1
}

// add books npe PEs during [start, end). Cost: O(steps).
func (l *load) add(start, end berth.Time, npe berth.Count) {
	first := l.split(start)
	last := l.split(end) // behind first, which stays where it is
	for i := first; i < last; i++ {
		l.booked[i] += int64(npe)
	}
}
