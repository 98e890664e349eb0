//go:build !unix

package sqlite_test

// killedRestore is empty: no process kills itself at a step here.
const killedRestore = ""

func restoreAndDie() error { return nil }
