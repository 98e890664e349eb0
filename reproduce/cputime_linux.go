package reproduce

import (
	"runtime"
	"syscall"
	"time"
)

// timeOf returns the processor time that do takes: what else the machine does
// matters little. do must not start goroutines.
func timeOf(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	do()
	return threadTime() - began
}

// threadTime returns the processor time of this thread.
func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		panic("reproduce: " + err.Error()) // the arguments are right
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
