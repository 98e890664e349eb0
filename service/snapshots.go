package service

import (
	"context"
	"errors"
	"sync"
	"time"
)

// snapshots is when snapshots are made, and from what. While a service answers
// they are made from its journal, by another core that follows the durable
// records beside the loop, from one snapshot to the next: no request waits for that,
// the two cores share nothing, and each snapshot shows that the journal can be
// followed. The first one takes the time of a restart, and from then on there is
// twice the memory.
//
// A compaction is made by them too, since it drops what is between them, and large workflows are
// planned on the other core (see planner).
type snapshots struct {
	last      uint64    // the record at which the last one was begun; of the loop
	busy      bool      // one is being made; of the loop
	compactAt time.Time // when old records are dropped next; of the loop

	ctx    context.Context //nolint:containedctx // of what is being made, until end
	stop   context.CancelFunc
	making sync.WaitGroup

	turn   sync.Mutex // of the goroutine that makes one, or compacts
	core   *Core      // that follows the records, nil before the first snapshot or plan; with the turn
	stored uint64     // the record of the last one stored; with the turn
}

func (s *snapshots) begin(stored uint64) {
	s.last, s.stored = stored, stored
	s.ctx, s.stop = context.WithCancel(context.Background())
}

// beside does something with the turn, beside the loop, which calls it, and then hands
// over its error, also where that is a fault. The context ends with the one given, and
// when the service ends.
func (h *Host) beside(ctx context.Context, do func(ctx context.Context) error, done func(error)) {
	s := &h.snapshots
	s.making.Go(func() {
		defer h.boundary("telling of a snapshot")
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		s.turn.Lock()
		defer s.turn.Unlock()
		err := caught(s.stored, "making a snapshot", func() error { return do(ctx) })
		if f := faultOf(err); f != nil {
			f.keep(&h.options)
		} else if ctx.Err() != nil {
			err = ctx.Err()
		}
		done(err)
	})
}

// end gives up what is being made. The loop must have stopped.
func (s *snapshots) end() {
	s.stop()
	s.making.Wait()
}

// snapshotWhenDue begins a snapshot once enough has happened since the last one.
func (h *Host) snapshotWhenDue() {
	s, at := &h.snapshots, h.core.position.Number
	if s.busy || at-s.last < h.options.SnapshotEvery {
		return
	}
	s.busy, s.last = true, at
	h.beside(context.Background(), h.snapshotBeside, func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			h.log.Warn("no snapshot; restarts take longer until there is one", "record", at, "error", err)
		}
		h.line.push("", func() { s.busy = false })
	})
}

// snapshotBeside brings the other core to the end of the journal and stores a
// snapshot of it.
func (h *Host) snapshotBeside(ctx context.Context) error {
	if err := h.followBeside(ctx); err != nil {
		return err
	}
	core := h.snapshots.core
	if core.position.Number == h.snapshots.stored {
		return nil // the last one followed the journal beyond where it was begun
	}
	return h.saveSnapshot(ctx, core)
}

// followBeside brings the other core to the end of the journal. It is with the turn.
func (h *Host) followBeside(ctx context.Context) (err error) {
	core := h.snapshots.core
	h.snapshots.core = nil // a failure leaves nothing to go on from
	if core == nil {
		core, err = Recover(ctx, h.options.Journal, h.options.Config, h.options.Version, h.options.Keep)
	} else {
		core, err = follow(ctx, h.options.Journal, core.position.Number, func() (*Core, error) { return core, nil }, (*Core).followPast)
	}
	if err == nil {
		h.snapshots.core = core
	}
	return err
}

// saveSnapshot stores a snapshot of a core whose records are all durable.
func (h *Host) saveSnapshot(ctx context.Context, core *Core) error {
	data, err := core.Snapshot()
	if err != nil {
		return err
	}
	if err := h.options.Journal.SaveSnapshot(ctx, core.position, data); err != nil {
		return err
	}
	h.snapshots.stored = core.position.Number
	return nil
}
