package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// long returns an open journal of 10 MB, with a snapshot after its last record.
func long(t *testing.T) (s *sqlite.Store, dir string, last journal.Position) {
	t.Helper()
	dir = t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for range 30 {
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

func TestCompactionAndShrinkingGiveRoomBack(t *testing.T) {
	s, _, last := long(t)
	before, err := s.Size()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Compact(t.Context(), last.Number), s.Shrink(t.Context())); err != nil {
		t.Fatal(err)
	}
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
