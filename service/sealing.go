package service

import (
	"slices"
	"sync"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// sealing makes records of what the loop has decided: they are chained where they are written, in their
// order, so that the loop waits for no hash, nor for what a large record says.
type sealing struct {
	mu    sync.Mutex
	later map[uint64]func(*journal.Record) // what writes large records, by number

	// Of the writer's goroutine; when that has ended, of all.
	sealer journal.Sealer
	last   journal.Position
}

// begin has the chain go on behind the last record of a core.
func (s *sealing) begin(c *Core) {
	c.apart, s.last, s.later = true, c.position, map[uint64]func(*journal.Record){}
}

// add has a record written when it is its turn.
func (s *sealing) add(number uint64, write func(*journal.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later[number] = write
}

// seal seals records that follow one another; what it has sealed before, which is tried again, stays.
func (s *sealing) seal(records []journal.Record) {
	for i := range records {
		r := &records[i]
		if r.Number <= s.last.Number {
			continue
		}
		s.mu.Lock()
		write := s.later[r.Number]
		delete(s.later, r.Number)
		s.mu.Unlock()
		if write != nil {
			write(r)
		}
		s.last = s.sealer.Seal(r, s.last)
	}
}

// laterRecord is what a record says that is written when it is its turn.
type laterRecord struct {
	write func(*journal.Record)
	size  int // about how many bytes
}

// laterPayloads returns what payloads does for a step with much to write, to be done beside the loop. What
// changes point to is not written any more.
func laterPayloads(s *step, a *asked) func(*journal.Record) {
	own, by := *s, *a
	if s.event != nil {
		event := *s.event
		own.event = &event
	}
	if cap(s.changes) <= mostKept { // the memory is for the next step too
		own.changes = slices.Clone(s.changes)
	}
	own.effects, by.told, by.event = slices.Clone(s.effects), slices.Clone(a.told), nil
	return func(rec *journal.Record) {
		const change, effect = 176, 48 // bytes, about: what grows is copied
		rec.Event = appendInput(nil, own.event, &by)
		rec.Changes = record.AppendChanges(make([]byte, 0, change*len(own.changes)), own.changes)
		rec.Effects = record.AppendEffects(make([]byte, 0, effect*len(own.effects)), own.effects)
	}
}
