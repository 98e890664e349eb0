package dst

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
)

// database models a PostgreSQL server in which services share a journal, as package postgres keeps it: one of them has a lease,
// every statement that writes is fenced by its number, and what becomes of a statement whose connection is lost is not known to
// who sent it. The suite of journaltest holds both to the same.
type database struct {
	*media

	// Under the lock of the media:
	lease uint64                  // the number of the last one
	owner *shared                 // who has it; nil if it is free
	late  func()                  // a statement under way whose connection was lost: it is committed before the next one
	cut   *journaltest.Connection // what befalls the next batch, for the suite
}

func newDatabase() *database { return &database{media: newMedia()} }

// How long things take, as package postgres has them.
const (
	leaseTime = 3 * time.Second
	waitTime  = 4 * time.Second
)

// shared is the journal as one service has it.
type shared struct {
	*memory
	db     *database
	number uint64
	turn   sync.Mutex       // of who appends
	known  journal.Position // the end, as this service knows it
	unsure bool             // the fate of a batch is unknown

	// Under the lock of the media:
	gone   bool      // the server is not reached
	away   time.Time // since when the lease is not renewed; zero if it is
	lost   chan struct{}
	losing sync.Once
}

// take opens the journal for a service, which leads from then on.
func (d *database) take(meets func(what string) mishap) (*shared, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner != nil {
		return nil, berth.Errorf(berth.Conflict, "journal", "it is in use by the server of lease %d; only one process can write a journal", d.lease)
	}
	if d.late != nil { // the session is ended: it was committed by then or it is not
		if d.lease%2 == 0 {
			d.late()
		}
		d.late = nil
	}
	d.lease++
	s := &shared{memory: &memory{media: d.media, meets: meets}, db: d, number: d.lease, known: d.last(), lost: make(chan struct{})}
	d.owner = s
	return s, nil
}

// expire frees the lease, which its holder has not renewed: it does not reach the server.
func (d *database) expire(reached bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.owner; s != nil && !reached {
		s.gone, s.away = true, time.Now()
	}
	d.owner = nil
}

// back has a service reach the server again. It renews its lease no more, which it learns soon.
func (s *shared) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = false
}

func (s *shared) lose() { s.losing.Do(func() { close(s.lost) }) }

func (s *shared) errLost() error {
	s.lose()
	return berth.Errorf(berth.Conflict, "journal", "another server writes it now; this one can acknowledge nothing any more")
}

var errAway error = berth.Errorf(berth.Unavailable, "journal", "the server cannot be reached")

// mayWrite refuses to write what is closed or another server's.
func (s *shared) mayWrite() error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return berth.Errorf(berth.Unavailable, "journal", "it has been closed")
	}
	select {
	case <-s.lost:
		return s.errLost()
	default:
		return nil
	}
}

// leads returns nil while no other server can have taken the lease: the time is counted by who has it.
func (s *shared) leads() error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.away.IsZero() && time.Since(s.away) >= leaseTime {
		return errAway
	}
	return nil
}

// statement does something at the server if this service leads.
func (s *shared) statement(what string, do func() error) error {
	var m mishap
	if s.meets != nil {
		m = s.meets(what)
	}
	if m.before != nil {
		if err := m.before(); err != nil {
			return err
		}
	}
	committed, err := s.commit(what, m.late, do)
	if committed && err == nil && m.after != nil {
		err = m.after()
	}
	return err
}

// commit does it, and reports whether it has.
func (s *shared) commit(what string, late bool, do func() error) (committed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fenced := func() error {
		if s.db.lease != s.number {
			return s.errLost()
		}
		return do()
	}
	cut := s.db.cut
	if what == "append" {
		s.db.cut = nil
	} else {
		cut = nil
	}
	switch {
	case s.gone, cut != nil && *cut == journaltest.CutBefore:
		return false, errAway
	case late && what == "append", cut != nil && *cut == journaltest.CutLate:
		s.settle()
		s.db.late = func() { _ = fenced() } // no one hears of it
		return false, errAway
	}
	s.settle()
	if err := fenced(); err != nil {
		return false, err
	}
	if cut != nil {
		return true, errAway
	}
	return true, nil
}

// settle commits what is under way.
func (s *shared) settle() {
	if late := s.db.late; late != nil {
		s.db.late = nil
		late()
	}
}

func (s *shared) Append(ctx context.Context, records ...journal.Record) error {
	if err := errors.Join(ctx.Err(), s.mayWrite()); err != nil {
		return unjoined(err)
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	again, err := s.append(records)
	if again {
		_, err = s.append(records)
	}
	return err
}

// unjoined returns the first of some errors.
func unjoined(err error) error {
	if several, are := err.(interface{ Unwrap() []error }); are {
		return several.Unwrap()[0]
	}
	return err
}

// errUnique is what the server says of a record that is there.
var errUnique = errors.New("23505: the record is there already")

// append makes one attempt; again says that another one knows more.
func (s *shared) append(records []journal.Record) (again bool, err error) {
	s.mu.Lock()
	if s.unsure && !s.gone {
		s.known, s.unsure = s.last(), false
	}
	unsure := s.unsure
	s.mu.Unlock()
	if unsure {
		return false, errAway
	}
	fresh, _, err := journal.Fresh(s.known, records, func(number uint64) (journal.Hash, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		at, kept := s.at(number)
		if !kept {
			return journal.Hash{}, journal.NotKept(number, s.begin)
		}
		return at.Hash, nil
	})
	if err != nil || len(fresh) == 0 {
		return false, err
	}
	fresh = slices.Clone(fresh)
	s.unsure = true
	err = s.statement("append", func() error {
		if fresh[0].Number != s.db.last().Number+1 {
			return errUnique
		}
		s.records = append(s.records, fresh...)
		return nil
	})
	if err == nil {
		s.unsure, s.known = false, fresh[len(fresh)-1].Position()
	}
	return errors.Is(err, errUnique), err
}

// write is a statement that is fenced too.
func (s *shared) write(ctx context.Context, what string, do func() error) error {
	if err := errors.Join(ctx.Err(), s.mayWrite()); err != nil {
		return unjoined(err)
	}
	return s.statement(what, do)
}

func (s *shared) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	return s.write(ctx, "snapshot", func() error { return s.saveSnapshot(at, data) })
}

func (s *shared) Compact(ctx context.Context, upTo uint64) error {
	return s.write(ctx, "compact", func() error { return s.compact(upTo) })
}

func (s *shared) Found(ctx context.Context, at journal.Position, data []byte) error {
	err := s.write(ctx, "found", func() error { return s.found(at, data) })
	if err == nil {
		s.turn.Lock()
		defer s.turn.Unlock()
		s.known = at
	}
	return err
}

func (s *shared) Last(ctx context.Context) (journal.Position, error) {
	if err := ctx.Err(); err != nil {
		return journal.Position{}, err
	}
	return s.memory.Last(ctx)
}

func (s *shared) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db.owner == s {
		s.db.owner = nil
	}
	s.lose()
	return nil
}

var (
	_ journal.Store     = (*shared)(nil)
	_ journal.Compactor = (*shared)(nil)
	_ journal.Founder   = (*shared)(nil)
)

// reading is a journal that is opened for reading alone.
type reading struct{ *memory }

func (reading) Append(context.Context, ...journal.Record) error {
	return berth.Errorf(berth.Denied, "journal", "it was opened for reading only")
}

// The model of a database keeps the contract as PostgreSQL does.
func TestJournalInADatabase(t *testing.T) {
	var mu sync.Mutex
	places := map[string]*database{}
	at := func(place string) *database {
		mu.Lock()
		defer mu.Unlock()
		if places[place] == nil {
			places[place] = newDatabase()
		}
		return places[place]
	}
	journaltest.Run(t, journaltest.Adapter{
		Open: func(place string) (journal.Store, error) {
			s, err := at(place).take(func(string) mishap {
				runtime.Gosched() // so that others add records meanwhile
				return mishap{}
			})
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Reader: func(place string) (journal.Store, error) {
			return reading{&memory{media: at(place).media}}, nil
		},
		Lease: &journaltest.Lease{
			Expire: func(place string) error {
				at(place).expire(true)
				return nil
			},
			Cut: func(place string, how journaltest.Connection) error {
				d := at(place)
				d.mu.Lock()
				defer d.mu.Unlock()
				d.cut = &how
				return nil
			},
		},
	})
}
