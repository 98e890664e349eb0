package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// stopped makes the data directory of a service that has promised n reservations and stopped.
func stopped(t *testing.T, dir string, n int) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := service.Open(context.Background(), service.Options{
		Config:  engine.Config{Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: 64, Binding: berth.Late}}}}},
		Journal: store, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	now := berth.Time(time.Now().Unix())
	for range n {
		if _, err := host.Submit(t.Context(), service.Ask{By: service.Principal{User: "ann", Role: service.User}}, berth.Rigid("", 0, now+3600, now+900_000, 1, 60)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := token.Open(dir, "root", now); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(host.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

func restoring(args ...string) (code int, out, said string) {
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"journal", "restore"}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// backupOf makes a backup of a data directory.
func backupOf(t *testing.T, dir string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "copy")
	var out, said bytes.Buffer
	if code := run([]string{"journal", "backup", folder, "--data", dir}, strings.NewReader(""), &out, &said); code != 0 {
		t.Fatal(said.String())
	}
	return folder
}

// changed returns a copy of a backup with something done to it.
func changed(t *testing.T, backup string, do func(folder string) error) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "changed")
	err := os.CopyFS(folder, os.DirFS(backup))
	if err == nil {
		err = do(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// patched has bytes of a journal's database be others.
func patched(at int, bytes string) func(folder string) error {
	return func(folder string) error {
		path := filepath.Join(folder, "journal.db")
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at < 0 {
			at += len(content)
		}
		copy(content[at:], bytes)
		return os.WriteFile(path, content, 0o600) //nolint:gosec // a folder of the test
	}
}

// What is no backup, is damaged or of another program, and where nothing can be restored, is refused with which it is, and
// changes nothing.
func TestRestoreRefusesWhatIsNoBackup(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	stopped(t, data, 5)
	backup := backupOf(t, data)
	file := filepath.Join(t.TempDir(), "file")
	open := filepath.Join(t.TempDir(), "open")
	with := filepath.Join(t.TempDir(), "with")
	for _, err := range []error{
		os.WriteFile(file, []byte("x"), 0o600), os.Mkdir(open, 0o755), os.Mkdir(with, 0o700), os.WriteFile(filepath.Join(with, "tokens.json"), []byte("[]"), 0o600), //nolint:gosec // this is what is tested
		os.Chmod(open, 0o755), //nolint:gosec // as above
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(string) error { return nil }
	partial := changed(t, backup, nothing)
	if err := os.Rename(partial, partial+".partial"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		args  []string
		code  int
		words string
	}{
		{"no folder", []string{"/nowhere/copy"}, exitNotFound, "backup: there is no folder /nowhere/copy; want one that berth journal backup has written"},
		{"no argument", nil, exitUsage, "want one FOLDER that berth journal backup has written, got 0"},
		{"a file", []string{file}, exitUsage, "backup: .*/file is a file; want the folder"},
		{"cut short", []string{partial + ".partial"}, exitUsage, "backup: .*partial is a backup that did not come to its end"},
		{"an empty folder", []string{t.TempDir()}, exitNotFound, "backup: .* cannot be restored, and nothing was changed: journal: there is no journal in"},
		{"no database", []string{changed(t, backup, patched(0, "What is this? No database, as is to be seen."))}, exitFailed, "backup: .* cannot be restored, and nothing was changed: journal: damaged after record 0"},
		{"another program's", []string{changed(t, backup, patched(68, "SPQR"))}, exitUsage, "backup: .*: journal: .* is a database of another program, no journal"},
		{"another format", []string{changed(t, backup, patched(60, "\x00\x00\x00\x07"))}, exitUsage, "backup: .*: journal: .* has format 7; this program reads format 1"},
		{"damaged", []string{changed(t, backup, patched(-6000, strings.Repeat("damage", 900)))}, exitFailed, "backup: .* cannot be restored, and nothing was changed: .*journal: damaged after record"},
		{"cut off", []string{changed(t, backup, func(folder string) error { return os.Truncate(filepath.Join(folder, "journal.db"), 8192) })}, exitFailed, "backup: .* cannot be restored, and nothing was changed: .*damaged"},
		{"without its database", []string{changed(t, backup, func(folder string) error { return os.Remove(filepath.Join(folder, "journal.db")) })}, exitNotFound, "backup: .* there is no journal in"},
		{"bad tokens", []string{changed(t, backup, func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "tokens.json"), []byte("{"), 0o600)
		})}, exitUsage, "backup: .* cannot be restored, and nothing was changed: tokens: .*tokens.json"},
		{"onto itself", []string{backup, "--data", backup}, exitUsage, "data: .* is the backup itself; want another directory"},
		{"onto a file", []string{backup, "--data", file}, exitUsage, "data: .*/file is a file; want a directory, or a name for a new one"},
		{"below a file", []string{backup, "--data", file + "/data"}, exitUsage, "data: .*not a directory"},
		{"where others may enter", []string{backup, "--data", open}, exitUsage, "data: .*/open: mode 0755 lets other users in"},
		{"over a journal", []string{backup, "--data", data}, exitConflict, `data: .*/data has a journal already \(journal.db, (.*, )?mark\), and restore writes over none: add --aside`},
		{"over tokens", []string{backup, "--data", with}, exitConflict, `data: .*/with has tokens.json already, and restore writes over nothing: add --aside`},
		{"no database's URL", []string{backup, "--journal", "mysql://h/d"}, exitUsage, `journal: --journal: "mysql://h/d": want the URL of a database`},
		{"compared with nothing", []string{backup, "--old", "/nowhere/data"}, exitNotFound, "there is no journal in /nowhere/data"},
		{"no form", []string{backup, "-o", "yaml"}, exitUsage, `-o, --output: unknown form "yaml"; want table or json`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh := filepath.Join(t.TempDir(), "fresh")
			args := c.args
			if !slices.Contains(args, "--data") && len(args) > 0 {
				args = append(slices.Clone(args), "--data", fresh)
			}
			before := contents(t, data) + contents(t, with) + contents(t, open)
			for _, dry := range []bool{true, false} {
				if dry {
					args = append(slices.Clone(args), "--dry-run")
				} else {
					args = args[:len(args)-1]
				}
				if code, _, said := restoring(args...); code != c.code || !matches(c.words, said) {
					t.Errorf("exit %d, want %d: %s", code, c.code, said)
				}
				if _, err := os.Lstat(fresh); err == nil {
					t.Error("a directory was made")
				}
				if after := contents(t, data) + contents(t, with) + contents(t, open); after != before {
					t.Errorf("there is %s\nthere was %s", after, before)
				}
			}
		})
	}
}

// contents are all files in a folder with what they have, but for those of a database that is read.
func contents(t *testing.T, folder string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "-wal") {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a folder of the test
		b.WriteString(path + " " + string(content) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A journal that cannot be read any more does not keep a backup from being restored, and what can be told of it is.
func TestRestoreOverADamagedJournal(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	stopped(t, data, 5)
	backup := backupOf(t, data)
	stopped(t, data, 3)
	for _, c := range []struct {
		name  string
		spoil func(folder string) error
		words string
	}{
		{"beside its records", patched(-6000, strings.Repeat("damage", 900)), "lost since: 3 records"},
		{"no database", patched(0, "What is this? No database, as is to be seen."), "what was lost since is not known, the journal in .* cannot be read: .*damaged"},
		{"without its database", func(folder string) error { return os.Remove(filepath.Join(folder, "journal.db")) }, "what was lost since is not known, the journal in .* cannot be read: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := changed(t, data, c.spoil)
			if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder of the test
				t.Fatal(err)
			}
			code, out, said := restoring(backup, "--data", dir, "--aside")
			if code != exitOK || !matches(c.words, out) || !strings.Contains(out, "what was there is in "+dir+"/before-restore-1") {
				t.Fatalf("exit %d: %s%s", code, out, said)
			}
			var verified, messages bytes.Buffer
			if code := run([]string{"journal", "verify", "--data", dir}, strings.NewReader(""), &verified, &messages); code != exitOK {
				t.Errorf("exit %d: %s", code, messages.String())
			}
		})
	}
}

// Lists in words are bounded, their counts are not, and as JSON there is all.
func TestRestoreTellsManyLostPromises(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	stopped(t, data, 1)
	backup := backupOf(t, data)
	stopped(t, data, 30)
	code, out, said := restoring(backup, "--data", data, "--aside", "--dry-run")
	if code != exitOK || !matches(`promises acknowledged after the backup and not in it: 30, not over: 30:`, out) || !matches(`… and 10 more \(-o json\)`, out) || strings.Count(out, " of ann, confirmed: 1 PEs at cm5/batch from ") != 20 {
		t.Errorf("exit %d: %s%s", code, out, said)
	}
	code, out, said = restoring(backup, "--data", data, "--aside", "--dry-run", "-o", "json")
	var told restored
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != exitOK || told.Restored || told.Since == nil || told.Since.Missing.Count != 30 || len(told.Since.Missing.Promises) != 30 || told.Since.Records < 30 {
		t.Errorf("exit %d, %v: %s%s", code, err, out, said)
	}
}
