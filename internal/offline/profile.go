package offline

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// profile is how many PEs are used over time: used[k] from at[k] to at[k+1].
type profile struct {
	at   []berth.Time
	used []berth.Count
}

// clear makes everything free.
func (f *profile) clear() {
	f.at, f.used = append(f.at[:0], math.MinInt64, math.MaxInt64), append(f.used[:0], 0, 0)
}

// step returns the step that a time is in.
func (f *profile) step(t berth.Time) int {
	k, found := slices.BinarySearch(f.at, t)
	if !found {
		k--
	}
	return k
}

// cut makes a step begin at a time, and returns it.
func (f *profile) cut(t berth.Time) int {
	k := f.step(t)
	if f.at[k] == t {
		return k
	}
	f.at, f.used = slices.Insert(f.at, k+1, t), slices.Insert(f.used, k+1, f.used[k])
	return k + 1
}

// join removes the beginning of a step that is as the one before.
func (f *profile) join(k int) {
	if f.used[k] == f.used[k-1] {
		f.at, f.used = slices.Delete(f.at, k, k+1), slices.Delete(f.used, k, k+1)
	}
}

// add uses n PEs more from start to end; fewer if it is negative.
func (f *profile) add(start, end berth.Time, n berth.Count) {
	a := f.cut(start)
	b := f.cut(end)
	for k := a; k < b; k++ {
		f.used[k] += n
	}
	f.join(b)
	f.join(a)
}

// most returns how many PEs are used at most from start to end.
func (f *profile) most(start, end berth.Time) berth.Count {
	k := f.step(start)
	most := f.used[k]
	for k++; f.at[k] < end; k++ {
		most = max(most, f.used[k])
	}
	return most
}

// earliest returns the earliest start of a job in its window, on a pool of that many PEs.
func (f *profile) earliest(j *Job, pes berth.Count) (berth.Time, bool) {
	start := j.Ready
	for k := f.step(start); start <= j.Latest; k++ {
		if f.used[k] > pes-j.NPE {
			start = f.at[k+1]
		} else if f.at[k+1] >= start.Add(j.Duration) {
			return start, true
		}
	}
	return 0, false
}

// latest returns the latest start.
func (f *profile) latest(j *Job, pes berth.Count) (berth.Time, bool) {
	end := j.Latest.Add(j.Duration)
	for k := f.step(end - 1); end >= j.Ready.Add(j.Duration); k-- {
		if f.used[k] > pes-j.NPE {
			end = f.at[k]
		} else if f.at[k] <= end.Add(-j.Duration) {
			return end.Add(-j.Duration), true
		}
	}
	return 0, false
}
