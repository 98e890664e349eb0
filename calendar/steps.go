package calendar

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// steps is a right-continuous step function of time: base before the first
// record, values[i] from times[i] until times[i+1], the last value for ever.
// It is canonical: times increase strictly and adjacent values differ, base
// counting as the value before the first. Values are immutable.
type steps[S any] struct {
	base   S
	times  []berth.Time
	values []S
}

// index returns the last i with times[i] ≤ t, or −1. Cost: O(log n).
func (s *steps[S]) index(t berth.Time) int {
	i, found := slices.BinarySearchFunc(s.times, t, func(a, b berth.Time) int { return cmp.Compare(a, b) })
	if found {
		return i
	}
	return i - 1
}

// value returns the value of record i; that of −1 is the base.
func (s *steps[S]) value(i int) S {
	if i < 0 {
		return s.base
	}
	return s.values[i]
}

// end returns the time at which record i ends.
func (s *steps[S]) end(i int) berth.Time {
	if i+1 < len(s.times) {
		return s.times[i+1]
	}
	return berth.Forever
}

// split makes sure that a record starts at t and returns its index. A new one
// copies the value in force just before t. For Forever it returns len.
func (s *steps[S]) split(t berth.Time) int {
	if t >= berth.Forever {
		return len(s.times)
	}
	i := s.index(t)
	if i >= 0 && s.times[i] == t {
		return i
	}
	v := s.value(i)
	s.times = slices.Insert(s.times, i+1, t)
	s.values = slices.Insert(s.values, i+1, v)
	return i + 1
}

// join drops record i if it equals the one before it.
func (s *steps[S]) join(i int, equal func(a, b S) bool) {
	if i < len(s.times) && equal(s.values[i], s.value(i-1)) {
		s.times = slices.Delete(s.times, i, i+1)
		s.values = slices.Delete(s.values, i, i+1)
	}
}

// update replaces every value v within iv by f(v). f must keep different
// values different, so that only the two border records can become redundant.
func (s *steps[S]) update(iv berth.Interval, f func(S) S, equal func(a, b S) bool) {
	i := s.split(iv.Start)
	j := s.split(iv.End)
	for k := i; k < j; k++ {
		s.values[k] = f(s.values[k])
	}
	s.join(j, equal)
	s.join(i, equal)
}

// each calls visit for every step within iv, cut to iv, in order of time,
// until visit returns false; it reports whether none did.
func (s *steps[S]) each(iv berth.Interval, visit func(berth.Interval, S) bool) bool {
	for i := s.index(iv.Start); i < len(s.times) && (i < 0 || s.times[i] < iv.End); i++ {
		step := berth.Interval{Start: iv.Start, End: min(s.end(i), iv.End)}
		if i >= 0 {
			step.Start = max(s.times[i], iv.Start)
		}
		if !visit(step, s.value(i)) {
			return false
		}
	}
	return true
}

// prune forgets what was before now: the value in force at now is stamped now,
// or dropped if it is the base.
func (s *steps[S]) prune(now berth.Time, equal func(a, b S) bool) {
	i := s.index(now)
	if i < 0 {
		return
	}
	s.times = slices.Delete(s.times, 0, i)
	s.values = slices.Delete(s.values, 0, i)
	s.times[0] = now
	s.join(0, equal)
}
