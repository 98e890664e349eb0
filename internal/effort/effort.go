// Package effort says how many random cases tests draw: all of them, or a
// quarter where a person waits for make test; and how many tests run at once. It draws none itself,
// and only tests may import it.
package effort

import (
	"flag"
	"os"
	"runtime"
	"strconv"
)

// share divides the number of cases where effort is not full.
const share = 4

// Full tells whether tests draw all their cases: always but with
// BERTH_EFFORT=quarter, as make test sets it outside CI.
//
// Ask in a test rather than while the program starts: only then does the go command notice
// that a cached result is of another effort.
func Full() bool { return os.Getenv("BERTH_EFFORT") != "quarter" }

// Cases returns how many cases to draw of a full number: all, or a quarter, rounded up.
func Cases(full int) int {
	if Full() {
		return full
	}
	return (full + share - 1) / share
}

// waiting is how many tests that wait run at once at least.
const waiting = 4

// Waits has four parallel tests of a package run at once, or as many as there are processors if those are more, where
// -parallel does not say otherwise. It is for packages whose parallel tests wait for clusters and clocks rather than for processors.
// Their TestMain calls it before it does anything else.
func Waits() {
	if err := flag.Set("test.parallel", strconv.Itoa(max(waiting, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err) // there is no such flag
	}
}

// Flag defines a flag for a number of cases, and returns what tells the number: that of the flag or,
// where it is not given, Cases(full).
func Flag(name string, full int, usage string) func() int {
	n := flag.Int(name, 0, usage+"; 0 is as the effort is")
	return func() int {
		if *n != 0 {
			return *n
		}
		return Cases(full)
	}
}
