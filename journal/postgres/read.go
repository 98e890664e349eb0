package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// pageOf is how many records one query reads.
const pageOf = 512

// Last returns the place of the last record.
func (s *Store) Last(ctx context.Context) (journal.Position, error) {
	if err := ctx.Err(); err != nil {
		return journal.Position{}, err
	}
	switch {
	case s.isClosed():
		return journal.Position{}, errClosed()
	case s.options.ReadOnly:
		return s.readLast(ctx) // another server may have written
	}
	return s.lastKnown(), nil
}

// Begin returns the place before the first record kept.
func (s *Store) Begin(ctx context.Context) (journal.Position, error) {
	if s.isClosed() {
		return journal.Position{}, errClosed()
	}
	return s.readAnchor(ctx)
}

// Read yields records in pages of one query each; the next is on its way while
// the records of one are looked at.
func (s *Store) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	from = max(from, 1)
	return func(yield func(journal.Record, error) bool) {
		if s.isClosed() {
			yield(journal.Record{}, errClosed())
			return
		}
		after, ok, err := s.before(ctx, from)
		if err != nil || !ok {
			if err != nil {
				yield(journal.Record{}, err)
			}
			return
		}
		reading, cancel := context.WithCancel(ctx)
		pages, gone := make(chan pageRead), make(chan struct{})
		go s.pages(reading, after, pages, gone)
		defer func() { // what is on its way has ended when the reader goes on
			cancel()
			close(gone)
			for range pages {
			}
		}()
		for p := range pages {
			if p.err == nil && ctx.Err() != nil {
				p = pageRead{err: ctx.Err()}
			}
			for i := range p.records {
				if !yield(p.records[i], nil) {
					return
				}
			}
			if p.err != nil {
				yield(journal.Record{}, p.err)
				return
			}
		}
	}
}

type pageRead struct {
	records []journal.Record
	err     error
}

// pages reads page after page into a channel, which it closes, until the reader is gone.
func (s *Store) pages(ctx context.Context, after journal.Position, to chan<- pageRead, gone <-chan struct{}) {
	defer close(to)
	for {
		records, err := s.page(ctx, after)
		select {
		case to <- pageRead{records, err}:
		case <-gone:
			return
		}
		if err != nil || len(records) < pageOf {
			return
		}
		after = records[len(records)-1].Position()
	}
}

// before returns the place before a record; ok is false if the record is later than the
// one after the last.
func (s *Store) before(ctx context.Context, number uint64) (after journal.Position, ok bool, err error) {
	anchor, err := s.readAnchor(ctx)
	switch {
	case err != nil:
		return after, false, err
	case number <= anchor.Number:
		return after, false, journal.NotKept(number, anchor)
	case number == anchor.Number+1:
		return anchor, true, nil
	case number-1 > maxNumber:
		return after, false, nil
	}
	after.Number = number - 1
	var hash []byte
	err = s.row(ctx, "SELECT hash FROM record WHERE number = $1", []any{int64(after.Number)}, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return after, false, s.missing(ctx, journal.Position{Number: number - 2}) // of unknown hash
	}
	if err != nil {
		return after, false, err
	}
	after.Hash, err = s.hash(hash)
	return after, true, err
}

// maxNumber is more than any record's number.
const maxNumber = 1<<63 - 1

// row reads one row, in the time of a statement. The error is pgx.ErrNoRows, or says what can be done.
func (s *Store) row(ctx context.Context, query string, args []any, to ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err := s.pool.QueryRow(ctx, query, args...).Scan(to...)
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return s.ended(ctx, "read", err)
}

// hash makes a hash of what a row has. What cannot be one is damage.
func (s *Store) hash(bytes []byte) (h journal.Hash, err error) {
	if len(bytes) != len(h) {
		return h, &journal.Damage{After: s.lastKnown(), File: s.name, Offset: -1, Reason: fmt.Sprintf("a hash of %d bytes", len(bytes))}
	}
	return journal.Hash(bytes), nil
}

// missing says why the record after a place is not there.
func (s *Store) missing(ctx context.Context, after journal.Position) error {
	return journal.Missing(after, s.name,
		func() (journal.Position, error) { return s.readLast(ctx) }, func() (journal.Position, error) { return s.readAnchor(ctx) })
}

// page reads and checks the records after a place, at most pageOf. Those read before an
// error are returned with it.
func (s *Store) page(ctx context.Context, after journal.Position) (page []journal.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, longTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT number, hash, body FROM record WHERE number > $1 ORDER BY number LIMIT $2", int64(after.Number), pageOf)
	if err != nil {
		return nil, s.ended(ctx, "read", err)
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var hash, body []byte
		if err := rows.Scan(&number, &hash, &body); err != nil {
			return page, s.ended(ctx, "read", err)
		}
		if uint64(number) != after.Number+1 {
			rows.Close()
			return page, s.missing(ctx, after)
		}
		stored, err := s.hash(hash)
		var r journal.Record
		if err == nil {
			r, err = journal.Decode(after, stored, body)
		}
		if d, is := errors.AsType[*journal.Damage](err); is {
			d.After, d.File = after, s.name
		}
		if err != nil {
			return page, err
		}
		page = append(page, r)
		after = r.Position()
	}
	if err := rows.Err(); err != nil {
		err = s.ended(ctx, "read", err)
		if d, is := errors.AsType[*journal.Damage](err); is {
			d.After = after
		}
		return page, err
	}
	return page, nil
}

// readLast reads the place of the last record.
func (s *Store) readLast(ctx context.Context) (journal.Position, error) {
	return s.place(ctx, `(SELECT number, hash FROM record ORDER BY number DESC LIMIT 1)
		UNION ALL (SELECT number, hash FROM anchor) ORDER BY number DESC LIMIT 1`)
}

// readAnchor reads the place before the first record kept.
func (s *Store) readAnchor(ctx context.Context) (journal.Position, error) {
	return s.place(ctx, "SELECT number, hash FROM anchor")
}

// place reads a number and a hash; the zero value if there is no row.
func (s *Store) place(ctx context.Context, query string) (p journal.Position, err error) {
	var number int64
	var hash []byte
	err = s.row(ctx, query, nil, &number, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Number = uint64(number)
	p.Hash, err = s.hash(hash)
	return p, err
}

// hashOf reads the hash of a record that is kept, or of the anchor.
func (s *Store) hashOf(ctx context.Context, number uint64) (hash journal.Hash, err error) {
	after, ok, err := s.before(ctx, number+1)
	if err != nil {
		return hash, err
	}
	if !ok {
		return hash, berth.Errorf(berth.NotFound, "number", "there is no record %d yet", number)
	}
	return after.Hash, nil
}
