package cputime

import (
	"syscall"
	"time"
)

// Used returns the CPU time that the process has used, user and kernel.
func Used() time.Duration {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		panic("cputime: " + err.Error())
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		panic("cputime: " + err.Error())
	}
	return ticks(kernel) + ticks(user)
}

// ticks returns a length of time that is counted in 100 ns.
func ticks(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
