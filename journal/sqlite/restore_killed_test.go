//go:build unix

package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	proc "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// killedRestore tells a child process what to restore, where to, and before which step it kills itself.
const killedRestore = "BERTH_SQLITETEST_RESTORE"

// besides are the files that a restore of these tests puts beside the journal.
var besides = []string{"accounts", "tokens"}

func addBeside(folder string) error {
	var errs []error
	for _, name := range besides {
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), []byte("new"), 0o600))
	}
	return errors.Join(errs...)
}

// restoreAndDie restores, and kills this process at the step that the environment names. It returns if there is no such step.
func restoreAndDie() error {
	var left int
	words := strings.Split(os.Getenv(killedRestore), ":")
	if _, err := fmt.Sscan(words[2], &left); err != nil {
		return err
	}
	from, err := sqlite.Open(words[0], sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	o := sqlite.Restoring{Aside: true, Beside: addBeside}
	if _, err := sqlite.Restore(context.Background(), from, words[1], o.Stepped(func() {
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it has arrived
		}
	})); err != nil {
		return err
	}
	return errors.New("restored")
}

// dieAt restores in a process that is killed before a step, and reports whether there is such a step.
func dieAt(t *testing.T, backup, dir string, step int) bool {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := proc.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%s:%d", killedRestore, backup, dir, step))
	child.SysProcAttr = withparent.Attr()
	var said bytes.Buffer
	child.Stderr = &said
	_ = child.Run() // how it ended is looked at now
	if status, is := child.ProcessState.Sys().(syscall.WaitStatus); is && status.Signal() == syscall.SIGKILL {
		return true
	}
	if said.String() != "restored\n" {
		t.Fatalf("step %d: %s", step, said.String())
	}
	return false
}

// beside is what a file beside a journal has; empty if it is not there.
func beside(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // then there is none
	return string(text)
}

// A restore that is killed before any of its steps has left the directory as it was, or has restored all; or nothing
// opens the journal until Resume has brought the restore to its end. What was there is whole, in one folder.
func TestARestoreKilledAtAnyStep(t *testing.T) {
	from, restored := copyOf(t, 30)
	backup := sqlite.Dir(from)
	for _, c := range []struct {
		name string
		old  func() (dir string, end journal.Position)
	}{
		{"in a new directory", func() (string, journal.Position) { return filepath.Join(t.TempDir(), "data"), journal.Position{} }},
		{"over a journal", func() (string, journal.Position) {
			dir, records := journalOf(t, 40, false) // with a log beside the database
			if err := os.WriteFile(filepath.Join(dir, "tokens"), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir, records[39].Position()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, between, after int
			for step := 0; ; step++ {
				dir, end := c.old()
				more := dieAt(t, backup, dir, step)
				if !more && step < 8 {
					t.Fatalf("it has %d steps", step)
				}
				for again := 0; ; again++ {
					s, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
					if err == nil {
						_ = s.Close() // only read from
						break
					}
					if codeIs(err) == berth.NotFound && end.Number == 0 {
						break
					}
					if _, writes := sqlite.Open(dir, sqlite.Options{}); codeIs(err) != berth.Conflict || codeIs(writes) != berth.Conflict || !strings.Contains(err.Error(), "restore was cut short") {
						t.Fatalf("step %d: to read: %v; to write: %v", step, err, writes)
					}
					if _, err := sqlite.Repair(dir, sqlite.Options{}); codeIs(err) != berth.Conflict {
						t.Fatalf("step %d: repaired: %v", step, err)
					}
					if _, err := sqlite.Restore(t.Context(), from, dir, sqlite.Restoring{Aside: true}); codeIs(err) != berth.Conflict {
						t.Fatalf("step %d: another one: %v", step, err)
					}
					if again == 0 {
						between++
					}
					aside, was, err := sqlite.Resume(dir)
					if err != nil || !was || (aside != "") != (end.Number > 0) {
						t.Fatalf("step %d: %q, %t, %v", step, aside, was, err)
					}
				}
				names, there := namesIn(t, filepath.Dir(dir)), []string(nil)
				if slices.Contains(names, filepath.Base(dir)) {
					there = namesIn(t, dir)
				}
				if slices.Contains(there, "journal.db") && beside(dir, "tokens") == "new" { // all of it
					after++
					if beside(dir, "accounts") != "new" {
						t.Errorf("step %d: there is %q", step, there)
					}
					ends(t, dir, restored)
					aside := filepath.Join(dir, "before-restore-1")
					if end.Number > 0 {
						ends(t, aside, end)
						if beside(aside, "tokens") != "old" {
							t.Errorf("step %d: aside is %q", step, namesIn(t, aside))
						}
					} else if _, err := os.Lstat(aside); err == nil {
						t.Errorf("step %d: %s", step, aside)
					}
					if !more {
						break
					}
					continue
				}
				before++
				if slices.Contains(there, "accounts") || beside(dir, "tokens") == "new" || end.Number > 0 && beside(dir, "tokens") != "old" {
					t.Errorf("step %d: there is %q", step, there)
				}
				if end.Number > 0 {
					ends(t, dir, end)
				} else if kept := sqlite.Kept(dir); len(kept) > 0 {
					t.Errorf("step %d: there is %q", step, kept)
				}
				if aside := restoreInto(t, from, dir); aside != "" && aside != filepath.Join(dir, "before-restore-1") {
					t.Errorf("step %d: what was there is in %s", step, aside)
				}
				ends(t, dir, restored)
			}
			if before < 4 || between < 4 || after < between {
				t.Errorf("%d times nothing was restored, %d times it was to be brought to its end, %d times all was", before, between, after)
			}
			t.Logf("%d times nothing was restored, %d times it was to be brought to its end, %d times all was", before, between, after)
		})
	}
}
