package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// mapping is phase 2 of CPA: list scheduling of tasks with given numbers of PEs
// on q empty ones. It keeps how many PEs become available when, not which.
//
// Source: as growth, spec 2, b.2. A task takes, of the PEs that are available
// when it starts, those that became so last.
type mapping struct {
	times []berth.Time // ascending
	count []berth.Count
	end   []berth.Time // of each task
	list  []ranked
	bl    []berth.Duration
}

// begin makes q PEs available from now on.
func (m *mapping) begin(now berth.Time, q berth.Count) {
	m.times, m.count = append(m.times[:0], now), append(m.count[:0], q)
}

// place schedules n PEs for d at ready or later and returns the start.
func (m *mapping) place(ready berth.Time, n berth.Count, d berth.Duration) berth.Time {
	// The n-th PE to become available sets the start.
	i, sum := 0, m.count[0]
	for sum < n {
		i++
		sum += m.count[i]
	}
	start := max(ready, m.times[i])
	for i+1 < len(m.times) && m.times[i+1] <= start {
		i++
	}
	// Take the latest of those available, then add them when the task ends.
	last := i
	for n > m.count[i] {
		n -= m.count[i]
		i--
	}
	taken := n
	for k := i + 1; k <= last; k++ {
		taken += m.count[k]
	}
	m.count[i] -= n
	if m.count[i] > 0 {
		i++
	}
	m.times, m.count = slices.Delete(m.times, i, last+1), slices.Delete(m.count, i, last+1)
	m.add(start.Add(d), taken)
	return start
}

func (m *mapping) add(t berth.Time, n berth.Count) {
	i := len(m.times)
	for i > 0 && m.times[i-1] > t {
		i--
	}
	if i > 0 && m.times[i-1] == t {
		m.count[i-1] += n
		return
	}
	m.times, m.count = slices.Insert(m.times, i, t), slices.Insert(m.count, i, n)
}

// run schedules the tasks of the set with these numbers of PEs in decreasing
// order of their bottom levels, until the task last has its start, which it
// returns. With last < 0 it schedules all.
func (m *mapping) run(w *Workflow, curves []curve, npe []berth.Count, part []bool, now berth.Time, q berth.Count, last int32, start []berth.Time) berth.Time {
	n := w.Len()
	if len(m.end) < n {
		m.end, m.bl = make([]berth.Time, n), make([]berth.Duration, n)
	}
	levels(w, curves, npe, part, m.bl)
	m.list = m.list[:0]
	for place, task := range w.topological {
		if part == nil || part[task] {
			m.list = append(m.list, ranked{m.bl[task], int32(place), task})
		}
	}
	sortRanked(m.list)
	m.begin(now, q)
	for _, r := range m.list {
		ready := now
		for _, parent := range w.parents.of(r.task) {
			ready = max(ready, m.end[parent])
		}
		d := curves[r.task].duration(npe[r.task])
		at := m.place(ready, npe[r.task], d)
		m.end[r.task] = at.Add(d)
		if start != nil {
			start[r.task] = at
		}
		if r.task == last {
			return at
		}
	}
	return now
}
