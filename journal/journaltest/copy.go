package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// testCopy copies a journal to an empty one, whose context ends in the midst of it, and on to the end.
func testCopy(t *testing.T, a Adapter) {
	from, place := open(t, a, t.TempDir()), t.TempDir()
	to := open(t, a, place)
	records := Records(journal.Position{}, 4000, seeded(t))
	appended(t, from, records[:3500])
	if err := from.SaveSnapshot(t.Context(), records[2999].Position(), []byte("a state")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := journal.Copy(ctx, cutting{to, cancel}, from); !errors.Is(err, context.Canceled) {
		t.Fatalf("a copy cut short: %v", err)
	}
	part, err := to.Last(t.Context())
	if err != nil || part.Number == 0 || part.Number >= 3500 {
		t.Fatalf("a copy cut short has come to %d, %v", part.Number, err)
	}
	for _, n := range []int{3500, 4000, 4000} {
		appended(t, from, records[:n])
		c, err := journal.Copy(t.Context(), to, from)
		if err != nil || c.Last != records[n-1].Position() {
			t.Fatalf("copied up to %d, %v", c.Last.Number, err)
		}
	}
	holds(t, to, records)
	if got, err := to.Snapshot(t.Context(), ^uint64(0)); err != nil || got.Number != 3000 || string(got.Data) != "a state" {
		t.Errorf("the snapshot of %d, %v", got.Number, err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, open(t, a, place), records)

	other := open(t, a, t.TempDir())
	foreign := Records(journal.Position{}, 11, seeded(t))
	foreign[0].Version = "other"
	after := journal.Position{}
	for i := range foreign {
		after = foreign[i].Seal(after)
	}
	appended(t, other, foreign)
	for name, pair := range map[string][2]journal.Store{"another history": {other, from}, "one that is behind": {from, other}} {
		var e *berth.Error
		if _, err := journal.Copy(t.Context(), pair[0], pair[1]); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("onto %s: %v, want a conflict", name, err)
		}
	}
}

// cutting ends a context with the second batch.
type cutting struct {
	journal.Store
	cancel context.CancelFunc
}

func (c cutting) Append(ctx context.Context, records ...journal.Record) error {
	if records[0].Number > 1 {
		c.cancel()
	}
	return c.Store.Append(ctx, records...)
}

func testCopyOfCompacted(t *testing.T, a Adapter) {
	from, place := open(t, a, t.TempDir()), t.TempDir()
	compactor, can := from.(journal.Compactor)
	if !can {
		t.Skip("the adapter does not compact")
	}
	to := open(t, a, place)
	records := Records(journal.Position{}, 300, seeded(t))
	appended(t, from, records)
	state := make([]byte, 1_300_000)
	state[9] = 9
	for _, n := range []int{200, 250} {
		if err := from.SaveSnapshot(t.Context(), records[n-1].Position(), state); err != nil {
			t.Fatal(err)
		}
	}
	if err := compactor.Compact(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := journal.Copy(t.Context(), to, from)
		if err != nil || c.Last != records[299].Position() || c.Begin != records[199].Position() {
			t.Fatalf("copied %+v, %v", c, err)
		}
		got, err := all(to, 201)
		if err == nil {
			err = same(got, records[200:])
		}
		if err != nil {
			t.Fatal(err)
		}
		for upTo, want := range map[uint64]uint64{200: 200, 249: 200, 300: 250} {
			got, err := to.Snapshot(t.Context(), upTo)
			if err != nil || got.Number != want || len(got.Data) != len(state) || got.Data[9] != 9 {
				t.Errorf("up to %d the snapshot of %d, damaged %v, %v", upTo, got.Number, got.Damaged, err)
			}
		}
		var e *berth.Error
		if err := to.(journal.Founder).Found(t.Context(), records[199].Position(), state); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("begun twice: %v, want a conflict", err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		to = open(t, a, place)
	}
}
