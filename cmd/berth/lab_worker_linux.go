package main

import "syscall"

// boundMemory has the process fail rather than take more than a bound in bytes, so that a log
// that unpacks to a terabyte costs others nothing. Where the limit cannot be set there is none.
func boundMemory(most uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}) // lower than before, which is allowed to everybody
}
