package sqlite

import (
	"context"
	"encoding/json"
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

// Folders of a restore, in the directory that it is for. The first one is made ready; from the moment at which it has the
// second name, the restore is to be brought to its end, and nothing opens the journal before it is.
const (
	restoring = "restore.partial"
	restoreIn = "restore.ready"
)

// planName is the file of the plan in such a folder.
const planName = "plan.json"

// plan is what a restore does with the files of a directory.
type plan struct {
	Aside string   `json:"aside,omitempty"` // the folder that what is there is moved to
	Moved []string `json:"moved,omitempty"` // there, in this order
	Put   []string `json:"put,omitempty"`   // from the folder of the restore, in this order
}

// Restoring says how a copy is put into a directory. The zero value is right for an empty one.
type Restoring struct {
	// Aside has what is there already, and would be written over, moved to a folder before-restore-N in the
	// directory; else it is refused.
	Aside bool
	// Beside adds files to the folder in which the restore is made ready; nil adds none.
	Beside func(folder string) error
	// Check looks at that folder before anything is moved; nil does not.
	Check func(folder string) error

	step func() // for tests that kill the process between two steps; nil otherwise
}

// Restore puts a copy of a journal into a directory, which it makes if it is not there, with what is added beside it. A
// journal of nil puts in only that. The copy is complete, on disk and checked before anything that is there is touched. A process
// that is killed before leaves the directory as it was; one that is killed later leaves a restore that Resume brings to its end, and
// that Open refuses. It takes the lock, so no server may be running. aside is the folder that what was there
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
	defer func() {
		if err != nil && fresh && !CutShort(dir) {
			_ = os.Remove(lock.Name())
			_ = os.Remove(dir) // one that something was put into stays
		}
		_ = unlock(lock) // nothing was written to it
	}()
	if err := uncut(dir); err != nil {
		return "", err
	}
	if err := prepare(ctx, from, dir, o); err != nil {
		return "", errors.Join(err, os.RemoveAll(filepath.Join(dir, restoring)))
	}
	return putIn(dir, o.step)
}

// Resume brings a restore to its end that was cut short when all was ready. was tells whether there was one; without one it changes
// nothing. It takes the lock, as Restore does.
func Resume(dir string) (aside string, was bool, err error) {
	if !CutShort(dir) {
		return "", false, nil
	}
	lock, err := lock(dir)
	if err != nil {
		return "", true, err
	}
	defer func() { _ = unlock(lock) }() // nothing was written to it
	aside, err = putIn(dir, nil)
	return aside, true, err
}

// CutShort reports whether a restore into a directory is to be brought to its end.
func CutShort(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, restoreIn))
	return err == nil
}

// uncut refuses a directory in which that is so.
func uncut(dir string) error {
	if !CutShort(dir) {
		return nil
	}
	return berth.Errorf(berth.Conflict, "journal", "%s: a restore was cut short, so that the files there are those of two journals; run the same berth journal restore again, which brings it to its end", dir)
}

// prepare makes a restore ready and decides what it does.
func prepare(ctx context.Context, from *Store, dir string, o Restoring) error {
	if there := Kept(dir); from != nil && len(there) > 0 && !o.Aside {
		return berth.Errorf(berth.Conflict, "data", "%s has a journal already (%s)", dir, strings.Join(there, ", "))
	}
	o.next()
	staged := filepath.Join(dir, restoring)
	names, err := stage(ctx, from, staged, o)
	if err != nil {
		return err
	}
	var p plan
	if from != nil { // the database is the first to go, and the last to come: without it every version refuses the mark
		p.Moved, p.Put = Kept(dir), append(append([]string{markName}, names...), fileName)
	} else {
		p.Put = names
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			p.Moved = append(p.Moved, name)
		}
	}
	if len(p.Moved) > 0 {
		if !o.Aside {
			return berth.Errorf(berth.Conflict, "data", "%s has %s already", dir, strings.Join(p.Moved, ", "))
		}
		o.next()
		if p.Aside, err = asideIn(dir); err != nil {
			return err
		}
	}
	o.next()
	data, err := json.Marshal(&p)
	file := filepath.Join(staged, planName)
	for _, do := range []func() error{
		func() error { return os.WriteFile(file, data, 0o600) },
		func() error { return syncFile(file) },
		func() error { return syncDir(staged) },
		func() error { o.next(); return os.Rename(staged, filepath.Join(dir, restoreIn)) },
		func() error { return syncDir(dir) },
	} {
		if err == nil {
			err = do()
		}
	}
	if err != nil {
		return fmt.Errorf("journal: restore: %w", err)
	}
	return nil
}

// next is called before each step that changes something on disk.
func (o *Restoring) next() {
	if o.step != nil {
		o.step()
	}
}

// asideIn makes a folder to move to what is there. One that a restore has left empty will do.
func asideIn(dir string) (name string, err error) {
	for n := 1; ; n++ {
		name = fmt.Sprintf("before-restore-%d", n)
		path := filepath.Join(dir, name)
		err := os.Mkdir(path, 0o700)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("journal: restore: %w", err)
		}
		if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
			return name, nil
		}
	}
}

// putIn does what the plan says, from wherever it was cut short. aside is the folder that what was there is in.
func putIn(dir string, step func()) (aside string, err error) {
	ready := filepath.Join(dir, restoreIn)
	o := Restoring{step: step}
	data, err := os.ReadFile(filepath.Join(ready, planName)) //nolint:gosec // a file that a restore has written
	var p plan
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return "", fmt.Errorf("journal: restore: the plan of the one that was cut short: %w", err)
	}
	if p.Aside != "" {
		aside = filepath.Join(dir, p.Aside)
		for _, name := range p.Moved {
			from, to := filepath.Join(dir, name), filepath.Join(aside, name)
			if _, err := os.Lstat(to); err == nil {
				continue // what has this name here is new, if anything
			}
			put := os.Rename
			if name == markName {
				put = os.Link // a directory with a mark is never taken for one without a journal
			}
			o.next()
			if err := put(from, to); err != nil {
				return aside, fmt.Errorf("journal: restore: put aside: %w", err)
			}
		}
		if err := errors.Join(syncDir(aside), syncDir(dir)); err != nil {
			return aside, err
		}
	}
	for _, name := range p.Put {
		o.next()
		if err := os.Rename(filepath.Join(ready, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, fmt.Errorf("journal: restore: %w", err)
		}
	}
	o.next()
	done := filepath.Join(dir, restoring)
	if err := errors.Join(syncDir(dir), os.RemoveAll(done), os.Rename(ready, done), syncDir(dir)); err != nil {
		return aside, fmt.Errorf("journal: restore: %w", err)
	}
	o.next()
	return aside, os.RemoveAll(done)
}

// stage makes a restore ready, and returns what is in it beside the journal.
func stage(ctx context.Context, from *Store, folder string, o Restoring) (names []string, err error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, fmt.Errorf("journal: restore: %w", err)
	}
	o.next()
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("journal: restore: %w", err)
	}
	o.next()
	if from != nil {
		if _, err := from.backup(ctx, folder); err != nil {
			return nil, err
		}
	}
	for _, do := range []func(string) error{o.Beside, o.Check} {
		if do == nil {
			continue
		}
		o.next()
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
	s = newStore(dir, Options{ReadOnly: true, salvage: true})
	if err := s.connect(); err != nil {
		s.release() //nolint:errcheck // the damage is the one to tell
		return nil, nil, damage
	}
	return s, damage, nil
}
