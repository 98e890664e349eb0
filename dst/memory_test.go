package dst

import (
	"context"
	"errors"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
)

// media is what a journal in memory is kept on. It outlives the service that writes to it, as a disk
// does, and keeps what was appended with a nil error through every loss of power.
type media struct {
	mu        sync.Mutex
	begin     journal.Position // of the chain
	records   []journal.Record
	snapshots []journal.Snapshot // oldest first
	rotten    map[uint64]bool    // snapshots that cannot be read any more
	held      bool               // by a service that writes
}

func newMedia() *media { return &media{rotten: map[uint64]bool{}} }

// last returns the place of the last record.
func (m *media) last() journal.Position {
	if len(m.records) == 0 {
		return m.begin
	}
	return m.records[len(m.records)-1].Position()
}

// at returns the place of a record that is kept, or before the first one.
func (m *media) at(number uint64) (journal.Position, bool) {
	switch {
	case number == m.begin.Number:
		return m.begin, true
	case number < m.begin.Number || number > m.last().Number:
		return journal.Position{}, false
	}
	return m.records[number-m.begin.Number-1].Position(), true
}

// image returns what a service that starts after a loss of power finds.
func (m *media) image() *media {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := newMedia()
	left.begin, left.records, left.snapshots = m.begin, slices.Clip(m.records), slices.Clone(m.snapshots) // records are only added
	return left
}

// mishap is what befalls one write.
type mishap struct {
	before func() error // with an error nothing is written
	after  func() error // when all is written; with an error the caller is not told so
	late   bool         // a database writes it later than the caller is told that the connection is lost
}

// memory is a journal on a media. What befalls its writes is said by meets, nil for nothing.
type memory struct {
	*media
	meets  func(what string) mishap
	closed bool
}

var errShut error = berth.Errorf(berth.Internal, "journal", "it is closed")

// openMemory opens the journal on a media for writing.
func openMemory(m *media, meets func(what string) mishap) (*memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		return nil, berth.Errorf(berth.Conflict, "journal", "process %d writes it", os.Getpid())
	}
	m.held = true
	return &memory{media: m, meets: meets}, nil
}

// write does something that changes the media, with what befalls it.
func (s *memory) write(ctx context.Context, what string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var m mishap
	if s.meets != nil {
		m = s.meets(what)
	}
	if m.before != nil {
		if err := m.before(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	err := errShut
	if !s.closed {
		err = do()
	}
	s.mu.Unlock()
	if err == nil && m.after != nil {
		err = m.after()
	}
	return err
}

func (s *memory) Append(ctx context.Context, records ...journal.Record) error {
	return s.write(ctx, "append", func() error {
		fresh, _, err := journal.Fresh(s.last(), records, func(number uint64) (journal.Hash, error) {
			at, kept := s.at(number)
			if !kept {
				return journal.Hash{}, journal.NotKept(number, s.begin)
			}
			return at.Hash, nil
		})
		if err == nil {
			s.records = append(s.records, fresh...)
		}
		return err
	})
}

func (s *memory) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for next := max(from, 1); ; next++ {
			s.mu.Lock()
			var record journal.Record
			err, ended := ctx.Err(), next > s.last().Number
			switch {
			case s.closed:
				err = errShut
			case err != nil:
			case from <= s.begin.Number && s.begin.Number > 0 || next <= s.begin.Number:
				err = journal.NotKept(from, s.begin)
			case !ended:
				record = s.records[next-s.begin.Number-1]
			}
			s.mu.Unlock()
			if err == nil && ended || !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func (s *memory) Last(context.Context) (journal.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return journal.Position{}, errShut
	}
	return s.last(), nil
}

func (s *memory) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	return s.write(ctx, "snapshot", func() error { return s.saveSnapshot(at, data) })
}

// saveSnapshot keeps a snapshot of a record that is there.
func (m *media) saveSnapshot(at journal.Position, data []byte) error {
	if have, kept := m.at(at.Number); !kept || have != at {
		return berth.Errorf(berth.Conflict, "snapshot", "the journal has no such record %d", at.Number)
	}
	delete(m.rotten, at.Number)
	m.snapshots = slices.DeleteFunc(m.snapshots, func(old journal.Snapshot) bool { return old.Number == at.Number })
	m.snapshots = append(m.snapshots, journal.Snapshot{Position: at, Data: append([]byte{}, data...)})
	return nil
}

func (s *memory) Snapshot(_ context.Context, upTo uint64) (found journal.Snapshot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return found, errShut
	}
	for _, kept := range slices.Backward(s.snapshots) {
		if kept.Number > upTo {
			continue
		}
		if s.rotten[kept.Number] {
			found.Damaged = append(found.Damaged, journal.Damage{After: kept.Position, Offset: -1, Reason: "it has rotted"})
			continue
		}
		found.Position, found.Data = kept.Position, kept.Data
		break
	}
	return found, nil
}

func (s *memory) Begin(context.Context) (journal.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return journal.Position{}, errShut
	}
	return s.begin, nil
}

func (s *memory) Compact(ctx context.Context, upTo uint64) error {
	return s.write(ctx, "compact", func() error { return s.compact(upTo) })
}

// compact drops what is before a record.
func (m *media) compact(upTo uint64) error {
	is := func(kept journal.Snapshot) bool { return kept.Number == upTo && !m.rotten[upTo] }
	if upTo < m.begin.Number || !slices.ContainsFunc(m.snapshots, is) {
		return berth.Errorf(berth.Conflict, "snapshot", "there is none of record %d", upTo)
	}
	begin, _ := m.at(upTo)
	m.records = slices.Clone(m.records[upTo-m.begin.Number:])
	m.begin = begin
	m.snapshots = slices.DeleteFunc(m.snapshots, func(old journal.Snapshot) bool { return old.Number < upTo })
	return nil
}

func (s *memory) Found(ctx context.Context, at journal.Position, data []byte) error {
	return s.write(ctx, "found", func() error { return s.found(at, data) })
}

// found begins an empty journal behind a place.
func (m *media) found(at journal.Position, data []byte) error {
	if m.last() != (journal.Position{}) {
		return berth.Errorf(berth.Conflict, "journal", "it is not empty")
	}
	m.begin, m.snapshots = at, []journal.Snapshot{{Position: at, Data: append([]byte{}, data...)}}
	return nil
}

func (s *memory) Size() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for i := range s.records {
		r := &s.records[i]
		size += len(r.Event) + len(r.Changes) + len(r.Effects)
	}
	return int64(size), nil
}

func (s *memory) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.held = true, false
	}
	return nil
}

var (
	_ journal.Store     = (*memory)(nil)
	_ journal.Compactor = (*memory)(nil)
	_ journal.Founder   = (*memory)(nil)
)

// The journal of most lives keeps the contract as SQLite does.
func TestJournalInMemory(t *testing.T) {
	var mu sync.Mutex
	places := map[string]*media{}
	journaltest.Run(t, journaltest.Adapter{Open: func(place string) (journal.Store, error) {
		mu.Lock()
		defer mu.Unlock()
		if places[place] == nil {
			places[place] = newMedia()
		}
		s, err := openMemory(places[place], func(string) mishap {
			runtime.Gosched() // so that others add records meanwhile
			return mishap{}
		})
		if err != nil {
			return nil, errors.Join(err) // and not a store that is nil
		}
		return s, nil
	}})
}
