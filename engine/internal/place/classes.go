package place

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// What a request requires of hardware and features decides which PEs of a pool it may
// use: those of the classes that suit it, or all or none where the pool has none. A
// constraint with alternatives is met in several ways, each with PEs of its own; the
// search looks at each in turn, and x.way is the one that it looks at.

// constrained is what a part requires of features, and the ways to meet it.
type constrained struct {
	request, part berth.Constraint
	ways          []way
}

// way is one alternative of each constraint.
type way struct{ request, part int }

// ways returns how many ways there are to meet the constraints of a part, at least 1. Cost: O(1)
// without any.
func (x *search) ways(part int) int {
	if x.r.Constraint == "" && x.r.Parts[part].Constraint == "" {
		return 1
	}
	return len(x.constrained(part).ways)
}

// constrained returns the constraints of a part, which are valid.
func (x *search) constrained(part int) *constrained {
	if x.constraints == nil {
		x.constraints = make([]constrained, len(x.r.Parts))
		for i := range x.constraints {
			c := constrained{request: parsed(x.r.Constraint), part: parsed(x.r.Parts[i].Constraint)}
			c.ways = x.distinct(&c)
			x.constraints[i] = c
		}
	}
	return &x.constraints[part]
}

// distinct returns the ways to meet constraints that mean different PEs, the first of those that
// mean the same; if none means any, just the first. Each way is searched by itself, and lists of
// alternatives may be long and say the same again and again. Cost: alternatives × classes, and
// the product of the different ones of both constraints.
func (f *Finder) distinct(c *constrained) []way {
	if c.request.Alternatives() == 1 && c.part.Alternatives() == 1 {
		return []way{{}}
	}
	whole, own := f.meanings(&c.request), f.meanings(&c.part)
	var ways []way
	seen := map[string]bool{}
	both := make([]byte, 0, 64)
	for _, b := range own {
		for _, a := range whole {
			both = both[:0]
			some := byte(0)
			for i := range a.kinds {
				both = append(both, a.kinds[i]&b.kinds[i])
				some |= both[i]
			}
			if some != 0 && !seen[string(both)] {
				seen[string(both)] = true
				ways = append(ways, way{a.alternative, b.alternative})
			}
		}
	}
	if ways == nil {
		return []way{{}}
	}
	return ways
}

// meaning is which PEs an alternative means: of each class of each pool, or of each pool without
// classes, all (1) or none (0).
type meaning struct {
	alternative int
	kinds       string
}

// meanings returns the alternatives of a constraint that mean different PEs.
func (f *Finder) meanings(c *berth.Constraint) []meaning {
	var list []meaning
	seen := map[string]bool{}
	kinds := make([]byte, 0, 64)
	for i := range c.Alternatives() {
		kinds = kinds[:0]
		met := func(has func(string) bool) {
			kind := byte(0)
			if c.Met(i, has) {
				kind = 1
			}
			kinds = append(kinds, kind)
		}
		for k := range f.pools {
			p := f.pools[k].config
			if len(p.Classes) == 0 {
				met(p.Has)
			}
			for at := range p.Classes {
				met(featuresOf(p, at))
			}
		}
		if !seen[string(kinds)] {
			seen[string(kinds)] = true
			list = append(list, meaning{i, string(kinds)})
		}
	}
	return list
}

// featuresOf says which features the PEs of a class of a pool have: the name of the pool is one.
func featuresOf(p *berth.Pool, class int) func(string) bool {
	return func(feature string) bool { return p.Classes[class].Has(feature) || feature == p.Name }
}

func parsed(text string) berth.Constraint {
	if text == "" {
		return berth.Constraint{}
	}
	c, err := berth.ParseConstraint(text)
	if err != nil {
		panic("engine: a constraint that validation lets through: " + text)
	}
	return c
}

// met reports whether what has some features meets the constraints of a part in the way
// that is looked at.
func (x *search) met(part int, has func(string) bool) bool {
	if x.r.Constraint == "" && x.r.Parts[part].Constraint == "" {
		return true
	}
	c := x.constrained(part)
	w := c.ways[x.way]
	return c.request.Met(w.request, has) && c.part.Met(w.part, has)
}

// classed returns the PEs of a pool that have what a part requires of hardware and
// features; some is false if that is no restriction. Which they are is remembered for the
// part and pool asked about last.
func (x *search) classed(part int, p *pool) (set berth.PESet, some bool) {
	if len(p.config.Classes) == 0 {
		return berth.PESet{}, !x.met(part, p.config.Has)
	}
	if !x.demanding(part) {
		return berth.PESet{}, false
	}
	if at := (askedOf{part, x.way, p}); x.suiting.of != at {
		x.suiting = suiting{of: at}
		for i := range p.config.Classes {
			c := &p.config.Classes[i]
			if c.Suits(&x.r.Requirements) && x.met(part, featuresOf(p.config, i)) {
				x.suiting.pes = x.suiting.pes.Or(c.PEs)
			} else {
				x.suiting.some = true
			}
		}
	}
	return x.suiting.pes, x.suiting.some
}

// demanding reports whether a part requires anything that only some PEs may have.
func (x *search) demanding(part int) bool {
	return x.r.MemoryMB > 0 || x.r.Accelerators > 0 || x.r.Constraint != "" || x.r.Parts[part].Constraint != ""
}

// suiting is which PEs of a pool have what a part requires.
type suiting struct {
	of   askedOf
	pes  berth.PESet
	some bool
}

type askedOf struct {
	part, way int
	pool      *pool
}

// widest looks at the way to meet the constraints of a part in which it may use the most
// PEs of a pool, the first of equals, and returns how many.
func (x *search) widest(part int, p *pool) berth.Count {
	if x.whole(p) && x.avoid.Empty() {
		x.way = 0
		return p.config.PEs
	}
	n := x.ways(part)
	if n == 1 {
		x.way = 0
		return x.eligibleCount(part, p)
	}
	best, most := 0, berth.Count(-1)
	for x.way = range n {
		if eligible := x.eligibleCount(part, p); eligible > most {
			best, most = x.way, eligible
		}
	}
	x.way = best
	return most
}

// waysOf returns the ways to meet the constraints of a part in which most of some PEs of a
// pool may be used.
func (x *search) waysOf(part int, p *pool, pes berth.PESet) []int {
	n := x.ways(part)
	if n == 1 {
		return []int{0}
	}
	var best []int
	most := berth.Count(0)
	for x.way = range n {
		may := pes.Count()
		if x.restricted(part, p) {
			may = x.eligible(part, p).Overlap(pes)
		}
		if may > most {
			best, most = best[:0], may
		}
		if may == most {
			best = append(best, x.way)
		}
	}
	return best
}

// Unsuited returns the PEs of a part of a promise that have not, or have no longer, what it
// requires of hardware and features; nothing where PEs have no numbers.
func (f *Finder) Unsuited(d *state.Entry, part int) berth.PESet {
	a := d.Part(part)
	at := slices.IndexFunc(f.pools, func(p pool) bool { return p.id == a.Resource })
	if at < 0 || a.PEs.Empty() {
		return berth.PESet{}
	}
	x, p := f.search(d.Request(), d), &f.pools[at]
	x.way = x.waysOf(part, p, a.PEs)[0]
	set, some := x.classed(part, p)
	if !some {
		return berth.PESet{}
	}
	return a.PEs.Minus(set)
}
