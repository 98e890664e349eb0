package service

import (
	"context"
	"sync"
)

// snapshots is when snapshots are made, and from what. While a service answers
// they are made from its journal, by another core that follows the durable
// records beside the loop, from one snapshot to the next: nobody waits for that,
// the two cores share nothing, and each snapshot shows that the journal can be
// followed. The first one takes the time of a restart, and from then on there is
// twice the memory.
type snapshots struct {
	core   *Core  // where the last one was made, nil before the first; of whoever is making one
	last   uint64 // the record at which the last one was begun; of the loop
	busy   bool   // one is being made; of the loop
	stored uint64 // the record of the last one stored; of whoever is making one

	cancel context.CancelFunc // of the one that is being made; of the loop
	making sync.WaitGroup
}

// end gives up what is being made. The loop must have stopped.
func (s *snapshots) end() {
	if s.cancel != nil {
		s.cancel()
	}
	s.making.Wait()
}

// snapshotWhenDue begins a snapshot once enough has happened since the last one.
func (h *Host) snapshotWhenDue() {
	s, at := &h.snapshots, h.core.position.Number
	if s.busy || at-s.last < h.options.SnapshotEvery {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.busy, s.last, s.cancel = true, at, cancel
	s.making.Go(func() {
		defer cancel()
		err := h.snapshotBeside(ctx)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("no snapshot; restarts take longer until there is one", "record", at, "error", err)
		}
		h.line.push("", func() { s.busy = false })
	})
}

// snapshotBeside brings the other core to the end of the journal and stores a
// snapshot of it.
func (h *Host) snapshotBeside(ctx context.Context) (err error) {
	core := h.snapshots.core
	h.snapshots.core = nil // a failure leaves nothing to go on from
	if core == nil {
		core, err = Recover(ctx, h.options.Journal, h.options.Config, h.options.Version, h.options.Keep)
	} else {
		core, err = follow(ctx, h.options.Journal, core.position.Number, func() (*Core, error) { return core, nil })
	}
	if err != nil {
		return err
	}
	h.snapshots.core = core
	return h.saveSnapshot(ctx, core)
}

// saveSnapshot stores a snapshot of a core of which everything is durable.
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
