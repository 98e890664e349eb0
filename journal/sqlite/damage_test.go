package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// journalOf returns a folder with a journal of n records, with a snapshot after
// some of them. Closed is how a clean end leaves it, else how kill -9 does.
func journalOf(t *testing.T, n int, closed bool, snapshots ...int) (dir string, records []journal.Record) {
	t.Helper()
	dir = t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	records = journaltest.Records(journal.Position{}, n, rand.New(rand.NewPCG(4, 4)))
	if err := errors.Join(s.Append(t.Context(), records[:1]...), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlite.Open(dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for batch := range slices.Chunk(records, 10) { // what is there already is passed over
		if err := s.Append(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range snapshots {
		if err := s.SaveSnapshot(t.Context(), records[at-1].Position(), []byte{byte(at)}); err != nil {
			t.Fatal(err)
		}
	}
	if closed {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return dir, records
	}
	left := t.TempDir()
	for _, name := range []string{"journal.db", "journal.db-wal", "mark"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(left, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return left, records
}

// change rewrites a file.
func change(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, how(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// exec runs SQL behind the journal's back.
func exec(t *testing.T, dir, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, dir string, from uint64) (journal.Position, error) {
	t.Helper()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		return journal.Position{}, err
	}
	defer s.Close()
	last, _, err := journal.Verify(t.Context(), s, from, nil)
	return last, err
}

func repaired(t *testing.T, dir string) *journal.Damage {
	t.Helper()
	d, err := sqlite.Repair(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAChangedRecordIsNamedAndTheCutIsRightBefore(t *testing.T) {
	dir, records := journalOf(t, 50, true)
	var at int
	change(t, filepath.Join(dir, "journal.db"), func(content []byte) []byte {
		at = bytes.Index(content, records[30].Hash[:])
		content[at+len(records[30].Hash)+8] ^= 1 // in the body, which follows
		return content
	})
	last, err := verify(t, dir, 1)
	var d *journal.Damage
	if !errors.As(err, &d) {
		t.Fatal(err)
	}
	if last != records[29].Position() || d.After != last || d.Offset != int64(at) || filepath.Base(d.File) != "journal.db" {
		t.Errorf("read up to %d; %v; want it after record 30 at byte %d", last.Number, d, at)
	}
	before, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	if d := repaired(t, dir); d == nil || d.After != records[29].Position() || d.Acknowledged != 50 {
		t.Errorf("repair: %v", d)
	}
	if last, err := verify(t, dir, 1); err != nil || last != records[29].Position() {
		t.Errorf("after the repair it ends with record %d, %v", last.Number, err)
	}
	aside, err := os.ReadFile(filepath.Join(dir, "damaged-1", "journal.db"))
	if err != nil || !bytes.Equal(aside, before) {
		t.Errorf("the damaged file was not put aside as it was: %v", err)
	}
	if d := repaired(t, dir); d != nil {
		t.Errorf("a second repair finds %v", d)
	}
}

// A damaged journal that was opened to save what can be read closes without an error.
func TestADamagedJournalIsClosed(t *testing.T) {
	dir, records := journalOf(t, 50, true)
	change(t, filepath.Join(dir, "journal.db"), func(content []byte) []byte {
		content[bytes.Index(content, records[30].Hash[:])+40] ^= 1
		return content
	})
	s, _, err := sqlite.OpenDamaged(dir) // what is damaged is found as it is read
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A journal that had records is not made an empty one that is valid, and where there is none nothing is made.
func TestARepairThatKeepsNothingIsRefused(t *testing.T) {
	for _, size := range []int{0, 4096, 8192, 16384, 20000, 24576} {
		dir, _ := journalOf(t, 300, true)
		change(t, filepath.Join(dir, "journal.db"), func(content []byte) []byte {
			if len(content) < 2*size {
				t.Fatalf("it has %d bytes, too few to cut it to %d", len(content), size)
			}
			return content[:size]
		})
		d, err := sqlite.Repair(dir, sqlite.Options{})
		if size < 24576 && (err == nil || !strings.Contains(err.Error(), "nothing can be kept, restore it from a copy")) {
			t.Errorf("%d bytes: %v, %v; want that nothing can be kept", size, d, err)
		}
		if err == nil && d.After.Number == 0 {
			t.Errorf("%d bytes: all is cut", size)
		}
		if there := sqlite.Aside(dir); (there == "") != (err != nil) {
			t.Errorf("%d bytes: put aside in %q, %v", size, there, err)
		}
	}
	empty := t.TempDir()
	_, err := sqlite.Repair(empty, sqlite.Options{})
	if entries, _ := os.ReadDir(empty); codeIs(err) != berth.NotFound || len(entries) > 0 {
		t.Errorf("%v, and %v is there; want not found, and nothing made", err, entries)
	}
}

func TestALogThatIsGoneOrShortIsTold(t *testing.T) {
	for name, how := range map[string]func(t *testing.T, log string){
		"removed": func(t *testing.T, log string) {
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
		},
		"half": func(t *testing.T, log string) {
			change(t, log, func(content []byte) []byte { return content[:len(content)/2] })
		},
		"without its last bytes": func(t *testing.T, log string) {
			change(t, log, func(content []byte) []byte { return content[:len(content)-9] })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, records := journalOf(t, 50, false)
			how(t, filepath.Join(dir, "journal.db-wal"))
			_, err := verify(t, dir, 1)
			var d *journal.Damage
			if !errors.As(err, &d) || d.Acknowledged != 50 || d.After.Number >= 50 {
				t.Fatalf("%v", err)
			}
			if d.After.Number > 0 && d.After != records[d.After.Number-1].Position() {
				t.Errorf("the last good place is not one of the journal: %v", d)
			}
			cut := repaired(t, dir)
			if cut == nil || cut.After != d.After {
				t.Fatalf("the repair says %v, opening said %v", cut, d)
			}
			if last, err := verify(t, dir, 1); err != nil || last != d.After {
				t.Errorf("after the repair it ends with record %d, %v", last.Number, err)
			}
		})
	}
}

// Without the mark, which a loss of power may take, a log that was cut short is
// what an unfinished write leaves.
func TestATornWriteIsDroppedAndTold(t *testing.T) {
	dir, records := journalOf(t, 50, false)
	log := filepath.Join(dir, "journal.db-wal")
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil {
		t.Fatal(err)
	}
	change(t, log, func(content []byte) []byte { return content[:len(content)-9] })
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	last, err := s.Last(t.Context())
	if err != nil || last != records[39].Position() {
		t.Errorf("it ends with record %d, %v; want 40, the batch before the torn one", last.Number, err)
	}
	if d := s.Torn(); d == nil || d.File != log || d.Offset <= 0 || d.After != last {
		t.Errorf("torn: %v", d)
	}
	whole, _ := journalOf(t, 50, false)
	s, err = sqlite.Open(whole, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if d := s.Torn(); d != nil {
		t.Errorf("nothing was torn: %v", d)
	}
}

// A batch was synced before the next one began. Where later batches can still be
// read, bytes that are wrong were damaged after the sync, mark or no mark.
func TestADamagedLogIsNotTakenForATornOne(t *testing.T) {
	dir, records := journalOf(t, 50, false)
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "journal.db-wal")
	var at int
	change(t, log, func(content []byte) []byte {
		at = bytes.Index(content, records[11].Hash[:]) // in the second batch of five
		content[at] ^= 0x10
		return content
	})
	_, err := verify(t, dir, 1)
	var d *journal.Damage
	if !errors.As(err, &d) || d.File != log || d.Offset > int64(at) || d.Offset < int64(at)-4096-24 || d.After != records[9].Position() {
		t.Fatalf("%v; want it after record 10, in the frame before byte %d", err, at)
	}
	if cut := repaired(t, dir); cut == nil || cut.After != records[9].Position() {
		t.Errorf("repair: %v", cut)
	}
}

func TestARepairKeepsWhatFollowsAGoodSnapshot(t *testing.T) {
	dir, records := journalOf(t, 90, true, 20, 60)
	change(t, filepath.Join(dir, "journal.db"), func(content []byte) []byte {
		at := bytes.Index(content, records[30].Hash[:])
		content[at+40] ^= 1
		return content
	})
	if d := repaired(t, dir); d == nil || d.After != records[89].Position() {
		t.Fatalf("repair: %v", d)
	}
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin, err := s.Begin(t.Context())
	if err != nil || begin != records[59].Position() {
		t.Errorf("it begins after record %d, %v; want 60", begin.Number, err)
	}
	snapshot, err := s.Snapshot(t.Context(), 1000)
	if err != nil || snapshot.Position != begin || !bytes.Equal(snapshot.Data, []byte{60}) {
		t.Errorf("%+v, %v", snapshot, err)
	}
	if last, n, err := journal.Verify(t.Context(), s, 61, nil); err != nil || n != 30 || last != records[89].Position() {
		t.Errorf("%d records up to %d, %v", n, last.Number, err)
	}
}

func TestARepairComesToItsEndLater(t *testing.T) {
	dir, _ := journalOf(t, 50, false)
	good, records := journalOf(t, 30, true)
	// The process ended when the new database was complete.
	if err := os.Rename(filepath.Join(good, "journal.db"), filepath.Join(dir, "journal.db.repaired")); err != nil {
		t.Fatal(err)
	}
	if last, err := verify(t, dir, 1); err != nil || last != records[29].Position() {
		t.Errorf("it ends with record %d, %v; want the repaired 30", last.Number, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "journal.db.repaired")); err == nil {
		t.Error("the repair is still there")
	}
}

func TestADamagedSnapshotFallsBack(t *testing.T) {
	dir, records := journalOf(t, 90, true, 20, 60)
	exec(t, dir, "UPDATE part SET data = x'00' WHERE snapshot = 60")
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	snapshot, err := s.Snapshot(t.Context(), 1000)
	if err != nil || snapshot.Position != records[19].Position() || !bytes.Equal(snapshot.Data, []byte{20}) {
		t.Errorf("%+v, %v", snapshot, err)
	}
	if len(snapshot.Damaged) != 1 || snapshot.Damaged[0].After != records[59].Position() {
		t.Errorf("damaged: %v", snapshot.Damaged)
	}
	var e *berth.Error
	if err := s.Compact(t.Context(), 60); !errors.As(err, &e) || e.Code != berth.Conflict {
		t.Errorf("compacted to a damaged snapshot: %v", err)
	}
	// Saving it again makes it good.
	if err := s.SaveSnapshot(t.Context(), records[59].Position(), []byte{60}); err != nil {
		t.Fatal(err)
	}
	if snapshot, err := s.Snapshot(t.Context(), 1000); err != nil || snapshot.Number != 60 || snapshot.Damaged != nil {
		t.Errorf("%+v, %v", snapshot, err)
	}
}

func TestForeignDatabasesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ query, want string }{
		"a newer format":          {"PRAGMA user_version = 2", "format 2; this program reads format 1"},
		"another program's":       {"PRAGMA application_id = 77", "another program"},
		"another program's table": {"PRAGMA application_id = 0", "another program"},
	} {
		dir, _ := journalOf(t, 5, true)
		exec(t, dir, c.query)
		_, err := verify(t, dir, 1)
		var e *berth.Error
		if !errors.As(err, &e) || e.Code != berth.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnotherHistoryIsNotTakenForOurs(t *testing.T) {
	dir, _ := journalOf(t, 50, true)
	other := t.TempDir()
	s, err := sqlite.Open(other, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), typical(journal.Position{}, 60)...); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The wrong copy of the database is put back.
	content, err := os.ReadFile(filepath.Join(other, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(dir, "journal.db"), func([]byte) []byte { return content })
	var d *journal.Damage
	if _, err := verify(t, dir, 1); !errors.As(err, &d) || !strings.Contains(d.Reason, "another history") {
		t.Errorf("%v", err)
	}
}

// What a server refuses a reader is told of too, who checks copies with it.
func TestReadingSeesWhatServingSees(t *testing.T) {
	flip := func(t *testing.T, dir, name string) {
		change(t, filepath.Join(dir, name), func(content []byte) []byte {
			content[len(content)/2] ^= 0x10
			return content
		})
	}
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"a bit of the log":  func(t *testing.T, dir string) { flip(t, dir, "journal.db-wal") },
		"a bit of the mark": func(t *testing.T, dir string) { flip(t, dir, "mark") },
		"no log": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "journal.db-wal")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := journalOf(t, 50, false)
			spoil(t, dir)
			var read, served *journal.Damage
			s, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
			if !errors.As(err, &read) {
				t.Errorf("reading: %v %v, want a damage", s, err)
			}
			if _, err := sqlite.Open(dir, sqlite.Options{}); !errors.As(err, &served) {
				t.Fatalf("serving: %v, want a damage", err)
			}
			if read != nil && read.Error() != served.Error() {
				t.Errorf("reading says %v, serving %v", read, served)
			}
			if cut := repaired(t, dir); cut == nil {
				t.Error("the repair found nothing")
			}
			if s, err = sqlite.Open(dir, sqlite.Options{ReadOnly: true}); err != nil {
				t.Fatalf("after the repair: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A reader beside a server that writes sees no damage in what is half written.
func TestReadingBesideAWriterFindsNoDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(t.Context(), journaltest.Records(journal.Position{}, 1, rand.New(rand.NewPCG(4, 4)))...); err != nil {
		t.Fatal(err)
	}
	batches := 60 // some checkpoints
	if testing.Short() {
		batches = 30
	}
	written := make(chan error, 1)
	go func() {
		last, err := s.Last(t.Context())
		for range batches {
			records := typical(last, 500)
			last = records[len(records)-1].Position()
			err = errors.Join(err, s.Append(t.Context(), records...))
		}
		written <- err
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-written:
			if err != nil || reads == 0 {
				t.Errorf("%d reads, %v", reads, err)
			}
			return
		default:
		}
		r, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
		if err != nil {
			t.Fatalf("read %d: %v", reads, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadingTakesNoLockAndChangesNothing(t *testing.T) {
	var e *berth.Error
	if _, err := sqlite.Open(t.TempDir(), sqlite.Options{ReadOnly: true}); !errors.As(err, &e) || e.Code != berth.NotFound {
		t.Errorf("no journal: %v", err)
	}
	dir, records := journalOf(t, 50, false)
	digest := func() (all string) {
		for _, name := range []string{"journal.db", "journal.db-wal", "mark"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all += string(content)
		}
		return all
	}
	before := digest()
	s, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if last, n, err := journal.Verify(context.Background(), s, 1, nil); err != nil || n != 50 || last != records[49].Position() {
		t.Errorf("%d records up to %d, %v", n, last.Number, err)
	}
	if err := s.Append(t.Context(), journaltest.Records(records[49].Position(), 1, rand.New(rand.NewPCG(1, 1)))...); !errors.As(err, &e) || e.Code != berth.Denied {
		t.Errorf("append: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if digest() != before {
		t.Error("reading changed the files")
	}
}

func TestTheLogDoesNotGrowForEver(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last journal.Position
	for range 30 {
		records := typical(last, 1000)
		last = records[999].Position()
		if err := s.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "journal.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 6<<20 {
		t.Errorf("after 10 MB of records the log has %d bytes", info.Size())
	}
}

// A snapshot whose size is damaged is told, not cut to that size.
func TestASnapshotOfAnotherSizeIsDamaged(t *testing.T) {
	dir, _ := journalOf(t, 30, true, 10, 20)
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE snapshot SET size = 0 WHERE number = 20")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := s.Snapshot(t.Context(), 30); err != nil || got.Number != 10 || len(got.Damaged) != 1 {
		t.Errorf("the snapshot of %d, damaged %v, %v", got.Number, got.Damaged, err)
	}
}
