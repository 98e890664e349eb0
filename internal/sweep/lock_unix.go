//go:build unix && !solaris && !illumos && !aix

package sweep

import (
	"errors"
	"os"
	"syscall"

	"github.com/berth-hpc/berth"
)

// lock claims a file for this process until it is closed. A file system that
// knows no locks lets everybody in.
func lock(file *os.File, path string) error {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return berth.Errorf(berth.Conflict, "cells", "%s: another process is writing to it; want a file for each shard", path)
	}
	return nil
}
