package site_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

func description() *site.Description {
	return &site.Description{
		Nodes: []site.Node{
			{Name: "login", Cores: 2, Sockets: 1, MemoryMB: 1000},
			{Name: "n1", Cores: 4, Sockets: 2, MemoryMB: 8000, Features: []string{"ib", "avx"}},
			{Name: "n2", Cores: 4, Sockets: 2, MemoryMB: 8000, Features: []string{"avx", "ib"}},
			{Name: "g1", Cores: 4, Sockets: 2, MemoryMB: 8000, GRES: []site.GRES{{Name: "gpu", Type: "a100", Count: 4}}},
			{Name: "n3", Cores: 4, Sockets: 2, MemoryMB: 8000, Features: []string{"avx", "ib"}},
		},
		Partitions: []site.Partition{
			{Name: "all", Nodes: []string{"n1", "n2", "n3", "g1"}, MaxTime: 3600},
			{Name: "small", Nodes: []string{"n3", "n2"}, MaxNodes: 1},
		},
	}
}

func TestImportByNodes(t *testing.T) {
	got, layout, err := site.Import("lab", description(), site.UnitNode, berth.Early)
	if err != nil {
		t.Fatal(err)
	}
	const plain, gpu = "2s-4c-8000mb-avx-ib", "2s-4c-8000mb-gpua1004"
	want := berth.Site{
		Name: "lab", Managed: true,
		Pools: []berth.Pool{
			{Name: "2c-1000mb", PEs: 1, Binding: berth.Early, Node: berth.Node{Sockets: 1, Cores: 2, MemoryMB: 1000}},
			{Name: plain, PEs: 3, Binding: berth.Early, Node: berth.Node{Sockets: 2, Cores: 2, MemoryMB: 8000}, Features: []string{"avx", "ib"}},
			{Name: gpu, PEs: 1, Binding: berth.Early, Node: berth.Node{Sockets: 2, Cores: 2, MemoryMB: 8000, Accelerators: 4}},
		},
		Partitions: []berth.Partition{
			{Name: "all", Pool: plain, MaxDuration: 3600},
			{Name: "all", Pool: gpu, MaxDuration: 3600},
			{Name: "small", Pool: plain, PEs: berth.PEsOf(1, 2), MaxNPE: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	shares, ok := layout.Shares(plain, berth.PEsOf(0, 2))
	if diff := cmp.Diff([]site.Share{{Node: "n1"}, {Node: "n3"}}, shares); !ok || diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, ok := layout.Shares(plain, berth.PEsOf(3)); ok {
		t.Error("there is a PE 3 of three")
	}
	if _, ok := layout.Shares("other", berth.PEsOf(0)); ok {
		t.Error("there is a pool other")
	}
}

func TestImportByCores(t *testing.T) {
	got, layout, err := site.Import("lab", description(), site.UnitCore, berth.Late)
	if err != nil {
		t.Fatal(err)
	}
	if pool := got.Pools[1]; pool.PEs != 12 || pool.Node != (berth.Node{Cores: 1, MemoryMB: 2000}) {
		t.Errorf("pool %+v, want 12 PEs of one core", pool)
	}
	if p := got.Partitions[2]; p.MaxNPE != 4 || !p.PEs.Empty() {
		t.Errorf("partition %+v, want at most 4 PEs, unnamed under late binding", p)
	}
	shares, _ := layout.Shares(got.Pools[1].Name, berth.PEsOf(1, 3, 4, 5, 6, 7, 8))
	want := []site.Share{{Node: "n1", Cores: berth.PEsOf(1, 3)}, {Node: "n2"}, {Node: "n3", Cores: berth.PEsOf(0)}}
	if diff := cmp.Diff(want, shares); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestImportRefuses(t *testing.T) {
	for name, d := range map[string]*site.Description{
		"nothing":  {},
		"no cores": {Nodes: []site.Node{{Name: "n1"}}},
		"too many": {Nodes: []site.Node{{Name: "n1", Cores: berth.MaxPEs}, {Name: "n2", Cores: berth.MaxPEs}}},
	} {
		if _, _, err := site.Import("lab", d, site.UnitCore, berth.Early); site.KindOf(err) != site.Invalid {
			t.Errorf("%s: %v, want it invalid", name, err)
		}
	}
}

func TestSharesAndPEsAreInverse(t *testing.T) {
	imported, layout, err := site.Import("lab", description(), site.UnitCore, berth.Early)
	if err != nil {
		t.Fatal(err)
	}
	sharesAreInverse(t, &imported, layout)
}

func sharesAreInverse(t *testing.T, imported *berth.Site, layout *site.Layout) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		pool := rapid.SampledFrom(imported.Pools).Draw(t, "pool")
		var pes []berth.PE
		for pe := range berth.PE(pool.PEs) {
			if rapid.Bool().Draw(t, "has") {
				pes = append(pes, pe)
			}
		}
		set := berth.PEsOf(pes...)
		shares, ok := layout.Shares(pool.Name, set)
		if !ok {
			t.Fatalf("no shares for %s", set)
		}
		if back := layout.PEs(shares)[pool.Name]; !back.Equal(set) {
			t.Fatalf("%s became %+v became %s", set, shares, back)
		}
	})
}

// All nodes of a site are one pool, in which each kind of nodes is a class.
func TestImportTogether(t *testing.T) {
	d := description()
	d.Together = true
	for unit, want := range map[site.Unit]string{
		site.UnitNode: "nodes 5: 2s-4c-8000mb-avx-ib 1-2,4 avx,ib; 2s-4c-8000mb-gpua1004 3 ; 2c-1000mb 0 ",
		site.UnitCore: "nodes 18: 2s-4c-8000mb-avx-ib 2-9,14-17 avx,ib; 2s-4c-8000mb-gpua1004 10-13 ; 2c-1000mb 0-1 ",
	} {
		got, layout, err := site.Import("lab", d, unit, berth.Early)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		pool := &got.Pools[0]
		for _, c := range pool.Classes {
			said = append(said, fmt.Sprintf("%s %v %s", c.Name, c.PEs, strings.Join(c.Features, ",")))
		}
		slices.Sort(said)
		wanted := strings.Split(strings.TrimPrefix(want, fmt.Sprintf("%s %d: ", pool.Name, pool.PEs)), "; ")
		slices.Sort(wanted)
		if diff := cmp.Diff(wanted, said); diff != "" || len(got.Pools) != 1 {
			t.Errorf("by %s: %d pools, (-want +got)\n%s", unit, len(got.Pools), diff)
		}
		if err := pool.CheckClasses(); err != nil {
			t.Error(err)
		}
		for _, p := range got.Partitions {
			if p.Pool != site.Together || strings.HasPrefix(p.Name, "small") && p.MaxNPE != map[site.Unit]berth.Count{site.UnitNode: 1, site.UnitCore: 4}[unit] {
				t.Errorf("partition %+v", p)
			}
		}
		sharesAreInverse(t, &got, layout)
	}
}

// A node whose features change keeps its place among nodes of several kinds; one with
// another number of cores does not.
func TestRetaggedNodesKeepTheirNumbers(t *testing.T) {
	node := func(name string, cores berth.Count, features ...string) site.Node {
		return site.Node{Name: name, Cores: cores, Features: features}
	}
	before := &site.Description{Together: true, Nodes: []site.Node{node("n1", 4), node("n2", 4, "ib"), node("n3", 4)}}
	now := &site.Description{Nodes: []site.Node{node("n1", 4, "ib"), node("n2", 4), node("n3", 8)}}
	got, changes := now.After(before)
	if !got.Together || len(got.Nodes) != 4 || got.Nodes[0].Features == nil || got.Nodes[1].Features != nil || !got.Nodes[2].Gone || got.Nodes[3].Cores != 8 {
		t.Errorf("%+v", got)
	}
	want := []string{"node n1 is 4c-0mb-ib now, and no longer 4c-0mb", "node n2 is 4c-0mb now, and no longer 4c-0mb-ib", "node n3 is no longer 4c-0mb", "node n3 is new, 8c-0mb"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
}
