package service

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// twoSites is a host in front of a site of two pools, big and small, and of one with a pool
// that binds late; n2 is a name at both.
func twoSites(t *testing.T) *Host {
	t.Helper()
	h := &Host{sites: map[string]*keeper{}}
	add := func(name string, binding berth.Binding, nodes ...site.Node) {
		on, layout, err := site.Import(name, &site.Description{Nodes: nodes}, site.UnitNode, binding)
		if err != nil {
			t.Fatal(err)
		}
		h.sites[name] = &keeper{name: name}
		h.sites[name].ground.Store(newGround(layout, &on))
	}
	add("lab", berth.Early,
		site.Node{Name: "n1", Cores: 4}, site.Node{Name: "n2", Cores: 4}, site.Node{Name: "n3", Cores: 8}, site.Node{Name: "n4", Cores: 8}, site.Node{Name: "n5", Cores: 8, Gone: true})
	add("quay", berth.Late, site.Node{Name: "n2", Cores: 9}, site.Node{Name: "q1", Cores: 9})
	return h
}

// Names of nodes become PEs of the pools in which the nodes are, for each part what its request
// and it name together; what cannot be right is told with what there is.
func TestNodesAreFoundByName(t *testing.T) {
	h := twoSites(t)
	small, big, quay := "pool 4c-0mb of lab", "pool 8c-0mb of lab", "pool 9c-0mb of quay"
	for name, c := range map[string]struct {
		change func(*berth.Request)
		only   map[string]string
		never  map[string]string
		err    string
	}{
		"nothing":             {change: func(*berth.Request) {}},
		"pools":               {change: func(r *berth.Request) { r.Nodelist = "n[1,3-4]" }, only: map[string]string{small: "0", big: "0-1"}},
		"excluded":            {change: func(r *berth.Request) { r.Exclude = "n[1-2]" }, never: map[string]string{small: "0-1", quay: "0"}},
		"late beside early":   {change: func(r *berth.Request) { r.Nodelist = "n2" }, only: map[string]string{small: "1"}},
		"of a part":           {change: func(r *berth.Request) { r.Nodelist, r.Parts[0].Nodelist = "n[1-3]", "n[3-4]" }, only: map[string]string{big: "0"}},
		"both":                {change: func(r *berth.Request) { r.Nodelist, r.Exclude = "n[1-2]", "n2" }, only: map[string]string{small: "0-1"}, never: map[string]string{small: "1", quay: "0"}},
		"at a site":           {change: func(r *berth.Request) { r.Site, r.Exclude = "lab", "n2" }, never: map[string]string{small: "1"}},
		"unknown":             {change: func(r *berth.Request) { r.Nodelist = "n[3-9]" }, err: "nodelist: \"n[3-9]\": no site has n[5-9]; lab has n[1-4], quay has n2,q1"},
		"elsewhere":           {change: func(r *berth.Request) { r.Site, r.Exclude = "lab", "q1" }, err: "exclude: \"q1\": no site has q1; lab has n[1-4]"},
		"late":                {change: func(r *berth.Request) { r.Nodelist = "q1" }, err: "nodelist: \"q1\": pool 9c-0mb of quay binds late"},
		"no list":             {change: func(r *berth.Request) { r.Nodelist = "n[1" }, err: "nodelist: \"n[1\": "},
		"nothing in common":   {change: func(r *berth.Request) { r.Nodelist, r.Parts[0].Nodelist = "n1", "n3" }, err: "nodelist: \"n3\" has no node of \"n1\""},
		"nothing left":        {change: func(r *berth.Request) { r.Nodelist, r.Exclude = "n[1-2]", "n[1-3]" }, err: "exclude: \"n[1-3]\" leaves none"},
		"numbers not allowed": {change: func(r *berth.Request) { r.Parts[0].Only = []berth.PoolPEs{{Resource: berth.PoolID("lab", "x")}} }},
	} {
		r := berth.Rigid("r", 0, 0, 100, 1, 10)
		c.change(&r)
		err := h.findNodes(Principal{}, &r)
		if (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
			continue
		}
		for what, list := range map[string][]berth.PoolPEs{"only": r.Parts[0].Only, "never": r.Parts[0].Never} {
			want := map[string]map[string]string{"only": c.only, "never": c.never}[what]
			if err != nil {
				continue
			}
			for _, p := range list {
				if at := "pool " + p.Resource.Name + " of " + p.Resource.Site; want[at] != p.PEs.String() {
					t.Errorf("%s: %s %s of %s, want %v", name, what, p.PEs, at, want)
				}
			}
			if len(list) != len(want) {
				t.Errorf("%s: %s %+v, want %v", name, what, list, want)
			}
		}
	}
}

// Who does not see a site is not told of its nodes.
func TestNodesOfOtherSitesAreNotTold(t *testing.T) {
	h := twoSites(t)
	r := berth.Rigid("r", 0, 0, 100, 1, 10)
	r.Nodelist = "q1"
	by := Principal{Sites: "lab"}
	if err := h.findNodes(by, &r); err == nil || !strings.Contains(err.Error(), "no site has q1; lab has n[1-4]") || strings.Contains(err.Error(), "quay") {
		t.Errorf("%v", err)
	}
}
