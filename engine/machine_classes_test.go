package engine_test

import (
	mathbits "math/bits"
	"slices"

	"github.com/berth-hpc/berth"
)

// constraints are what requests may require of features, with what each means: the ways
// to meet it; all PEs of a part keep to one of them.
var constraints = []struct {
	text string
	ways []func(has func(string) bool) bool
}{
	{"f", ways(func(has func(string) bool) bool { return has("f") })},
	{"g", ways(func(has func(string) bool) bool { return has("g") })},
	{"h", ways(func(has func(string) bool) bool { return has("h") })},
	{"k", ways(func(has func(string) bool) bool { return has("k") })},
	{"p", ways(func(has func(string) bool) bool { return has("p") })},
	{"f|g", ways(func(has func(string) bool) bool { return has("f") || has("g") })},
	{"f&k", ways(func(has func(string) bool) bool { return has("f") && has("k") })},
	{"(f|q)&(k|g)", ways(func(has func(string) bool) bool { return (has("f") || has("q")) && (has("k") || has("g")) })},
	{"[f|g]", ways(func(has func(string) bool) bool { return has("f") }, func(has func(string) bool) bool { return has("g") })},
	{"[k|f|p]", ways(func(has func(string) bool) bool { return has("k") }, func(has func(string) bool) bool { return has("f") }, func(has func(string) bool) bool { return has("p") })},
	{"none", ways(func(func(string) bool) bool { return false })},
}

func ways(list ...func(has func(string) bool) bool) []func(has func(string) bool) bool { return list }

// waysOf returns what a constraint means; no constraint is met by everything.
func waysOf(text string) []func(has func(string) bool) bool {
	for _, c := range constraints {
		if c.text == text {
			return c.ways
		}
	}
	if text != "" {
		panic("a constraint that the model does not know: " + text)
	}
	return ways(func(func(string) bool) bool { return true })
}

// has reports whether a PE that is made so has the memory and the accelerators that are
// required; memory that is not known is not asked about.
func has(n *berth.Node, r *berth.Request) bool {
	return (n.MemoryMB == 0 || r.MemoryMB <= n.MemoryMB) && r.Accelerators <= n.Accelerators
}

// divide draws the classes of a pool.
func (d dice) divide(p *berth.Pool) {
	var sets [3]uint64
	n := d.between(2, 3)
	for pe := range p.PEs {
		sets[d.IntN(n)] |= 1 << pe
	}
	for i, set := range sets {
		if set == 0 {
			continue
		}
		c := berth.Class{Name: string(rune('f' + i)), PEs: setOf(set)}
		if d.chance(50) {
			c.Features = []string{"k"}
		}
		if d.chance(40) {
			c.Node.MemoryMB = pick(d, int64(1), 2, 4)
		}
		if d.chance(40) {
			c.Node.Accelerators = d.between(1, 2)
		}
		p.Classes = append(p.Classes, c)
	}
}

// ways returns the sets of PEs of a pool that a part may use, one of which it keeps to: by
// its request's constraint and then by its own. Where PEs have no numbers before they
// start, a part that may not use all may use none.
func (w *world) ways(r *berth.Request, part *berth.Part, pool int) []uint64 {
	p := &w.pools[pool]
	var list []uint64
	for _, own := range waysOf(part.Constraint) {
		for _, common := range waysOf(r.Constraint) {
			meets := func(name string, features []string) bool {
				is := func(feature string) bool {
					return feature == name || feature == p.pool.Name || slices.Contains(features, feature)
				}
				return own(is) && common(is)
			}
			mask := uint64(0)
			if len(p.pool.Classes) == 0 && meets(p.pool.Name, nil) {
				mask = p.all
			}
			for i := range p.pool.Classes {
				c := &p.pool.Classes[i]
				if has(&c.Node, r) && meets(c.Name, c.Features) {
					mask |= bits(c.PEs)
				}
			}
			named := !part.Eligible.Empty()
			if named {
				mask &= bits(part.Eligible)
			}
			if len(part.Only) > 0 {
				only := uint64(0)
				for _, o := range part.Only {
					if o.Resource == p.id {
						only = bits(o.PEs)
					}
				}
				mask, named = mask&only, true
			}
			for _, n := range part.Never {
				if n.Resource == p.id {
					mask, named = mask&^bits(n.PEs), true
				}
			}
			partition := w.partition(r, pool)
			narrow := r.Partition != "" && partition != nil && !partition.PEs.Empty()
			if narrow {
				mask &= bits(partition.PEs)
			}
			if !p.early() && (mask != p.all || narrow || named) {
				mask = 0
			}
			list = append(list, mask)
		}
	}
	return list
}

// may reports whether a part may use PEs of a pool, all of them together.
func (w *world) may(r *berth.Request, part *berth.Part, pool int, pes berth.PESet) bool {
	for _, mask := range w.ways(r, part, pool) {
		if bits(pes)&^mask == 0 {
			return true
		}
	}
	return false
}

// beside returns the sets of PEs of a pool that a part may use one of beside the PEs that
// it has: by the ways in which it may use most of these.
func (w *world) beside(r *berth.Request, part *berth.Part, pool int, has uint64) []uint64 {
	var best []uint64
	most := 0
	for _, mask := range w.ways(r, part, pool) {
		n := mathbits.OnesCount64(mask & has)
		if n > most {
			best, most = best[:0], n
		}
		if n == most {
			best = append(best, mask)
		}
	}
	return best
}
