package main

import (
	"bytes"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A real file system that is read-only, or full, is told before anything is kept there.
func TestARealDataDirectoryThatCannotBeWrittenIsTold(t *testing.T) {
	for _, c := range []struct {
		name, words string
		spoil       func(dir string) error
	}{
		{"read-only", "read-only", func(dir string) error {
			return syscall.Mount("", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		}},
		{"full", "no room is left", func(dir string) error {
			err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600)
			if errors.Is(err, syscall.ENOSPC) {
				return nil
			}
			return errors.Join(errors.New("the file system is not full"), err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
				t.Skipf("needs the right to mount a tmpfs, such as that of root: %v", err)
			}
			defer func() {
				if err := syscall.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			}()
			if err := checkWritable(dir); err != nil {
				t.Fatalf("before it is %s: %v", c.name, err)
			}
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if err := checkWritable(dir); err == nil || !matches(c.words, err.Error()) || exitCode(err) != exitUnreachable {
				t.Errorf("%v", err)
			}
		})
	}
}

// A data directory of another user, or with a file of another user in it, is refused before
// anything there is touched, with whose it is and what to do.
func TestADataDirectoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("needs a user called nobody")
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"", "journal.db"} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		given := filepath.Join(dir, of)
		if of != "" {
			if err := os.WriteFile(given, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		serve := func() (int, string) {
			var out, messages bytes.Buffer
			code := run([]string{"serve", "--check", "--data", dir, "--listen", "127.0.0.1:0"}, strings.NewReader(""), &out, &messages)
			return code, messages.String()
		}
		if code, said := serve(); code != 0 {
			t.Fatalf("of its own: exit %d: %s", code, said)
		}
		if err := os.Chown(given, uid, -1); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if code, said := serve(); code != exitUsage || !strings.Contains(said, given+" belongs to user nobody, and the service runs as root: run it as nobody") || !strings.Contains(said, "chown -R root "+dir) {
			t.Errorf("exit %d: %s", code, said)
		}
		if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
			t.Errorf("%v is left of %v, %v", after, before, err)
		}
	}
}

// A backup for which there is no room is not restored, and what is there stays.
func TestRestoreWithoutRoom(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	stopped(t, data, 200)
	backup := backupOf(t, data)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Skipf("needs the right to mount a tmpfs, such as that of root: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{dir, filepath.Join(dir, "new")} {
		code, out, said := restoring(backup, "--data", to)
		if code != exitUnreachable || !matches("data: "+to+": no room is left for the backup, whose journal has [0-9]+ bytes, and nothing there was changed: make room and restore again", said) || out != "" {
			t.Errorf("exit %d: %s%s", code, out, said)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "kept" && name != "lock" {
			t.Errorf("%s is left", name)
		}
	}
}
