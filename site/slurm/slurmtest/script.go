package slurmtest

import (
	"os"
	"syscall"
	"testing"
)

// Script writes a program that can be run at once. It keeps other goroutines from forking while the file is open for
// writing: a child would inherit the open file until it runs its own program, and Linux runs no file that is open for writing.
func Script(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
}
