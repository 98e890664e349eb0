//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// lowest is the priority of what runs when nothing else wants to.
const lowest = 19

// lowPriority starts this program again in its own place, with all its threads at the lowest
// priority: on Linux a priority is a thread's, and only those that it starts inherit it.
func lowPriority() error {
	if os.Getenv(niced) != "" {
		return nil
	}
	runtime.LockOSThread() // the new program is made of this thread
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest); err != nil {
		return err
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("starting again at low priority: %w", syscall.Exec(path, os.Args, append(os.Environ(), niced+"=1")))
}
