package adapters

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/sites"
)

func newSet(dir string) (*Set, *heardlog.Log) {
	log := new(heardlog.Log)
	return &Set{Options: Options{Data: dir, Log: slog.New(slog.NewTextHandler(log, nil)), Again: time.Minute}}, log
}

// described is a site that is as its description, or does not answer.
type described struct {
	d    site.Description
	down atomic.Bool
}

func (s *described) Describe(context.Context) (*site.Description, error) {
	if s.down.Load() {
		return nil, site.Errorf(site.Unreachable, "describe", "no one there")
	}
	d := s.d
	return &d, nil
}

func (s *described) Observe(context.Context) (*site.State, error) { return nil, errors.ErrUnsupported }

func names(d *site.Description) string {
	var all []string
	for _, n := range d.Nodes {
		name := n.Name
		if n.Gone {
			name += " gone"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// A site is remembered, in the order in which its nodes were first seen, and
// stands in for itself while it does not answer.
func TestSitesAreRemembered(t *testing.T) {
	dir := t.TempDir()
	h, log := newSet(dir)
	at := &described{d: fake.Nodes(3, 4)}
	describe := func() (*site.Description, bool) {
		t.Helper()
		d, answered, err := h.describe(t.Context(), "lab", &sites.Adapter{Kind: sites.Slurm}, at)
		if err != nil {
			t.Fatal(err)
		}
		return d, answered
	}
	at.down.Store(true)
	_, _, err := h.describe(t.Context(), "lab", &sites.Adapter{Kind: sites.Slurm}, at)
	var wrong *berth.Error
	if !errors.As(err, &wrong) || wrong.Code != berth.Unavailable || !strings.Contains(wrong.Msg, "no one there") || !strings.Contains(wrong.Msg, "berth sites doctor") {
		t.Fatal(err)
	}
	at.down.Store(false)
	first, _ := describe()
	at.down.Store(true)
	if d, answered := describe(); answered || !cmp.Equal(d, first) || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "site=lab") {
		t.Errorf("answered %t, %+v\n%s", answered, d, log)
	}
	at.down.Store(false)
	at.d.Nodes = append([]site.Node{{Name: "n0", Cores: 4, Sockets: 1, MemoryMB: 4096}}, at.d.Nodes[1:]...)
	if d, answered := describe(); !answered || names(d) != "n1 gone, n2, n3, n0" || !strings.Contains(log.String(), "node n1 is gone") {
		t.Errorf("answered %t: %s\n%s", answered, names(d), log)
	}
	at.down.Store(true)
	if d, _ := describe(); names(d) != "n1 gone, n2, n3, n0" {
		t.Error(names(d))
	}
	path := filepath.Join(dir, "sites", "lab.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	for _, damaged := range []string{"", "{", `{"nodes":[]}`} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.describe(t.Context(), "lab", &sites.Adapter{Kind: sites.Slurm}, at); !errors.As(err, &wrong) || wrong.Code != berth.Invalid || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

// A site that did not answer at the start is asked until it does, and the service takes in
// what has changed; what it cannot take in is told.
func TestSilentSitesAreAskedAgain(t *testing.T) {
	for want, change := range map[string]func(*site.Description){
		"is as it was":               func(*site.Description) {},
		"node n4 is new":             func(d *site.Description) { *d = fake.Nodes(4, 4) },
		"partitions of a site":       func(d *site.Description) { d.Partitions[0].MaxTime = 60 },
		"node n1 is gone":            func(d *site.Description) { d.Nodes = d.Nodes[1:] },
		"the service cannot take in": func(d *site.Description) { d.Nodes = d.Nodes[:1] },
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, log := newSet(t.TempDir())
				known := fake.Nodes(3, 4)
				at := &described{d: fake.Nodes(3, 4)}
				at.down.Store(true)
				change(&at.d)
				var asking sync.WaitGroup
				ctx, stop := context.WithCancel(t.Context())
				f := &follower{set: h, name: "lab", adapter: &sites.Adapter{Kind: sites.Slurm}, at: at, used: &known}
				take := func(_ context.Context, as berth.Site, layout *site.Layout) error {
					if layout.Len() == 1 {
						return errors.New("no place for what is promised")
					}
					if as.Pools[0].PEs < 3 {
						t.Errorf("PEs that are gone have no numbers any more: %+v", as.Pools)
					}
					return nil
				}
				asking.Go(func() { f.follow(ctx, &service.Meantime{Take: take}) })
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if log.String() != "" {
					t.Errorf("said %s", log)
				}
				at.down.Store(false)
				time.Sleep(2 * time.Minute)
				stop()
				asking.Wait()
				if !strings.Contains(log.String(), want) {
					t.Errorf("said %s", log)
				}
			})
		})
	}
}

// Who asks a silent site again is the service, which has a boundary for faults.
func TestTheServiceAsksSilentSites(t *testing.T) {
	dir := t.TempDir()
	d := fake.Nodes(2, 4)
	if err := (&Set{Options: Options{Data: dir}}).remember("far", &d); err != nil {
		t.Fatal(err)
	}
	by := map[string]sites.Adapter{"far": {Kind: sites.Slurm, Bin: t.TempDir(), Timeout: 1}}
	set, err := Open(t.Context(), Options{Data: dir, Log: slog.New(slog.DiscardHandler)}, []berth.Site{{Name: "far", Managed: true}}, by)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	meanwhile := set.Managers["far"].Meanwhile
	if meanwhile == nil {
		t.Fatal("it is not asked again")
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	meanwhile(ended, &service.Meantime{}) // returns with the context
}

func TestHorizonsOfPartitionsWithoutLimit(t *testing.T) {
	d := &site.Description{Partitions: []site.Partition{{Name: "a", MaxTime: 600}, {Name: "b"}}}
	for _, c := range []struct {
		adapter sites.Adapter
		want    berth.Duration
	}{
		{sites.Adapter{}, berth.Endless},
		{sites.Adapter{NoLimit: 3600}, 3600 + margin},
		{sites.Adapter{NoLimit: 60, Margin: 5}, 605},
	} {
		if got := Horizon(d, &c.adapter); got != c.want {
			t.Errorf("%+v: %d, want %d", c.adapter, got, c.want)
		}
	}
	if d.Partitions[1].MaxTime != 0 {
		t.Error("the description was written")
	}
}

// A set that cannot be opened whole leaves nothing open, and an end of the context is told
// as such.
func TestOpenFailsWhole(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	on := []berth.Site{{Name: "free"}, {Name: "far", Managed: true}}
	by := map[string]sites.Adapter{"far": {Kind: sites.Slurm, Bin: t.TempDir(), Timeout: 1}}
	set, err := Open(ctx, Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, on, by)
	if set != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v, want that it was cancelled", set, err)
	}
	_, err = Open(t.Context(), Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, on, by)
	var wrong *berth.Error
	if !errors.As(err, &wrong) || wrong.Code != berth.Unavailable || !strings.Contains(wrong.Msg, "far cannot be reached") {
		t.Errorf("%v, want that far cannot be reached", err)
	}
	set, err = Open(t.Context(), Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, on[:1], by)
	if err != nil || len(set.Managers) != 0 || on[0].Managed {
		t.Errorf("%v %v, want a site that nothing manages as it was", set, err)
	}
	set.Close()
}

// What the doctor needs itself is gone when it has spoken.
func TestExamineSaysWhatDoesNotWork(t *testing.T) {
	found, err := Examine(t.Context(), "far", &sites.Adapter{Kind: sites.Slurm, Bin: t.TempDir(), Timeout: 1})
	if err != nil || len(found) == 0 || found[0].Level != site.Bad {
		t.Errorf("%+v %v, want that no command of Slurm is there", found, err)
	}
}

// Under late binding nodes that are alike and in the same partitions are a pool; a
// node stays a part of it whatever becomes of the partitions; a partition that has only some of its
// nodes is not offered, and the log says so.
func TestPoolsOfLateBindingAreKept(t *testing.T) {
	h, log := newSet(t.TempDir())
	at := &described{d: fake.Nodes(4, 4)}
	at.d.Partitions = []site.Partition{{Name: "main", Nodes: []string{"n1", "n2", "n3", "n4"}, Default: true, MaxTime: 3600}, {Name: "fast", Nodes: []string{"n3", "n4"}, MaxTime: 60}}
	late := &sites.Adapter{Kind: sites.Slurm, Binding: berth.Late}
	imported := func() berth.Site {
		t.Helper()
		d, _, err := h.describe(t.Context(), "lab", late, at)
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := site.Import("lab", d, site.UnitNode, berth.Late)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := imported()
	if len(s.Pools) != 2 || s.Pools[0].PEs != 2 || s.Pools[1].PEs != 2 || len(s.Partitions) != 3 || s.Pools[0].Binding != berth.Late || len(s.Pools[0].Classes) > 0 {
		t.Fatalf("%+v", s)
	}
	at.d.Partitions[1].Nodes = []string{"n4"}
	at.d.Nodes = append(at.d.Nodes, site.Node{Name: "n5", Cores: 4, Sockets: 1, MemoryMB: at.d.Nodes[0].MemoryMB})
	at.d.Partitions[0].Nodes = append(at.d.Partitions[0].Nodes, "n5")
	again := imported()
	if len(again.Pools) != 2 || again.Pools[0].PEs != 3 || again.Pools[0].Name != s.Pools[0].Name || again.Pools[1].PEs != 2 || again.Pools[1].Name != s.Pools[1].Name {
		t.Errorf("after a change of the partitions the pools are %+v, before %+v", again.Pools, s.Pools)
	}
	if len(again.Partitions) != 2 || again.Partitions[0].Name != "main" || again.Partitions[1].Name != "main" || !strings.Contains(log.String(), "fast of pool "+s.Pools[1].Name) {
		t.Errorf("fast has one of two nodes of a pool; offered are %+v; log:\n%s", again.Partitions, log)
	}
}

// Promises get their nodes as long before their start as a job of others may last, or as the
// adapter says, which is told if it is too late or means early binding.
func TestNodesAreNamedAheadOfTheLongestJob(t *testing.T) {
	for _, c := range []struct {
		a       sites.Adapter
		horizon berth.Duration
		want    berth.Duration
		says    string
	}{
		{sites.Adapter{}, 3720, 3720, ""},
		{sites.Adapter{NameAhead: 600}, 3720, 600, "later than the longest job"},
		{sites.Adapter{NameAhead: 7200}, 3720, 7200, ""},
		{sites.Adapter{}, berth.Endless, berth.TimeLimit - 1, "no time limit"},
	} {
		h, log := newSet("")
		s := berth.Site{Name: "lab", Pools: []berth.Pool{{Name: "a"}, {Name: "b"}}}
		h.nameAhead(&s, &c.a, c.horizon)
		if s.Pools[0].NameAhead != c.want || s.Pools[1].NameAhead != c.want || (c.says == "") != (log.String() == "") || !strings.Contains(log.String(), c.says) {
			t.Errorf("%+v with jobs of %d s: %+v, log %q", c.a, c.horizon, s.Pools, log.String())
		}
	}
}
