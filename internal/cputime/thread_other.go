//go:build !linux

package cputime

import "time"

// Of returns how long do takes by the clock on the wall.
func Of(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
