package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

const (
	// partBytes is the size of a snapshot's parts, each a statement of its own, so that none
	// holds the lease's row for long.
	partBytes = 512 << 10
	// kept is how many snapshots are kept beside the one where the chain begins: the
	// newest, and one to fall back on.
	kept = 2
)

// SaveSnapshot writes the parts and at last the row that makes them a snapshot. It drops
// all but the two newest, this one, and the one where the chain begins.
func (s *Store) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.mayWrite(); err != nil {
		return err
	}
	digest := journal.DigestSnapshot(at, data)
	if there, err := s.expect(ctx, at, len(data), digest); err != nil || there {
		return err
	}
	if err := s.put(ctx, at, data, digest); err != nil {
		return err
	}
	return s.prune(ctx, at.Number)
}

// put writes a snapshot in place of what is there of one.
func (s *Store) put(ctx context.Context, at journal.Position, data, digest []byte) error {
	if err := s.putParts(ctx, at.Number, data); err != nil {
		return err
	}
	return s.write(ctx, "save a snapshot", insertSnapshot, int64(at.Number), at.Hash[:], len(data), digest)
}

const insertSnapshot = `, put AS (INSERT INTO snapshot (number, hash, size, sum)
	SELECT $2::bigint, $3::bytea, $4::bigint, $5::bytea WHERE EXISTS (SELECT FROM fence))`

// putParts writes what a snapshot consists of, in place of what is there.
func (s *Store) putParts(ctx context.Context, number uint64, data []byte) error {
	if err := s.drop(ctx, number); err != nil { // a damaged one, or what is left of one cut short
		return err
	}
	for part := 0; part*partBytes < len(data); part++ {
		piece := data[part*partBytes : min((part+1)*partBytes, len(data))]
		err := s.write(ctx, "save a snapshot", ", put AS (INSERT INTO part (snapshot, number, data) SELECT $2::bigint, $3::integer, $4::bytea WHERE EXISTS (SELECT FROM fence))",
			int64(number), part, piece)
		if err != nil {
			return err
		}
	}
	return nil
}

// Found implements journal.Founder.
func (s *Store) Found(ctx context.Context, at journal.Position, data []byte) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	last, err := s.readLast(ctx)
	if err != nil {
		return err
	}
	if last.Number > 0 {
		return berth.Errorf(berth.Conflict, "journal", "%s is not empty: it ends with record %d", s.name, last.Number)
	}
	if err := s.putParts(ctx, at.Number, data); err != nil {
		return err
	}
	err = s.write(ctx, "begin", insertSnapshot+", moved AS (INSERT INTO anchor (one, number, hash) SELECT 1, $2, $3 WHERE EXISTS (SELECT FROM fence))",
		int64(at.Number), at.Hash[:], len(data), journal.DigestSnapshot(at, data))
	if err == nil {
		s.moved(at)
	}
	return err
}

// expect says whether a snapshot is there already, and refuses one of a place that the
// log does not have.
func (s *Store) expect(ctx context.Context, at journal.Position, size int, digest []byte) (there bool, err error) {
	if last := s.lastKnown(); at.Number > last.Number {
		return false, berth.Errorf(berth.Conflict, "number", "a snapshot of record %d; the journal ends with record %d", at.Number, last.Number)
	}
	hash, err := s.hashOf(ctx, at.Number)
	if err != nil {
		return false, err
	}
	if hash != at.Hash {
		return false, berth.Errorf(berth.Conflict, "hash", "a snapshot of another history than that of record %d", at.Number)
	}
	rows, err := s.snapshots(ctx, at.Number)
	if err != nil {
		return false, err
	}
	return journal.IsSaved(rows, at, size, digest, s.loadIn(ctx))
}

// prune drops all snapshots but the newest, the one just saved and the one where the
// chain begins, and parts that belong to none.
func (s *Store) prune(ctx context.Context, saved uint64) error {
	rows, err := s.snapshots(ctx, maxNumber)
	if err != nil {
		return err
	}
	anchor, err := s.readAnchor(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows[min(len(rows), kept):] {
		if n := row.At.Number; n == saved || n == anchor.Number {
			continue
		}
		if err := s.drop(ctx, row.At.Number); err != nil {
			return err
		}
	}
	return s.write(ctx, "prune snapshots", ", gone AS (DELETE FROM part WHERE snapshot NOT IN (SELECT number FROM snapshot) AND EXISTS (SELECT FROM fence))")
}

// drop removes a snapshot: first its row, then its parts.
func (s *Store) drop(ctx context.Context, number uint64) error {
	for _, of := range []string{"snapshot WHERE number", "part WHERE snapshot"} {
		if err := s.write(ctx, "drop a snapshot", ", gone AS (DELETE FROM "+of+" = $2 AND EXISTS (SELECT FROM fence))", int64(number)); err != nil {
			return err
		}
	}
	return nil
}

// snapshots lists the snapshots up to a number, newest first.
func (s *Store) snapshots(ctx context.Context, upTo uint64) ([]journal.KeptSnapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT number, hash, size, sum FROM snapshot WHERE number <= $1 ORDER BY number DESC", int64(min(upTo, maxNumber)))
	if err != nil {
		return nil, s.ended(ctx, "list snapshots", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r journal.KeptSnapshot, err error) {
		var number int64
		var hash []byte
		err = row.Scan(&number, &hash, &r.Size, &r.Sum)
		r.At.Number = uint64(number)
		copy(r.At.Hash[:], hash)
		return r, err
	})
	if err != nil {
		return nil, s.ended(ctx, "list snapshots", err)
	}
	return list, nil
}

// Snapshot returns the newest snapshot that is what was saved.
func (s *Store) Snapshot(ctx context.Context, upTo uint64) (journal.Snapshot, error) {
	var found journal.Snapshot
	if err := ctx.Err(); err != nil {
		return found, err
	}
	if s.isClosed() {
		return found, errClosed()
	}
	anchor, err := s.readAnchor(ctx)
	if err != nil {
		return found, err
	}
	rows, err := s.snapshots(ctx, upTo)
	if err != nil {
		return found, err
	}
	return journal.NewestSnapshot(rows, anchor.Number, s.loadIn(ctx))
}

// loadIn returns what reads a snapshot into data, which may be nil, and checks it.
func (s *Store) loadIn(ctx context.Context) func(row *journal.KeptSnapshot, data *[]byte) (*journal.Damage, error) {
	return func(row *journal.KeptSnapshot, data *[]byte) (*journal.Damage, error) {
		var known *journal.Hash
		if hash, err := s.hashOf(ctx, row.At.Number); err == nil {
			known = &hash
		}
		return row.Load(known, s.name, data, func(visit func([]byte)) error { return s.parts(ctx, row.At.Number, visit) })
	}
}

// parts shows the parts of a snapshot in order. They are valid during the call.
func (s *Store) parts(ctx context.Context, snapshot uint64, visit func([]byte)) error {
	ctx, cancel := context.WithTimeout(ctx, longTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT data FROM part WHERE snapshot = $1 ORDER BY number", int64(snapshot))
	if err != nil {
		return s.ended(ctx, "read a snapshot", err)
	}
	defer rows.Close()
	for rows.Next() {
		visit(rows.RawValues()[0]) // valid until the next row
	}
	if err := rows.Err(); err != nil {
		return s.ended(ctx, "read a snapshot", err)
	}
	return nil
}
