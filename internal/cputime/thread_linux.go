package cputime

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Of returns the processor time that do takes, to less than a microsecond: what else the machine does
// matters little. do must not start goroutines.
func Of(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	do()
	return threadTime() - began
}

// threadTime returns the processor time of this thread up to now: that of its usage is
// brought up to date only when the system's clock ticks.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("cputime: " + err.Error()) // the arguments are right
	}
	return time.Duration(t.Nano())
}
