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
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

var restart = flag.Int("service.restart", 0, "how many reservations to restart with, to measure; 0 is not at all")

// Measures how long a service takes to be ready again with many reservations,
// from its records alone and from a snapshot.
func TestRestartTakes(t *testing.T) {
	if *restart == 0 {
		t.Skip("measures; needs -service.restart")
	}
	dir := t.TempDir()
	options := service.Options{
		Config:  engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: berth.Late}}}}},
		Version: "test", SnapshotEvery: 1 << 40,
	}
	on := func(do func()) (opened time.Duration) {
		runtime.GC() // what the step before has left
		at := time.Now()
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		options.Journal = store
		opened = time.Since(at)
		do()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		return opened
	}
	on(func() {
		h, err := service.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, h, *restart)
		at := time.Now()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("a snapshot: made and stored in %v", time.Since(at))
	})
	var took time.Duration
	opened := on(func() {
		at := time.Now()
		h, err := service.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Get(t.Context(), root.By, "r0"); err != nil {
			t.Fatal(err)
		}
		took = time.Since(at)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d reservations from a snapshot: %v, and %v to open the journal", *restart, took, opened)
	on(func() {
		at := time.Now()
		if _, err := service.Recover(t.Context(), recordsAlone{options.Journal}, options.Config, options.Version, 1); err != nil {
			t.Fatal(err)
		}
		t.Logf("from their records alone: %v", time.Since(at))
	})
}

// recordsAlone is a journal without its snapshots.
type recordsAlone struct{ journal.Store }

func (recordsAlone) Snapshot(context.Context, uint64) (journal.Snapshot, error) {
	return journal.Snapshot{}, nil
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
