package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth/journal"
)

// A repair writes what can be kept into a new database under the first name. It
// has the second name once it is complete and synced, and from then on takes the
// place of the damaged one, whatever happens.
const (
	repairing = "repairing"
	repaired  = fileName + ".repaired"
)

// Repair cuts a damaged journal behind its last complete record and returns
// what was wrong, with After as the new end; nil if nothing was. If a later
// snapshot is undamaged and more records follow it than were complete before,
// the journal is kept from that snapshot on instead: history is lost, but no
// promise. Where no record can be kept of those that there were, that is an error. The damaged files are moved to a folder damaged-N beside, see Aside. It takes
// the lock, so no server may be running. After an
// error the journal is as it was, or the next Open or Repair brings it to its end.
func Repair(dir string, options Options) (*journal.Damage, error) {
	switch there, err := has(dir, fileName, markName, repaired); {
	case err != nil:
		return nil, fmt.Errorf("journal: %w", err)
	case !there && !CutShort(dir):
		return nil, noJournal(dir)
	}
	lock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock(lock) //nolint:errcheck // nothing was written to it
	if err := uncut(dir); err != nil {
		return nil, err
	}
	if err := install(dir); err != nil {
		return nil, err
	}
	s := newStore(dir, options)
	s.options.ReadOnly, s.options.salvage = true, true
	damage, begin, err := s.diagnose()
	if err == nil && damage != nil {
		err = s.copyKept(begin, damage.After)
	}
	if err := errors.Join(err, s.release()); err != nil || damage == nil {
		return nil, err
	}
	for _, step := range []func(string) error{setAside, complete, install} {
		if err := step(dir); err != nil {
			return nil, err
		}
	}
	return damage, nil
}

// diagnose finds what is wrong and what can be kept: the records behind begin
// up to damage.After.
func (s *Store) diagnose() (damage *journal.Damage, begin journal.Position, err error) {
	if _, err := look(s.dir, s.options); err != nil && !errors.As(err, &damage) {
		return nil, begin, err
	}
	if err := s.connect(); err != nil {
		return nil, begin, fmt.Errorf("journal: nothing can be kept, restore it from a copy: %w", err)
	}
	if begin, err = s.readAnchor(); err != nil {
		return nil, begin, fmt.Errorf("journal: nothing can be kept, restore it from a copy: %w", err)
	}
	end, broken := s.walk(begin)
	if broken != nil && damage == nil && !errors.As(broken, &damage) {
		return nil, begin, broken
	}
	if damage == nil {
		if damage = s.structure(); damage == nil {
			return nil, begin, nil
		}
	}
	rows, err := s.snapshots(1<<63 - 1)
	if err != nil {
		rows = nil // they are an offer, not a need
	}
	for i := range rows {
		if rows[i].At.Number <= end.Number {
			break
		}
		if bad, err := s.load(&rows[i], nil); err != nil || bad != nil {
			continue
		}
		if later, _ := s.walk(rows[i].At); later.Number > end.Number {
			begin, end = rows[i].At, later
		}
	}
	whole := *damage
	whole.After = end
	if last, err := s.readLast(); err == nil {
		whole.Acknowledged = max(whole.Acknowledged, last.Number)
	}
	if end.Number == 0 && whole.Acknowledged > 0 {
		return nil, begin, fmt.Errorf("journal: nothing can be kept, restore it from a copy: %w", &whole)
	}
	return &whole, begin, nil
}

// structure returns a damage if the database is not sound where the records
// are not affected, as in the tables of snapshots.
func (s *Store) structure() *journal.Damage {
	var found string
	err := s.reading.QueryRowContext(context.Background(), "PRAGMA quick_check(1)").Scan(&found)
	if err == nil && found == "ok" {
		return nil
	}
	return &journal.Damage{File: s.file(), Offset: -1, Reason: "the database is damaged beside its records (" + found + ")", Cause: err}
}

// walk returns the place up to which the chain behind a place is whole, and
// what ends it if it is not the end.
func (s *Store) walk(after journal.Position) (journal.Position, error) {
	for {
		page, err := s.page(context.Background(), after)
		if len(page) > 0 {
			after = page[len(page)-1].Position()
		}
		if err != nil || len(page) < pageOf {
			return after, err
		}
	}
}

// copyKept writes the records behind begin up to end, and the undamaged
// snapshots among them, into a new database.
func (s *Store) copyKept(begin, end journal.Position) error {
	dir := filepath.Join(s.dir, repairing)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("journal: repair: %w", err)
	}
	fresh, err := Open(dir, Options{VFS: s.options.VFS})
	if err != nil {
		return err
	}
	err = fresh.fill(s, begin, end)
	return errors.Join(err, fresh.Close())
}

// fill takes over from another journal.
func (s *Store) fill(from *Store, begin, end journal.Position) error {
	ctx := context.Background()
	err := s.transact(func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO anchor (only, number, hash) VALUES (1, ?, ?)", int64(begin.Number), begin.Hash[:])
		return err
	})
	if err != nil {
		return s.world("repair", err)
	}
	s.moved(begin)
	for s.last.Number < end.Number {
		page, err := from.page(ctx, s.last)
		if len(page) == 0 {
			return fmt.Errorf("journal: repair: record %d could be read before: %w", s.last.Number+1, err)
		}
		if err := s.Append(ctx, page...); err != nil {
			return err
		}
	}
	rows, err := from.snapshots(end.Number)
	if err != nil {
		rows = nil
	}
	for i := len(rows) - 1; i >= 0; i-- {
		var data []byte
		if bad, err := from.load(&rows[i], &data); err != nil || bad != nil || rows[i].At.Number < begin.Number {
			continue
		}
		if err := s.SaveSnapshot(ctx, rows[i].At, data); err != nil {
			return err
		}
	}
	return nil
}

// complete gives the new database the name of a finished repair.
func complete(dir string) error {
	err := syncFile(filepath.Join(dir, repairing, fileName))
	if err == nil {
		err = os.Rename(filepath.Join(dir, repairing, fileName), filepath.Join(dir, repaired))
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(dir, repairing))
	}
	if err != nil {
		return fmt.Errorf("journal: repair: %w", err)
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// setAside gives the damaged files second names in a folder of their own.
func setAside(dir string) error {
	var aside string
	for n := 1; ; n++ {
		aside = filepath.Join(dir, fmt.Sprintf("damaged-%d", n))
		err := os.Mkdir(aside, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("journal: repair: %w", err)
		}
	}
	for _, name := range []string{fileName, fileName + walSuffix, markName} {
		err := os.Link(filepath.Join(dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("journal: repair: %w", err)
		}
	}
	return syncDir(aside)
}

// Aside returns the folder with what the last repair of a directory put aside; empty if there is none.
func Aside(dir string) string {
	last := ""
	for n := 1; ; n++ {
		at := filepath.Join(dir, fmt.Sprintf("damaged-%d", n))
		if _, err := os.Stat(at); err != nil {
			return last
		}
		last = at
	}
}

// install puts a finished repair where the damaged files are. The old log
// goes before the new database comes, which it would spoil; the old mark, which
// claims more than there is now, goes too.
func install(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, repaired)); err != nil {
		return nil //nolint:nilerr // there is none
	}
	for _, name := range []string{fileName + walSuffix, fileName + "-shm", markName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("journal: repair: %w", err)
		}
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, repaired), filepath.Join(dir, fileName)); err != nil {
		return fmt.Errorf("journal: repair: %w", err)
	}
	return syncDir(dir)
}
