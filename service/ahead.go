package service

import (
	"context"
	"fmt"
	"runtime"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// How much is handed over at a time, in records and bytes, and how many records are read before they can be taken: as many as
// usually come after a snapshot, some hundred megabytes at most.
const (
	aheadBatch = 256
	aheadBytes = 1 << 20
	aheadOf    = defaultSnapshotEvery
)

// parsed is what is wanted of a record, and its number.
type parsed[T any] struct {
	number uint64
	it     T
}

// ahead reads the records of a journal behind a number, and hands what parse makes of each to take, in their order. Records are
// read and parsed while others are taken, and while begin does what comes before the first of them. The first error ends it: one
// of parse with the number of the record, one of begin or take as it is, an *unreadable, or the *Fault that a panic in any of them is.
func ahead[T any](ctx context.Context, store journal.Reader, after uint64, parse func(*journal.Record, *record.Decoder) (T, error), begin func() error, take func(*T) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var readErr error
	batches := make(chan []parsed[T], aheadOf/aheadBatch)
	go func() {
		defer close(batches)
		readErr = caught(after, following, func() error { return readAhead(ctx, store, after, parse, batches) })
	}()
	err := caught(after, following, begin)
	if err != nil {
		stop()
	}
	for batch := range batches {
		for i := range batch {
			if err != nil {
				break // the reader is on its way to stop
			}
			p := &batch[i]
			if err = caught(p.number, following, func() error { return take(&p.it) }); err != nil {
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
	return err
}

// ofRecord adds to an error the record that it is about; a fault has it.
func ofRecord(number uint64, err error) error {
	if faultOf(err) != nil {
		return err
	}
	return fmt.Errorf("record %d: %w", number, err)
}

// giveWay lets others go on after every eighth record: beside a service that answers, who
// reads the past must not keep a processor for a whole time slice of the scheduler.
func giveWay(record int) {
	if record%8 == 7 {
		runtime.Gosched()
	}
}

// readAhead reads and parses the records behind a number.
func readAhead[T any](ctx context.Context, store journal.Reader, after uint64, parse func(*journal.Record, *record.Decoder) (T, error), batches chan<- []parsed[T]) error {
	var decoder record.Decoder
	var batch []parsed[T] // grows: often few records follow a snapshot
	bytes := 0
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
			return &unreadable{last, err}
		}
		p := parsed[T]{number: rec.Number}
		err := caught(rec.Number, following, func() (err error) {
			p.it, err = parse(&rec, &decoder)
			return err
		})
		if err != nil {
			return ofRecord(rec.Number, err)
		}
		last = rec.Number
		giveWay(len(batch))
		if len(batch) == aheadBatch || bytes > aheadBytes {
			if err := hand(); err != nil {
				return err
			}
			batch, bytes = make([]parsed[T], 0, aheadBatch), 0
		}
		batch = append(batch, p)
		bytes += len(rec.Event) + len(rec.Changes) + len(rec.Effects)
	}
	return hand()
}

// unreadable is that a journal cannot be read behind a record.
type unreadable struct {
	last uint64
	err  error
}

func (u *unreadable) Error() string {
	return fmt.Sprintf("reading the journal after record %d: %v", u.last, u.err)
}

func (u *unreadable) Unwrap() error { return u.err }
