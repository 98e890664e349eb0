package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// A compaction goes beside appends in slices, each a transaction of its own. These
// bound a slice to one or two milliseconds beside its sync, so that an append that
// meets one waits for about as long as for a batch before its own.
const (
	sliceRecords = 256
	sliceBytes   = 256 << 10
	slicePages   = 32
	// restPart is for how many times a slice's time the next one is put off where
	// appends are made: one append in a hundred meets a slice.
	restPart = 99
)

// Compact moves the anchor, which is where the chain begins from then on, then
// deletes what lies before it and gives its room back to the file system, a slice at
// a time. What it does not come to is done by the next call. A journal that was made
// when its pages could not be moved keeps its size, and writes what comes next into
// the room that is free, until Shrink.
func (s *Store) Compact(ctx context.Context, upTo uint64) error {
	rows, err := s.snapshots(upTo)
	if err != nil {
		return err
	}
	if len(rows) == 0 || rows[0].At.Number != upTo {
		return berth.Errorf(berth.Conflict, "number", "there is no snapshot of record %d to begin with", upTo)
	}
	damage, err := s.load(&rows[0], nil)
	if err != nil {
		return err
	}
	if damage != nil {
		return berth.Errorf(berth.Conflict, "number", "the snapshot of record %d is damaged; the records before it are needed", upTo)
	}
	at := rows[0].At
	err = s.write(ctx, "compact", 0, `INSERT INTO anchor (only, number, hash) VALUES (1, ?, ?)
		ON CONFLICT (only) DO UPDATE SET number = excluded.number, hash = excluded.hash WHERE excluded.number > anchor.number`,
		int64(at.Number), at.Hash[:])
	if err != nil {
		return err
	}
	for _, row := range rows[1:] {
		if err := s.drop(ctx, row.At.Number); err != nil {
			return err
		}
	}
	if err := s.slices(ctx, func() (bool, error) { return s.dropRecords(ctx, at.Number) }); err != nil {
		return err
	}
	if err := s.slices(ctx, func() (bool, error) { return s.giveBack(ctx) }); err != nil {
		return err
	}
	return s.settle(ctx) // with which the file becomes shorter
}

// slices does a slice after the other until there is no more. Where appends are made
// it rests in between.
func (s *Store) slices(ctx context.Context, do func() (more bool, err error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		began := time.Now()
		more, err := do()
		if err != nil || !more {
			return err
		}
		rest := time.Duration(0)
		if s.appends.Load() {
			rest = time.Duration(cmp.Or(s.options.restPart, restPart)) * time.Since(began)
		}
		timer.Reset(rest)
	}
}

// dropRecords deletes the first records that are there, up to a number.
func (s *Store) dropRecords(ctx context.Context, upTo uint64) (more bool, err error) {
	end, bytes, err := s.firstRecords(upTo)
	if err != nil || end == 0 {
		return false, err
	}
	return true, s.write(ctx, "compact", bytes, "DELETE FROM record WHERE number <= ?", int64(end))
}

// firstRecords returns the last of the first records that make a slice, 0 if there are
// none up to a number, and how many bytes they have.
func (s *Store) firstRecords(upTo uint64) (end uint64, bytes int, err error) {
	rows, err := s.reading.QueryContext(context.Background(),
		"SELECT number, length(body) FROM record WHERE number <= ? ORDER BY number LIMIT ?", int64(upTo), sliceRecords)
	if err != nil {
		return 0, 0, s.world("compact", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has told
	for bytes < sliceBytes && rows.Next() {
		var number int64
		var size int
		if err := rows.Scan(&number, &size); err != nil {
			return 0, 0, s.world("compact", err)
		}
		end, bytes = uint64(number), bytes+size
	}
	if err := rows.Err(); err != nil {
		return 0, 0, s.world("compact", err)
	}
	return end, bytes, nil
}

// giveBack moves pages from the end of the database to free ones, so that the file
// becomes shorter with the next checkpoint.
func (s *Store) giveBack(ctx context.Context) (more bool, err error) {
	free := 0
	err = s.locked(ctx, func() error {
		err := s.transact(func(tx *sql.Tx) error {
			// Each row that the statement yields is a page.
			rows, err := tx.QueryContext(context.Background(), fmt.Sprintf("PRAGMA incremental_vacuum(%d)", slicePages))
			if err != nil {
				return err
			}
			for rows.Next() {
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				return err
			}
			return tx.QueryRowContext(context.Background(), "SELECT freelist_count * (SELECT auto_vacuum <> 0 FROM pragma_auto_vacuum) FROM pragma_freelist_count").Scan(&free)
		})
		if err != nil {
			return s.world("compact", err)
		}
		s.grown += slicePages * 2 * pageBytes
		if free == 0 {
			s.grown = s.checkpointAfter()
		}
		s.checkpoint()
		return nil
	})
	return free > 0, err
}

// Found implements journal.Founder.
func (s *Store) Found(ctx context.Context, at journal.Position, data []byte) error {
	empty := func() error {
		if s.last.Number > 0 {
			return berth.Errorf(berth.Conflict, "journal", "%s is not empty: it ends with record %d", s.dir, s.last.Number)
		}
		return nil
	}
	if err := s.locked(ctx, empty); err != nil {
		return err
	}
	if err := s.drop(ctx, at.Number); err != nil { // what is left of one cut short
		return err
	}
	if err := s.putParts(ctx, at.Number, data); err != nil {
		return err
	}
	sum := journal.SumSnapshot(at)
	sum.Write(data)
	return s.locked(ctx, func() error {
		if err := empty(); err != nil {
			return err
		}
		err := s.transact(func(tx *sql.Tx) error {
			_, err := tx.ExecContext(context.Background(), insertSnapshot, int64(at.Number), at.Hash[:], len(data), sum.Sum(nil))
			if err == nil {
				_, err = tx.ExecContext(context.Background(), "INSERT INTO anchor (only, number, hash) VALUES (1, ?, ?)", int64(at.Number), at.Hash[:])
			}
			return err
		})
		if err != nil {
			return s.world("begin", err)
		}
		s.moved(at)
		return nil
	})
}

var (
	_ journal.Compactor = (*Store)(nil)
	_ journal.Founder   = (*Store)(nil)
)
