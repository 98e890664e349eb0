package place

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// A job's list of pools is the same whether it is remembered, made anew or another job's, also after the lists were
// forgotten because they had become too long.
func TestTiersAreTheSameAfterTheyWereForgotten(t *testing.T) {
	sites := make([]berth.Site, 6)
	for i := range sites {
		sites[i] = berth.Site{Name: fmt.Sprint(i), Pools: []berth.Pool{{Name: "p", PEs: 8, Speed: berth.Speed(1000 + i/2)}}}
		for k := range 3 {
			if (i+k)%2 == 0 {
				sites[i].Software = append(sites[i].Software, berth.Software{Name: fmt.Sprint("program", k), Version: "1"})
			}
		}
	}
	f := &Finder{programs: newPrograms(sites)}
	for i := range sites {
		f.pools = append(f.pools, pool{index: i, siteAt: i, site: &sites[i], config: &sites[i].Pools[0]})
	}
	jobs := make([]berth.Request, 40) // of as many lists, since each asks for a version of its own
	for i := range jobs {
		jobs[i] = berth.Rigid(fmt.Sprint(i), 0, 0, 100, 1, 10)
		jobs[i].Software, jobs[i].Version = fmt.Sprint("program", i%3), fmt.Sprint("0.", i)
	}
	tiers, forgotten := f.newTiers(len(jobs)), 0
	for seen := 1; seen <= len(jobs); seen++ {
		if seen%4 == 3 {
			tiers.pools = rememberedTiers + 1
		}
		for i := range seen {
			job, before := seen-1-i, tiers.pools // one that was not asked for comes first
			want := f.having(f.tiers(0), f.programs.of(&jobs[job]))
			if got := tiers.of(job, &jobs[job], true); len(got) == 0 || !slices.EqualFunc(got, want, func(a, b policy.Tier) bool { return slices.Equal(a, b) }) {
				t.Fatalf("%d jobs, job %d: %v; want %v", seen, job, got, want)
			}
			if tiers.pools < before {
				forgotten++
			}
		}
	}
	if forgotten < 5 {
		t.Errorf("the lists were forgotten %d times; want 5 or more", forgotten)
	}
}
