//go:build (!unix && !windows) || solaris || illumos || aix

package sqlite

import (
	"errors"
	"os"
)

// tryLock refuses: without a lock that ends with its process two servers could
// write one journal.
func tryLock(*os.File) (ok bool, err error) {
	return false, errors.New("this system has no file lock that ends with its process; the journal needs one")
}

func endLock(*os.File) error { return nil }
