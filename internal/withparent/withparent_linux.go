package withparent

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Attr returns attributes for a process to be started: it is killed when the one
// that started it ends.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// End has this process killed when the one that started it ends.
func End() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) } // a known signal never fails
