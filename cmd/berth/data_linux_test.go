package main

import (
	"errors"
	"os"
	"path/filepath"
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
