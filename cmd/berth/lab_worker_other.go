//go:build !linux

package main

import "runtime/debug"

// boundMemory has memory collected more eagerly: no system but Linux counts what a process
// really takes.
func boundMemory(most uint64) { debug.SetMemoryLimit(int64(most)) }
