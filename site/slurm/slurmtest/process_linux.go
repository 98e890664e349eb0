package slurmtest

import (
	"os"
	"syscall"
)

// waitFor takes the lock on an open file, which ends when it is closed.
func waitFor(lock *os.File) error { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) }

// ofDaemon makes a daemon a session of its own that ends with this process.
func ofDaemon() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
}

// runs reports whether a child has not ended.
func runs(pid int) bool {
	var status syscall.WaitStatus
	done, err := syscall.Wait4(pid, &status, syscall.WNOHANG|syscall.WALL, nil)
	return err == nil && done == 0
}
