package calendartest

import (
	"container/heap"
	"fmt"
	"math"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Mode says when the requests of a workload are ready.
type Mode string

// The modes.
const (
	Backlog Mode = "BACKLOG" // all at 0: pure earliest-fit packing
	Advance Mode = "ADVANCE" // at random within the horizon, in random order
	Stream  Mode = "STREAM"  // one after the other, at even distances
)

// Workload is a stream of requests by which structures of availability are
// compared; the same numbers come out of it in every language. Request i takes
// three draws a, b, c of splitmix64: it needs 2^(a mod K) PEs (with Odd
// 1 + a mod 128) for 60 + b mod 14341 s. Load is the share of the PEs that
// they fill until the horizon; it does not matter in mode Backlog.
type Workload struct {
	Mode     Mode
	PEs      berth.Count
	K        int // at most 20
	Odd      bool
	Load     float64
	Requests int
	Seed     uint64
}

// WorkloadRequest is a request of a workload: NPE PEs for Duration from Ready
// on.
type WorkloadRequest struct {
	Ready    berth.Time
	Duration berth.Duration
	NPE      berth.Count
}

// String returns the workload's parameters as one word of a test's name.
func (w Workload) String() string {
	k := fmt.Sprint("K=", w.K)
	if w.Odd {
		k = "odd"
	}
	return fmt.Sprintf("%s,pes=%d,%s,load=%g,requests=%d", w.Mode, w.PEs, k, w.Load, w.Requests)
}

// splitmix64 is the generator of that name; the state starts at the seed.
type splitmix64 uint64

func (s *splitmix64) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// Horizon returns the time within which the requests are ready: their
// mean PE-seconds are the share Load of it.
func (w Workload) Horizon() berth.Time {
	mean := float64(uint64(1)<<w.K-1) / float64(w.K)
	if w.Odd {
		mean = 64.5
	}
	const meanDuration = 7230
	return berth.Time(math.Floor(float64(w.Requests)*mean*meanDuration/(float64(w.PEs)*w.Load))) + 1
}

// All returns the requests in the order in which they are admitted.
func (w Workload) All() []WorkloadRequest { return w.Take(w.Requests) }

// Take returns the first n requests, which may be more than Requests; the
// horizon is that of Requests.
func (w Workload) Take(n int) []WorkloadRequest {
	s := splitmix64(w.Seed)
	horizon := w.Horizon()
	list := make([]WorkloadRequest, n)
	for i := range list {
		a, b, c := s.next(), s.next(), s.next()
		r := &list[i]
		r.NPE = berth.Count(1) << (a % uint64(w.K))
		if w.Odd {
			r.NPE = 1 + berth.Count(a%128)
		}
		r.Duration = 60 + berth.Duration(b%14341)
		switch w.Mode {
		case Advance:
			r.Ready = berth.Time(c % uint64(horizon))
		case Stream:
			r.Ready = berth.Time(i) * horizon / berth.Time(w.Requests)
		}
	}
	return list
}

// Admit admits every request to a calendar at its earliest feasible start,
// without a deadline, and returns the sum of all starts. In mode Stream every
// booking that has ended by a request's ready time is given back first, and
// that time is the request's now.
func (w Workload) Admit(c calendar.Calendar) (sum int64, err error) {
	var running ends
	for _, r := range w.All() {
		q := calendar.Query{Ready: r.Ready, Deadline: berth.Forever, Duration: r.Duration, NPE: r.NPE}
		if w.Mode == Stream {
			q.Now = r.Ready
			for len(running) > 0 && running[0].End <= q.Now {
				if err := c.Remove(heap.Pop(&running).(calendar.Block)); err != nil {
					return 0, fmt.Errorf("give back what has ended: %w", err)
				}
			}
		}
		fit, ok := calendar.Earliest(c, q)
		if !ok {
			return 0, fmt.Errorf("no start for %+v", q)
		}
		b := calendar.Block{Start: fit.Start, End: fit.End, NPE: r.NPE, PEs: fit.PEs}
		if err := c.Add(b); err != nil {
			return 0, fmt.Errorf("book the start found: %w", err)
		}
		if w.Mode == Stream {
			heap.Push(&running, b)
		}
		sum += int64(fit.Start)
	}
	return sum, nil
}

// ends is a heap of blocks by their ends.
type ends []calendar.Block

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].End < e[j].End }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(calendar.Block)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Sum is the sum of all starts that admitting a workload must give.
type Sum struct {
	Binding  berth.Binding
	Workload Workload
	Starts   int64
}

// Sums lists the sums that independent programs in C++ and Java found, all
// with seed 42: counts under late binding, the lowest-numbered PEs under early
// binding.
func Sums() []Sum {
	row := func(binding berth.Binding, mode Mode, pes berth.Count, k int, load float64, requests int, starts int64) Sum {
		return Sum{binding, Workload{Mode: mode, PEs: pes, K: k, Load: load, Requests: requests, Seed: 42}, starts}
	}
	const small, large = 1024, 100_000
	return []Sum{
		row(berth.Late, Advance, small, 8, .7, 1_000, 155730316),
		row(berth.Late, Advance, small, 8, .7, 10_000, 16135059181),
		row(berth.Late, Advance, small, 8, .7, 100_000, 1608685658016),
		row(berth.Late, Advance, small, 8, .7, 1_000_000, 160731547586114),
		row(berth.Late, Backlog, small, 8, .7, 1_000, 90930950),
		row(berth.Late, Backlog, small, 8, .7, 10_000, 10081161287),
		row(berth.Late, Stream, small, 8, .7, 100_000, 1607530458954),
		row(berth.Late, Stream, small, 8, .7, 1_000_000, 160753470002216),
		row(berth.Late, Stream, small, 8, .95, 100_000, 1185214129240),
		row(berth.Late, Stream, small, 8, .95, 1_000_000, 118456355839700),
		row(berth.Late, Advance, large, 14, .7, 1_000, 58070765),
		row(berth.Late, Advance, large, 14, .7, 10_000, 5944225152),
		row(berth.Late, Advance, large, 14, .7, 100_000, 604496224305),
		row(berth.Late, Advance, large, 14, .7, 1_000_000, 60468952701938),
		row(berth.Late, Stream, large, 14, .9, 100_000, 470162893443),
		row(berth.Late, Advance, large, 8, .7, 1_000, 1676106),
		row(berth.Late, Advance, large, 8, .7, 10_000, 165748942),
		row(berth.Late, Advance, large, 8, .7, 100_000, 16505046632),
		row(berth.Early, Advance, small, 8, .7, 1_000, 156626163),
		row(berth.Early, Advance, small, 8, .7, 10_000, 16144354676),
		row(berth.Early, Advance, small, 8, .7, 100_000, 1608818985960),
	}
}
