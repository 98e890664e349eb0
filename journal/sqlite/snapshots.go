package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// partBytes is the size of a snapshot's parts. Each is a transaction of its
// own, so that appends wait for one part at most, a few milliseconds.
const partBytes = 512 << 10

// kept is how many snapshots are kept beside the one where the chain begins: the
// newest, and one to fall back on.
const kept = 2

// SaveSnapshot writes the parts, one after the other between appends, and at
// last the row that makes them a snapshot. It drops all but the two newest, this one,
// and the one where the chain begins: what follows it is decided again from there.
func (s *Store) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	digest := journal.DigestSnapshot(at, data)
	var there bool
	if err := s.locked(ctx, func() (err error) {
		there, err = s.expect(at, len(data), digest)
		return err
	}); err != nil || there {
		return err
	}
	if err := s.drop(ctx, at.Number); err != nil { // a damaged one, or what is left of one cut short
		return err
	}
	if err := s.putParts(ctx, at.Number, data); err != nil {
		return err
	}
	if err := s.write(ctx, "save a snapshot", 0, insertSnapshot, int64(at.Number), at.Hash[:], len(data), digest); err != nil {
		return err
	}
	return s.prune(ctx, at.Number)
}

const insertSnapshot = "INSERT INTO snapshot (number, hash, size, sum) VALUES (?, ?, ?, ?)"

// putParts writes what a snapshot consists of.
func (s *Store) putParts(ctx context.Context, number uint64, data []byte) error {
	for part := 0; part*partBytes < len(data); part++ {
		piece := data[part*partBytes : min((part+1)*partBytes, len(data))]
		err := s.write(ctx, "save a snapshot", len(piece), "INSERT INTO part (snapshot, number, data) VALUES (?, ?, ?)",
			int64(number), part, piece)
		if err != nil {
			return err
		}
	}
	return nil
}

// expect says whether a snapshot is there already, and refuses one of a place
// that the log does not have.
func (s *Store) expect(at journal.Position, size int, digest []byte) (there bool, err error) {
	if at.Number > s.last.Number {
		return false, berth.Errorf(berth.Conflict, "number", "a snapshot of record %d; the journal ends with record %d", at.Number, s.last.Number)
	}
	hash, err := s.hashOf(at.Number)
	if err != nil {
		return false, err
	}
	if hash != at.Hash {
		return false, berth.Errorf(berth.Conflict, "hash", "a snapshot of another history than that of record %d", at.Number)
	}
	rows, err := s.snapshots(at.Number)
	if err != nil {
		return false, err
	}
	return journal.IsSaved(rows, at, size, digest, s.load)
}

// locked does something with the turn.
func (s *Store) locked(ctx context.Context, do func() error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return do()
}

// write runs one statement in its own transaction, between appends.
func (s *Store) write(ctx context.Context, doing string, size int, query string, args ...any) error {
	return s.locked(ctx, func() error {
		err := s.transact(func(tx *sql.Tx) error {
			_, err := tx.ExecContext(context.Background(), query, args...)
			return err
		})
		if err != nil {
			return s.world(doing, err)
		}
		s.grown += size
		s.checkpoint()
		return nil
	})
}

// prune drops all snapshots but the newest, the one just saved and the one where the
// chain begins, and parts that belong to none.
func (s *Store) prune(ctx context.Context, saved uint64) error {
	rows, err := s.snapshots(1<<63 - 1)
	if err != nil {
		return err
	}
	anchor, err := s.readAnchor()
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
	for {
		var orphan int64
		err := s.reading.QueryRowContext(context.Background(),
			"SELECT snapshot FROM part WHERE snapshot NOT IN (SELECT number FROM snapshot) LIMIT 1").Scan(&orphan)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return s.world("prune snapshots", err)
		}
		if err := s.drop(ctx, uint64(orphan)); err != nil {
			return err
		}
	}
}

// drop removes a snapshot: first its row, then its parts, some at a time.
func (s *Store) drop(ctx context.Context, number uint64) error {
	if err := s.write(ctx, "drop a snapshot", 0, "DELETE FROM snapshot WHERE number = ?", int64(number)); err != nil {
		return err
	}
	return s.slices(ctx, func() (bool, error) {
		var part int64
		err := s.reading.QueryRowContext(context.Background(), "SELECT number FROM part WHERE snapshot = ? LIMIT 1", int64(number)).Scan(&part)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, s.world("drop a snapshot", err)
		}
		return true, s.write(ctx, "drop a snapshot", 0, "DELETE FROM part WHERE snapshot = ? AND number = ?", int64(number), part)
	})
}

// snapshots lists the snapshots up to a number, newest first.
func (s *Store) snapshots(upTo uint64) ([]journal.KeptSnapshot, error) {
	rows, err := s.reading.QueryContext(context.Background(),
		"SELECT number, hash, coalesce(CAST(size AS INTEGER), -1), sum FROM snapshot WHERE number <= ? ORDER BY number DESC",
		int64(min(upTo, 1<<63-1)))
	if err != nil {
		return nil, s.world("list snapshots", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has told
	var list []journal.KeptSnapshot
	for rows.Next() {
		var number int64
		var hash []byte
		var row journal.KeptSnapshot
		if err := rows.Scan(&number, &hash, &row.Size, &row.Sum); err != nil {
			return nil, s.world("list snapshots", err)
		}
		row.At.Number = uint64(number)
		copy(row.At.Hash[:], hash)
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		return nil, s.world("list snapshots", err)
	}
	return list, nil
}

// Snapshot returns the newest snapshot that is what was saved. Cost: about 1 ms
// a megabyte.
func (s *Store) Snapshot(ctx context.Context, upTo uint64) (journal.Snapshot, error) {
	var found journal.Snapshot
	if err := ctx.Err(); err != nil {
		return found, err
	}
	if s.isClosed() {
		return found, errClosed()
	}
	anchor, err := s.readAnchor()
	if err != nil {
		return found, err
	}
	rows, err := s.snapshots(upTo)
	if err != nil {
		return found, err
	}
	return journal.NewestSnapshot(rows, anchor.Number, s.load)
}

// load reads a snapshot into data, which may be nil, and checks it.
func (s *Store) load(row *journal.KeptSnapshot, data *[]byte) (*journal.Damage, error) {
	var known *journal.Hash
	if hash, err := s.hashOf(row.At.Number); err == nil {
		known = &hash
	}
	return row.Load(known, s.file(), data, func(visit func([]byte)) error { return s.parts(row.At.Number, visit) })
}

// parts shows the parts of a snapshot in order. They are valid during the call.
func (s *Store) parts(snapshot uint64, visit func([]byte)) error {
	rows, err := s.reading.QueryContext(context.Background(), "SELECT data FROM part WHERE snapshot = ? ORDER BY number", int64(snapshot))
	if err != nil {
		return s.world("read a snapshot", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has told
	for rows.Next() {
		var piece sql.RawBytes
		if err := rows.Scan(&piece); err != nil {
			return s.world("read a snapshot", err)
		}
		visit(piece)
	}
	if err := rows.Err(); err != nil {
		return s.world("read a snapshot", err)
	}
	return nil
}
