package place

import (
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// next returns the first time after a start at which the parts may fit together where
// they did not before: something ends, data arrive, or stocks suffice.
func (g *group) next(start berth.Time) (next berth.Time, ok bool) {
	if g.fewest == nil {
		g.sumUp()
	}
	for g.spend(1 + len(g.pools)) {
		next = g.corner(start)
		if g.stocked > start {
			next = min(next, g.stocked)
		}
		if next >= g.deadline {
			return 0, false
		}
		if start, ok = g.roomFrom(next); !ok || g.carries(start) {
			return start, ok
		}
	}
	return 0, false
}

// sumUp sums up what the parts need at least: all of them, and those that can use one
// pool alone.
func (g *group) sumUp() {
	g.bound = make([]demand, len(g.pools))
	g.fewest = &demand{least: berth.Duration(berth.TimeLimit)}
	for i := range g.bound {
		g.bound[i].least = berth.Duration(berth.TimeLimit)
	}
	for part := range g.shapes {
		one := demand{npe: g.shapes[part][0].variant.NPE, least: berth.Duration(berth.TimeLimit)}
		for k := range g.shapes[part] {
			s := &g.shapes[part][k]
			one.npe, one.least = min(one.npe, s.variant.NPE), min(one.least, s.variant.Duration)
			if !slices.Contains(one.pools, s.pool) {
				one.pools = append(one.pools, s.pool)
			}
			if !slices.Contains(g.fewest.pools, s.pool) {
				g.fewest.pools = append(g.fewest.pools, s.pool)
			}
		}
		g.fewest.npe += one.npe
		g.fewest.least = min(g.fewest.least, one.least)
		for i := range g.pools {
			if len(one.pools) == 1 && one.pools[0] == &g.pools[i] {
				b := &g.bound[i]
				b.npe, b.least = b.npe+one.npe, min(b.least, one.least)
			}
		}
	}
}

// carries reports whether the fewest PEs that the parts need are free at a start, in all
// pools together and for the duration of the shortest part.
func (g *group) carries(start berth.Time) bool {
	wanted := g.fewest.npe
	for _, p := range g.fewest.pools {
		end := start.Add(g.fewest.least)
		free, _ := g.view(p).Free(berth.Interval{Start: start, End: end})
		if left, limited := g.within[p.index].left(start, end); limited {
			free = min(free, left)
		}
		wanted -= max(0, free)
	}
	return wanted <= 0
}

// corner returns the first time after a start at which something changes in a pool that a part can use, or
// the deadline if nothing does before. Where changes are read, twice as many seconds are read each time, so that no
// more is read than twice what is needed.
func (g *group) corner(start berth.Time) berth.Time {
	if g.ahead == 0 {
		g.read = start
		for part := range g.shapes {
			for i := range g.shapes[part] {
				g.ahead = max(g.ahead, 4*min(g.shapes[part][i].variant.Duration, berth.Duration(berth.TimeLimit)/4))
			}
		}
	}
	for {
		if i := sort.Search(len(g.corners), func(i int) bool { return g.corners[i] > start }); i < len(g.corners) {
			return g.corners[i]
		}
		from := max(start, g.read)
		if from >= g.deadline {
			return g.deadline
		}
		g.read = min(from.Add(g.ahead), g.deadline)
		g.ahead = min(2*g.ahead, berth.Duration(berth.TimeLimit))
		g.corners = g.changes(berth.Interval{Start: from + 1, End: g.read + 1})
	}
}

// changes returns when something changes within an interval in a pool that a part can use, ascending.
func (g *group) changes(iv berth.Interval) []berth.Time {
	times := g.corners[:0]
	note := func(t berth.Time) {
		if iv.Start <= t && t < iv.End {
			times = append(times, t)
		}
	}
	var seen []*pool
	for part := range g.shapes {
		if g.alike[part] {
			continue // it can use the same pools
		}
		for i := range g.shapes[part] {
			s := &g.shapes[part][i]
			if slices.Contains(seen, s.pool) {
				continue
			}
			seen = append(seen, s.pool)
			note(s.after)
			times = slices.AppendSeq(times, g.view(s.pool).Changes(iv))
			for _, share := range g.within[s.pool.index] {
				for _, t := range share.drops() {
					note(t)
				}
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// roomFrom returns the first time from a start on at which every pool has room for the
// parts that can use no other pool: for the sum of their PEs, and for the duration of
// the shortest of them.
func (g *group) roomFrom(start berth.Time) (berth.Time, bool) {
	for i := range g.pools {
		b := &g.bound[i]
		if b.npe == 0 {
			continue
		}
		fit, ok := g.view(&g.pools[i]).Earliest(calendar.Query{
			Now: g.state.Now(), Ready: start, Deadline: g.deadline, Duration: b.least, NPE: b.npe, Horizon: g.Horizon,
		})
		if !ok {
			return 0, false
		}
		start = max(start, fit.Start)
	}
	return start, true
}
