//go:build !linux

package slurmtest

import (
	"os"
	"syscall"
)

// ofDaemon has nothing to ask for.
func ofDaemon() *syscall.SysProcAttr { return nil }

// asNobody has nothing to ask for.
func asNobody() *syscall.SysProcAttr { return nil }

// ofNobody gives a folder to nobody, which takes Linux here.
func ofNobody(string) error { return nil }

// runs reports that no daemon runs.
func runs(int) bool { return false }

// suspend stops no daemon, for none runs.
func suspend(*os.Process) bool { return false }

func resume(*os.Process) {}
