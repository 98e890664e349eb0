package engine_test

import (
	"math/rand/v2"

	"github.com/berth-hpc/berth"
)

// nodes draws what PEs of the pools of a history with workflows are made of, and what tasks
// require of them. It has dice of its own.
type nodes struct {
	dice *rand.Rand
	on   bool
}

func newNodes(seed uint64) nodes {
	n := nodes{dice: rand.New(rand.NewPCG(seed, 16))}
	n.on = n.chance(50)
	return n
}

func (n *nodes) chance(percent int) bool { return n.dice.IntN(100) < percent }

// divide draws classes and partitions of a site.
func (n *nodes) divide(site *berth.Site) {
	pool := &site.Pools[0]
	if pool.Binding == berth.Late || !n.on {
		return
	}
	if pool.PEs > 1 && n.chance(70) {
		cut := berth.PE(1 + n.dice.IntN(int(pool.PEs)-1))
		pool.Classes = []berth.Class{
			{Name: "f", PEs: berth.NewPESet(berth.Run{Hi: cut}), Features: []string{"k"}},
			{Name: "g", PEs: berth.NewPESet(berth.Run{Lo: cut, Hi: berth.PE(pool.PEs)}), Node: berth.Node{Accelerators: 2}},
		}
	}
	short := berth.Partition{Name: "short", Pool: pool.Name, MaxDuration: berth.Duration(n.dice.IntN(30))}
	if n.chance(60) {
		short.PEs = berth.NewPESet(berth.Run{Lo: berth.PE(n.dice.IntN(int(pool.PEs))), Hi: berth.PE(pool.PEs)})
	}
	if n.chance(40) {
		short.MaxNPE = berth.Count(1 + n.dice.IntN(int(pool.PEs)))
	}
	site.Partitions = []berth.Partition{short}
}

// require draws on what and on how many PEs a task runs.
func (n *nodes) require(k *berth.WorkflowTask) {
	if !n.on {
		return
	}
	if n.chance(8) {
		k.Accelerators = 1
	}
	if n.chance(8) {
		k.Constraint = []string{"f", "g", "f|g", "[f|g]", "f&k", "[p|g]", "f&g"}[n.dice.IntN(7)]
	}
	if n.chance(8) {
		k.Partition = "short"
	}
	switch {
	case n.chance(6):
		k.Few = berth.Count(1 + n.dice.IntN(3))
	case n.chance(6):
		k.Most = berth.Count(1 + n.dice.IntN(3))
	case n.chance(6):
		k.Measured = []berth.Measurement{{NPE: 1, Seconds: 30}, {NPE: 2, Seconds: 20}, {NPE: 4, Seconds: 12}}
	}
}

// suitable says of all tasks whether they are on PEs that they may have, and on a number that they run on.
func (x *flows) suitable() {
	for r := range x.e.Reservations() {
		if r.Request.Task == nil {
			continue
		}
		a := &r.Allotments[0]
		site := &x.config.Sites[0]
		for i := range x.config.Sites {
			if x.config.Sites[i].Name == a.Resource.Site {
				site = &x.config.Sites[i]
			}
		}
		pool := &site.Pools[0]
		if a.Resource.Name != pool.Name {
			pool = &site.Pools[1]
		}
		may := berth.NewPESet(berth.Run{Hi: berth.PE(pool.PEs)})
		if c := r.Request.Constraint; c != "" || r.Request.Accelerators > 0 {
			met := false
			for _, way := range x.waysOf(c) {
				var suits berth.PESet
				for k := range pool.Classes {
					class := &pool.Classes[k]
					if class.Node.Accelerators >= r.Request.Accelerators && way(func(f string) bool { return class.Has(f) || f == pool.Name }) {
						suits = suits.Or(class.PEs)
					}
				}
				if len(pool.Classes) == 0 && r.Request.Accelerators == 0 && way(pool.Has) {
					suits = may
				}
				met = met || a.PEs.Minus(suits).Empty() && suits.Count() >= a.NPE
			}
			if !met {
				x.fatalf("%s is on %v of %s; it requires %q and %d accelerators", r.Request.ID, a.PEs, pool.Name, c, r.Request.Accelerators)
			}
		}
		if r.Request.Partition == "" {
			continue
		}
		p := &site.Partitions[0]
		if !p.PEs.Empty() && !a.PEs.Minus(p.PEs).Empty() || p.MaxNPE > 0 && a.NPE > p.MaxNPE {
			x.fatalf("%s is on %v (%d) of partition %+v", r.Request.ID, a.PEs, a.NPE, p)
		}
	}
}

func (x *flows) waysOf(constraint string) []func(func(string) bool) bool {
	if constraint == "" {
		return ways(func(func(string) bool) bool { return true })
	}
	c, err := berth.ParseConstraint(constraint)
	if err != nil {
		x.t.Fatal(err)
	}
	var list []func(func(string) bool) bool
	for i := range c.Alternatives() {
		list = append(list, func(has func(string) bool) bool { return c.Met(i, has) })
	}
	return list
}
