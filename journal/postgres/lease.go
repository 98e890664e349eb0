package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
)

// The lease is a row with a number that only grows. A server that takes it counts it up, and
// every statement that writes looks, with a lock on that row, whether it still has its
// own number: what a server writes that has lost the lease without knowing has no effect,
// and tells it so. So the clocks of servers decide nothing. Times are the database's,
// and only say when a lease may be taken from a holder that is silent.
//
// A lease is free when its holder has not renewed it for leaseTime, or when the session
// that renews it is gone: its process has ended, as the database sees at once.
const (
	leaseTime  = 3 * time.Second
	renewEvery = 500 * time.Millisecond
	// tryEvery is how often a lease is asked for that another server has.
	tryEvery = 100 * time.Millisecond
	// waitTime is how long a start waits: a holder that was cut off has lost it by then.
	waitTime = leaseTime + time.Second
)

// lease is what this process holds.
type lease struct {
	store  *Store
	number int64
	conn   *pgx.Conn // of renew alone, nil while there is none
	// renewed is when the last renewal that succeeded was sent.
	renewed atomic.Pointer[time.Time]
	heir    atomic.Pointer[string] // to whom it is let go; nil is anyone

	skewed   chan struct{}
	skewing  sync.Once
	lost     chan struct{}
	losing   sync.Once
	stopping chan struct{}
	stopped  chan struct{}
}

// The holder's session is gone, or it has not renewed the lease in time.
const isFree = `(until < clock_timestamp() OR NOT EXISTS (
	SELECT FROM pg_stat_activity a WHERE a.pid = lease.backend AND a.backend_start = lease.since))`

const mySession = "backend = pg_backend_pid(), since = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())"

// take makes this process the one that writes. The error is of code Conflict, with who
// that is, if another one does so for longer than is to be waited.
func (s *Store) take(ctx context.Context) error {
	wait := s.options.Wait
	if wait == 0 {
		wait = waitTime
	}
	until := time.Now().Add(wait)
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var said time.Time // that it stands by
	for {
		if time.Since(said) >= seenEvery {
			if err := s.stand(ctx, conn); err != nil {
				drop(conn)
				return err
			}
			said = time.Now()
		}
		began := time.Now()
		number, every, err := s.tryTake(ctx, conn)
		if err == nil {
			s.config.ConnConfig.RuntimeParams["application_name"] = s.application(number)
			s.lease = &lease{store: s, number: number, conn: conn, lost: make(chan struct{}), skewed: make(chan struct{}), stopping: make(chan struct{}), stopped: make(chan struct{})}
			s.lease.renewed.Store(&began)
			go s.lease.renew()
			return nil
		}
		coded, is := errors.AsType[*berth.Error](err)
		if !is || coded.Code != berth.Conflict || !time.Now().Add(every).Before(until) {
			drop(conn)
			return err
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			drop(conn)
			return ctx.Err()
		}
	}
}

// connect opens the session of a lease, with the tables made.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.config.ConnConfig.Copy())
	if err != nil {
		return nil, s.world("open", err)
	}
	err = durable(ctx, conn)
	if _, ours := errors.AsType[*berth.Error](err); err != nil && !ours {
		err = s.world("open", err)
	}
	if err == nil {
		err = s.migrate(ctx, conn)
	}
	if err != nil {
		drop(conn)
		return nil, err
	}
	return conn, nil
}

// tryTake takes the lease if it is free, and for this service; else it says after what
// time to try again.
func (s *Store) tryTake(ctx context.Context, conn *pgx.Conn) (number int64, every time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	every = tryEvery
	look := func(q querier, how string) error {
		var holder, heir string
		var free, waits bool
		var told time.Time
		sent := s.wall()
		err := q.QueryRow(ctx, "SELECT number, holder, heir, "+isFree+", heir <> '' AND heir_until > clock_timestamp(), clock_timestamp() FROM lease"+how).Scan(&number, &holder, &heir, &free, &waits, &told)
		if err != nil {
			return err
		}
		s.skew.Store(int64(skewOf(sent, s.wall(), told)))
		if waits && heir == s.options.Address {
			every, waits = heirEvery, false
		}
		switch {
		case !free:
			return berth.Errorf(berth.Conflict, "journal", "%s is in use by %s; only one process can write a journal", s.name, holder)
		case waits:
			return berth.Errorf(berth.Conflict, "journal", "%s is being handed over to %s; only one process can write a journal", s.name, heir)
		case s.Skew().Abs() <= MaxSkew:
			return nil
		}
		right, err := s.rightStandsBy(ctx, q)
		if err == nil && right {
			err = berth.Errorf(berth.Conflict, "journal", "%s is left to another service: the clock of this one is %s off the database's", s.name, s.Skew().Round(time.Second))
		}
		return err
	}
	if err := look(conn, ""); err != nil {
		return 0, every, s.told(err)
	}
	// What the former holder has begun ends now: it may have been stopped in the middle, with
	// locks, and would keep everybody waiting. What it has not committed it has told nobody.
	// Before the first lease there is none, and sessions of no lease are those of readers.
	if number > 0 {
		_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND usename = current_user AND application_name = $1 AND pid <> pg_backend_pid()`, s.application(number))
		if err != nil {
			return 0, every, s.told(err)
		}
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
			return err
		}
		if err := look(tx, " FOR UPDATE"); err != nil { // waits for what is being appended
			return err
		}
		number++
		_, err := tx.Exec(ctx, "UPDATE lease SET number = $1, holder = $2, address = $3, heir = '', ready = false, until = clock_timestamp() + $4, "+mySession, number, s.holder(), s.options.Address, leaseTime)
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM standby WHERE address = $1", s.options.Address)
		}
		return err
	})
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT set_config('application_name', $1, false)", s.application(number))
	}
	return number, every, s.told(err)
}

// told is world for errors that may be ours.
func (s *Store) told(err error) error {
	if _, ours := errors.AsType[*berth.Error](err); err == nil || ours {
		return err
	}
	return s.world("take the lease", err)
}

// holder says who this is.
func (s *Store) holder() string {
	if s.options.Holder != "" {
		return s.options.Holder
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
}

// renew keeps the lease until it is lost or let go of.
func (l *lease) renew() {
	defer close(l.stopped)
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stopping:
			l.letGo()
			return
		case <-tick.C:
			if !l.renewOnce() {
				l.lose()
				if l.conn != nil {
					drop(l.conn)
				}
				return
			}
		}
	}
}

// renewOnce renews the lease; false if another server has it. A failure says nothing
// about that: the next one tries again, in a session of its own.
func (l *lease) renewOnce() bool {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	if l.conn == nil {
		config := l.store.config.ConnConfig.Copy() // with the name of this lease
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return true
		}
		l.conn = conn
	}
	began, sent := time.Now(), l.store.wall()
	var told time.Time
	err := l.conn.QueryRow(ctx, "UPDATE lease SET until = clock_timestamp() + $2, "+mySession+" WHERE number = $1 RETURNING clock_timestamp()", l.number, leaseTime).Scan(&told)
	if errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	if err == nil {
		l.renewed.Store(&began)
		err = l.compare(ctx, skewOf(sent, l.store.wall(), told))
	}
	if err != nil {
		drop(l.conn)
		l.conn = nil
	}
	return true
}

// compare notes by how much the clock is off, and whether another service is to lead
// for that.
func (l *lease) compare(ctx context.Context, skew time.Duration) error {
	l.store.skew.Store(int64(skew))
	if skew.Abs() <= MaxSkew {
		return nil
	}
	right, err := l.store.rightStandsBy(ctx, l.conn)
	if err == nil && right {
		l.skewing.Do(func() { close(l.skewed) })
	}
	return err
}

// letGo lets another server take the lease at once. A failure costs it a wait.
func (l *lease) letGo() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	if heir := l.heir.Load(); heir != nil {
		_, _ = l.conn.Exec(ctx, "UPDATE lease SET until = '-infinity', heir = $2, heir_until = clock_timestamp() + $3 WHERE number = $1", l.number, *heir, heirTime)
	} else {
		_, _ = l.conn.Exec(ctx, "UPDATE lease SET until = '-infinity' WHERE number = $1", l.number)
	}
	drop(l.conn)
}

func (l *lease) lose() { l.losing.Do(func() { close(l.lost) }) }

// end lets go of the lease.
func (l *lease) end() {
	close(l.stopping)
	<-l.stopped
	l.lose()
}

// errLost tells that another server leads.
func (s *Store) errLost() error {
	s.lease.lose()
	return berth.Errorf(berth.Conflict, "journal", "another server writes %s now; this one can acknowledge nothing any more", s.name)
}

// drop closes a connection in little time.
func drop(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing depends on how it ends
}
