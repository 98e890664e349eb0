package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
	"github.com/berth-hpc/berth/sites/adapters"
)

// fleet is a service as berth serve opens it from a configuration file.
type fleet struct {
	host  *service.Host
	log   *heardlog.Log
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
	log := new(heardlog.Log)
	managed, err := adapters.Open(t.Context(), adapters.Options{Data: dir, Log: slog.New(slog.NewTextHandler(log, nil))}, set.config.Sites, set.adapters)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := service.Open(t.Context(), service.Options{Config: set.config, Journal: store, Version: "test", Managers: managed.Managers})
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
			managed.Close()
		})
	}
	t.Cleanup(f.close)
	return f
}

// until polls until a condition holds. No signal tells when it does.
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
	t.Parallel()
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
