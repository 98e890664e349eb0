package service_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

var restart = flag.Int("service.restart", 0, "how many reservations to restart with, to measure; 0 is not at all")

// Measures how long a service takes to be ready again with many reservations,
// from a snapshot and from its records alone.
func TestRestartTakes(t *testing.T) {
	if *restart == 0 {
		t.Skip("measures; needs -service.restart")
	}
	dir := t.TempDir()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := service.Options{Config: engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: berth.Late}}}}}, Journal: store, Version: "test", SnapshotEvery: 1 << 40}
	h, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, h, *restart)
	at := time.Now()
	core, err := service.Recover(t.Context(), store, options.Config, options.Version, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d reservations from their records alone: %v", *restart, time.Since(at))
	runtime.KeepAlive(core)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	at = time.Now()
	if store, err = sqlite.Open(dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	opened := time.Since(at)
	options.Journal = store
	if h, err = service.Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Get(t.Context(), root.By, "r0"); err != nil {
		t.Fatal(err)
	}
	t.Logf("from a snapshot: %v, of which %v for the journal", time.Since(at), opened)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill makes n reservations from many clients, far ahead.
func fill(t *testing.T, h *service.Host, n int) {
	t.Helper()
	failed := make(chan error, 64)
	for client := range 64 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(client), 1))
			var err error
			for i := client; i < n && err == nil; i += 64 {
				ready := h.Now() + 3600 + berth.Time(rng.Int64N(int64(n)*300))
				d := berth.Duration(60 + rng.Int64N(14_341))
				_, err = h.Submit(context.Background(), ann, berth.Rigid(fmt.Sprint("r", i), 0, ready, ready.Add(8*d), berth.Count(1)<<rng.IntN(8), d))
			}
			failed <- err
		}()
	}
	for range 64 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}
