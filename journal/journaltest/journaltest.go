// Package journaltest runs a journal adapter through what the contract promises:
// order, atomic batches, reopening, readers beside the writer, damage, crashes
// by signal and by loss of power. Only tests import it.
package journaltest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// Adapter is what the suite needs of an adapter. Places are directories that
// belong to the test; an adapter that keeps no files takes them as names.
type Adapter struct {
	// Open opens the journal at a place, and makes it if there is none.
	Open func(place string) (journal.Store, error)
	// Reader opens it for reading beside a writer. Nil: the writer's own Read
	// is all there is.
	Reader func(place string) (journal.Store, error)
	// Repair cuts a damaged journal and says what was wrong. Nil leaves out
	// the tests of damage by files.
	Repair func(place string) (*journal.Damage, error)
	// Files are the names, within a place, of files whose bytes the tests of
	// damage may change.
	Files []string
	// Disk returns a file system that loses what was not synced. Nil leaves out
	// the tests of lost power.
	Disk func() (Disk, error)
	// Lease takes the journal from the server that writes it. Nil leaves out the tests of leases.
	Lease *Lease
	// Cases multiplies the random cases of damage and of lost power; 0 is 1.
	Cases int
}

// Run runs everything but the crashes of child processes, for which see Main.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, Adapter)
	}{
		{"a new journal is empty", testEmpty},
		{"records come back in order", testOrder},
		{"gaps and other histories are refused", testGaps},
		{"a batch is all or nothing", testAtomic},
		{"a batch may be appended again", testAgain},
		{"it is there after reopening", testReopen},
		{"closed is closed", testClosed},
		{"a second writer is refused by name", testExclusive},
		{"who lost the lease writes nothing", testLease},
		{"a connection that is lost at a commit", testCut},
		{"readers beside the writer", testReaders},
		{"the end of a context", testContext},
		{"snapshots, newest first", testSnapshots},
		{"a snapshot of another history is refused", testForeignSnapshot},
		{"compaction keeps the chain", testCompact},
		{"a copy goes on where one ended", testCopy},
		{"a copy of what was compacted begins where that does", testCopyOfCompacted},
		{"group commit", testWriter},
		{"damage is found, told and cut", testDamage},
		{"a full disk loses nothing", testFull},
		{"a failed sync acknowledges nothing", testFailedSync},
		{"a failing operation loses nothing", testFaults},
		{"loss of power keeps what was acknowledged", testLoss},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, a) })
	}
}

// Records returns n records that follow a place, with payloads drawn from rng:
// most are small, some empty, few larger than a page of a database.
func Records(after journal.Position, n int, rng *rand.Rand) []journal.Record {
	records := make([]journal.Record, n)
	for i := range records {
		r := &records[i]
		r.At = berth.Time(1_700_000_000 + 7*int64(after.Number))
		r.Version = "v1"
		r.Event, r.Changes, r.Effects = payload(rng), payload(rng), payload(rng)
		after = r.Seal(after)
	}
	return records
}

func payload(rng *rand.Rand) []byte {
	size := rng.IntN(200)
	switch rng.IntN(20) {
	case 0:
		return nil
	case 1:
		size = rng.IntN(20_000)
	}
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	if size == 0 {
		return nil
	}
	return p
}

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(1, uint64(len(t.Name()))))
}

// open opens a journal and closes it with the test.
func open(t *testing.T, a Adapter, place string) journal.Store {
	t.Helper()
	s, err := a.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // most tests close it themselves
	return s
}

func appended(t *testing.T, s journal.Log, records []journal.Record) {
	t.Helper()
	if err := s.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

func lastOf(records []journal.Record) journal.Position { return records[len(records)-1].Position() }

// all reads everything behind a number and returns it with the error at the end.
func all(s journal.Reader, from uint64) (records []journal.Record, err error) {
	for r, err := range s.Read(context.Background(), from) {
		if err != nil {
			return records, err
		}
		records = append(records, r)
	}
	return records, nil
}

// same reports the first difference between two lists of records.
func same(got, want []journal.Record) error {
	for i := range min(len(got), len(want)) {
		g, w := &got[i], &want[i]
		if g.Number != w.Number || g.At != w.At || g.Version != w.Version || g.Hash != w.Hash ||
			!bytes.Equal(g.Event, w.Event) || !bytes.Equal(g.Changes, w.Changes) || !bytes.Equal(g.Effects, w.Effects) {
			return fmt.Errorf("record %d is not what was appended", w.Number)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d records, want %d", len(got), len(want))
	}
	return nil
}

// holds fails the test unless the journal holds exactly these records, from 1.
func holds(t *testing.T, s journal.Store, want []journal.Record) {
	t.Helper()
	got, err := all(s, 1)
	if err == nil {
		err = same(got, want)
	}
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(want) > 0 && last != lastOf(want) || len(want) == 0 && last != (journal.Position{}) {
		t.Fatalf("the last place is %d %v, not that of the last record", last.Number, last.Hash)
	}
}
