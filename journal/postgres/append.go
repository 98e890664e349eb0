package postgres

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// fence is the beginning of every statement that writes: it has a row only while this
// server has the lease, of number $1, and then keeps it until the statement has
// committed. The lock lets the lease be renewed, and no other server take it.
const fence = "WITH fence AS MATERIALIZED (SELECT FROM lease WHERE number = $1 FOR KEY SHARE) "

const insertRecords = fence + `INSERT INTO record (number, hash, body)
	SELECT * FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) WHERE EXISTS (SELECT FROM fence)`

// Append writes records in one statement, which is a transaction of its own. Cost: one
// round trip with one sync of the server.
func (s *Store) Append(ctx context.Context, records ...journal.Record) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	// The second attempt finds what the first one met: records of a batch whose fate was
	// unknown, and which has been committed since.
	again, err := s.append(records)
	if again {
		_, err = s.append(records)
	}
	return err
}

// append makes one attempt. again says that another one will know more.
func (s *Store) append(records []journal.Record) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if s.unsure {
		last, err := s.readLast(ctx)
		if err != nil {
			return false, err
		}
		s.moved(last)
		s.unsure = false
	}
	records, bodies, err := journal.Fresh(s.last, records, func(number uint64) (journal.Hash, error) { return s.hashOf(ctx, number) })
	if err != nil || len(records) == 0 {
		return false, err
	}
	numbers, hashes := make([]int64, len(records)), make([][]byte, len(records))
	for i := range records {
		numbers[i], hashes[i] = int64(records[i].Number), records[i].Hash[:]
	}
	s.unsure = true
	tag, err := s.pool.Exec(ctx, insertRecords, s.lease.number, numbers, hashes, bodies)
	if err != nil {
		return sqlState(err) == uniqueViolation, s.world("append", err)
	}
	if tag.RowsAffected() != int64(len(records)) {
		return false, s.errLost()
	}
	s.unsure = false
	s.moved(records[len(records)-1].Position())
	return false, nil
}

// begin waits for the turn to append. The end of the context does not disturb what
// happens from then on.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.mayWrite(); err != nil {
		s.end()
		return err
	}
	return nil
}

func (s *Store) end() { <-s.turn }

// mayWrite refuses to write what is closed, only read, or another server's.
func (s *Store) mayWrite() error {
	switch {
	case s.isClosed():
		return errClosed()
	case s.options.ReadOnly:
		return berth.Errorf(berth.Denied, "journal", "%s was opened for reading only", s.name)
	}
	select {
	case <-s.lease.lost:
		return s.errLost()
	default:
		return nil
	}
}

// write runs one statement that begins with fence and yields a row for each that it
// wrote, or a row of fence; its arguments begin with $2.
func (s *Store) write(ctx context.Context, doing, statement string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.mayWrite(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var fenced bool
	err := s.pool.QueryRow(ctx, fence+statement+" SELECT NOT EXISTS (SELECT FROM fence)", append([]any{s.lease.number}, args...)...).Scan(&fenced)
	switch {
	case err != nil:
		return s.ended(ctx, doing, err)
	case fenced:
		return s.errLost()
	}
	return nil
}

// ended is world, unless it is the context that has ended, or the journal.
func (s *Store) ended(ctx context.Context, doing string, err error) error {
	switch {
	case context.Cause(ctx) == context.Canceled: //nolint:errorlint // it is what the caller has ended
		return ctx.Err()
	case s.isClosed():
		return errClosed()
	}
	return s.world(doing, err)
}
