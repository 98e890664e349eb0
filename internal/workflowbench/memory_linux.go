package main

import "syscall"

// mostMemory returns the most memory that the process has had at a time, in MiB.
func mostMemory() (int64, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Maxrss >> 10, err
}
