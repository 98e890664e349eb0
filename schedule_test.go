package berth_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
)

// A line refers to what its request wanted beside PEs and time, each part to its own
// PEs, and to nothing where that is nothing.
func TestWantedOf(t *testing.T) {
	plain := func() *berth.Request {
		r := berth.Rigid("a", 0, 0, 100, 2, 10)
		return &r
	}
	if got := berth.WantedOf(plain(), 0); got != nil {
		t.Errorf("%+v, want nothing", got)
	}
	for name, c := range map[string]struct {
		change func(*berth.Request)
		want   berth.Wanted
	}{
		"a site": {func(r *berth.Request) { r.Site = "s" }, berth.Wanted{WantSite: "s"}},
		"a pool": {func(r *berth.Request) { r.Pool = "p" }, berth.Wanted{WantPool: "p"}},
		"PEs":    {func(r *berth.Request) { r.Parts[0].Eligible = berth.PEsOf(1, 2) }, berth.Wanted{Eligible: berth.PEsOf(1, 2)}},
		"sites":  {func(r *berth.Request) { r.Sites = []string{"s", "t"} }, berth.Wanted{WantSites: []string{"s", "t"}}},
		"these PEs": {
			func(r *berth.Request) {
				r.Parts[0].Only = []berth.PoolPEs{{Resource: berth.PoolID("s", "p"), PEs: berth.PEsOf(4)}}
			},
			berth.Wanted{OnlyPEs: []berth.PlacePEs{{Site: "s", Pool: "p", PEs: berth.PEsOf(4)}}},
		},
		"not these PEs": {
			func(r *berth.Request) {
				r.Parts[0].Never = []berth.PoolPEs{{Resource: berth.PoolID("s", "p"), PEs: berth.PEsOf(4)}}
			},
			berth.Wanted{NotPEs: []berth.PlacePEs{{Site: "s", Pool: "p", PEs: berth.PEsOf(4)}}},
		},
		"memory": {func(r *berth.Request) { r.MemoryMB = 7 }, berth.Wanted{Requirements: berth.Requirements{MemoryMB: 7}}},
		"of a part": {func(r *berth.Request) {
			r.Parts = append(r.Parts, r.Parts[0])
			r.Parts[1].Eligible = berth.PEsOf(3)
			r.Site = "s"
		}, berth.Wanted{WantSite: "s"}},
	} {
		r := plain()
		c.change(r)
		line := berth.Line{Wanted: berth.WantedOf(r, 0)}
		if diff := cmp.Diff(&c.want, line.Wants()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(r.Parts) > 1 && !berth.WantedOf(r, 1).Eligible.Equal(berth.PEsOf(3)) {
			t.Errorf("%s: the second part wants %+v", name, berth.WantedOf(r, 1))
		}
	}
	if got := new(berth.Line).Wants(); got == nil || got.WantSite != "" {
		t.Errorf("a line of a request that wants nothing: %+v", got)
	}
}

// The size of a pool stands on its first line that is no staging. Where there is but
// one pool, the first line of all says it, wherever that line is.
func TestSizesStandOnTheFirstLineOfEachPool(t *testing.T) {
	line := func(site, pool string, kind berth.Kind) berth.Line {
		return berth.Line{ID: "a", Kind: kind, Site: site, Pool: pool}
	}
	fleet := []berth.Site{
		{Name: "north", Pools: []berth.Pool{{Name: "cpu", PEs: 16}, {Name: "gpu", PEs: 4}}},
		{Name: "south", Pools: []berth.Pool{{Name: "pool", PEs: 8}}},
	}
	lines := []berth.Line{
		line("north", "gpu", berth.KindStaging), line("north", "gpu", berth.KindRequest), line("", "", berth.KindRequest),
		line("north", "gpu", berth.KindRequest), line("south", "", berth.KindRequest), line("west", "", berth.KindRequest),
	}
	for name, c := range map[string]struct {
		on   []berth.Site
		want []berth.Count
	}{
		"two sites":             {fleet, []berth.Count{0, 4, 0, 0, 8, 0}},
		"one site of two pools": {fleet[:1], []berth.Count{0, 4, 0, 0, 0, 0}},
		"one pool":              {fleet[1:], []berth.Count{8, 0, 0, 0, 0, 0}},
		"no site":               {nil, []berth.Count{0, 0, 0, 0, 0, 0}},
	} {
		told := slices.Clone(lines)
		berth.TellSizes(told, c.on)
		for i, want := range c.want {
			if told[i].PoolPEs != want {
				t.Errorf("%s: line %d says %d PEs, want %d", name, i, told[i].PoolPEs, want)
			}
		}
	}
	berth.TellSizes(nil, fleet[1:])
}
