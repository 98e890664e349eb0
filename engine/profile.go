package engine

import (
	"fmt"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// profile is the number of free PEs of one late-binding resource over time,
// with promises, running jobs and plans taken off. It is what the calendars of
// plans are, kept flat for the one question of the conservative pass: what may
// move earlier. Records are few (one or two for each job that runs or waits),
// so a walk over them costs less than a tree.
type profile struct {
	size  berth.Count
	times []berth.Time // ascending; the first is the beginning of time
	free  []berth.Count

	version uint64 // grows with every change

	// Where room has grown since the last compression ended, and during it:
	// nothing can move that does not gain from there. Of a new profile nothing
	// is known, so that is everywhere.
	grown, before growth
}

// growth is an interval that contains every place where room has grown.
type growth struct{ from, to berth.Time }

const beginning berth.Time = -berth.Forever

var (
	nowhere    = growth{from: berth.Forever, to: beginning}
	everywhere = growth{from: beginning, to: berth.Forever}
)

// newProfile returns the profile of what a calendar has booked.
func newProfile(c calendar.Calendar) *profile {
	p := &profile{
		size: c.Size(), times: []berth.Time{beginning}, free: []berth.Count{c.Size()}, grown: everywhere, before: nowhere,
	}
	for r := range c.Records() {
		p.times, p.free = append(p.times, r.Time), append(p.free, r.Free)
	}
	return p
}

func (g growth) empty() bool { return g.from >= g.to }

func (g growth) and(o growth) growth { return growth{min(g.from, o.from), max(g.to, o.to)} }

// prune forgets what was before now.
func (p *profile) prune(now berth.Time) {
	n := 0
	for n+1 < len(p.times) && p.times[n+1] <= now {
		n++
	}
	if n > 0 {
		p.times, p.free = slices.Delete(p.times, 0, n), slices.Delete(p.free, 0, n)
		p.times[0] = beginning
	}
}

// index returns the record in force at t.
func (p *profile) index(t berth.Time) int {
	lo, hi := 0, len(p.times)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); p.times[mid] <= t {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// split makes a record begin at t and returns it.
func (p *profile) split(t berth.Time) int {
	i := p.index(t)
	if p.times[i] == t {
		return i
	}
	p.times = slices.Insert(p.times, i+1, t)
	p.free = slices.Insert(p.free, i+1, p.free[i])
	return i + 1
}

// join drops record i if it equals the one before.
func (p *profile) join(i int) {
	if i > 0 && p.free[i] == p.free[i-1] {
		p.times, p.free = slices.Delete(p.times, i, i+1), slices.Delete(p.free, i, i+1)
	}
}

// add frees by PEs, or takes them if by is negative, throughout [from, to). It
// returns the least that is free there afterwards.
func (p *profile) add(from, to berth.Time, by berth.Count) berth.Count {
	least := p.size
	i := p.split(from)
	j := p.split(to)
	for k, n := range p.free[i:j] {
		n += by
		p.free[i+k] = n
		least = min(least, n)
	}
	p.join(j)
	p.join(i)
	p.version++
	return least
}

// take takes PEs throughout [from, to). After an error the profile must not be
// used any more.
func (p *profile) take(from, to berth.Time, n berth.Count) error {
	if from < to && p.add(from, to, -n) < 0 {
		return fmt.Errorf("%d PEs are not free throughout [%d,%d)", n, from, to)
	}
	return nil
}

// give gives PEs back.
func (p *profile) give(from, to berth.Time, n berth.Count) {
	if from < to {
		p.add(from, to, n)
		p.grown = p.grown.and(growth{from, to})
	}
}

// replace books one plan in the place of another; nil is none.
func (p *profile) replace(old, a *berth.Allotment) error {
	switch {
	case a == nil:
		p.give(old.Start, old.End, old.NPE)
		return nil
	case old == nil:
		return p.take(a.Start, a.End, a.NPE)
	case a.NPE == old.NPE && a.Start < old.Start && old.Start < a.End && a.End <= old.End:
		p.give(a.End, old.End, a.NPE)
		return p.take(a.Start, old.Start, a.NPE)
	}
	p.give(old.Start, old.End, old.NPE)
	return p.take(a.Start, a.End, a.NPE)
}

// earliest returns the first start from now on at which n PEs are free for d.
func (p *profile) earliest(now berth.Time, n berth.Count, d berth.Duration) (berth.Time, bool) {
	start := now
	for i := p.index(now); ; i++ {
		last := i+1 == len(p.times)
		switch {
		case p.free[i] < n && last:
			return 0, false
		case p.free[i] < n:
			start = p.times[i+1]
		case last || p.times[i+1] >= start.Add(d):
			return start, true
		}
	}
}

// earlier returns the first start from now on, before the present one, of a
// job that is booked: from there its PEs must be free until it ends, or until
// its own booking, which it may overlap.
func (p *profile) earlier(now berth.Time, n berth.Count, d berth.Duration, present berth.Time) (berth.Time, bool) {
	start := now
	need := min(start.Add(d), present)
	for i := p.index(now); start < present; i++ {
		if p.free[i] < n {
			// The present booking ends somewhere behind, so there is a next.
			start = p.times[i+1]
			need = min(start.Add(d), present)
			continue
		}
		if i+1 == len(p.times) || p.times[i+1] >= need {
			return start, true
		}
	}
	return 0, false
}

// most returns the most PEs that are free anywhere in an interval.
func (p *profile) most(g growth) berth.Count {
	n := berth.Count(0)
	for i := p.index(g.from); i < len(p.times) && p.times[i] < g.to; i++ {
		n = max(n, p.free[i])
	}
	return n
}

// fits reports whether n PEs are free throughout [from, to).
func (p *profile) fits(n berth.Count, from, to berth.Time) bool {
	for i := p.index(from); i < len(p.times) && p.times[i] < to; i++ {
		if p.free[i] < n {
			return false
		}
	}
	return true
}

// records yields the records as a calendar pruned to now would.
func (p *profile) records(now berth.Time) iter.Seq[calendar.Record] {
	return func(yield func(calendar.Record) bool) {
		p.prune(now)
		for i, t := range p.times {
			if i == 0 && p.free[0] == p.size {
				continue
			}
			if !yield(calendar.Record{Time: max(t, now), Free: p.free[i]}) {
				return
			}
		}
	}
}
