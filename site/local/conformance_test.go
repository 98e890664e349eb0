//go:build linux

package local_test

import (
	"context"
	"os"
	"os/user"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
	"github.com/berth-hpc/berth/site/sitetest"
)

const siteName = "here"

// TestMain lets this program be the shepherd of its own tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "shepherd" {
		os.Exit(local.Shepherd(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "service" {
		serve(os.Args[2])
	}
	os.Exit(m.Run())
}

// open opens a site of four cores in a folder.
func open(t *testing.T, dir string) *local.Site {
	t.Helper()
	return openWith(t, local.Options{Dir: dir})
}

func openWith(t *testing.T, o local.Options) *local.Site {
	t.Helper()
	o.Site, o.Node, o.Cores, o.Grace, o.Shepherd = siteName, "quay", 4, 500*time.Millisecond, shepherd(t)
	s, err := local.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shepherd is this program; under the race detector it would linger for a second
// at its end.
func shepherd(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", self, "shepherd"}
}

// endAll ends what a test left running, unless its site is closed.
func endAll(t *testing.T, s *local.Site) {
	ctx := context.Background()
	if !eventually(10*time.Second, func() bool {
		state, err := s.Observe(ctx)
		if err != nil {
			return true
		}
		for _, j := range append(state.Pending, state.Running...) {
			_ = s.Cancel(ctx, j.ID)
		}
		return len(state.Pending)+len(state.Running) == 0
	}) {
		t.Error("jobs do not end")
	}
}

func now() berth.Time { return berth.Time(time.Now().Unix()) }

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// eventually waits for a condition without a signal.
func eventually(most time.Duration, holds func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(most); time.Now().Before(end); <-tick.C {
		if holds() {
			return true
		}
	}
	return false
}

func TestConformance(t *testing.T) {
	sitetest.Run(t, func(t *testing.T) *sitetest.Subject {
		s := open(t, t.TempDir())
		return &sitetest.Subject{
			Name: siteName, Observer: s, Booker: s, Runner: s, Drainer: s, Now: now,
			Wait: func(most berth.Duration, until func() bool) bool {
				return eventually(time.Duration(most)*time.Second, until)
			},
			Places: [2]site.Share{{Node: "quay", Cores: berth.PEsOf(0, 2)}, {Node: "quay", Cores: berth.PEsOf(1)}},
			Count:  site.Reservation{Cores: 2}, User: me(t), Dir: t.TempDir(), Settle: 10,
		}
	})
}
