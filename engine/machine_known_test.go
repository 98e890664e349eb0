//go:build machine

package engine_test

// knownFaults lists the invariants that do not hold yet, each with the reason. A
// violation of one is counted and does not end a run; with -machine.only it does.
var knownFaults = map[string]string{}

// unreached lists cells of the table that cannot be reached because of them.
var unreached = []rule{}
