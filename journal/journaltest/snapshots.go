package journaltest

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

func testSnapshots(t *testing.T, a Adapter) {
	place := t.TempDir()
	s := open(t, a, place)
	rng := seeded(t)
	records := Records(journal.Position{}, 50, rng)
	appended(t, s, records)
	data := map[uint64][]byte{}
	for i, size := range map[int]int{9: 10, 19: 0, 29: 3_000_000, 39: 700_000} {
		data[records[i].Number] = make([]byte, size)
		for k := range data[records[i].Number] {
			data[records[i].Number][k] = byte(rng.Uint32())
		}
	}
	expect := func(upTo, number uint64) {
		t.Helper()
		got, err := s.Snapshot(t.Context(), upTo)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(got.Damaged) > 0:
			t.Fatalf("damaged: %v", got.Damaged)
		case got.Number != number:
			t.Fatalf("up to %d: the snapshot of record %d, want %d", upTo, got.Number, number)
		case number > 0 && got.Position != records[number-1].Position(), !bytes.Equal(got.Data, data[number]):
			t.Fatalf("the snapshot of record %d is not what was saved", number)
		}
	}
	save := func(number uint64) {
		t.Helper()
		if err := s.SaveSnapshot(t.Context(), records[number-1].Position(), data[number]); err != nil {
			t.Fatal(err)
		}
	}
	expect(100, 0)
	save(10)
	expect(100, 10)
	expect(10, 10)
	expect(9, 0)
	save(20)
	save(30)
	save(30) // again
	expect(^uint64(0), 30)
	expect(29, 20)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, a, place)
	expect(100, 30)
	// Appends go on while a snapshot is saved.
	var wg sync.WaitGroup
	wg.Go(func() { save(40) })
	more := Records(lastOf(records), 200, rng)
	for batch := range slices.Chunk(more, 5) {
		appended(t, s, batch)
	}
	wg.Wait()
	expect(100, 40)
	expect(39, 30)
	holds(t, s, append(records, more...))
}

func testForeignSnapshot(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	records := Records(journal.Position{}, 3, seeded(t))
	appended(t, s, records)
	wrong := records[1].Position()
	wrong.Hash[5] ^= 4
	for _, at := range []journal.Position{wrong, {Number: 4}, {Number: 0, Hash: wrong.Hash}} {
		var e *berth.Error
		if err := s.SaveSnapshot(t.Context(), at, []byte("x")); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("at %d: %v, want a conflict", at.Number, err)
		}
	}
	if err := s.SaveSnapshot(t.Context(), journal.Position{}, []byte("before everything")); err != nil {
		t.Error(err)
	}
}

func testCompact(t *testing.T, a Adapter) {
	place := t.TempDir()
	s := open(t, a, place)
	compactor, ok := s.(journal.Compactor)
	if !ok {
		t.Skip("the adapter does not compact")
	}
	rng := seeded(t)
	records := Records(journal.Position{}, 5000, rng)
	for batch := range slices.Chunk(records, 1000) {
		appended(t, s, batch)
	}
	conflict := func(upTo uint64) {
		t.Helper()
		var e *berth.Error
		if err := compactor.Compact(t.Context(), upTo); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("compact to %d: %v, want a conflict", upTo, err)
		}
	}
	conflict(4500)
	for _, number := range []uint64{4000, 4500} {
		if err := s.SaveSnapshot(t.Context(), records[number-1].Position(), []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	conflict(4499)
	expect := func(begin uint64) {
		t.Helper()
		got, err := compactor.Begin(t.Context())
		if err != nil || begin > 0 && got != records[begin-1].Position() || begin == 0 && got != (journal.Position{}) {
			t.Fatalf("the journal begins after %d, want %d: %v", got.Number, begin, err)
		}
		kept, err := all(s, begin+1)
		if err == nil {
			err = same(kept, records[begin:])
		}
		if err != nil {
			t.Fatal(err)
		}
		var e *berth.Error
		for from := range begin {
			if from%500 != begin%500 {
				continue
			}
			if got, err := all(s, from); !errors.As(err, &e) || e.Code != berth.NotFound || len(got) > 0 {
				t.Fatalf("from %d: %d records and %v, want not found", from, len(got), err)
			}
		}
	}
	expect(0)
	for _, upTo := range []uint64{4000, 4500, 4500} {
		if err := compactor.Compact(t.Context(), upTo); err != nil {
			t.Fatal(err)
		}
		expect(upTo)
	}
	if got, err := s.Snapshot(t.Context(), 4499); err != nil || got.Number != 0 {
		t.Errorf("the snapshot of record %d is there still, %v", got.Number, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, a, place)
	compactor = s.(journal.Compactor)
	expect(4500)
	more := Records(lastOf(records), 10, rng)
	appended(t, s, more)
	records = append(records, more...)
	expect(4500)
	// The snapshot with which the chain begins stays, whatever is saved later.
	for i := range 4 {
		if err := s.SaveSnapshot(t.Context(), records[4600+100*i].Position(), []byte("later")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Snapshot(t.Context(), 4500); err != nil || got.Number != 4500 || string(got.Data) != "state" {
		t.Errorf("the chain begins after 4500, its snapshot is that of %d with %q, %v", got.Number, got.Data, err)
	}
	// Everything may go, and the chain goes on.
	if err := s.SaveSnapshot(t.Context(), lastOf(records), []byte("all")); err != nil {
		t.Fatal(err)
	}
	if err := compactor.Compact(t.Context(), lastOf(records).Number); err != nil {
		t.Fatal(err)
	}
	more = Records(lastOf(records), 5, rng)
	appended(t, s, more)
	records = append(records, more...)
	expect(5010)
}

// testWriter has many clients add records through the group commit.
func testWriter(t *testing.T, a Adapter) {
	s := open(t, a, t.TempDir())
	counted := &counter{Log: s}
	w := journal.NewWriter(counted, nil)
	const clients, each = 64, 25
	records := Records(journal.Position{}, clients*each, seeded(t))
	var mu sync.Mutex // the single thread that numbers records
	next := 0
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				answer := make(chan error, 1)
				mu.Lock()
				r := records[next]
				next++
				w.Add(r, func(err error) { answer <- err })
				mu.Unlock()
				if err := <-answer; err != nil {
					t.Error(err)
					return
				}
				if last, err := s.Last(t.Context()); err != nil || last.Number < r.Number {
					t.Errorf("record %d was acknowledged when the journal ended with %d, %v", r.Number, last.Number, err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, s, records)
	if counted.appends >= len(records)/2 {
		t.Errorf("%d records took %d appends; none were shared", len(records), counted.appends)
	}
}
