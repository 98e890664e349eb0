package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// tiers are the pools by speed, for all requests and for those that require one program. Jobs that require
// the same look at the same few pools, which are found once for all of them.
type tiers struct {
	finder  *Finder
	every   [2][]policy.Tier   // for what wants no accelerators, and for what does; nil before they are asked for
	serving map[tiersKey]int32 // places in lists
	lists   [][]policy.Tier
	pools   int     // in lists
	byJob   []int32 // of each job its place in lists, and one more; 0 before it is asked for
}

type tiersKey struct {
	program     wantedProgram
	accelerated int // 0 or 1
}

// rememberedTiers bounds the memory of tiers, in pools: 28 MB.
const rememberedTiers = 1 << 20

func (f *Finder) newTiers(jobs int) *tiers {
	return &tiers{finder: f, serving: map[tiersKey]int32{}, byJob: make([]int32, jobs)}
}

// of returns the pools for a job, which is a rigid request, the fastest first; with serving those alone whose sites have
// the program that it requires. Cost: O(1) for a repeated question, else O(pools), and a sort the first time.
func (t *tiers) of(job int, r *berth.Request, serving bool) []policy.Tier {
	if at := t.byJob[job]; at > 0 && serving {
		return t.lists[at-1]
	}
	accelerated := min(1, r.Accelerators)
	every := t.every[accelerated]
	if every == nil {
		every = t.finder.tiers(accelerated)
		t.every[accelerated] = every
	}
	if !serving || r.Software == "" {
		return every
	}
	key := tiersKey{wantedProgram{r.Software, r.Version, r.Licences}, accelerated}
	at, known := t.serving[key]
	if !known {
		if t.pools > rememberedTiers {
			clear(t.serving)
			clear(t.byJob)
			t.lists, t.pools = t.lists[:0], 0
		}
		some := t.finder.having(every, t.finder.programs.of(r))
		for _, tier := range some {
			t.pools += len(tier)
		}
		at = int32(len(t.lists))
		t.serving[key], t.lists = at, append(t.lists, some)
	}
	t.byJob[job] = at + 1
	return t.lists[at]
}

// tiers returns all pools by their speed for what wants that many accelerators.
func (f *Finder) tiers(accelerators int) []policy.Tier {
	speed := func(pool int32) berth.Speed {
		return cmp.Or(f.pools[pool].config.SpeedFor(&berth.Requirements{Accelerators: accelerators}), berth.StandardSpeed)
	}
	all := make(policy.Tier, len(f.pools))
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortFunc(all, func(a, b int32) int { return cmp.Or(cmp.Compare(speed(b), speed(a)), cmp.Compare(a, b)) })
	var tiers []policy.Tier
	for from, to := 0, 1; to <= len(all); to++ {
		if to == len(all) || speed(all[to]) != speed(all[from]) {
			tiers, from = append(tiers, all[from:to:to]), to
		}
	}
	return tiers
}

// having returns the pools of tiers at sites that have a program, as programs.of says.
func (f *Finder) having(every []policy.Tier, uses []int32) []policy.Tier {
	var pools policy.Tier
	var ends []int
	for _, tier := range every {
		before := len(pools)
		for _, pool := range tier {
			if uses[f.pools[pool].siteAt] >= 0 {
				pools = append(pools, pool)
			}
		}
		if len(pools) > before {
			ends = append(ends, len(pools))
		}
	}
	some, from := make([]policy.Tier, len(ends)), 0
	for i, to := range ends {
		some[i], from = pools[from:to:to], to
	}
	return some
}
