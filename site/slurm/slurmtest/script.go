package slurmtest

import (
	"os"
	"syscall"
	"testing"
)

// Script writes a program that can be run at once. No other program is started meanwhile: until it runs, it would have
// the file open for writing too, and what somebody has open for writing cannot be run.
func Script(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
}
