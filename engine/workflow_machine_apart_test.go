package engine_test

import (
	"math/rand/v2"

	"github.com/berth-hpc/berth"
)

// apart draws second pools of sites, and which workflows may be spread over sites. It has dice
// of its own.
type apart struct {
	dice *rand.Rand
	on   bool
}

func newApart(seed uint64) apart {
	a := apart{dice: rand.New(rand.NewPCG(seed, 22))}
	a.on = a.dice.IntN(2) == 0
	return a
}

func (a *apart) chance(percent int) bool { return a.on && a.dice.IntN(100) < percent }

// add draws a second pool of a site.
func (a *apart) add(site *berth.Site) {
	if !a.chance(60) {
		return
	}
	pool := berth.Pool{Name: "q", PEs: berth.Count(1 + a.dice.IntN(6)), Binding: berth.Late}
	if a.chance(40) {
		pool.Binding = berth.Early
	}
	if a.chance(30) {
		pool.Speed = berth.Speed(300 + a.dice.IntN(3000))
	}
	site.Pools = append(site.Pools, pool)
}

// one draws a pool of a site.
func (a *apart) one(site *berth.Site) *berth.Pool {
	if len(site.Pools) > 1 && a.chance(50) {
		return &site.Pools[1]
	}
	return &site.Pools[0]
}

// name draws the site of a task.
func (a *apart) name(k *berth.WorkflowTask) {
	if a.chance(4) {
		k.Site = []string{"s0", "s1"}[a.dice.IntN(2)]
	}
}

// spread draws whether a workflow may be spread, and a planner that can.
func (a *apart) spread(w *berth.Workflow) {
	w.Spread = a.chance(50)
	if a.chance(20) {
		w.Algorithm = "dl-bd-cpar"
	}
}

// together says of the tasks of a workflow whether they are where they may be: at one site unless
// it is spread, and at the sites that they name.
func (x *flows) together(s *flowSeen, has map[string]berth.Reservation) {
	sites, pools := map[string]bool{}, map[berth.ResourceID]bool{}
	for _, k := range s.w.Tasks {
		r, is := has[s.w.ID+" "+k.ID]
		if !is {
			continue
		}
		at := r.Allotments[0].Resource
		sites[at.Site], pools[at] = true, true
		if k.Site != "" && k.Site != at.Site {
			x.fatalf("task %s of %s is at %s, want %s", k.ID, s.w.ID, at.Site, k.Site)
		}
	}
	switch {
	case len(sites) > 1 && !s.w.IsSpread():
		x.fatalf("%s is at several sites: %v", s.w.ID, sites)
	case len(sites) > 1:
		x.cells["spread over sites"]++
	case len(pools) > 1:
		x.cells["spread over pools"]++
	case len(pools) == 1 && s.w.Spread:
		x.cells["spread in one pool"]++
	}
}
