//go:build !unix

package main

import "io/fs"

// private is 0: permissions here are not those of Unix.
const private = 0

// setUmask does nothing: files here have no umask.
func setUmask(int) (was int) { return 0 }

// owner is unknown: files here have no number of a user.
func owner(fs.FileInfo) (uid int, known bool) { return 0, false }

// maxFiles returns how many files this process may have open, for which there is no
// limit here that can be asked for.
func maxFiles() int { return manyFiles }
