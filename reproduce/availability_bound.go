package reproduce

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// bound is what no policy can exceed, in percent of the requests and of their
// PE-seconds.
type bound struct{ acceptance, work float64 }

// boundSlot is the length of the slots that time is cut into, in seconds. Longer
// ones are faster and give a weaker bound.
const boundSlot = 1800

// boundOf bounds what any policy can accept of requests of one part and one
// variant, on a machine of npes PEs.
//
// It relaxes the problem until it can be solved: all requests are known
// beforehand, any part of one may be accepted and counts as that part, and its
// work, PEs times duration, may be spread over its window [ready, deadline) in
// any pieces, as long as no slot of time takes more than the request's PEs times
// the length of window in it, nor all requests together more than the machine
// has. Every schedule that a policy can make is a solution of that, so the best
// solution is a bound. The amounts of work that can be done together form a
// polymatroid (they are the flows out of the sources of a network), and in one
// the greedy way is best: the requests with the least work first, each as much
// as still goes in when those before it may be moved to other slots, but not
// taken back. In the end the work done is the most possible, too.
//
// Cost: for each request a few searches through the slots that its neighbours
// can be moved to. A set of slots from which no free one can be reached is full
// for ever, and never searched again.
func boundOf(requests []berth.Request, pes berth.Count) bound {
	f := newSlots(requests, pes)
	order := make([]int, len(f.jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.jobs[a].work, f.jobs[b].work), cmp.Compare(a, b))
	})
	var accepted float64
	var done, asked int64
	for _, i := range order {
		got := f.fill(i)
		accepted += float64(got) / float64(f.jobs[i].work)
		done += got
		asked += f.jobs[i].work
	}
	if len(order) == 0 {
		return bound{math.NaN(), math.NaN()}
	}
	return bound{100 * accepted / float64(len(order)), share(100*done, asked)}
}

// slots is a network of requests and slots of time.
type slots struct {
	jobs    []slotJob
	free    []int64 // PE-seconds left in each slot
	full    []bool  // and so is every slot that its work could go to
	members [][]int32

	// Of the search under way.
	seen []bool
	from []step // how a slot was reached
	pile []int
}

// slotJob is a request: the slots from first on that its window touches, what
// each can take of it, and what it has there.
type slotJob struct {
	work      int64
	first     int
	room, has []int64
}

// step says that a slot was reached by moving work of a request from another
// slot; of no request (-1) at the beginning.
type step struct{ job, slot int }

func newSlots(requests []berth.Request, pes berth.Count) *slots {
	f := &slots{jobs: make([]slotJob, len(requests))}
	begin, end := berth.Time(math.MaxInt64), berth.Time(math.MinInt64)
	for i := range requests {
		begin, end = min(begin, requests[i].Ready), max(end, requests[i].Deadline)
	}
	n := 0
	if len(requests) > 0 {
		n = int((end-begin)/boundSlot) + 1
	}
	f.free, f.full, f.members = make([]int64, n), make([]bool, n), make([][]int32, n)
	f.seen, f.from = make([]bool, n), make([]step, n)
	for s := range f.free {
		f.free[s] = int64(pes) * boundSlot
	}
	for i := range requests {
		r := &requests[i]
		v := r.Parts[0].Variants[0]
		j := &f.jobs[i]
		j.work, j.first = v.Area(), int((r.Ready-begin)/boundSlot)
		for s := j.first; begin+berth.Time(s*boundSlot) < r.Deadline; s++ {
			from, to := max(r.Ready, begin+berth.Time(s*boundSlot)), min(r.Deadline, begin+berth.Time((s+1)*boundSlot))
			j.room = append(j.room, int64(v.NPE)*int64(to-from))
			f.members[s] = append(f.members[s], int32(i))
		}
		j.has = make([]int64, len(j.room))
	}
	return f
}

// fill puts as much of a request's work into the slots as goes in, and returns
// it.
func (f *slots) fill(i int) int64 {
	j := &f.jobs[i]
	left := j.work
	for k := range j.room {
		put := min(left, j.room[k]-j.has[k], f.free[j.first+k])
		j.has[k] += put
		f.free[j.first+k] -= put
		left -= put
	}
	for left > 0 {
		put := f.reroute(i, left)
		if put == 0 {
			break
		}
		left -= put
	}
	return j.work - left
}

// reroute finds a chain of moves after which some slot of the request has room,
// makes them, and puts the work there, no more than left. It returns how much;
// 0 if there is no such chain.
func (f *slots) reroute(i int, left int64) int64 {
	j := &f.jobs[i]
	f.pile = f.pile[:0]
	reach := func(s int, by step) (free bool) {
		if f.seen[s] || f.full[s] {
			return false
		}
		f.seen[s], f.from[s] = true, by
		f.pile = append(f.pile, s)
		return f.free[s] > 0
	}
	defer func() {
		for _, s := range f.pile {
			f.seen[s] = false
		}
	}()
	for k := range j.room {
		if s := j.first + k; j.has[k] < j.room[k] && reach(s, step{-1, -1}) {
			return f.move(i, s, left)
		}
	}
	for at := 0; at < len(f.pile); at++ {
		s := f.pile[at]
		for _, m := range f.members[s] {
			other := &f.jobs[m]
			if other.has[s-other.first] == 0 {
				continue
			}
			for k := range other.room {
				if to := other.first + k; other.has[k] < other.room[k] && reach(to, step{int(m), s}) {
					return f.move(i, to, left)
				}
			}
		}
	}
	for _, s := range f.pile {
		f.full[s] = true
	}
	return 0
}

// move follows the chain that ends in the slot back to the request.
func (f *slots) move(i, last int, left int64) int64 {
	put := min(left, f.free[last])
	for s := last; ; {
		by := f.from[s]
		if by.job < 0 {
			j := &f.jobs[i]
			put = min(put, j.room[s-j.first]-j.has[s-j.first])
			break
		}
		j := &f.jobs[by.job]
		put = min(put, j.room[s-j.first]-j.has[s-j.first], j.has[by.slot-j.first])
		s = by.slot
	}
	f.free[last] -= put
	for s := last; ; {
		by := f.from[s]
		if by.job < 0 {
			j := &f.jobs[i]
			j.has[s-j.first] += put
			return put
		}
		j := &f.jobs[by.job]
		j.has[s-j.first] += put
		j.has[by.slot-j.first] -= put
		s = by.slot
	}
}
