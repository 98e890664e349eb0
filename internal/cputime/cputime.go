// Package cputime tells what a measurement rests on: the CPU time that this
// process has used, and the processor it ran on. It measures nothing itself.
package cputime

import (
	"os"
	"runtime"
	"strings"
)

// Processor returns the processor's name where the system tells it, else its
// architecture.
func Processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return runtime.GOARCH
}
