package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
)

// Keep keeps a piece of data beside the records, durably and instead of an earlier one
// of its name. Errors: as with Append.
func (s *Store) Keep(ctx context.Context, name string, data []byte) error {
	s.keeping.Lock() // or two of them had one version
	defer s.keeping.Unlock()
	return s.write(ctx, "keep "+name, `, kept_now AS (INSERT INTO kept (name, version, data)
		SELECT $2::text, 1 + coalesce((SELECT max(version) FROM kept), 0), $3::bytea WHERE EXISTS (SELECT FROM fence)
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, data = excluded.data)`, name, data)
}

// Kept returns the data of a name; the error is NotFound if there are none.
func (s *Store) Kept(ctx context.Context, name string) (data []byte, err error) {
	err = s.row(ctx, "SELECT data FROM kept WHERE name = $1", []any{name}, &data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, berth.Errorf(berth.NotFound, "journal", "%s keeps no %s", s.name, name)
	}
	return data, err
}

// KeptVersion returns a number that grows with each Keep, 0 before the first.
func (s *Store) KeptVersion(ctx context.Context) (version uint64, err error) {
	err = s.row(ctx, "SELECT coalesce(max(version), 0) FROM kept", nil, &version)
	return version, err
}

// Leader is who has the lease, or had it last.
type Leader struct {
	Number  uint64 // of the lease; 0 if it was never taken
	Holder  string
	Address string // empty if it did not say
	// Free says that another server may take it, Ready that its holder takes calls by now.
	Free, Ready bool
}

// Leader returns who writes the journal.
func (s *Store) Leader(ctx context.Context) (l Leader, err error) {
	err = s.row(ctx, "SELECT number, holder, address, ready, "+isFree+" FROM lease", nil, &l.Number, &l.Holder, &l.Address, &l.Ready, &l.Free)
	return l, err
}

// TakesCalls tells the others that who asks is answered by this server from now on.
func (s *Store) TakesCalls(ctx context.Context) error {
	return s.setLease(ctx, "say that it leads", "UPDATE lease SET ready = true WHERE number = $1")
}

// Leads returns nil while no other server can have taken the lease. It does not ask the database: the
// time is counted here from before each renewal was sent, so that it is over no later
// than at the database, also where this process was stopped in between, or the machine
// slept. The error is of code Conflict or, of a lease that could not be renewed in time and
// may be this server's still, or whose clock is off so that another one is to lead (Skewed),
// Unavailable.
func (s *Store) Leads() error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	at := *s.lease.renewed.Load()
	passed := max(time.Since(at), time.Now().Round(0).Sub(at.Round(0))) // a sleep is in the clock alone
	if passed >= leaseTime {
		return berth.Errorf(berth.Unavailable, "journal", "%s cannot be reached, and another server may lead by now", s.name)
	}
	select {
	case <-s.lease.skewed:
		return berth.Errorf(berth.Unavailable, "journal", "the clock of this service is off the database's by %s, and another one is to lead", s.Skew().Round(time.Second))
	default:
		return nil
	}
}
