package sqlite

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock on an open file, which ends with the process that
// holds it, however it ends. ok is false if another process has it. What is locked is a
// byte far behind what sign writes, for a locked byte cannot be read by others.
func tryLock(f *os.File) (ok bool, err error) {
	behind := windows.Overlapped{OffsetHigh: math.MaxInt32}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// endLock has nothing to do: no process inherits the file, and closing it ends the lock.
func endLock(*os.File) error { return nil }
