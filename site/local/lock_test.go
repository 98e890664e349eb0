//go:build linux

package local_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is being started has the descriptors of this one until it executes its program. A site that is closed
// meanwhile can be opened again nevertheless.
func TestAClosedSiteIsUnlockedWhileAProcessIsStarted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	for _, e := range entries {
		if at, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err != nil || at != filepath.Join(dir, "lock") {
			continue
		}
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		inherited, err := unix.Dup(number)
		if err != nil {
			t.Fatal(err)
		}
		copies++
		defer unix.Close(inherited)
	}
	if copies != 1 {
		t.Fatalf("the lock has %d descriptors, want 1", copies)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}
