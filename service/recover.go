package service

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var readErr error
	batches := make(chan []past, pastAhead/pastBatch)
	go func() {
		defer close(batches)
		readErr = caught(after, following, func() error { return readPast(ctx, store, after, batches) })
	}()
	var core *Core
	err := caught(after, following, func() (err error) {
		core, err = begin()
		return err
	})
	if err != nil {
		stop()
	}
	for batch := range batches {
		for i := range batch {
			if err != nil {
				break // the reader is on its way to stop
			}
			if err = caught(batch[i].number, following, func() error { return each(core, &batch[i]) }); err != nil {
				if faultOf(err) == nil { // which says it
					err = fmt.Errorf("record %d: %w", batch[i].number, err)
				}
				stop()
			}
			giveWay(i)
		}
	}
	if err == nil {
		err = readErr
	}
	if f := faultOf(err); f != nil {
		f.read(ctx, store)
	}
	if err != nil {
		return nil, err
	}
	return core, nil
}

// pastBatch is how many records are handed over at a time, and pastAhead how many
// are read before the core can follow them: as many as usually come after a
// snapshot, some hundred megabytes.
const (
	pastBatch = 256
	pastAhead = defaultSnapshotEvery
)

// giveWay lets others go on after every eighth record: beside a service that answers, who
// reads the past must not keep a processor for a whole time slice of the scheduler.
func giveWay(record int) {
	if record%8 == 7 {
		runtime.Gosched()
	}
}

// readPast reads and decodes the records behind a number.
func readPast(ctx context.Context, store journal.Reader, after uint64, batches chan<- []past) error {
	var decoder record.Decoder
	var batch []past // grows: often few records follow a snapshot
	hand := func() error {
		select {
		case batches <- batch:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	last := after
	for rec, err := range store.Read(ctx, after+1) {
		if err != nil {
			return fmt.Errorf("reading the journal after record %d: %w", last, err)
		}
		var p past
		err := caught(rec.Number, following, func() (err error) {
			p, err = parsePast(&rec, &decoder)
			return err
		})
		if err != nil {
			if faultOf(err) != nil {
				return err
			}
			return fmt.Errorf("record %d: %w", rec.Number, err)
		}
		last = rec.Number
		giveWay(len(batch))
		if len(batch) == pastBatch {
			if err := hand(); err != nil {
				return err
			}
			batch = make([]past, 0, pastBatch)
		}
		batch = append(batch, p)
	}
	return hand()
}
