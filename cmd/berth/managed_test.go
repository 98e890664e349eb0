package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
	"github.com/berth-hpc/berth/sites"
)

// journalOf is a log that can be looked at.
type journalOf struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journalOf) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journalOf) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newHarbour(dir string) (*harbour, *journalOf) {
	log := &journalOf{}
	return &harbour{data: dir, log: slog.New(slog.NewTextHandler(log, nil)), again: time.Minute}, log
}

// described is a site that is as its description, or does not answer.
type described struct {
	d    site.Description
	down atomic.Bool
}

func (s *described) Describe(context.Context) (*site.Description, error) {
	if s.down.Load() {
		return nil, site.Errorf(site.Unreachable, "describe", "nobody there")
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
	h, log := newHarbour(dir)
	at := &described{d: fake.Nodes(3, 4)}
	describe := func() (*site.Description, bool) {
		t.Helper()
		d, answered, err := h.describe(t.Context(), "lab", sites.Slurm, at)
		if err != nil {
			t.Fatal(err)
		}
		return d, answered
	}
	at.down.Store(true)
	_, _, err := h.describe(t.Context(), "lab", sites.Slurm, at)
	var wrong *berth.Error
	if !errors.As(err, &wrong) || exitCode(err) != exitUnreachable || !strings.Contains(wrong.Msg, "nobody there") || !strings.Contains(wrong.Msg, "berth sites doctor") {
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
		if _, _, err := h.describe(t.Context(), "lab", sites.Slurm, at); exitCode(err) != exitUsage || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

// A site that did not answer at the start is asked until it does, and it is said
// whether it is as it was.
func TestSilentSitesAreAskedAgain(t *testing.T) {
	for want, change := range map[string]func(*site.Description){
		"is as it was":           func(*site.Description) {},
		"node n4 is new":         func(d *site.Description) { *d = fake.Nodes(4, 4) },
		"no longer as it was":    func(d *site.Description) { d.Partitions[0].MaxTime = 60 },
		"restart the service to": func(d *site.Description) { d.Nodes = d.Nodes[1:] },
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, log := newHarbour(t.TempDir())
				known := fake.Nodes(3, 4)
				at := &described{d: fake.Nodes(3, 4)}
				at.down.Store(true)
				change(&at.d)
				h.asking.Go(func() { h.askUntilAnswered(t.Context(), "lab", sites.Slurm, at, &known) })
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if log.String() != "" {
					t.Errorf("said %s", log)
				}
				at.down.Store(false)
				time.Sleep(2 * time.Minute)
				h.asking.Wait()
				if !strings.Contains(log.String(), want) {
					t.Errorf("said %s", log)
				}
			})
		})
	}
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
		if got := horizonOf(d, &c.adapter); got != c.want {
			t.Errorf("%+v: %d, want %d", c.adapter, got, c.want)
		}
	}
	if d.Partitions[1].MaxTime != 0 {
		t.Error("the description was written")
	}
}

// fleet is a service as berth serve opens it from a configuration file.
type fleet struct {
	host  *service.Host
	log   *journalOf
	by    service.Ask
	close func()
}

func openFleet(t *testing.T, config, dir string) *fleet {
	t.Helper()
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	set, err := (&serveFlags{config: config, data: dir, listen: "127.0.0.1:0"}).load(a.serveCommand())
	if err != nil {
		t.Fatal(err)
	}
	h, log := newHarbour(dir)
	managers, err := h.open(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := service.Open(t.Context(), service.Options{Config: set.config, Journal: store, Version: "test", Managers: managers})
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{host: host, log: log, by: service.Ask{By: service.Principal{User: me.Username, Role: service.Operator}}}
	var once sync.Once
	f.close = func() {
		once.Do(func() {
			if err := errors.Join(host.Close(), store.Close()); err != nil {
				t.Error(err)
			}
			h.close()
		})
	}
	t.Cleanup(f.close)
	return f
}

// until waits for what nobody signals.
func (f *fleet) until(t *testing.T, what string, holds func(map[string]service.SiteView) bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); ; <-tick.C {
		views, err := f.host.Sites(t.Context(), f.by.By)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]service.SiteView{}
		for _, v := range views {
			seen[v.Name] = v
		}
		if holds(seen) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("in vain: %s; %+v", what, views)
		}
	}
}

func (f *fleet) reserve(t *testing.T, at string, npe berth.Count) string {
	t.Helper()
	start := f.host.Now().Add(300)
	r := berth.Rigid("", 0, start, start.Add(600), npe, 600)
	r.Site = at
	a, err := f.host.Submit(t.Context(), f.by, r)
	if err != nil || a.Reservation.State != service.Confirmed {
		t.Fatalf("%+v, %v", a.Reservation, err)
	}
	return a.Reservation.ID
}

func (f *fleet) made(t *testing.T, id string) {
	t.Helper()
	f.until(t, id+" is made real", func(map[string]service.SiteView) bool {
		r, err := f.host.Get(t.Context(), f.by.By, id)
		return err == nil && len(r.Sites) == 1 && r.Sites[0].Made
	})
}

// Two clusters are added to a configuration, promises are made real at both, and
// the service starts again and keeps them while one cluster is down.
func TestTwoClustersOneOfThemDown(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two clusters")
	}
	const endless = "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
	one, two := slurmtest.Start(t, slurmtest.Options{Nodes: 2}), slurmtest.Start(t, slurmtest.Options{Nodes: 1, Partitions: endless})
	dir := t.TempDir()
	config := filepath.Join(dir, "berth.yaml")
	command := func(args ...string) (int, string) {
		var out, messages bytes.Buffer
		code := run(args, strings.NewReader(""), &out, &messages)
		return code, out.String() + messages.String()
	}
	if code, said := command("sites", "add", "one", "--config", config, "--conf", one.Conf, "--every", "1s"); code != 0 ||
		!strings.Contains(said, "2 PEs, each a node") || !strings.Contains(said, "1-00:02:00 before they start") {
		t.Fatalf("exit %d: %s", code, said)
	}
	if err := os.Chmod(config, 0o640); err != nil {
		t.Fatal(err)
	}
	if code, said := command("sites", "add", "two", "--config", config, "--conf", two.Conf, "--unit", "core", "--no-limit", "30m", "--every", "1s"); code != 0 ||
		!strings.Contains(said, "4 PEs, each a core") || !strings.Contains(said, "00:32:00 before they start") || !strings.Contains(said, "limits    warning") {
		t.Fatalf("exit %d: %s", code, said)
	}
	if info, err := os.Stat(config); err != nil || info.Mode().Perm() != 0o640 {
		t.Error(info, err)
	}
	data := filepath.Join(dir, "data")
	f := openFleet(t, config, data)
	a, b := f.reserve(t, "one", 2), f.reserve(t, "two", 3)
	f.made(t, a)
	f.made(t, b)
	f.close()

	one.KillController()
	f = openFleet(t, config, data)
	if !strings.Contains(f.log.String(), "site=one") || strings.Contains(f.log.String(), "site=two") {
		t.Errorf("said %s", f.log)
	}
	f.until(t, "one is unreachable and two is there", func(v map[string]service.SiteView) bool { return !v["one"].Reachable && v["two"].Reachable })
	f.made(t, b)
	if r, err := f.host.Get(t.Context(), f.by.By, a); err != nil || r.State != service.Confirmed || len(r.Nodes) != 1 || len(r.Nodes[0]) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	one.StartController()
	f.until(t, "one is there again", func(v map[string]service.SiteView) bool { return v["one"].Reachable })
	f.made(t, a)
}
