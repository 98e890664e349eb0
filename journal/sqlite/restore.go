package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// restoring is the folder in which a restore is made ready, in the directory that it is for.
const restoring = "restore.partial"

// Restoring says how a copy is put into a directory. The zero value is right for an empty one.
type Restoring struct {
	// Aside has what is there already, and would be written over, moved to a folder before-restore-N in the
	// directory; else it is refused.
	Aside bool
	// Beside adds files to the folder in which the restore is made ready; nil adds none.
	Beside func(folder string) error
	// Check looks at that folder before anything is moved; nil does not.
	Check func(folder string) error
}

// Restore puts a copy of a journal into a directory, which it makes if it is not there, with what is added beside it. A
// journal of nil puts in only that. The copy is complete, on disk and checked before anything that is there is touched. While
// it is put in, the mark of the one journal or the other is there without its database, which every start refuses; the same
// call brings that to its end. It takes the lock, so no server may be running. aside is the folder that what was there
// is in, empty if nothing was. Errors are of code Conflict, something is there, or another process writes it; Unavailable, there is no room, or the
// directory cannot be written; then the directory is as it was.
func Restore(ctx context.Context, from *Store, dir string, o Restoring) (aside string, err error) {
	_, statErr := os.Lstat(dir)
	fresh := errors.Is(statErr, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("journal: make the directory: %w", err)
	}
	lock, err := lock(dir)
	if err != nil {
		return "", err
	}
	staged := filepath.Join(dir, restoring)
	defer func() {
		err = errors.Join(err, os.RemoveAll(staged))
		if err != nil && fresh {
			_ = os.Remove(lock.Name())
			_ = os.Remove(dir) // one that something was put into stays
		}
		_ = unlock(lock) // nothing was written to it
	}()
	if there := Kept(dir); from != nil && len(there) > 0 && !o.Aside {
		return "", berth.Errorf(berth.Conflict, "data", "%s has a journal already (%s)", dir, strings.Join(there, ", "))
	}
	names, err := stage(ctx, from, staged, o)
	if err != nil {
		return "", err
	}
	moved := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return errors.Is(err, fs.ErrNotExist)
	})
	if from != nil {
		moved = append(moved, Kept(dir)...)
	}
	if len(moved) > 0 && !o.Aside {
		return "", berth.Errorf(berth.Conflict, "data", "%s has %s already", dir, strings.Join(moved, ", "))
	}
	if len(moved) > 0 {
		if aside, err = putAside(dir, moved); err != nil {
			return aside, err
		}
	}
	if from != nil {
		names = append(names, markName, fileName) // in this order: a mark without its database is refused
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(staged, name), filepath.Join(dir, name)); err != nil {
			return aside, fmt.Errorf("journal: restore: %w", err)
		}
	}
	return aside, syncDir(dir)
}

// stage makes a restore ready, and returns what is in it beside the journal.
func stage(ctx context.Context, from *Store, folder string, o Restoring) (names []string, err error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, fmt.Errorf("journal: restore: %w", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("journal: restore: %w", err)
	}
	if from != nil {
		if _, err := from.backup(ctx, folder); err != nil {
			return nil, err
		}
	}
	for _, do := range []func(string) error{o.Beside, o.Check} {
		if do == nil {
			continue
		}
		if err := do(folder); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("journal: restore: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(files, e.Name()) && e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names, syncDir(folder)
}

// files are those of a journal.
var files = []string{fileName, fileName + walSuffix, fileName + "-shm", markName, repaired}

// Kept lists the files in a directory that belong to a journal, also to one that is damaged or lost its database.
func Kept(dir string) (there []string) {
	for _, name := range files {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && (name != markName || info.Size() > 0) {
			there = append(there, name)
		}
	}
	return there
}

// putAside moves what is in a directory to a folder there. The mark is copied: while it is there, no start takes the directory for
// one without a journal.
func putAside(dir string, names []string) (aside string, err error) {
	for n := 1; ; n++ {
		aside = filepath.Join(dir, fmt.Sprintf("before-restore-%d", n))
		err := os.Mkdir(aside, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("journal: restore: %w", err)
		}
	}
	for _, name := range names {
		from, to := filepath.Join(dir, name), filepath.Join(aside, name)
		put := os.Rename
		if name == markName {
			put = os.Link
		}
		if err := put(from, to); err != nil {
			return aside, fmt.Errorf("journal: restore: put aside: %w", err)
		}
	}
	return aside, errors.Join(syncDir(aside), syncDir(dir))
}

// Holder says which process writes the journal in a directory, by an error of code Conflict; nil if none does.
func Holder(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: open the lock: %w", err)
	}
	defer f.Close() //nolint:errcheck // closing ends the lock in any case
	ok, err := tryLock(f)
	if err != nil {
		return fmt.Errorf("journal: lock %s: %w", f.Name(), err)
	}
	if !ok {
		return inUse(dir, f.Name())
	}
	return nil
}

// Sound reads what records do not show of a journal: the structure of the database, and all snapshots. The error is a *journal.Damage if
// something is not as it was written.
func (s *Store) Sound() error {
	if damage := s.structure(); damage != nil {
		return damage
	}
	rows, err := s.snapshots(1<<63 - 1)
	if err != nil {
		return err
	}
	for i := range rows {
		damage, err := s.load(&rows[i], nil)
		if err != nil {
			return err
		}
		if damage != nil {
			return damage
		}
	}
	return nil
}

// OpenDamaged opens a journal for reading up to where it can be read. damage says where that is; nil if it is whole.
func OpenDamaged(dir string) (s *Store, damage *journal.Damage, err error) {
	s, err = Open(dir, Options{ReadOnly: true})
	if err == nil || !errors.As(err, &damage) {
		return s, nil, err
	}
	s = &Store{dir: dir, options: Options{ReadOnly: true, salvage: true}, turn: make(chan struct{}, 1)}
	if err := s.connect(); err != nil {
		s.release() //nolint:errcheck // the damage is the one to tell
		return nil, nil, damage
	}
	return s, damage, nil
}
