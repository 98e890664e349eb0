//go:build unix && !solaris && !illumos && !aix

package sqlite

import (
	"syscall"
	"testing"
)

// A process that is being started has the descriptors of this one until it executes its program. A journal that is closed
// meanwhile can be opened again nevertheless.
func TestAClosedJournalIsUnlockedWhileAProcessIsStarted(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(s.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
