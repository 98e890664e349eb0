package service

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
)

// Recover brings a core to the end of a journal, from its newest snapshot on.
// The configuration counts only where the journal has none yet. Records are read
// and decoded while the snapshot is, and beside the core that follows them.
func Recover(ctx context.Context, store journal.Store, config engine.Config, version string, keep int) (*Core, error) {
	return recoverBy(ctx, store, config, version, keep, (*Core).followPast)
}

// recoverBy is Recover with what is done with each record behind the snapshot.
func recoverBy(ctx context.Context, store journal.Store, config engine.Config, version string, keep int, each func(*Core, *past) error) (*Core, error) {
	snapshot, err := store.Snapshot(ctx, ^uint64(0))
	if err != nil {
		return nil, fmt.Errorf("reading the newest snapshot: %w", err)
	}
	core, err := follow(ctx, store, snapshot.Number, func() (*Core, error) {
		if snapshot.Data == nil {
			return newCore(config, version, keep)
		}
		return restoreCore(snapshot.Data, snapshot.Position, version, keep)
	}, each)
	if err == nil {
		core.stored = snapshot.Number
	}
	return core, err
}

// collecting is held while the collector's setting, which is the process's, is
// another one.
var collecting sync.Mutex

// recoverAtStart is Recover before anyone is answered. What is read then stays,
// so the collector is to look at it less often meanwhile: at its usual setting
// that is a fifth of all the time that a recovery takes.
func recoverAtStart(ctx context.Context, o *Options, each func(*Core, *past) error) (*Core, error) {
	const percent = 400
	collecting.Lock()
	defer collecting.Unlock()
	usual := debug.SetGCPercent(percent)
	if usual < 0 || usual > percent {
		debug.SetGCPercent(usual)
	}
	defer debug.SetGCPercent(usual)
	return recoverBy(ctx, o.Journal, o.Config, o.Version, o.Keep, each)
}

// follow brings the core that begin returns, which is at a record, to the end of
// a journal, by what each does with a record. After an error the core must not be used any more.
func follow(ctx context.Context, store journal.Reader, after uint64, begin func() (*Core, error), each func(*Core, *past) error) (*Core, error) {
	var core *Core
	err := ahead(ctx, store, after, parsePast, func() (err error) {
		core, err = begin()
		return err
	}, func(p *past) error {
		if err := each(core, p); err != nil {
			return ofRecord(p.number, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return core, nil
}
