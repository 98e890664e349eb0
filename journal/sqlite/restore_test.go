package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// copyOf makes a backup of a journal of n records, and opens it for reading.
func copyOf(t *testing.T, n int) (*sqlite.Store, journal.Position) {
	t.Helper()
	dir, records := journalOf(t, n, true)
	from := openReadOnly(t, dir)
	folder := filepath.Join(t.TempDir(), "copy")
	if _, err := from.Backup(t.Context(), folder, nil); err != nil {
		t.Fatal(err)
	}
	return openReadOnly(t, folder), records[n-1].Position()
}

func openReadOnly(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // only read from
	return s
}

// ends wants a directory to have a journal that ends at a place and can be written.
func ends(t *testing.T, dir string, at journal.Position) {
	t.Helper()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Error(err)
		return
	}
	last, err := s.Last(t.Context())
	if err := errors.Join(err, s.Close()); err != nil || last != at {
		t.Errorf("%s ends with %d, want %d, %v", dir, last.Number, at.Number, err)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func restoreInto(t *testing.T, from *sqlite.Store, dir string) string {
	t.Helper()
	aside, err := sqlite.Restore(t.Context(), from, dir, sqlite.Restoring{
		Aside:  true,
		Beside: func(folder string) error { return os.WriteFile(filepath.Join(folder, "tokens"), []byte("new"), 0o600) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return aside
}

func TestRestoreIntoANewDirectory(t *testing.T) {
	from, at := copyOf(t, 30)
	dir := filepath.Join(t.TempDir(), "a", "data")
	if aside := restoreInto(t, from, dir); aside != "" {
		t.Errorf("something was put into %s", aside)
	}
	if names := namesIn(t, dir); !slices.Equal(names, []string{"journal.db", "lock", "mark", "tokens"}) {
		t.Errorf("there is %q", names)
	}
	ends(t, dir, at)
}

// What is there is put aside whole, and refused where that is not asked for.
func TestRestoreOverAJournal(t *testing.T) {
	from, at := copyOf(t, 30)
	for _, closed := range []bool{true, false} {
		dir, records := journalOf(t, 40, closed)
		if err := os.WriteFile(filepath.Join(dir, "tokens"), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := namesIn(t, dir)
		if _, err := sqlite.Restore(t.Context(), from, dir, sqlite.Restoring{}); codeIs(err) != berth.Conflict {
			t.Errorf("without being asked to put it aside: %v", err)
		}
		if names := slices.DeleteFunc(namesIn(t, dir), func(n string) bool { return n == "lock" }); !slices.Equal(names, slices.DeleteFunc(before, func(n string) bool { return n == "lock" })) {
			t.Errorf("there is %q, there was %q", names, before)
		}
		aside := restoreInto(t, from, dir)
		if aside != filepath.Join(dir, "before-restore-1") {
			t.Errorf("it is in %s", aside)
		}
		ends(t, dir, at)
		ends(t, aside, records[39].Position())
		if text, err := os.ReadFile(filepath.Join(aside, "tokens")); err != nil || string(text) != "old" {
			t.Errorf("beside it there was %q, %v", text, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "tokens")); err != nil || string(text) != "new" {
			t.Errorf("beside it there is %q, %v", text, err)
		}
		if again := restoreInto(t, from, dir); again != filepath.Join(dir, "before-restore-2") {
			t.Errorf("the second time it is in %s", again)
		}
	}
}

// A restore that ends between any two of its steps leaves a directory that no server starts on, and the next one brings
// it to its end.
func TestARestoreThatWasCutShort(t *testing.T) {
	from, at := copyOf(t, 30)
	for _, names := range [][]string{
		{"journal.db"},                     // put aside, as far as that
		{"journal.db", "journal.db-wal"},   // and its log
		{"journal.db-wal", "journal.db"},   // in whatever order
		{"journal.db", "mark", "new mark"}, // and the new mark is there
	} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			dir, records := journalOf(t, 40, false)
			kept := t.TempDir()
			for _, name := range names {
				if name == "new mark" {
					other, _ := journalOf(t, 30, true)
					if err := os.Rename(filepath.Join(other, "mark"), filepath.Join(dir, "mark")); err != nil {
						t.Fatal(err)
					}
				} else if err := os.Rename(filepath.Join(dir, name), filepath.Join(kept, name)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := sqlite.Open(dir, sqlite.Options{}); !errors.As(err, new(*journal.Damage)) {
				t.Fatalf("a server starts: %v", err)
			}
			restoreInto(t, from, dir)
			ends(t, dir, at)
			_ = records
		})
	}
}

// What fails before anything is moved changes nothing, and leaves no directory that was not there.
func TestARestoreThatFailsChangesNothing(t *testing.T) {
	from, _ := copyOf(t, 30)
	failed := errors.New("it is not as it should be")
	dir, records := journalOf(t, 40, true)
	_, err := sqlite.Restore(t.Context(), from, dir, sqlite.Restoring{Aside: true, Check: func(folder string) error {
		if names := namesIn(t, folder); !slices.Equal(names, []string{"journal.db", "mark"}) {
			t.Errorf("made ready is %q", names)
		}
		return failed
	}})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if names := namesIn(t, dir); slices.Contains(names, "restore.partial") || slices.Contains(names, "before-restore-1") {
		t.Errorf("there is %q", names)
	}
	ends(t, dir, records[39].Position())
	fresh := filepath.Join(t.TempDir(), "data")
	if _, err := sqlite.Restore(t.Context(), from, fresh, sqlite.Restoring{Beside: func(string) error { return failed }}); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("the directory is left")
	}
}

// A journal that a server writes is not restored over, and its writer is named.
func TestNoRestoreUnderAServer(t *testing.T) {
	from, _ := copyOf(t, 30)
	dir, records := journalOf(t, 40, true)
	if err := sqlite.Holder(dir); err != nil {
		t.Errorf("nobody writes it: %v", err)
	}
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Holder(dir); codeIs(err) != berth.Conflict {
		t.Errorf("%v", err)
	}
	if _, err := sqlite.Restore(t.Context(), from, dir, sqlite.Restoring{Aside: true}); codeIs(err) != berth.Conflict {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ends(t, dir, records[39].Position())
}

func codeIs(err error) berth.Code {
	if coded, is := errors.AsType[*berth.Error](err); is {
		return coded.Code
	}
	return ""
}
