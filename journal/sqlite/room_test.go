package sqlite_test

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
)

// alone skips a test of one goroutine that fills a journal of 10 MB, for which the race detector takes half a minute and has
// nothing to watch.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("fills a journal of 10 MB, in one goroutine")
	}
}

// long returns an open journal of 10 MB, or of 2 MB under the race detector, with a snapshot after its last record.
func long(t *testing.T) (s *sqlite.Store, dir string, last journal.Position) {
	t.Helper()
	dir = t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	batches := 30
	if testing.Short() {
		batches = 6
	}
	for range batches {
		records := typical(last, 1000)
		last = records[999].Position()
		if err := s.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveSnapshot(t.Context(), last, []byte("all")); err != nil {
		t.Fatal(err)
	}
	return s, dir, last
}

// gaveBack fails the test unless a journal has become a twentieth of what it was, goes
// on from its last record, and has its snapshot.
func gaveBack(t *testing.T, s *sqlite.Store, before int64, last journal.Position) {
	t.Helper()
	after, err := s.Size()
	if err != nil || after > before/20 {
		t.Errorf("%d bytes before and %d after, %v; want a twentieth at most", before, after, err)
	}
	more := typical(last, 10)
	if err := s.Append(t.Context(), more...); err != nil {
		t.Fatal(err)
	}
	if end, n, err := journal.Verify(t.Context(), s, last.Number+1, nil); err != nil || n != 10 || end != more[9].Position() {
		t.Errorf("%d records up to %d, %v", n, end.Number, err)
	}
	if snapshot, err := s.Snapshot(t.Context(), last.Number); err != nil || string(snapshot.Data) != "all" {
		t.Errorf("the snapshot is %q, %v", snapshot.Data, err)
	}
}

func TestCompactionGivesRoomBack(t *testing.T) {
	alone(t)
	s, dir, last := long(t)
	if err := s.Close(); err != nil { // which empties its log
		t.Fatal(err)
	}
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := s.Size()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context(), last.Number); err != nil {
		t.Fatal(err)
	}
	// The log stays as large as it was, and is used again.
	if info, err := os.Stat(filepath.Join(dir, "journal.db")); err != nil || info.Size() > before/20 {
		t.Errorf("the database has %d bytes, %v, of %d before", info.Size(), err, before)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlite.Open(dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	gaveBack(t, s, before, last)
}

// A journal of a program that could not move pages is compacted, and Shrink makes it one
// that gives its room back from then on.
func TestShrinkingAJournalOfFixedPages(t *testing.T) {
	alone(t)
	s, dir, last := long(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"PRAGMA journal_mode=DELETE", "PRAGMA auto_vacuum=NONE", "VACUUM", "PRAGMA journal_mode=WAL"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlite.Open(dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := s.Size()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context(), last.Number); err != nil {
		t.Fatal(err)
	}
	if size, err := s.Size(); err != nil || size < before {
		t.Errorf("%d bytes of %d are left, %v; the pages of the test can be moved", size, before, err)
	}
	if err := s.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	gaveBack(t, s, before, last)
	var mode int
	if db, err = sql.Open("sqlite", filepath.Join(dir, "journal.db")); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "PRAGMA auto_vacuum").Scan(&mode); err != nil || mode != 2 {
		t.Errorf("auto_vacuum is %d, %v; want 2, incremental", mode, err)
	}
}

// A slice of a compaction is small however much there is to drop, records of a megabyte
// and snapshots of many: an append that meets one waits for little. It is counted in what
// is written and synced, which does not depend on the machine.
func TestACompactionHoldsUpAppendsByASliceAtMost(t *testing.T) {
	disk, err := lossy.New()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.TempDir(), sqlite.ShortRests(disk.Name()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.Close(), disk.Close()); err != nil {
			t.Error(err)
		}
	}()
	scale := 1
	if testing.Short() { // under the race detector, where SQLite is ten times as slow
		scale = 4
	}
	records := journaltest.Records(journal.Position{}, 6000/scale, rand.New(rand.NewPCG(4, 4)))
	records[2000/scale].Event = make([]byte, 3<<20/scale)
	var last journal.Position
	for i := range records {
		last = records[i].Seal(last)
	}
	for batch := range slices.Chunk(records, 500) {
		if err := s.Append(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []int{3000 / scale, 4500 / scale, 6000 / scale} {
		if err := s.SaveSnapshot(t.Context(), records[at-1].Position(), make([]byte, 4<<20/scale)); err != nil {
			t.Fatal(err)
		}
	}
	compacted, upTo := make(chan error), last.Number
	go func() { compacted <- s.Compact(t.Context(), upTo) }()
	// An append waits for the rest of a slice, and for a checkpoint of a thousand pages.
	const bound = 1500
	worst, appends := 0, 0
	for going := true; going; appends++ {
		select {
		case err := <-compacted:
			if err != nil {
				t.Fatal(err)
			}
			going = false
		default:
		}
		before := disk.Ops()
		record := typical(last, 1)
		if err := s.Append(t.Context(), record...); err != nil {
			t.Fatal(err)
		}
		last = record[0].Position()
		worst = max(worst, disk.Ops()-before)
	}
	t.Logf("%d appends beside it, the worst with %d operations on the disk", appends, worst)
	if worst > bound || appends < 20/scale {
		t.Errorf("an append waited for %d operations on the disk, want %d at most; %d appends were made meanwhile", worst, bound, appends)
	}
}

func TestAStartCopiesTheLogBack(t *testing.T) {
	dir, records := journalOf(t, 50, false) // as kill -9 leaves it
	log := filepath.Join(dir, "journal.db-wal")
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		t.Fatalf("the log is %v, %v; want it to hold records", info, err)
	}
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(log); err != nil || info.Size() > 0 {
		t.Errorf("after the start the log has %d bytes, %v; want 0", info.Size(), err)
	}
	if last, err := s.Last(t.Context()); err != nil || last != records[49].Position() {
		t.Errorf("it ends with record %d, %v", last.Number, err)
	}
}

func TestABackupBesideAWriterIsAWholeJournal(t *testing.T) {
	s, dir, last := long(t)
	written := make(chan error, 1)
	go func() {
		at, err := last, error(nil)
		for range 20 {
			records := typical(at, 100)
			at = records[99].Position()
			err = errors.Join(err, s.Append(t.Context(), records...))
		}
		written <- err
	}()
	r, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	copied := filepath.Join(t.TempDir(), "backup")
	at, err := r.Backup(t.Context(), copied, nil)
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	if at.Number < last.Number {
		t.Errorf("the copy ends with record %d, and %d was acknowledged before", at.Number, last.Number)
	}
	for _, name := range []string{"journal.db", "mark"} {
		if info, err := os.Stat(filepath.Join(copied, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want mode 0600", name, info, err)
		}
	}
	if end, err := verify(t, copied, 1); err != nil || end != at {
		t.Errorf("the copy ends with record %d, %v; want %d", end.Number, err, at.Number)
	}
	var taken *berth.Error
	if _, err := r.Backup(t.Context(), copied, nil); !errors.As(err, &taken) || taken.Code != berth.Conflict {
		t.Errorf("into the same folder: %v, want a conflict", err)
	}
	if end, err := verify(t, copied, 1); err != nil || end != at {
		t.Errorf("after that the copy ends with record %d, %v", end.Number, err)
	}
}
