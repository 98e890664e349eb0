//go:build unix

package main

import "syscall"

// private are the permissions that a private file or folder does not have.
const private = 0o077

// setUmask sets what files of this process are made without, and returns what it was.
func setUmask(mask int) (was int) { return syscall.Umask(mask) }

// maxFiles returns how many files this process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > manyFiles {
		return manyFiles
	}
	return int(limit.Cur)
}
