package place

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// groupBudget is how many combinations of pools and variants a search for a common
// start tries; after those it takes at each start the first that each part can have.
const groupBudget = 1 << 17

// groupSteps is how many steps a search for the common start of a new request takes: a
// step is a look at one shape at one start, or one more part beside few others. They are
// some tens of milliseconds, for which everybody waits; after those the request is
// refused. Reservations that lose their place are searched for without a bound.
const groupSteps = 1 << 17

// fewParts is how many parts are placed beside each other in one step.
const fewParts = 32

// group is the search for a common start of the parts of a request.
type group struct {
	*search
	t       *state.Trial
	shapes  [][]shape // by part, in the order in which they are tried
	alike   []bool    // by part: it is the same as the one before
	budget  int       // of combinations
	steps   int       // that are left
	chosen  []choice
	areas   []areas      // of the holders whose PE-seconds are limited, live ones or charged ones
	deepest int          // the part at which the last search at a start ended
	stocked berth.Time   // the earliest later start at which stocks suffice
	corners []berth.Time // when something changes in a pool that a part can use, up to read
	read    berth.Time
	ahead   berth.Duration // how far is read next
	fewest  *demand        // of all parts, in all pools that they can use
	bound   []demand       // of the parts that can use one pool alone, by pool
	within  []shares       // by pool
}

// areas is the PE-seconds that a holder may have, and has.
type areas struct {
	*allowance
	name   policy.LimitIndex
	left   int64   // beside what it has; of a month, beside what is charged in that of the start that is looked at
	chosen int64   // of what is chosen
	least  []int64 // by part: the least of this and all later ones
}

// demand is the fewest PEs that some parts need, and the shortest time for which any of
// them needs them.
type demand struct {
	npe   berth.Count
	least berth.Duration
	pools []*pool // in which they can be
}

// shape is a variant in a pool.
type shape struct {
	pool      *pool
	variant   berth.Variant // its duration is that in the pool
	way       int           // in which the constraints are met
	eligible  berth.PESet   // empty is all
	preferred berth.PESet
	after     berth.Time // when its data are there
	// At the start that is looked at:
	fits bool
	free berth.Count
	pes  berth.PESet // of a pool of early binding
}

// choice is what a part takes in a combination.
type choice struct {
	*shape
	index int
	pes   berth.PESet
	// beside is how many PEs those take that last as long in the pool, itself included,
	// where PEs have no numbers.
	beside berth.Count
}

// group prepares the search. If the nearest place to that of a promise is wanted, its
// own pools and PEs come first, and then the order of the match.
func (x *search) group(t *state.Trial, nearest bool) *group {
	n := len(x.r.Parts)
	g := &group{search: x, t: t, budget: groupBudget, steps: groupSteps}
	g.shapes, g.alike, g.within = make([][]shape, n), make([]bool, n), make([]shares, len(x.pools))
	for i := range x.pools {
		g.within[i] = x.sharesIn(&x.pools[i])
	}
	all, until := make([]shape, 0, 2*n), make([]int, n)
	var order []*pool
	for part := range x.r.Parts {
		if part == 0 || nearest {
			order = x.order(part, nearest)
		}
		for i, p := range order {
			own := nearest && i == 0
			all = x.appendShapes(all, part, p, own)
		}
		until[part] = len(all)
		if part > 0 && x.pinned == nil && !nearest { // those have orders of their own
			a, b := &x.r.Parts[part], &x.r.Parts[part-1]
			g.alike[part] = slices.Equal(a.Variants, b.Variants) && a.Eligible.Equal(b.Eligible) && a.Constraint == b.Constraint && samePEs(a.Only, b.Only) && samePEs(a.Never, b.Never)
		}
	}
	for part, from := 0, 0; part < n; part++ {
		g.shapes[part] = all[from:until[part]:until[part]]
		from = until[part]
	}
	g.limitAreas()
	return g
}

// limitAreas sums up the least that the parts take of what is limited in PE-seconds.
func (g *group) limitAreas() {
	for i := range g.allowed {
		a := &g.allowed[i]
		for _, name := range []policy.LimitIndex{policy.ByPESeconds, policy.ByBudget, policy.ByMonthBudget} {
			most, limited := a.By(name)
			if !limited {
				continue
			}
			of := areas{allowance: a, name: name, left: most, least: make([]int64, len(g.shapes)+1)}
			switch name {
			case policy.ByPESeconds:
				of.left -= g.state.Usage(a.of).PESeconds
			case policy.ByBudget:
				of.left -= g.charged(a, policy.Always, g.keeps())
			}
			of.left = max(of.left, 0) // what takes nothing is within it
			for part := len(g.shapes) - 1; part >= 0; part-- {
				least := int64(berth.Endless)
				for k := range g.shapes[part] {
					s := &g.shapes[part][k]
					least = min(least, g.areaOf(a, name, s.pool, s.variant))
				}
				of.least[part] = berth.AddAreas(of.least[part+1], least)
			}
			g.areas = append(g.areas, of)
		}
	}
}

// limitMonth sets what budgets leave in the month of a start. Where something is charged there, the parts may fit in the next.
func (g *group) limitMonth(start berth.Time) {
	for i := range g.areas {
		if of := &g.areas[i]; of.name == policy.ByMonthBudget {
			m := policy.MonthOf(start)
			charged := g.state.Charged(of.of, m)
			most, _ := of.By(of.name)
			if of.left = max(most-state.AddCharges(charged, g.keeps()), 0); charged > 0 {
				g.stocked, g.search.bound = min(g.stocked, (m+1).Start()), true
			}
		}
	}
}

// spend takes steps; false if there are no more, which only a new request notices.
func (g *group) spend(steps int) bool {
	g.steps -= steps
	return g.steps >= 0 || !g.admit
}

// order returns the pools in the order in which a part asks them, the same for all parts if not the nearest are wanted.
func (x *search) order(part int, nearest bool) []*pool {
	list := make([]*pool, 0, len(x.pools))
	if !nearest {
		for i := range x.pools {
			list = append(list, &x.pools[i])
		}
		return list
	}
	own := x.again.Part(part).Resource
	list = append(list, x.poolOf(own))
	for _, candidate := range x.ranked(part) {
		if p := &x.pools[candidate.Index]; p.id != own {
			list = append(list, p)
		}
	}
	return list
}

// appendShapes appends what a part can take in a pool.
func (x *search) appendShapes(list []shape, part int, p *pool, own bool) []shape {
	if x.unmet(p) != "" {
		return list
	}
	s := shape{pool: p, after: max(x.notBefore, x.arrival(p))}
	if own {
		s.preferred = x.again.Part(part).PEs
	}
	for s.way = range x.ways(part) {
		x.way = s.way
		s.eligible = x.eligible(part, p)
		eligible := x.eligibleCount(part, p)
		for _, v := range x.variants(part) {
			v = x.scaled(p, v)
			if v.NPE > eligible || !x.permits(p, v) || x.denies(p, v) != nil {
				continue
			}
			s.variant = v
			list = append(list, s)
		}
	}
	return list
}

// aloneFrom returns the earliest time from a start on at which each part by itself
// has room; missing is the index of a part without room, negative if all have room.
func (g *group) aloneFrom(start berth.Time) (alone berth.Time, missing int) {
	for part := range g.shapes {
		if !g.spend(len(g.shapes[part])) {
			return alone, part
		}
		if g.alike[part] {
			continue // it has room where the one before has
		}
		var earliest berth.Time
		found := false
		for i := range g.shapes[part] {
			s := &g.shapes[part][i]
			g.way = s.way
			q := g.query(part, s.variant, s.pool)
			q.Ready = max(start, s.after)
			fit, ok := g.view(s.pool).Earliest(q)
			if ok && fit.End.Valid() && (!found || fit.Start < earliest) {
				earliest, found = fit.Start, true
			}
		}
		if !found {
			return alone, part
		}
		start = max(start, earliest)
	}
	return start, -1
}

// at places all parts at a start; ok is false if they do not fit there together.
func (g *group) at(start berth.Time) (allotments []berth.Allotment, ok bool) {
	g.deepest, g.stocked = 0, berth.Forever
	g.limitMonth(start)
	for part := range g.shapes {
		if !g.spend(len(g.shapes[part])) {
			return nil, false
		}
		for i := range g.shapes[part] {
			s := &g.shapes[part][i]
			if g.alike[part] {
				before := &g.shapes[part-1][i]
				s.fits, s.free, s.pes = before.fits, before.free, before.pes
			} else {
				s.look(g, start)
			}
		}
	}
	g.chosen = g.chosen[:0]
	for i := range g.areas {
		g.areas[i].chosen = 0
	}
	if !g.choose(start) {
		return nil, false
	}
	return g.allotments(start), true
}

// look sets the free PEs of a shape at a start.
func (s *shape) look(g *group, start berth.Time) {
	end := start.Add(s.variant.Duration)
	if s.fits = start >= s.after && end <= g.inTime(s.pool, g.deadline, s.variant.Duration) && end.Valid(); !s.fits {
		return
	}
	s.free, s.pes = g.view(s.pool).Free(berth.Interval{Start: start, End: end})
	if s.pool.config.Binding == berth.Early {
		if !s.eligible.Empty() {
			s.pes = s.pes.And(s.eligible)
		}
		s.free = s.pes.Count()
	}
	// Parts side by side take from the share what they take of the pool.
	if left, limited := g.within[s.pool.index].left(start, end); limited && left < s.free {
		s.free, g.search.bound = left, true
	}
	s.fits = s.free >= s.variant.NPE
}

func (g *group) allotments(start berth.Time) []berth.Allotment {
	list := make([]berth.Allotment, len(g.chosen))
	for i := range g.chosen {
		c := &g.chosen[i]
		list[i] = berth.Allotment{Resource: c.pool.id, Start: start, End: start.Add(c.variant.Duration), NPE: c.variant.NPE, PEs: c.pes}
	}
	return list
}

// choose tries the shapes of the next part, each with those of the parts after it.
func (g *group) choose(start berth.Time) bool {
	part := len(g.chosen)
	g.deepest = max(g.deepest, min(part, len(g.shapes)-1))
	if part == len(g.shapes) {
		if !g.spend(2 * part) {
			return false
		}
		at, ok := g.sharedFrom(g.allotments(start), start)
		if ok = ok && g.withinAreas(); ok {
			at, ok = g.stockedFrom(g.t, g.allotments(start), at)
		}
		if ok && at > start {
			g.stocked = min(g.stocked, at)
		}
		return ok && at == start
	}
	first := 0
	if g.alike[part] {
		first = g.chosen[part-1].index // earlier shapes were tried with the parts exchanged
	}
	for i := first; i < len(g.shapes[part]); i++ {
		s := &g.shapes[part][i]
		if !s.fits || !g.withinArea(part, s) {
			continue
		}
		g.budget--
		if !g.spend(1 + part/fewParts) {
			return false
		}
		undo := g.add(s, i, start)
		if undo == nil {
			continue
		}
		g.takeArea(s, 1)
		if g.choose(start) {
			return true
		}
		g.takeArea(s, -1)
		undo()
		if g.budget < 0 {
			return false
		}
	}
	return false
}

// withinArea reports whether a shape of a part is within the PE-seconds of the holders, beside
// what is chosen and the least that the parts after it take.
func (g *group) withinArea(part int, s *shape) bool {
	for i := range g.areas {
		if of := &g.areas[i]; berth.AddAreas(of.chosen, berth.AddAreas(g.areaOf(of.allowance, of.name, s.pool, s.variant), of.least[part+1])) > of.left {
			return false
		}
	}
	return true
}

// withinAreas reports whether what is chosen is within the PE-seconds of the holders: parts may last longer than their shapes.
func (g *group) withinAreas() bool {
	for i := range g.areas {
		of, area := &g.areas[i], int64(0)
		for k := range g.chosen {
			area = berth.AddAreas(area, g.areaOf(of.allowance, of.name, g.chosen[k].pool, g.chosen[k].variant))
		}
		if area > of.left {
			return false
		}
	}
	return true
}

// takeArea counts a shape as chosen, or no longer.
func (g *group) takeArea(s *shape, sign int64) {
	for i := range g.areas {
		g.areas[i].chosen += sign * g.areaOf(g.areas[i].allowance, g.areas[i].name, s.pool, s.variant)
	}
}

// add chooses a shape for one more part and returns what takes it back; nil if it has no
// room beside the chosen parts. A promise is one reservation at a managed site, so its parts there end together: those
// that are shorter hold their PEs for as long as the longest. Cost: that of put, for all parts there if the new one is the longest.
func (g *group) add(s *shape, index int, start berth.Time) (undo func()) {
	lasts := berth.Duration(0) // the parts there so far
	for i := range g.chosen {
		if c := &g.chosen[i]; c.pool.site == s.pool.site && c.pool.site.Managed {
			lasts = c.variant.Duration
			break
		}
	}
	if lasts == 0 || lasts >= s.variant.Duration {
		if s = g.lasting(s, max(lasts, s.variant.Duration), start); s == nil {
			return nil
		}
		return g.put(s, index)
	}
	before := slices.Clone(g.chosen)
	undo = func() { g.chosen = append(g.chosen[:0], before...) }
	if !g.spend(len(before)) {
		return nil
	}
	g.chosen = g.chosen[:0]
	for i := range before {
		c := before[i]
		if c.pool.site == s.pool.site {
			c.shape = g.lasting(c.shape, s.variant.Duration, start)
		}
		if c.shape == nil || g.put(c.shape, c.index) == nil {
			undo()
			return nil
		}
	}
	if g.put(s, index) == nil {
		undo()
		return nil
	}
	return undo
}

// lasting returns a shape that lasts so long, nil if it cannot from the start that is looked at.
func (g *group) lasting(s *shape, d berth.Duration, start berth.Time) *shape {
	if s.variant.Duration == d {
		return s
	}
	long := *s
	long.variant.Duration = d
	if !g.permits(long.pool, long.variant) || g.denies(long.pool, long.variant) != nil {
		return nil
	}
	if long.look(g, start); !long.fits {
		return nil
	}
	return &long
}

// put chooses a shape as it is. Cost: O(parts) where PEs have no numbers.
func (g *group) put(s *shape, index int) (undo func()) {
	if s.pool.config.Binding == berth.Early {
		before := slices.Clone(g.chosen)
		undo = func() { g.chosen = append(g.chosen[:0], before...) }
		g.chosen = append(g.chosen, choice{shape: s, index: index})
		if !g.assign() {
			undo()
			return nil
		}
		return undo
	}
	// All begin at once: until the end of each, those that last as long are side by
	// side.
	one := choice{shape: s, index: index, beside: s.variant.NPE}
	for i := range g.chosen {
		c := &g.chosen[i]
		if c.pool != s.pool {
			continue
		}
		if c.variant.Duration >= s.variant.Duration {
			one.beside += c.variant.NPE
		}
		if c.variant.Duration <= s.variant.Duration && c.beside+s.variant.NPE > c.free {
			return nil
		}
	}
	if one.beside > s.free {
		return nil
	}
	g.shift(s, s.variant.NPE)
	g.chosen = append(g.chosen, one)
	return func() {
		g.chosen = g.chosen[:len(g.chosen)-1]
		g.shift(s, -s.variant.NPE)
	}
}

// shift adds PEs beside the chosen parts that end no later than a shape.
func (g *group) shift(s *shape, by berth.Count) {
	for i := range g.chosen {
		if c := &g.chosen[i]; c.pool == s.pool && c.variant.Duration <= s.variant.Duration {
			c.beside += by
		}
	}
}

// assign gives the last chosen part its PEs: as many preferred ones as possible, then
// the lowest-numbered. Where other parts hold PEs that it needs and can use different
// ones, they exchange them along shortest augmenting paths. It returns false if there
// are too few PEs for all parts.
func (g *group) assign() bool {
	last := &g.chosen[len(g.chosen)-1]
	idle := func(c *choice) berth.PESet {
		pes := c.shape.pes
		for k := range g.chosen {
			if g.chosen[k].pool == c.pool {
				pes = pes.Minus(g.chosen[k].pes)
			}
		}
		return pes
	}
	last.pes = prefer(idle(last), last.preferred, last.variant.NPE)
	for lacking := last.variant.NPE - last.pes.Count(); lacking > 0; lacking = last.variant.NPE - last.pes.Count() {
		path, spare := g.path(idle)
		if path == nil {
			return false
		}
		n := min(lacking, spare.Count())
		for k := range path[1:] {
			n = min(n, path[k].shape.pes.Overlap(path[k+1].pes))
		}
		gain := spare.Lowest(n)
		for k := len(path) - 1; k > 0; k-- {
			gives := path[k].pes.And(path[k-1].shape.pes).Lowest(n)
			path[k].pes = path[k].pes.Minus(gives).Or(gain)
			gain = gives
		}
		last.pes = last.pes.Or(gain)
	}
	return true
}

// path returns a shortest chain of parts, from the last one on, in which each part can
// use PEs that the next one has and the final part can use spare PEs; nil if there is
// no such chain.
func (g *group) path(idle func(*choice) berth.PESet) (path []*choice, spare berth.PESet) {
	last := len(g.chosen) - 1
	from := make([]int, len(g.chosen))
	for i := range from {
		from[i] = -1
	}
	for queue := []int{last}; len(queue) > 0; queue = queue[1:] {
		at := &g.chosen[queue[0]]
		for k := range g.chosen {
			next := &g.chosen[k]
			if k == last || from[k] >= 0 || next.pool != at.pool || at.shape.pes.Overlap(next.pes) == 0 {
				continue
			}
			from[k] = queue[0]
			if spare = idle(next); spare.Empty() {
				queue = append(queue, k)
				continue
			}
			for ; k != last; k = from[k] {
				path = append(path, &g.chosen[k])
			}
			path = append(path, &g.chosen[last])
			slices.Reverse(path)
			return path, spare
		}
	}
	return nil, spare
}

// samePEs reports whether two parts name the same PEs of the same pools.
func samePEs(a, b []berth.PoolPEs) bool {
	return slices.EqualFunc(a, b, func(a, b berth.PoolPEs) bool { return a.Resource == b.Resource && a.PEs.Equal(b.PEs) })
}
