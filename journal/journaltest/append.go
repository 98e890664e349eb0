package journaltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

func testEmpty(t *testing.T, a Adapter) {
	place := t.TempDir()
	s := open(t, a, place)
	holds(t, s, nil)
	if err := s.Append(t.Context()); err != nil {
		t.Errorf("appending nothing: %v", err)
	}
	snapshot, err := s.Snapshot(t.Context(), ^uint64(0))
	if err != nil || snapshot.Number != 0 || snapshot.Data != nil || snapshot.Damaged != nil {
		t.Errorf("snapshot of an empty journal: %+v, %v", snapshot, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, a, place), nil)
}

func testOrder(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	records := Records(journal.Position{}, 1500, seeded(t))
	for batch := range slices.Chunk(records, 97) {
		appended(t, s, batch)
	}
	holds(t, s, records)
	for _, from := range []uint64{0, 1, 2, 97, 98, 1024, 1500, 1501, 1502, 9999} {
		got, err := all(s, from)
		if err == nil {
			err = same(got, records[min(max(from, 1)-1, uint64(len(records))):])
		}
		if err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
	for r, err := range s.Read(t.Context(), 1) { // a reader may stop early
		if err != nil || r.Number != 1 {
			t.Fatalf("first: %d, %v", r.Number, err)
		}
		break
	}
}

func testGaps(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	rng := seeded(t)
	records := Records(journal.Position{}, 10, rng)
	appended(t, s, records[:5])
	other := Records(journal.Position{}, 10, rng)
	jump := slices.Clone(records[5:])
	jump[2].Number++
	twice := append(slices.Clone(records[5:]), records[9])
	forged := slices.Clone(records[5:])
	forged[1].Event = []byte("forged")
	for _, c := range []struct {
		name    string
		records []journal.Record
		code    berth.Code
	}{
		{"a gap", records[6:], berth.Conflict},
		{"a far gap", Records(journal.Position{Number: 99}, 1, rng), berth.Conflict},
		{"another history from the same number", other[5:], berth.Conflict},
		{"another history from before", other, berth.Conflict},
		{"another history that ends before", other[:3], berth.Conflict},
		{"a gap within", jump, berth.Invalid},
		{"one twice within", twice, berth.Invalid},
		{"bytes that are not those of the hash", forged, berth.Invalid},
		{"number 0", []journal.Record{{}}, berth.Conflict},
	} {
		var e *berth.Error
		if err := s.Append(t.Context(), c.records...); !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want code %s", c.name, err, c.code)
		}
	}
	appended(t, s, records[5:])
	holds(t, s, records)
}

func testAtomic(t *testing.T, a Adapter) {
	place := t.TempDir()
	s := open(t, a, place)
	records := Records(journal.Position{}, 40, seeded(t))
	appended(t, s, records[:10])
	bad := slices.Clone(records[10:])
	bad[len(bad)-1].Hash[0] ^= 1
	if err := s.Append(t.Context(), bad...); err == nil {
		t.Fatal("a batch with a bad last record was appended")
	}
	holds(t, s, records[:10])
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, a, place), records[:10])
}

func testAgain(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	records := Records(journal.Position{}, 30, seeded(t))
	for _, batch := range [][]journal.Record{
		records[:10], records[:10], records[3:6], records[9:10], records[5:20], records[:30], records[29:],
	} {
		appended(t, s, batch)
	}
	holds(t, s, records)
}

func testReopen(t *testing.T, a Adapter) {
	place := t.TempDir()
	records := Records(journal.Position{}, 300, seeded(t))
	for i := 0; i < len(records); i += 60 {
		s := open(t, a, place)
		holds(t, s, records[:i])
		appended(t, s, records[i:i+60])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, open(t, a, place), records)
}

func testClosed(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	records := Records(journal.Position{}, 2, seeded(t))
	appended(t, s, records[:1])
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	if err := s.Append(t.Context(), records[1]); err == nil {
		t.Error("a closed journal took a record")
	}
	if got, err := all(s, 1); err == nil {
		t.Errorf("a closed journal showed %d records", len(got))
	}
	if _, err := s.Last(t.Context()); err == nil {
		t.Error("a closed journal told its last place")
	}
	if err := s.SaveSnapshot(t.Context(), records[0].Position(), nil); err == nil {
		t.Error("a closed journal took a snapshot")
	}
	if _, err := s.Snapshot(t.Context(), 1); err == nil {
		t.Error("a closed journal showed a snapshot")
	}
}

// testExclusive holds for adapters that let one process write. Adapters for
// several servers open for writing by a lease, and say who has it.
func testExclusive(t *testing.T, a Adapter) {
	place := t.TempDir()
	s := open(t, a, place)
	second, err := a.Open(place)
	if err == nil {
		second.Close() //nolint:errcheck // the test has failed
		t.Fatal("opened twice for writing")
	}
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != berth.Conflict || !strings.Contains(err.Error(), "process ") {
		t.Errorf("%v; want a conflict that names the process", err)
	}
	appended(t, s, Records(journal.Position{}, 1, seeded(t))) // the attempt did no harm
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, a, place)
}

func testReaders(t *testing.T, a Adapter) {
	place := t.TempDir()
	s := open(t, a, place)
	records := Records(journal.Position{}, 700, seeded(t))
	appended(t, s, records[:1])
	readers := []journal.Store{s, s}
	if a.Reader != nil {
		r, err := a.Reader(place)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // what matters has been checked
		if err := r.Append(t.Context(), records[1]); err == nil {
			t.Error("a journal opened for reading took a record")
		}
		readers = append(readers, r)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for _, r := range readers {
		wg.Go(func() {
			seen := 0
			for finished := false; !finished; {
				select {
				case <-done:
					finished = true // and one last look
				default:
				}
				got, err := all(r, 1)
				if err == nil && len(got) < seen {
					err = errors.New("a record is gone")
				}
				if err == nil {
					err = same(got, records[:len(got)])
				}
				if err != nil {
					t.Error(err)
					return
				}
				seen = len(got)
			}
			if seen != len(records) {
				t.Errorf("the last look showed %d records of %d", seen, len(records))
			}
		})
	}
	for batch := range slices.Chunk(records[1:], 23) {
		appended(t, s, batch)
	}
	close(done)
	wg.Wait()
}

func testContext(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	records := Records(journal.Position{}, 1200, seeded(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ended, records...); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	holds(t, s, nil)
	appended(t, s, records)
	if err := s.SaveSnapshot(ended, lastOf(records), []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range s.Read(ctx, 1) {
		if last = err; err == nil {
			n++
		}
		if n == 3 {
			cancel()
		}
	}
	if n >= len(records) || !errors.Is(last, context.Canceled) {
		t.Errorf("a reader whose context ended read %d of %d, %v", n, len(records), last)
	}
	// Appends under contexts that end at any moment: all or none, and what is
	// acknowledged is there.
	for range 50 {
		more := Records(lastOf(records), 3, seeded(t))
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		err := s.Append(ctx, more...)
		last, e := s.Last(t.Context())
		if e != nil {
			t.Fatal(e)
		}
		if err == nil {
			records = append(records, more...)
		}
		if last != lastOf(records) {
			t.Fatalf("answer %v, but the journal ends with record %d", err, last.Number)
		}
		cancel()
	}
	holds(t, s, records)
}
