package postgres

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// sliceRecords is how many records one statement drops.
const sliceRecords = 2000

// Compact moves the anchor, which is where the chain begins from then on, then deletes
// what lies before it, a slice at a time, and has the database use its room for what
// comes next. Shrink gives it back to the file system. What it does not come to is done
// by the next call.
func (s *Store) Compact(ctx context.Context, upTo uint64) error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	rows, err := s.snapshots(ctx, upTo)
	if err != nil {
		return err
	}
	if len(rows) == 0 || rows[0].At.Number != upTo {
		return berth.Errorf(berth.Conflict, "number", "there is no snapshot of record %d to begin with", upTo)
	}
	damage, err := s.loadIn(ctx)(&rows[0], nil)
	if err != nil {
		return err
	}
	if damage != nil {
		return berth.Errorf(berth.Conflict, "number", "the snapshot of record %d is damaged; the records before it are needed", upTo)
	}
	at := rows[0].At
	if err := s.anchor(ctx, at); err != nil {
		return err
	}
	for _, row := range rows[1:] {
		if err := s.drop(ctx, row.At.Number); err != nil {
			return err
		}
	}
	for {
		var first *int64
		if err := s.row(ctx, "SELECT min(number) FROM record", nil, &first); err != nil {
			return err
		}
		if first == nil || uint64(*first) > at.Number {
			break
		}
		end := min(*first+sliceRecords-1, int64(at.Number))
		err := s.write(ctx, "compact", ", gone AS (DELETE FROM record WHERE number <= $2 AND EXISTS (SELECT FROM fence))", end)
		if err != nil {
			return err
		}
	}
	return s.vacuum(ctx, "VACUUM record, part, snapshot")
}

// anchor moves the begin of the chain to a later place.
func (s *Store) anchor(ctx context.Context, at journal.Position) error {
	return s.write(ctx, "compact", `, moved AS (INSERT INTO anchor (one, number, hash) SELECT 1, $2::bigint, $3::bytea WHERE EXISTS (SELECT FROM fence)
		ON CONFLICT (one) DO UPDATE SET number = excluded.number, hash = excluded.hash WHERE excluded.number > anchor.number)`,
		int64(at.Number), at.Hash[:])
}

// Shrink gives the room of what was dropped back to the file system. Reading and
// appending wait for it. Cost: what is left is written twice.
func (s *Store) Shrink(ctx context.Context) error {
	return s.vacuum(ctx, "VACUUM FULL record, part, snapshot")
}

// vacuum runs a statement that goes over all that is there.
func (s *Store) vacuum(ctx context.Context, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, longTimeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, statement); err != nil {
		return s.ended(ctx, "give back room", err)
	}
	return nil
}

// Size returns how many bytes the tables take with their indexes.
func (s *Store) Size() (size int64, err error) {
	err = s.row(context.Background(), `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'`, []any{s.schema}, &size)
	return size, err
}
