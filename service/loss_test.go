package service_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
	"github.com/berth-hpc/berth/service"
)

var lossSeeds = effort.Flag("service.losses", 2, "from how many seeds services lose power")

// losses is how many times in a run of a service the power fails.
const losses = 8

// loseAt runs a service under load on a disk that forgets what was not synced,
// through a wrapper of its journal, and drops its history meanwhile if it is to; it
// returns what is wrong with what the loss
// of power would leave at each of some moments in the middle of writing.
func loseAt(t *testing.T, seed uint64, compacts bool, wrap func(journal.Store) journal.Store) error {
	t.Helper()
	disk, err := lossy.New()
	if err != nil {
		t.Fatal(err)
	}
	place, left := t.TempDir(), t.TempDir()
	store, err := sqlite.Open(place, sqlite.Options{VFS: disk.Name()})
	if err != nil {
		t.Fatal(err)
	}
	disk.Loose(filepath.Join(place, "mark"))
	h, err := service.Open(t.Context(), crashOptions(wrap(store)))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	told := answers{}
	var before []answers // what had been told when the power failed
	rng := rand.New(rand.NewPCG(seed, 0))
	next := disk.Ops() + 20 + rng.IntN(60)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	disk.Before(func(op int) {
		mu.Lock()
		defer mu.Unlock()
		if op < next || len(before) == losses {
			return
		}
		next = op + 1 + rng.IntN(400)
		before = append(before, maps.Clone(told))
		if err := disk.Image(place, filepath.Join(left, fmt.Sprint(len(before))), rng); err != nil {
			t.Error(err)
		}
		if len(before) == losses {
			stop()
		}
	})
	compacted := make(chan error, 1)
	go func() {
		var err error
		for compacts && err == nil {
			_, err = h.Compact(ctx, root, 0)
		}
		compacted <- err
	}()
	err = load(ctx, h, seed, func(line string) error {
		mu.Lock()
		defer mu.Unlock()
		told.add(line)
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the load ended by itself: %v", err)
	}
	if err := <-compacted; compacts && !errors.Is(err, context.Canceled) {
		t.Fatalf("the compaction ended by itself: %v", err)
	}
	if err := errors.Join(h.Close(), store.Close(), disk.Close()); err != nil {
		t.Fatal(err)
	}
	if last := len(before[losses-1]); last < 50 {
		t.Errorf("only %d answers before the last loss; the test must see more", last)
	}
	var wrong error
	for i := range before {
		store, err := sqlite.Open(filepath.Join(left, fmt.Sprint(i+1)), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(missed(t.Context(), store, before[i]), store.Close()); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("loss %d, after %d answers: %w", i, len(before[i]), err))
		}
	}
	return wrong
}

// Whatever was answered is there after a loss of power that takes all that was
// not synced, at any moment.
func TestLossOfPowerKeepsWhatWasAnswered(t *testing.T) {
	for seed := range uint64(lossSeeds()) {
		if err := loseAt(t, seed, false, func(s journal.Store) journal.Store { return s }); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// So it is when the service drops its history meanwhile.
func TestLossOfPowerWhileCompactingKeepsWhatWasAnswered(t *testing.T) {
	for seed := range uint64(lossSeeds()) {
		if err := loseAt(t, seed, true, func(s journal.Store) journal.Store { return s }); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// An answer before the sync must not pass the test of lost power.
func TestAnswerBeforeSyncIsFoundOut(t *testing.T) {
	err := loseAt(t, 7, false, func(s journal.Store) journal.Store { return &journaltest.Early{Store: s} })
	if err == nil {
		t.Error("nothing was lost")
	}
	t.Logf("%v", err)
}
