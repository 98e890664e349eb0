package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// watched is a journal that keeps what snapshots were stored, and may hold up
// storing them.
type watched struct {
	journal.Store
	mu    sync.Mutex
	saved []journal.Snapshot
	saves chan struct{} // gets one for each that is to be stored; nil is none
	going chan struct{} // lets them go on; nil is at once
}

func (w *watched) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	if w.saves != nil {
		w.saves <- struct{}{}
		select {
		case <-w.going:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := w.Store.SaveSnapshot(ctx, at, data); err != nil {
		return err // it was given up, as at the end of a service
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved = append(w.saved, journal.Snapshot{Position: at, Data: data})
	return nil
}

// begun is a journal without its snapshots, and only up to a record.
type begun struct {
	journal.Store
	last uint64
}

func (begun) Snapshot(context.Context, uint64) (journal.Snapshot, error) {
	return journal.Snapshot{}, nil
}

func (b begun) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for rec, err := range b.Store.Read(ctx, from) {
			if err == nil && rec.Number > b.last || !yield(rec, err) {
				return
			}
		}
	}
}

// inWatched runs a test on a service whose snapshots are watched.
func inWatched(t *testing.T, w *watched, test func(h *Host, options *Options)) {
	t.Helper()
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Store = store
	options := Options{
		Config: engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{
			{Name: "early", PEs: 32, Binding: berth.Early}, {Name: "late", PEs: 32, Binding: berth.Late},
		}}}},
		Journal: w, Version: "test", SnapshotEvery: 40, Keep: 20,
	}
	h, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	test(h, &options)
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

var somebody = Ask{By: Principal{User: "ann", Role: User}}

// trouble asks and gives back n times.
func trouble(t *testing.T, h *Host, rng *rand.Rand, n int) {
	t.Helper()
	for i := range n {
		ready := h.Now() + berth.Time(rng.IntN(20_000))
		d := berth.Duration(1 + rng.IntN(5000))
		ask := somebody
		ask.Key = fmt.Sprint(rng.Uint64())
		a, err := h.Submit(t.Context(), ask, berth.Rigid("", 0, ready, ready.Add(2*d), berth.Count(1+rng.IntN(16)), d))
		if err == nil && i%3 == 0 {
			_, err = h.Release(t.Context(), somebody, a.Reservation.ID)
			if e := new(berth.Error); errors.As(err, &e) && e.Code == berth.NotFound {
				err = nil // it was over, and 20 others since: no more are kept
			}
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// A snapshot that is made while clients are answered is the state at its record:
// what all records up to there say, followed from the first.
func TestSnapshotMadeBesideTheLoopIsTheStateAtItsRecord(t *testing.T) {
	w := &watched{}
	inWatched(t, w, func(h *Host, options *Options) {
		var saved []journal.Snapshot
		for seed := uint64(0); len(saved) < 3 && !t.Failed(); seed++ {
			var clients sync.WaitGroup
			for client := range uint64(4) {
				clients.Go(func() { trouble(t, h, rand.New(rand.NewPCG(client, 3+seed)), 150) })
			}
			clients.Wait()
			w.mu.Lock()
			saved = slices.Clone(w.saved)
			w.mu.Unlock()
		}
		for _, s := range saved {
			core, err := Recover(t.Context(), begun{w.Store, s.Number}, options.Config, options.Version, options.Keep)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := core.Snapshot(); err != nil || !bytes.Equal(data, s.Data) || core.position != s.Position {
				t.Fatalf("the snapshot at record %d is not the state there: %v", s.Number, err)
			}
			restored, err := restoreCore(s.Data, s.Position, options.Version, options.Keep)
			if err != nil {
				t.Fatal(err)
			}
			if err := restored.Check(); err != nil || restored.engine.Hash() != core.engine.Hash() {
				t.Fatalf("the snapshot at record %d does not lead back to the state there: %v", s.Number, err)
			}
		}
	})
	for i, s := range w.saved[1:] { // of which the last one is of a service that has stopped
		if s.Number <= w.saved[i].Number {
			t.Errorf("after the snapshot at record %d one at record %d", w.saved[i].Number, s.Number)
		}
	}
}

// While a snapshot is being made everybody is answered and none other is begun;
// a service that stops gives it up, and makes one of what there is at the end.
func TestNobodyWaitsForASnapshot(t *testing.T) {
	w := &watched{saves: make(chan struct{}), going: make(chan struct{})}
	inWatched(t, w, func(h *Host, _ *Options) {
		rng := rand.New(rand.NewPCG(1, 4))
		trouble(t, h, rng, 40)
		select {
		case <-w.saves:
		case <-time.After(time.Minute):
			t.Fatal("no snapshot")
		}
		begun := lastBegun(t, h)
		trouble(t, h, rng, 200)
		if again := lastBegun(t, h); again != begun {
			t.Errorf("while the snapshot at record %d is being made, one at record %d is begun", begun, again)
		}
		h.closing.Do(func() { close(h.stop) })
		<-h.stopped
		go func() {
			<-w.saves
			close(w.going)
		}()
	})
	if len(w.saved) != 1 {
		t.Fatalf("%d snapshots, want the one at the end", len(w.saved))
	}
	if last := w.saved[0].Number; last < 240 {
		t.Errorf("the last snapshot is at record %d", last)
	}
}

// lastBegun returns the record at which the last snapshot was begun.
func lastBegun(t *testing.T, h *Host) uint64 {
	t.Helper()
	last, err := call(t.Context(), h, "", func(answer func(uint64, error)) { answer(h.snapshots.last, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return last
}
