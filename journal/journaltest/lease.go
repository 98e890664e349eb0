package journaltest

import (
	"errors"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// Lease is what the suite needs of an adapter that several servers share, to take the journal from the one that writes it and
// to lose its connection.
type Lease struct {
	// Expire ends the lease of the server that writes the journal at a place, as if it had been silent for too long.
	Expire func(place string) error
	// Cut has the connection of that server be lost at its next batch.
	Cut func(place string, when Connection) error
}

// Connection is when a connection is lost.
type Connection int

// When a connection is lost.
const (
	CutBefore Connection = iota + 1 // and the batch has not reached the server
	CutAfter                        // and it has been committed
	CutLate                         // and it is committed later, at the earliest when another attempt is under way
)

// testLease has another server take over: the one before learns it by a conflict, from then on and whatever it writes.
func testLease(t *testing.T, a Adapter) {
	if a.Lease == nil {
		t.Skip("the adapter grants no lease")
	}
	place := t.TempDir()
	records := Records(journal.Position{}, 40, seeded(t))
	old := open(t, a, place)
	appended(t, old, records[:10])
	if err := old.SaveSnapshot(t.Context(), records[9].Position(), []byte("ten")); err != nil {
		t.Fatal(err)
	}
	next := takeOver(t, a, place)
	holds(t, next, records[:10])
	for name, write := range map[string]func() error{
		"what follows":     func() error { return old.Append(t.Context(), records[10:20]...) },
		"what follows now": func() error { return old.Append(t.Context(), records[20:]...) },
		"a snapshot":       func() error { return old.SaveSnapshot(t.Context(), records[9].Position(), []byte("x")) },
		"a compaction":     func() error { return old.(journal.Compactor).Compact(t.Context(), 10) },
	} {
		var e *berth.Error
		if err := again(write); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("%s by the one before: %v, want a conflict", name, err)
		}
	}
	holds(t, next, records[:10])
	appended(t, next, records[10:30])
	third := takeOver(t, a, place)
	appended(t, third, records[30:])
	more := Records(lastOf(records), 1, seeded(t))
	for _, s := range []journal.Store{old, next} {
		var e *berth.Error
		if err := again(func() error { return s.Append(t.Context(), more...) }); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("what follows, by one before: %v, want a conflict", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("closing one before: %v", err)
		}
	}
	holds(t, third, records)
}

// takeOver opens a journal that another server writes.
func takeOver(t *testing.T, a Adapter, place string) (s journal.Store) {
	t.Helper()
	err := a.Lease.Expire(place)
	for range 100 { // it may renew its lease meanwhile
		if err == nil {
			s, err = a.Open(place)
		}
		if err == nil {
			t.Cleanup(func() { s.Close() }) //nolint:errcheck // most tests close it themselves
			return s
		}
		err = a.Lease.Expire(place)
	}
	t.Fatal(err)
	return nil
}

// again does something until it is said that trying again does not help.
func again(do func() error) error {
	for {
		if err := do(); !journal.CanRetry(err) {
			return err
		}
	}
}

// testCut loses the connection before a batch is committed, after and meanwhile: it is not acknowledged, and once it is tried
// again all of it is there, once.
func testCut(t *testing.T, a Adapter) {
	if a.Lease == nil {
		t.Skip("the adapter grants no lease")
	}
	for _, when := range []Connection{CutBefore, CutAfter, CutLate} {
		place := t.TempDir()
		records := Records(journal.Position{}, 60, seeded(t))
		s := open(t, a, place)
		n := 0
		for batch := range slices.Chunk(records, 10) {
			if n++; n%2 == 0 {
				if err := a.Lease.Cut(place, when); err != nil {
					t.Fatal(err)
				}
				if err := s.Append(t.Context(), batch...); !journal.CanRetry(err) {
					t.Fatalf("case %d: the connection was lost, and Append says %v; want that it may be tried again", when, err)
				}
				if when != CutLate {
					there := records[:10*(n-1)]
					if when == CutAfter {
						there = records[:10*n]
					}
					others(t, a, place, there)
				}
			}
			if err := again(func() error { return s.Append(t.Context(), batch...) }); err != nil {
				t.Fatalf("case %d: %v", when, err)
			}
		}
		holds(t, s, records)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// others has one that reads beside the writer see these records.
func others(t *testing.T, a Adapter, place string, want []journal.Record) {
	t.Helper()
	r, err := a.Reader(place)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, r, want)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
