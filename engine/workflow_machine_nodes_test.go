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
		a, met := &r.Allotments[0], false
		for _, set := range x.suits(&r) {
			met = met || a.PEs.Minus(set).Empty() && set.Count() >= a.NPE
		}
		if !met {
			x.fatalf("%s is on %v of %s; it requires %+v", r.Request.ID, a.PEs, a.Resource.Name, r.Request.Requirements)
		}
		if p := x.partitionOf(&r); p != nil && p.MaxNPE > 0 && a.NPE > p.MaxNPE {
			x.fatalf("%s is on %d PEs of partition %+v", r.Request.ID, a.NPE, p)
		}
	}
}

// partitionOf returns the partition that a task requires, nil without one.
func (x *flows) partitionOf(r *berth.Reservation) *berth.Partition {
	for i := range x.config.Sites {
		if site := &x.config.Sites[i]; site.Name == r.Allotments[0].Resource.Site && r.Request.Partition != "" {
			return &site.Partitions[0]
		}
	}
	return nil
}

// suits returns the PEs of its pool that a task may have, for each way to meet its constraint.
func (x *flows) suits(r *berth.Reservation) (list []berth.PESet) {
	pool := x.poolOf(r.Allotments[0].Resource)
	all := berth.NewPESet(berth.Run{Hi: berth.PE(pool.PEs)})
	within := all
	if p := x.partitionOf(r); p != nil && !p.PEs.Empty() {
		within = p.PEs
	}
	c := r.Request.Constraint
	if c == "" && r.Request.Accelerators == 0 {
		return []berth.PESet{within}
	}
	for _, way := range x.waysOf(c) {
		var set berth.PESet
		for k := range pool.Classes {
			class := &pool.Classes[k]
			if class.Node.Accelerators >= r.Request.Accelerators && way(func(f string) bool { return class.Has(f) || f == pool.Name }) {
				set = set.Or(class.PEs)
			}
		}
		if len(pool.Classes) == 0 && r.Request.Accelerators == 0 && way(pool.Has) {
			set = all
		}
		list = append(list, set.And(within))
	}
	return list
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
