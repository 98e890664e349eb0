package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// Size returns how many bytes the journal has on disk, with its log.
func (s *Store) Size() (int64, error) {
	var size int64
	for _, name := range []string{s.file(), s.file() + walSuffix} {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return 0, s.world("look at the size", err)
		default:
			size += info.Size()
		}
	}
	return size, nil
}

// Shrink gives the room of what was dropped back to the file system, also of a journal
// whose pages cannot be moved, which can be from then on. No other process may have the
// journal open. It needs free room for twice what is left; without that the
// error is of code Exhausted, and the journal is as it was. Cost: what is left is
// written twice.
func (s *Store) Shrink(ctx context.Context) error {
	return s.locked(ctx, func() error {
		s.emptyLog()
		if _, err := s.writing.ExecContext(ctx, "VACUUM"); err != nil {
			return s.world("shrink", err)
		}
		s.emptyLog()
		return nil
	})
}

// Backup writes a copy of the journal as it is now into a folder, which it makes: the
// database and its mark. A server may write the journal meanwhile; what it
// acknowledges after the call has begun need not be in the copy. Errors: Conflict if
// the folder is there. It appears only once the copy is complete and on disk; until
// then it is called FOLDER.partial, and beside, which may be nil, adds to it. Cost: the journal is read and written once, and
// the log of a server that writes grows meanwhile.
func (s *Store) Backup(ctx context.Context, folder string, beside func(folder string) error) (last journal.Position, err error) {
	return last, whole(folder, func(partial string) (err error) {
		if last, err = s.backup(ctx, partial); err == nil && beside != nil {
			err = beside(partial)
		}
		return err
	})
}

// BackupOf is Backup of a journal that is kept elsewhere: the folder has the same chain.
func BackupOf(ctx context.Context, from journal.Store, folder string, beside func(folder string) error) (last journal.Position, err error) {
	return last, whole(folder, func(partial string) error {
		to, err := Open(partial, Options{})
		if err != nil {
			return err
		}
		c, err := journal.Copy(ctx, to, from)
		last = c.Last
		if err = errors.Join(err, to.Close()); err == nil {
			err = os.Remove(filepath.Join(partial, lockName))
		}
		if err == nil && beside != nil {
			err = beside(partial)
		}
		if err != nil {
			return err
		}
		return syncDir(partial)
	})
}

// whole makes a folder that appears once it is complete.
func whole(folder string, fill func(partial string) error) error {
	if _, err := os.Lstat(folder); err == nil {
		return berth.Errorf(berth.Conflict, "folder", "%s is there already; want a new name", folder)
	}
	partial := filepath.Clean(folder) + ".partial"
	err := os.RemoveAll(partial)
	if err == nil {
		err = os.Mkdir(partial, 0o700)
	}
	if err != nil {
		return berth.Errorf(berth.Invalid, "folder", "cannot make %s: %v", partial, err)
	}
	if err = fill(partial); err == nil {
		err = os.Rename(partial, folder)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return syncDir(filepath.Dir(filepath.Clean(folder)))
}

// backup writes the copy into a folder that is there.
func (s *Store) backup(ctx context.Context, folder string) (last journal.Position, err error) {
	file := filepath.Join(folder, fileName)
	if err := private(file); err != nil {
		return last, err
	}
	db, err := s.pool("mode=ro") // query_only would refuse to write the copy
	if err != nil {
		return last, err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", file)
	if err := errors.Join(err, db.Close()); err != nil {
		return last, s.world("back up", err)
	}
	if err := syncFile(file); err != nil {
		return last, s.world("back up", err)
	}
	// Opened for writing, the copy is checked and gets its mark.
	c, err := Open(folder, Options{VFS: s.options.VFS})
	if err != nil {
		return last, err
	}
	last, err = c.Last(ctx)
	if err := errors.Join(err, c.Close(), os.Remove(filepath.Join(folder, lockName))); err != nil {
		return last, err
	}
	return last, syncDir(folder)
}
