//go:build unix && !solaris && !illumos && !aix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock on an open file, which ends with the process that
// holds it, however it ends. ok is false if another process has it.
func tryLock(f *os.File) (ok bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

func endLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
