package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// lockName is the file that the writing process locks. It says who that is.
const lockName = "lock"

// lock makes this process the only one that writes the journal in dir. If
// another one is, the error is of code Conflict and names it.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: open the lock: %w", err)
	}
	ok, err := tryLock(f)
	if err == nil && !ok {
		err = inUse(dir, f.Name())
	} else if err != nil {
		err = fmt.Errorf("journal: lock %s: %w", f.Name(), err)
	}
	if err == nil {
		err = sign(f)
	}
	if err != nil {
		f.Close() //nolint:errcheck // nothing of worth was written
		return nil, err
	}
	return f, nil
}

// unlock ends the lock on a file, and closes it. Closing alone is not enough: a process that is being started at the same
// time has the descriptors of this one until it executes its program, and the lock with them.
func unlock(f *os.File) error {
	return errors.Join(endLock(f), f.Close())
}

// Free returns an error of code Conflict, which names the process, while one writes the journal in dir. It makes and changes nothing there: a
// server asks before it touches anything else that belongs to the other one.
func Free(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: open the lock: %w", err)
	}
	ok, err := tryLock(f)
	if err == nil && !ok {
		return errors.Join(inUse(dir, f.Name()), f.Close())
	}
	return errors.Join(err, unlock(f))
}

// inUse says who has locked a file.
func inUse(dir, file string) error {
	holder := "a holder that has not signed"
	if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
		holder = strings.TrimSpace(string(text))
	}
	return berth.Errorf(berth.Conflict, "journal", "%s is in use by %s; only one process can write a journal", dir, holder)
}

// sign writes into the lock who holds it.
func sign(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	text := fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("journal: sign the lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("journal: sign the lock: %w", err)
	}
	return nil
}
