// Command berth is the one binary: flags, wiring, messages and exit codes. It
// decides nothing about schedules; every verb is a thin layer over a package
// of the module.
package main

import (
	"os"
	_ "time/tzdata" // zones of series where the machine has no list of them
)

func main() {
	a := &app{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, setUmask: setUmask}
	os.Exit(a.run())
}
