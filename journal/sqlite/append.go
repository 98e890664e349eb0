package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// rowsAtOnce is how many records one statement inserts: an eighth of what a statement
// costs is small beside its rows, and batches of a few dozen clients have several times
// as many.
const rowsAtOnce = 8

// pageBytes is what a page of a database has.
const pageBytes = 4096

// commitBytes is what a commit writes beside the records, about: two pages.
const commitBytes = 2 * pageBytes

// Append writes records in one transaction. Cost: one sync, and about 4 µs a
// record of 300 bytes; a checkpoint after some.
func (s *Store) Append(ctx context.Context, records ...journal.Record) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	s.appends.Store(true)
	if s.unsure {
		last, err := s.readLast()
		if err != nil {
			return err
		}
		s.moved(last)
		s.unsure = false
	}
	records, bodies, err := journal.Fresh(s.last, records, s.hashOf)
	if err != nil || len(records) == 0 {
		return err
	}
	err = s.transact(func(tx *sql.Tx) error {
		many, insert := tx.StmtContext(context.Background(), s.insertMany), tx.StmtContext(context.Background(), s.insert)
		args := make([]any, 0, 3*rowsAtOnce)
		for i := range records {
			args = append(args, int64(records[i].Number), records[i].Hash[:], bodies[i])
			if len(args) == cap(args) {
				if _, err := many.ExecContext(context.Background(), args...); err != nil {
					return err
				}
				args = args[:0]
			}
		}
		for ; len(args) > 0; args = args[3:] {
			if _, err := insert.ExecContext(context.Background(), args[:3]...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.world("append", err)
	}
	last := records[len(records)-1].Position()
	if err := writeMark(s.mark, last); err != nil {
		s.unsure = true // the records are there, and the next attempt will find them
		return berth.Errorf(berth.Unavailable, "journal", "write the mark: %v", err)
	}
	s.moved(last)
	for _, body := range bodies {
		s.grown += len(body)
	}
	s.checkpoint()
	return nil
}

// begin waits for the turn to write. The end of the context does not disturb
// what happens from then on.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		s.end()
		return errClosed()
	case s.options.ReadOnly:
		s.end()
		return berth.Errorf(berth.Denied, "journal", "%s was opened for reading only", s.dir)
	}
	return nil
}

func (s *Store) end() { <-s.turn }

func errClosed() error { return berth.Errorf(berth.Unavailable, "journal", "it has been closed") }

// moved sets the end of the chain.
func (s *Store) moved(last journal.Position) {
	s.mu.Lock()
	s.last = last
	s.mu.Unlock()
}

// transact runs a transaction. After an error nothing of it stands, unless the
// sync failed, which is why the end of the chain is read again.
func (s *Store) transact(do func(*sql.Tx) error) error {
	s.unsure = true
	tx, err := s.writing.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		tx.Rollback() //nolint:errcheck // SQLite may have done so already; if not, no transaction begins any more
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.unsure = false
	s.grown += commitBytes
	return nil
}

// coded reports whether an error is SQLite's of that extended code.
func coded(err error, code int) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Code() == code
}

// world turns a failure of SQLite into one that says what can be done.
func (s *Store) world(doing string, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("journal: %s: %w", doing, err)
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL:
		return berth.Errorf(berth.Exhausted, "journal",
			"%s: no room left for %s; nothing is lost, free some and it goes on (%v)", doing, s.dir, err)
	case lib.SQLITE_IOERR, lib.SQLITE_BUSY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_READONLY:
		return berth.Errorf(berth.Unavailable, "journal", "%s %s: %v", doing, s.dir, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		s.mu.Lock()
		defer s.mu.Unlock()
		return &journal.Damage{After: s.last, File: s.file(), Offset: -1, Reason: "the database is damaged", Cause: err}
	}
	return fmt.Errorf("journal: %s: %w", doing, err)
}
