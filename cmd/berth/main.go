// Command berth is the one binary: flags, wiring, messages and exit codes. It
// decides nothing about schedules; every verb is a thin layer over a package
// of the module.
package main

import (
	"os"
	_ "time/tzdata" // zones of series where the machine has no list of them

	"github.com/berth-hpc/berth/internal/hugepages"
)

func main() {
	a := &app{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, setUmask: setUmask, expectHeap: hugepages.Advise}
	os.Exit(a.run())
}
