//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// private are the permissions that a private file or folder does not have.
const private = 0o077

// setUmask sets what files of this process are made without, and returns what it was.
func setUmask(mask int) (was int) { return syscall.Umask(mask) }

// owner returns the number of the user to whom a file belongs.
func owner(info fs.FileInfo) (uid int, known bool) {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Uid), true
	}
	return 0, false
}

// maxFiles returns how many files this process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > manyFiles {
		return manyFiles
	}
	return int(limit.Cur)
}
