//go:build !linux

package reproduce

import "time"

// timeOf returns how long do takes by the clock on the wall.
func timeOf(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
