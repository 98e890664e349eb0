package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/journal"
)

// Disk is a file system that loses what was not synced.
type Disk interface {
	// Open opens a journal whose files are on it.
	Open(place string) (journal.Store, error)
	// Before sets what is called before each operation that writes.
	Before(func(op int))
	// Image writes into a place what a loss of power would leave of another
	// one: with a nil rng what was synced and nothing else, else any part of
	// what was not.
	Image(from, to string, rng *rand.Rand) error
	// Room sets how many bytes may still be written; negative is no limit.
	Room(bytes int64)
	// FailSyncs lets the next syncs fail.
	FailSyncs(n int)
	// Faults names the ways in which an operation can fail.
	Faults() []string
	// Fail lets the n-th next operation fail; an empty fault is none.
	Fail(at int, how string)
	// Failed reports whether it has.
	Failed() bool
	// Close gives up the disk, when what was opened on it is closed.
	Close() error
}

func disk(t *testing.T, a Adapter) Disk {
	t.Helper()
	if a.Disk == nil {
		t.Skip("the adapter has no file system of its own to lose power")
	}
	d, err := a.Disk()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func testLoss(t *testing.T, a Adapter) {
	seeds := effort.Cases(2 * max(a.Cases, 1))
	if testing.Short() {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		d := disk(t, a)
		if err := CheckLoss(a, d, t.TempDir(), seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// outage is a loss of power at some moment of a run.
type outage struct {
	place string
	op    int
	acked int
}

// perAnswer is how often the power fails at most between two acknowledgements.
const perAnswer = 3

// CheckLoss appends batches and saves snapshots on a disk that loses power, in
// parallel worlds, at moments drawn from the seed. In each world the journal
// must open without a word of damage, hold everything that had been
// acknowledged, nothing that was not appended, and take more. The error says
// what was lost; a journal that answers before it syncs must get one.
func CheckLoss(a Adapter, d Disk, folder string, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	place := filepath.Join(folder, "journal")
	records := Records(journal.Position{}, 400, rng)
	var mu sync.Mutex // a store may use its disk from several goroutines
	acked := 0
	var outages []outage
	var failed error
	d.Before(func(op int) {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(12) > 0 || len(outages) >= 40 || failed != nil {
			return
		}
		if n := len(outages); n >= perAnswer && outages[n-perAnswer].acked == acked {
			return // a snapshot has many operations, and appends few
		}
		o := outage{place: filepath.Join(folder, fmt.Sprintf("outage-%d", op)), op: op, acked: acked}
		torn := rng
		if rng.IntN(3) == 0 {
			torn = nil
		}
		failed = d.Image(place, o.place, torn)
		outages = append(outages, o)
	})
	s, err := d.Open(place)
	if err != nil {
		return err
	}
	for done := 0; done < len(records); {
		mu.Lock()
		n := min(len(records)-done, 1+rng.IntN(30))
		mu.Unlock()
		if err := s.Append(context.Background(), records[done:done+n]...); err != nil {
			return errors.Join(err, s.Close())
		}
		mu.Lock()
		done += n
		acked = done
		var state []byte
		saves := rng.IntN(8) == 0
		if saves {
			state = make([]byte, rng.IntN(1_200_000))
		}
		mu.Unlock()
		if !saves {
			continue
		}
		if err := s.SaveSnapshot(context.Background(), records[done-1].Position(), state); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	d.Before(nil)
	if err := errors.Join(failed, s.Close()); err != nil {
		return err
	}
	for _, o := range outages {
		if err := survived(a, o, records); err != nil {
			return fmt.Errorf("the power failed at operation %d, when %d records were acknowledged: %w", o.op, o.acked, err)
		}
	}
	return nil
}

// survived checks what an outage left.
func survived(a Adapter, o outage, records []journal.Record) error {
	s, err := a.Open(o.place)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // what matters has been checked
	got, err := all(s, 1)
	if err != nil {
		return err
	}
	if len(got) < o.acked {
		return fmt.Errorf("only %d are left", len(got))
	}
	if len(got) > len(records) {
		return fmt.Errorf("%d are there, of %d that were appended", len(got), len(records))
	}
	if err := same(got, records[:len(got)]); err != nil {
		return err
	}
	snapshot, err := s.Snapshot(context.Background(), ^uint64(0))
	if err != nil {
		return err
	}
	if len(snapshot.Damaged) > 0 {
		return &snapshot.Damaged[0]
	}
	return s.Append(context.Background(), records[len(got):]...)
}

// testFull lets the disk run full at many moments. The append that meets it
// says so, changes nothing, and succeeds when there is room again.
func testFull(t *testing.T, a Adapter) {
	d := disk(t, a)
	place := t.TempDir()
	s, err := d.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // what matters has been checked
	rng := seeded(t)
	records := Records(journal.Position{}, 600, rng)
	refused := 0
	for at := 0; at < len(records); at += 20 {
		batch := records[at : at+20]
		d.Room(rng.Int64N(60_000))
		err := s.Append(t.Context(), batch...)
		if err != nil {
			refused++
			var e *berth.Error
			if !errors.As(err, &e) || e.Code != berth.Exhausted || !journal.CanRetry(err) {
				t.Fatalf("a full disk: %v, want code %s", err, berth.Exhausted)
			}
			holds(t, s, records[:at])
		}
		if at > 0 {
			d.Room(rng.Int64N(200_000))
			err := s.SaveSnapshot(t.Context(), records[at-1].Position(), make([]byte, 100_000))
			if err != nil && !journal.CanRetry(err) {
				t.Fatalf("a snapshot on a full disk: %v", err)
			}
		}
		d.Room(-1)
		appended(t, s, batch)
	}
	if refused == 0 || refused == len(records)/20 {
		t.Errorf("%d of %d appends met a full disk; the test must see both", refused, len(records)/20)
	}
	holds(t, s, records)
	if err := s.SaveSnapshot(t.Context(), records[0].Position(), []byte("now")); err != nil {
		t.Error(err)
	}
	// Nothing was acknowledged, so a server that starts again misses nothing.
	d.Room(0)
	if err := s.Append(t.Context(), Records(lastOf(records), 5, rng)...); err == nil {
		t.Error("a disk without room took records")
	}
	d.Room(-1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, a, place), records)
}

// testFailedSync lets syncs fail. An append whose sync failed must not say that
// all is well, and can be made again.
func testFailedSync(t *testing.T, a Adapter) {
	d := disk(t, a)
	place := t.TempDir()
	s, err := d.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // what matters has been checked
	records := Records(journal.Position{}, 100, seeded(t))
	for batch := range slices.Chunk(records, 10) {
		d.FailSyncs(1)
		err := s.Append(t.Context(), batch...)
		if err == nil || !journal.CanRetry(err) {
			t.Fatalf("a failed sync: %v", err)
		}
		d.FailSyncs(0)
		appended(t, s, batch)
	}
	holds(t, s, records)
	left := t.TempDir()
	if err := d.Image(place, left, nil); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, a, left), records)
}
