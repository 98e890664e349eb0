package service

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"sort"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// Compacted is what a compaction has dropped and what it has left.
type Compacted struct {
	First   uint64     // the number of the first record kept
	At      berth.Time // when it is of; 0 if no record is kept
	Dropped uint64     // records
	Before  int64      // bytes that the journal took
	After   int64
}

// Compact drops the records of a journal that are of before a time, and gives their room
// back. None behind its newest snapshot is dropped: that is what a start goes on from.
// Where the last record dropped has no snapshot one is made there, by following the
// records from the last one that has. The journal may be written meanwhile, by one that
// makes no snapshots. Nothing is dropped where there is no snapshot. Cost: following the
// records between two snapshots, and then of the adapter, see journal.Compactor. Of
// requests that are over a snapshot remembers as many as keep says; 0 is 100,000.
func Compact(ctx context.Context, store journal.Store, before berth.Time, version string, keep int) (c Compacted, err error) {
	compactor, can := store.(journal.Compactor)
	if !can {
		return c, berth.Errorf(berth.Invalid, "journal", "it cannot drop records")
	}
	keep = cmp.Or(keep, defaultKeep)
	if c.Before, err = compactor.Size(); err != nil {
		return c, err
	}
	begin, err := compactor.Begin(ctx)
	if err != nil {
		return c, err
	}
	newest, err := store.Snapshot(ctx, math.MaxUint64)
	if err != nil {
		return c, err
	}
	upTo, err := lastBefore(ctx, store, begin.Number, newest.Number, before)
	if err != nil {
		return c, err
	}
	based, err := snapshotAt(ctx, store, upTo, version, keep)
	if err != nil {
		return c, err
	}
	if !based {
		upTo = begin.Number
	} else if upTo > 0 { // also what an earlier compaction did not come to
		if err := compactor.Compact(ctx, upTo); err != nil {
			return c, err
		}
	}
	c.Dropped, c.First = upTo-begin.Number, upTo+1
	if c.At, err = timeOf(ctx, store, c.First); err != nil {
		return c, err
	}
	c.After, err = compactor.Size()
	return c, err
}

// timeOf returns the time of a record, 0 if it is not there yet.
func timeOf(ctx context.Context, log journal.Reader, number uint64) (berth.Time, error) {
	for rec, err := range log.Read(ctx, number) {
		return rec.At, err
	}
	return 0, ctx.Err()
}

// lastBefore returns the last record of before a time among those behind begin and up to
// end; begin if there is none. The times of records never go back.
func lastBefore(ctx context.Context, log journal.Reader, begin, end uint64, before berth.Time) (uint64, error) {
	if end <= begin {
		return begin, nil
	}
	var failed error
	n := sort.Search(int(end-begin), func(i int) bool {
		at, err := timeOf(ctx, log, begin+1+uint64(i))
		if err != nil {
			failed = err
		}
		return failed != nil || at >= before
	})
	return begin + uint64(n), failed
}

// snapshotAt sees to it that there is a snapshot of a record; false if none can be made,
// because the state before it is not known any more.
func snapshotAt(ctx context.Context, store journal.Store, number uint64, version string, keep int) (bool, error) {
	if number == 0 {
		return true, nil
	}
	snapshot, err := store.Snapshot(ctx, number)
	if err != nil || snapshot.Number == number && snapshot.Data != nil {
		return err == nil, err
	}
	var core *Core
	if snapshot.Data == nil {
		core, err = history(ctx, upTo{store, number})
	} else {
		core, err = follow(ctx, upTo{store, number}, snapshot.Number, func() (*Core, error) {
			return restoreCore(snapshot.Data, snapshot.Position, version, keep)
		}, (*Core).followPast)
	}
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	data, err := core.Snapshot()
	if err != nil {
		return false, err
	}
	return true, store.SaveSnapshot(ctx, core.position, data)
}

// upTo is a journal up to a record.
type upTo struct {
	journal.Store
	last uint64
}

func (u upTo) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if from > u.last {
			return
		}
		for rec, err := range u.Store.Read(ctx, from) {
			if !yield(rec, err) || rec.Number >= u.last {
				return
			}
		}
	}
}

// Compact drops the records that are at least as old as a length of time, while everybody is
// answered. The error is of code Denied unless an operator asks for it.
func (h *Host) Compact(ctx context.Context, ask Ask, keep berth.Duration) (Compacted, error) {
	if !ask.By.Can(Operator) {
		return Compacted{}, berth.Errorf(berth.Denied, "role", "only an operator drops history; ask with an operator's token")
	}
	if !ask.By.Sites.All() {
		return Compacted{}, berth.Errorf(berth.Denied, "sites", "only an operator of all sites drops history, which is of all of them")
	}
	return call(ctx, h, ask.By.User, func(answer func(Compacted, error)) {
		var c Compacted
		h.beside(ctx, func(ctx context.Context) (err error) {
			c, err = h.compact(ctx, h.Now().Add(1-keep))
			return err
		}, func(err error) {
			if err == nil {
				h.log.Info("history dropped", "by", ask.By.User, "records", c.Dropped, "first", c.First, "before", c.Before, "after", c.After)
			}
			answer(c, err)
		})
	})
}

// compact drops the records of before a time. It takes a snapshot first if that lies
// behind the last one.
func (h *Host) compact(ctx context.Context, before berth.Time) (Compacted, error) {
	next, err := timeOf(ctx, h.options.Journal, h.snapshots.stored+1)
	if err != nil {
		return Compacted{}, err
	}
	if next > 0 && next < before {
		if err := h.snapshotBeside(ctx); err != nil {
			return Compacted{}, err
		}
	}
	return Compact(ctx, h.options.Journal, before, h.options.Version, h.options.Keep)
}

// compactWhenDue drops what is older than is to be kept, at most a day or an eighth of
// that time after it has become so.
func (h *Host) compactWhenDue() {
	s, keep := &h.snapshots, h.options.KeepHistory
	now, believed := h.timekeeper.now()
	if keep <= 0 || !believed || now.Before(s.compactAt) {
		return
	}
	s.compactAt = now.Add(time.Duration(max(60, min(86_400, keep/8))) * time.Second)
	var c Compacted
	h.beside(context.Background(), func(ctx context.Context) (err error) {
		c, err = h.compact(ctx, berth.Time(now.Unix()).Add(-keep))
		return err
	}, func(err error) {
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			h.log.Warn("history is kept longer than asked for; it is tried again later", "error", err)
		case err == nil && c.Dropped > 0:
			h.log.Info("history dropped", "records", c.Dropped, "first", c.First, "before", c.Before, "after", c.After)
		}
	})
}
