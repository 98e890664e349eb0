package main

import (
	"os"
	"syscall"
)

// peak returns the most memory that a process that is over had at once, in bytes.
func peak(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss * 1024 // Linux counts in kB
}
