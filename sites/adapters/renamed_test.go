package adapters_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/hostlist"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
	"github.com/berth-hpc/berth/sites"
)

// rewrite writes something else in slurm.conf, and has Slurm read it: while it runs, or by a new start.
func (h *harbour) rewrite(restart bool, pairs ...string) {
	h.t.Helper()
	conf, err := os.ReadFile(h.cluster.Conf)
	if err != nil {
		h.t.Fatal(err)
	}
	text := strings.NewReplacer(pairs...).Replace(string(conf))
	if text == string(conf) {
		h.t.Fatalf("slurm.conf has none of %q", pairs)
	}
	if restart {
		h.cluster.KillController()
	}
	if err := os.WriteFile(h.cluster.Conf, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if restart {
		h.cluster.RestartController()
	} else if _, err := h.cluster.Command("scontrol", "reconfigure"); err != nil {
		h.cluster.RestartController() // 22.05 ends where names of nodes have changed
	}
}

func (h *harbour) get(id string) service.Reservation {
	h.t.Helper()
	r, err := h.host.Get(h.t.Context(), h.by.By, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// inSlurm returns a field of the reservation of a promise in Slurm, and nothing if it has none.
func (h *harbour) inSlurm(id, field string) string {
	h.t.Helper()
	out, err := h.cluster.Command("scontrol", "--oneliner", "show", "reservation")
	if err != nil {
		h.t.Fatal(err, out)
	}
	for line := range strings.Lines(out) {
		if at := h.get(id).Sites; len(at) > 0 && strings.HasPrefix(line, "ReservationName="+string(at[0].Name)+" ") {
			_, after, _ := strings.Cut(line, " "+field+"=")
			value, _, _ := strings.Cut(after, " ")
			return value
		}
	}
	return ""
}

// bindings runs a test under both.
func bindings(t *testing.T, test func(t *testing.T, binding berth.Binding)) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(fmt.Sprint(binding), func(t *testing.T) {
			t.Parallel()
			test(t, binding)
		})
	}
}

// A node that gets another name while promises are on it is one that is gone and one that is new: what runs, what is in
// Slurm and what is not there yet have the new one in its place, in Slurm too, and back again; who asks again under a key
// is answered as at first.
func TestNodeRenamedUnderPromises(t *testing.T) {
	bindings(t, func(t *testing.T, binding berth.Binding) {
		h := newHarbour(t, slurmtest.Start(t, slurmtest.Options{Nodes: 4, Cloud: true}), sites.Adapter{Binding: binding})
		h.until("it is looked at", func() bool { return h.reached() })
		h.by.Key = "far"
		far := func() service.Reservation {
			return h.asks("far", 4, 0, func(r *berth.Request) { r.Ready, r.Deadline = 4_000_000_000, 4_000_000_600 })
		}
		first := far()
		h.by.Key = ""
		length := func(d berth.Duration) func(*berth.Request) {
			return func(r *berth.Request) { r.Parts[0].Variants[0].Duration = d }
		}
		for id, in := range map[string]berth.Duration{"runs": 0, "soon": 1000} {
			if r := h.asks(id, 4, in, length(900)); r.State != service.Confirmed && r.State != service.Active {
				t.Fatalf("%s is %+v", id, r)
			}
		}
		whole := func(names string) {
			t.Helper()
			nodes, err := hostlist.Expand(names)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"runs", "soon"} {
				h.until(id+" is on "+names, func() bool {
					have, err := hostlist.Expand(h.inSlurm(id, "Nodes"))
					slices.Sort(have)
					return err == nil && slices.Equal(have, nodes) && h.get(id).Missing == 0 && h.get(id).Sites[0].Made && len(strings.Split(h.nodes(id), ",")) == 4
				})
			}
			if r := h.get("runs"); r.State != service.Active {
				t.Errorf("what runs is %s", r.State)
			}
			if r := h.get("far"); r.State != service.Confirmed {
				t.Errorf("what is far is %s", r.State)
			}
		}
		whole("n[1-4]")
		h.rewrite(false, "NodeName=n[1-4]", "NodeName=n[1,3-4],x2")
		whole("n1,n3,n4,x2")
		h.rewrite(true, "NodeName=n[1,3-4],x2", "NodeName=n[2-4],x1")
		whole("n2,n3,n4,x1")
		h.by.Key = "far"
		if again := far(); again.ID != first.ID || again.State != first.State {
			t.Errorf("asked again it is %+v, at first %+v", again, first)
		}
		h.by.Key = ""
		h.close()
		h.open()
		whole("n2,n3,n4,x1")
		h.verify()
	})
}

// verify decides the journal again, which checks the engine too.
func (h *harbour) verify() {
	h.t.Helper()
	if v, err := service.Verify(h.t.Context(), h.store, nil); err != nil || v.Records == 0 {
		h.t.Errorf("%+v, %v", v, err)
	}
}

func (h *harbour) reached() bool {
	views, err := h.host.Sites(h.t.Context(), h.by.By)
	return err == nil && views[0].Reachable
}

// A partition that gets another name under promises takes nothing from those that name none: they stay, in Slurm too.
// Those that name it are refused for good once Slurm is asked for them, and their owner is told; who asks again under a
// key is answered as at first. What is asked for then may name the new one, and not the old one.
func TestPartitionRenamedUnderPromises(t *testing.T) {
	bindings(t, func(t *testing.T, binding berth.Binding) {
		cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4, Cloud: true, Partitions: "PartitionName=old Nodes=ALL Default=YES MaxTime=1:00:00 State=UP"})
		h := newHarbour(t, cluster, sites.Adapter{Binding: binding, GiveUpAfter: 2})
		h.until("it is looked at", h.reached)
		in := func(partition string, length berth.Duration) func(*berth.Request) {
			return func(r *berth.Request) { r.Partition, r.Parts[0].Variants[0].Duration = partition, length }
		}
		ask := func(id string, npe berth.Count, begins berth.Duration, partition string) service.Reservation {
			t.Helper()
			h.by.Key = id
			defer func() { h.by.Key = "" }()
			return h.asks(id, npe, begins, in(partition, 600))
		}
		first := map[string]service.Reservation{}
		for _, p := range []struct {
			id, partition string
			begins        berth.Duration
		}{{"plain", "", 0}, {"named", "old", 600}, {"later", "", 90_000}, {"far", "old", 90_000}} {
			r := ask(p.id, 2, p.begins, p.partition)
			if r.State != service.Confirmed && r.State != service.Active {
				t.Fatalf("%s is %+v", p.id, r)
			}
			first[p.id] = r
		}
		for _, id := range []string{"plain", "named"} {
			h.until(id+" is in Slurm", func() bool { return h.get(id).Sites[0].Made && h.cluster.Saved(string(h.get(id).Sites[0].Name)) })
		}
		plain := h.nodes("plain")
		h.rewrite(true, "PartitionName=old ", "PartitionName=new ")
		h.until("what names no partition is there", func() bool {
			have, err := hostlist.Expand(h.inSlurm("plain", "Nodes"))
			return err == nil && strings.Join(have, ",") == plain && h.nodes("plain") == plain && h.get("plain").State == service.Active
		})
		h.until("what names the old one has failed", func() bool { return h.get("named").State == service.Failed })
		if no := h.get("named").Refusal; no == nil || no.Reason != berth.SiteRefused || !strings.Contains(no.Words, "artition") {
			t.Errorf("it has failed for %+v", no)
		}
		h.until("the new one is known", func() bool { return slices.Contains(h.partitions(), "new") })
		if r := h.asks("new", 2, 100_000, in("new", 600)); r.State != service.Confirmed {
			t.Errorf("what names the new one is %+v", r)
		}
		if r := h.asks("old", 2, 100_000, in("old", 600)); r.State != service.Refused || r.Refusal.Reason != berth.NoSuitableSite {
			t.Errorf("what names the old one is %+v", r)
		}
		for id, r := range first {
			if again := ask(id, 2, r.Request.Ready.Sub(h.host.Now()), r.Request.Partition); again.ID != r.ID || again.State != r.State {
				t.Errorf("%s asked for again is %+v, at first %+v", id, again, r)
			}
		}
		h.close()
		h.open()
		if got := h.partitions(); slices.Contains(got, "old") || !slices.Contains(got, "new") {
			t.Errorf("after a restart it has %v", got)
		}
		if a, b, c := h.get("plain").State, h.get("named").State, h.get("later").State; a != service.Active || b != service.Failed || c != service.Confirmed {
			t.Errorf("after a restart they are %s, %s, %s", a, b, c)
		}
		h.verify()
	})
}

func (h *harbour) partitions() []string {
	h.t.Helper()
	views, err := h.host.Sites(h.t.Context(), h.by.By)
	if err != nil {
		h.t.Fatal(err)
	}
	var names []string
	for _, p := range views[0].Partitions {
		names = append(names, p.Name)
	}
	return names
}

// A class that gets other features under promises: those of any node keep theirs, those that want a feature get another
// node that has it; where there is none they stay where they are until there is, and the log says so.
func TestNodesRetaggedUnderPromises(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 6, Cloud: true})
	tag := func(node, feature string) {
		t.Helper()
		if out, err := cluster.Command("scontrol", "update", "NodeName="+node, "AvailableFeatures="+feature, "ActiveFeatures="+feature); err != nil {
			t.Fatal(err, out)
		}
	}
	tag("n[1-2]", "a")
	tag("n[3-4]", "b")
	tag("n[5-6]", "c")
	h := newHarbour(t, cluster, sites.Adapter{})
	h.until("it is looked at", h.reached)
	want := func(constraint string, length berth.Duration) func(*berth.Request) {
		return func(r *berth.Request) { r.Constraint, r.Parts[0].Variants[0].Duration = constraint, length }
	}
	for _, p := range []struct {
		id, constraint string
		npe            berth.Count
		begins         berth.Duration
	}{{"runs", "", 6, 0}, {"any", "", 6, 1000}, {"ab", "a|b", 3, 2000}, {"a", "a", 2, 3000}} {
		if r := h.asks(p.id, p.npe, p.begins, want(p.constraint, 900)); r.State != service.Confirmed && r.State != service.Active {
			t.Fatalf("%s is %+v", p.id, r)
		}
	}
	are := func(id, nodes string, missing berth.Count) {
		t.Helper()
		h.until(id+" is on "+nodes, func() bool {
			have, err := hostlist.Expand(h.inSlurm(id, "Nodes"))
			slices.Sort(have)
			r := h.get(id)
			return err == nil && strings.Join(have, ",") == nodes && r.Missing == missing && r.Sites[0].Made
		})
	}
	all := func() {
		t.Helper()
		are("runs", "n1,n2,n3,n4,n5,n6", 0)
		are("any", "n1,n2,n3,n4,n5,n6", 0)
	}
	all()
	are("ab", "n1,n2,n3", 0)
	are("a", "n1,n2", 0)

	tag("n1", "c")
	are("ab", "n2,n3,n4", 0)
	h.until("the log says what is on a node that no longer suits", func() bool {
		return strings.Contains(h.log.String(), "nodes of a promise no longer have what it requires") && strings.Contains(h.log.String(), "id=a nodes=[n1]")
	})
	are("a", "n1,n2", 0) // there are no others
	all()
	tag("n3", "a")
	are("a", "n2,n3", 0)
	are("ab", "n2,n3,n4", 0)
	all()
	tag("n1", "a")
	tag("n3", "b")
	are("a", "n1,n2", 0)
	all()
	h.close()
	h.open()
	are("a", "n1,n2", 0)
	all()
	h.verify()
}

// Under late binding a class is a pool of its own. Nodes that leave it for other features are lacking in what was promised
// there, as nodes that are down are, whether it has names yet or not, and nothing is lacking when they are back.
func TestNodesRetaggedUnderLateBinding(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 5, Cloud: true})
	tag := func(node, feature string) {
		t.Helper()
		if out, err := cluster.Command("scontrol", "update", "NodeName="+node, "AvailableFeatures="+feature, "ActiveFeatures="+feature); err != nil {
			t.Fatal(err, out)
		}
	}
	tag("n[1-3]", "a")
	tag("n[4-5]", "b")
	h := newHarbour(t, cluster, sites.Adapter{Binding: berth.Late, NameAhead: 3600})
	h.until("it is looked at", h.reached)
	want := func(r *berth.Request) { r.Constraint, r.Parts[0].Variants[0].Duration = "a", 600 }
	for id, in := range map[string]berth.Duration{"runs": 0, "far": 90_000} {
		if r := h.asks(id, 3, in, want); r.State != service.Confirmed && r.State != service.Active {
			t.Fatalf("%s is %+v", id, r)
		}
	}
	is := func(nodes string, missing berth.Count) {
		t.Helper()
		h.until("what runs is on "+nodes, func() bool {
			have, err := hostlist.Expand(h.inSlurm("runs", "Nodes"))
			slices.Sort(have)
			return err == nil && strings.Join(have, ",") == nodes && h.get("runs").Missing == missing
		})
		if r := h.get("far"); (r.State == service.Confirmed) != (missing == 0) || r.Missing != missing || len(r.Nodes) > 0 {
			t.Errorf("what has no nodes yet is %+v", r)
		}
	}
	is("n1,n2,n3", 0)
	tag("n2", "b")
	is("n1,n3", 1)
	tag("n2", "a")
	is("n1,n2,n3", 0)
	h.close()
	h.open()
	is("n1,n2,n3", 0)
	h.verify()
}
