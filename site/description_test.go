package site_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

func TestNodesKeepTheirNumbers(t *testing.T) {
	node := func(name string, cores berth.Count, gone bool) site.Node {
		return site.Node{Name: name, Cores: cores, Gone: gone}
	}
	before := &site.Description{Nodes: []site.Node{node("n1", 4, false), node("n2", 4, false), node("n3", 4, false), node("n4", 4, true)}}
	now := &site.Description{Cluster: "lab", Nodes: []site.Node{node("n0", 4, false), node("n1", 4, false), node("n3", 8, false), node("n4", 4, false)}}
	got, changes := now.After(before)
	want := []site.Node{node("n1", 4, false), node("n2", 4, true), node("n3", 4, true), node("n4", 4, false), node("n0", 4, false), node("n3", 8, false)}
	if diff := cmp.Diff(want, got.Nodes); diff != "" || got.Cluster != "lab" {
		t.Errorf("%s %s", got.Cluster, diff)
	}
	said := []string{"node n2 is gone", "node n3 is no longer 4c-0mb", "node n4 is back", "node n0 is new, 4c-0mb", "node n3 is new, 8c-0mb"}
	if diff := cmp.Diff(said, changes); diff != "" {
		t.Error(diff)
	}
	_, layout, err := site.Import("lab", got, site.UnitCore, berth.Early)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]berth.PESet{"4c-0mb": berth.NewPESet(berth.Run{Lo: 4, Hi: 12})}, layout.Gone()); diff != "" {
		t.Error(diff)
	}
	shares := []site.Share{{Node: "n2"}, {Node: "n3"}, {Node: "n4"}}
	pes := map[string]berth.PESet{"4c-0mb": berth.NewPESet(berth.Run{Lo: 12, Hi: 16}), "8c-0mb": berth.NewPESet(berth.Run{Lo: 0, Hi: 8})}
	if diff := cmp.Diff(pes, layout.PEs(shares)); diff != "" {
		t.Error(diff)
	}
}

// However often a site changes, a node that it has is where it was as long as it
// was there, and the site's nodes are those that are not gone.
func TestNumbersSurviveEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			name  string
			cores berth.Count
		}
		where := map[place]int{} // as first seen
		known := &site.Description{}
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			now := &site.Description{}
			for _, i := range rapid.SliceOfDistinct(rapid.IntRange(0, 7), rapid.ID).Draw(t, "nodes") {
				now.Nodes = append(now.Nodes, site.Node{Name: string(rune('a' + i)), Cores: berth.Count(rapid.IntRange(1, 2).Draw(t, "cores"))})
			}
			var changes []string
			known, changes = now.After(known)
			var there []site.Node
			for i, n := range known.Nodes {
				p := place{n.Name, n.Cores}
				if at, seen := where[p]; seen && at != i {
					t.Fatalf("%v moved from %d to %d", p, at, i)
				}
				where[p] = i
				if !n.Gone {
					there = append(there, n)
				}
			}
			byName := func(a, b site.Node) int { return int(a.Name[0]) - int(b.Name[0]) }
			slices.SortFunc(there, byName)
			want := slices.SortedFunc(slices.Values(now.Nodes), byName)
			if diff := cmp.Diff(want, there); diff != "" {
				t.Fatal(diff)
			}
			if again, more := now.After(known); len(more) > 0 || !cmp.Equal(again, known) {
				t.Fatalf("the same once more says %v after %v", more, changes)
			}
		}
	})
}
