package adapters_test

import (
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/sites/adapters"
)

// harbour is a service in front of a cluster, opened by its adapter.
type harbour struct {
	t       *testing.T
	data    string
	adapter sites.Adapter
	cluster *slurmtest.Cluster
	store   *sqlite.Store
	host    *service.Host
	set     *adapters.Set
	log     heardlog.Log
	by      service.Ask
}

// newHarbour opens a service with an empty journal in front of a cluster, whose adapter has
// what is given.
func newHarbour(t *testing.T, cluster *slurmtest.Cluster, a sites.Adapter) *harbour {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	a.Kind, a.Conf, a.Every = sites.Slurm, cluster.Conf, 1
	h := &harbour{t: t, data: t.TempDir(), cluster: cluster, adapter: a, by: service.Ask{By: service.Principal{User: me.Username, Role: service.Operator}}}
	if h.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	h.open()
	t.Cleanup(func() {
		h.close()
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *harbour) open() {
	h.t.Helper()
	log := slog.New(slog.NewTextHandler(&h.log, nil))
	list := []berth.Site{{Name: "lab"}}
	var err error
	h.set, err = adapters.Open(h.t.Context(), adapters.Options{Data: h.data, Log: log, Again: time.Second}, list, map[string]sites.Adapter{"lab": h.adapter})
	if err != nil {
		h.t.Fatal(err)
	}
	h.host, err = service.Open(h.t.Context(), service.Options{Config: engine.Config{Sites: list}, Journal: h.store, Version: "test", Managers: h.set.Managers, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harbour) close() {
	if err := h.host.Close(); err != nil {
		h.t.Error(err)
	}
	h.set.Close()
}

func (h *harbour) until(what string, holds func() bool) {
	h.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(40 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			views, err := h.host.Sites(h.t.Context(), h.by.By)
			h.t.Fatalf("in vain: %s; %+v, %v\n%s", what, views, err, h.log.String())
		}
	}
}

// asks asks for nodes within the next three days, from a time from now on.
func (h *harbour) asks(id string, npe berth.Count, in berth.Duration, change func(*berth.Request)) service.Reservation {
	h.t.Helper()
	a, err := h.host.Submit(h.t.Context(), h.by, h.request(id, npe, in, change))
	if err != nil {
		h.t.Fatal(err)
	}
	return a.Reservation
}

func (h *harbour) request(id string, npe berth.Count, in berth.Duration, change func(*berth.Request)) berth.Request {
	start := h.host.Now().Add(in)
	r := berth.Rigid(id, 0, start, start.Add(3*86_400), npe, 60)
	if change != nil {
		change(&r)
	}
	return r
}

func (h *harbour) nodes(id string) string {
	h.t.Helper()
	r, err := h.host.Get(h.t.Context(), h.by.By, id)
	if err != nil || len(r.Nodes) == 0 {
		return ""
	}
	return strings.Join(r.Nodes[0], ",")
}

// pictured looks at the picture of the pool and returns its generation.
func (h *harbour) pictured() uint64 {
	h.t.Helper()
	if _, err := h.host.Gantt(h.t.Context(), h.by.By, berth.PoolID("lab", "nodes")); err != nil {
		h.t.Fatal(err)
	}
	n, err := h.host.GanttGeneration(h.by.By, berth.PoolID("lab", "nodes"))
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *harbour) pool() berth.Pool {
	h.t.Helper()
	views, err := h.host.Sites(h.t.Context(), h.by.By)
	if err != nil {
		h.t.Fatal(err)
	}
	return views[0].Pools[0]
}

// Nodes that are added to slurm.conf, removed from it or get other features are those of the
// service a moment later, without a restart of it: promises keep their nodes, but for those that
// are gone, which are replaced; after a restart all is the same.
func TestNodesComeAndGoWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4, Cloud: true})
	h := newHarbour(t, cluster, sites.Adapter{})
	has := func(nodes string) {
		t.Helper()
		conf, err := os.ReadFile(cluster.Conf)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, _ := strings.Cut(string(conf), "NodeName=n[")
		_, after, _ := strings.Cut(rest, "]")
		cluster.KillController()
		if err := os.WriteFile(cluster.Conf, []byte(before+"NodeName=n["+nodes+"]"+after), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster.RestartController()
	}

	if r := h.asks("all", 4, 300, nil); r.State != service.Confirmed {
		t.Fatalf("%+v", r)
	}
	if r := h.asks("early", 6, 1000, nil); r.State != service.Refused {
		t.Errorf("six of four nodes: %+v", r)
	}
	seen := h.pictured()
	has("1-6")
	h.until("the new nodes are there", func() bool { return h.pool().PEs == 6 })
	if nodes := h.nodes("all"); nodes != "n1,n2,n3,n4" {
		t.Errorf("what was promised before has %s", nodes)
	}
	if now := h.pictured(); now <= seen {
		t.Errorf("the picture with the new nodes is %d, the one before %d", now, seen)
	}
	if rows, err := h.host.Rows(t.Context(), h.by.By, berth.PoolID("lab", "nodes")); err != nil || len(rows.Rows) != 6 || rows.Rows[5].Name != "n6" {
		t.Errorf("the rows are %+v, %v", rows, err)
	}
	if r := h.asks("six", 6, 1000, nil); r.State != service.Confirmed {
		t.Errorf("six of six nodes: %+v", r)
	}
	if r := h.asks("new", 1, 2000, func(r *berth.Request) { r.Nodelist = "n6" }); r.State != service.Confirmed || h.nodes("new") != "n6" {
		t.Errorf("a new node by name: %+v", r)
	}

	if out, err := cluster.Command("scontrol", "update", "NodeName=n5", "AvailableFeatures=ib", "ActiveFeatures=ib"); err != nil {
		t.Fatal(err, out)
	}
	h.until("a node has a feature", func() bool { return len(h.pool().Classes) == 2 })
	if r := h.asks("tagged", 1, 3000, func(r *berth.Request) { r.Constraint = "ib" }); r.State != service.Confirmed || h.nodes("tagged") != "n5" {
		t.Errorf("by its feature: %+v", r)
	}

	has("1,3-6")
	h.until("what was on the node that is gone has another one", func() bool {
		nodes := strings.Split(h.nodes("all"), ",")
		return len(nodes) == 4 && !slices.Contains(nodes, "n2")
	})
	if r := h.asks("again", 6, 5000, nil); r.State == service.Confirmed {
		t.Errorf("six of five nodes: %+v", r)
	}
	before := h.nodes("all")
	for _, said := range []string{"node n6 is new", "node n5 is ", "node n2 is gone"} {
		h.until("the log says: "+said, func() bool { return strings.Contains(h.log.String(), said) }) // a moment after it holds
	}

	h.close()
	h.open()
	if nodes := h.nodes("all"); nodes != before || h.pool().PEs != 6 || h.nodes("new") != "n6" {
		t.Errorf("after a restart all is on %s, before on %s; %+v", nodes, before, h.pool())
	}
	if v, err := service.Verify(t.Context(), h.store, nil); err != nil || v.Records == 0 { // which checks the engine too
		t.Errorf("%+v, %v", v, err)
	}
}
