// Package postgres keeps a journal in a schema of a PostgreSQL database. Several
// servers may share it: one writes, by a lease with a fencing number (lease.go), and
// others read meanwhile.
//
// What Append returns nil for is committed with the server's own guarantee: fsync and
// full_page_writes must be on, and synchronous_commit is turned on where it is off. The
// URL is one of libpq, with its files for passwords, services and certificates. The
// schema is the one of its search_path, berth where it names none.
package postgres

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// Options of Open. The zero value is right for a server.
type Options struct {
	// ReadOnly opens a journal for reading, whether or not a server writes it. It
	// takes no lease and refuses to write.
	ReadOnly bool
	// Fill opens a journal also if it is not whole, to fill it or to look at it.
	Fill bool
	// Holder says who writes, for the others; empty names this process.
	Holder string
	// Address is where clients reach who writes; empty tells the others nothing.
	Address string
	// Wait is for how long Open waits for the lease of another server; 0 is a little
	// longer than a lease lasts that its holder does not renew, negative not at all.
	Wait time.Duration
	// Progress, of a service that stands by while Open waits, says how far it is, for the
	// others; nil is that it does not stand by. It is asked twice a second.
	Progress func() Progress
	// Clock returns the time; nil is the machine's. Only tests set it.
	Clock func() time.Time
}

// How long things may take. A statement that the server does not answer within these is
// given up; what it did is found out by the next one.
const (
	connectTimeout   = 5 * time.Second
	statementTimeout = 10 * time.Second
	longTimeout      = 10 * time.Minute // of what goes over all that is there
)

// Store is an open journal.
type Store struct {
	options Options
	schema  string
	name    string // of the journal in messages, without a password
	config  *pgxpool.Config
	pool    *pgxpool.Pool
	lease   *lease       // nil if read-only
	skew    atomic.Int64 // of the clock, as a time.Duration

	turn    chan struct{} // the holder of its one place may append
	keeping sync.Mutex

	// Changed by the holder of the turn, under mu.
	mu     sync.Mutex
	closed bool
	last   journal.Position

	unsure bool // the fate of a batch is unknown: last must be read again; with the turn
}

var (
	_ journal.Store     = (*Store)(nil)
	_ journal.Compactor = (*Store)(nil)
	_ journal.Founder   = (*Store)(nil)
)

// IsURL reports whether a text is the URL of a PostgreSQL database.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// Name returns a URL as it may be shown: without password.
func Name(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the database"
	}
	q := u.Query()
	for _, secret := range []string{"password", "sslpassword"} {
		if q.Has(secret) {
			q.Set(secret, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

// Reached returns the host of a URL, empty for a socket of this machine or what is no
// URL, and whether the way there is always encrypted.
func Reached(text string) (host string, encrypted bool) {
	c, err := pgx.ParseConfig(text)
	if err != nil || strings.HasPrefix(c.Host, "/") {
		return "", true
	}
	encrypted = c.TLSConfig != nil
	for _, f := range c.Fallbacks {
		encrypted = encrypted && f.TLSConfig != nil
	}
	return c.Host, encrypted
}

// defaultSchema is the schema of a journal whose URL names none.
const defaultSchema = "berth"

// plain is a schema's name that needs no quotes, and leaves room for what names a lease.
var plain = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// Open opens the journal of a URL, and makes its schema and tables if they are not there
// and it may write. The errors are of code Invalid, the URL is none, or the server
// would lose what it has committed; Conflict, another server writes it, which the
// message names, or it is not whole (Fill); NotFound, there is none and it may not be made; Denied, the role may
// not do what is needed; or failures of the world.
func Open(ctx context.Context, at string, options Options) (*Store, error) {
	s := &Store{options: options, name: Name(at), turn: make(chan struct{}, 1)}
	var err error
	if s.config, err = pgxpool.ParseConfig(at); err != nil || !IsURL(at) {
		return nil, berth.Errorf(berth.Invalid, "journal", "%s: not the URL of a database; want one such as postgres://berth@db.example.org/berth?sslmode=verify-full", s.name)
	}
	if err := s.configure(); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// configure sets what every connection has.
func (s *Store) configure() error {
	c := s.config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	p := c.RuntimeParams
	s.schema = p["search_path"]
	if s.schema == "" {
		s.schema = defaultSchema
	}
	if !plain.MatchString(s.schema) {
		return berth.Errorf(berth.Invalid, "journal", "%s: search_path %q: want one schema of up to 40 small letters, digits and _", s.name, s.schema)
	}
	p["search_path"] = s.schema
	p["application_name"] = s.application(0)
	p["default_transaction_isolation"] = "read committed" // what fencing relies on
	p["client_connection_check_interval"] = "1s"          // so that what a dead client has begun ends
	p["idle_in_transaction_session_timeout"] = "10s"
	if s.options.ReadOnly {
		p["default_transaction_read_only"] = "on"
	}
	s.config.MaxConns = 4 // one appends, others read and keep snapshots
	return nil
}

// application is what connections of a lease are called by, so that others find them.
func (s *Store) application(lease int64) string {
	if lease == 0 {
		return "berth/" + s.schema
	}
	return fmt.Sprintf("berth/%s/%d", s.schema, lease)
}

func (s *Store) open(ctx context.Context) (err error) {
	if !s.options.ReadOnly {
		if err := s.take(ctx); err != nil {
			return err
		}
		s.config.AfterConnect = durable
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, s.config); err != nil {
		return s.world("open", err)
	}
	if s.options.ReadOnly {
		ctx, cancel := context.WithTimeout(ctx, statementTimeout)
		defer cancel()
		switch n, err := s.formatOf(ctx, s.pool); {
		case err != nil:
			return err
		case n == 0:
			return berth.Errorf(berth.NotFound, "journal", "there is no journal in schema %s of %s", s.schema, s.name)
		}
		return s.filled(ctx)
	}
	if err := s.filled(ctx); err != nil {
		return err
	}
	last, err := s.readLast(ctx)
	if err != nil {
		return err
	}
	s.moved(last)
	return s.checkEnd(ctx)
}

// checkEnd reads the last record, which must follow the one before.
func (s *Store) checkEnd(ctx context.Context) error {
	anchor, err := s.readAnchor(ctx)
	if err != nil || s.last.Number <= anchor.Number {
		return err
	}
	before, _, err := s.before(ctx, s.last.Number)
	if err != nil {
		return err
	}
	_, err = s.page(ctx, before)
	return err
}

// durable has what a connection commits survive the loss of power.
func durable(ctx context.Context, conn *pgx.Conn) error {
	var fsync, pages string
	err := conn.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`).Scan(&fsync, &pages, new(*string))
	if err != nil {
		return err
	}
	for setting, value := range map[string]string{"fsync": fsync, "full_page_writes": pages} {
		if value != "on" {
			return berth.Errorf(berth.Invalid, "journal", "%s is off at this server, so that a loss of power loses what was promised: turn it on", setting)
		}
	}
	return nil
}

// Lost is closed once another server has the lease, or this one has let go of it: nothing
// more can be appended. It is nil for a journal that is only read.
func (s *Store) Lost() <-chan struct{} {
	if s.lease == nil {
		return nil
	}
	return s.lease.lost
}

// Close waits for what is under way and lets go of the lease.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		s.release()
	}
	return nil
}

// release lets go of the connections and then of the lease.
func (s *Store) release() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.lease != nil {
		s.lease.end()
	}
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// moved sets the end of the chain.
func (s *Store) moved(last journal.Position) {
	s.mu.Lock()
	s.last = last
	s.mu.Unlock()
}

func (s *Store) lastKnown() journal.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
