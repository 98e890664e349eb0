package journaltest

import (
	"context"
	"slices"
	"sync"

	"github.com/berth-hpc/berth/journal"
)

// Early is a journal with a planted fault: it says that records are durable before they
// are, and keeps each batch back until the next one comes. Tests of lost power must find it.
type Early struct {
	journal.Store
	mu   sync.Mutex
	kept []journal.Record
}

// Append implements journal.Store.
func (s *Early) Append(ctx context.Context, records ...journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Store.Append(ctx, s.kept...); err != nil {
		return err
	}
	s.kept = slices.Clone(records)
	return nil
}

// SaveSnapshot implements journal.Store; a snapshot is of records that are there.
func (s *Early) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	if err := s.Append(ctx); err != nil {
		return err
	}
	return s.Store.SaveSnapshot(ctx, at, data)
}
