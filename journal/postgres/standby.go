package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
)

const (
	// MaxSkew is by how much the clock of a service may be off the database's: more than
	// clocks that are kept right ever are, also over a leap second, and less than promises
	// that begin and end at the wrong time by whole minutes.
	MaxSkew = 10 * time.Second
	// heirTime is for how long a lease that was handed over waits for its heir.
	heirTime = 5 * time.Second
	// heirEvery is how often the heir asks for it.
	heirEvery = 10 * time.Millisecond
	// seenEvery is how often a service that stands by says so.
	seenEvery = 500 * time.Millisecond
)

// Progress is how far a service that stands by has followed the journal.
type Progress struct {
	Number uint64        // of the last record that it has followed
	Behind time.Duration // since it had followed all that there was
}

// Standby is a service that stands by.
type Standby struct {
	Address string
	Progress
	// Skew is by how much its clock is at least ahead of the database's, negative behind it.
	Skew time.Duration
}

// Right reports whether its clock agrees with the database's to within MaxSkew.
func (s *Standby) Right() bool { return s.Skew.Abs() <= MaxSkew }

const isThere = `seen > clock_timestamp() - interval '3 seconds' AND EXISTS (
	SELECT FROM pg_stat_activity a WHERE a.pid = standby.backend AND a.backend_start = standby.since)`

// Standbys returns the services that stand by, those that are furthest first. Cost: O(services).
func (s *Store) Standbys(ctx context.Context) (list []Standby, err error) {
	if s.isClosed() {
		return nil, errClosed()
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT address, number, behind, skew FROM standby WHERE "+isThere+" ORDER BY number DESC, address")
	if err == nil {
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Standby, err error) {
			var behind, skew float64
			err = row.Scan(&b.Address, &b.Number, &behind, &skew)
			b.Behind, b.Skew = seconds(behind), seconds(skew)
			return b, err
		})
	}
	if err != nil {
		return nil, s.ended(ctx, "read who stands by", err)
	}
	return list, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// skewOf returns by how much a clock is at least ahead of the database's, negative
// behind it, by a time that the database told between two readings of the clock. However
// long the way took, a clock that is right is never said to be off.
func skewOf(sent, received, told time.Time) time.Duration {
	switch {
	case told.Before(sent):
		return sent.Sub(told)
	case told.After(received):
		return received.Sub(told)
	}
	return 0
}

// wall returns the time by the clock, without what the machine counts beside it.
func (s *Store) wall() time.Time {
	if s.options.Clock != nil {
		return s.options.Clock()
	}
	return time.Now().Round(0)
}

// Skew returns by how much the clock is at least ahead of the database's, negative behind
// it, as it was measured last; 0 of a journal that is only read.
func (s *Store) Skew() time.Duration { return time.Duration(s.skew.Load()) }

// Skewed is closed once the clock is off by more than MaxSkew and a service stands by
// whose clock is right: from then on Leads returns an error, and the lease is to be handed
// over. It is nil for a journal that is only read.
func (s *Store) Skewed() <-chan struct{} {
	if s.lease == nil {
		return nil
	}
	return s.lease.skewed
}

// stand says that this service stands by, and how far it is.
func (s *Store) stand(ctx context.Context, conn *pgx.Conn) error {
	if s.options.Address == "" || s.options.Progress == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var told time.Time
	sent := s.wall()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&told); err != nil {
		return s.told(err)
	}
	s.skew.Store(int64(skewOf(sent, s.wall(), told)))
	p := s.options.Progress()
	_, err := conn.Exec(ctx, `INSERT INTO standby SELECT $1::text, pid, backend_start, clock_timestamp(), $2::bigint, $3::float8, $4::float8 FROM pg_stat_activity WHERE pid = pg_backend_pid()
		ON CONFLICT (address) DO UPDATE SET backend = excluded.backend, since = excluded.since, seen = excluded.seen,
			number = excluded.number, behind = excluded.behind, skew = excluded.skew`, s.options.Address, p.Number, p.Behind.Seconds(), s.Skew().Seconds())
	if err == nil {
		_, err = conn.Exec(ctx, "DELETE FROM standby WHERE seen < clock_timestamp() - interval '1 hour'")
	}
	return s.told(err)
}

// rightStandsBy reports whether another service stands by whose clock is right.
func (s *Store) rightStandsBy(ctx context.Context, q querier) (is bool, err error) {
	err = q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM standby WHERE address <> $1 AND abs(skew) <= $2 AND "+isThere+")", s.options.Address, MaxSkew.Seconds()).Scan(&is)
	return is, err
}

// Announce has the service of an address ask for the lease often, as it is about to be
// handed over to it.
func (s *Store) Announce(ctx context.Context, to string) error {
	return s.setLease(ctx, "hand the lease over", "UPDATE lease SET heir = $2, heir_until = clock_timestamp() + $3 WHERE number = $1", to, 2*heirTime)
}

// setLease changes the lease while this server has it; its arguments begin with $2.
func (s *Store) setLease(ctx context.Context, doing, statement string, args ...any) error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, statement, append([]any{s.lease.number}, args...)...)
	switch {
	case err != nil:
		return s.ended(ctx, doing, err)
	case tag.RowsAffected() == 0:
		return s.errLost()
	}
	return nil
}

// HandOver is Close, after which only the service of an address may take the lease for
// some seconds. Nothing may be under way that is to be written.
func (s *Store) HandOver(to string) error {
	if s.lease == nil {
		return berth.Errorf(berth.Denied, "journal", "%s was opened for reading only", s.name)
	}
	s.lease.heir.Store(&to)
	return s.Close()
}
