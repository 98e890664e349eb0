package journal

import (
	"context"
	"errors"

	"github.com/berth-hpc/berth"
)

// Bounds of what is copied at once: a store writes as much in some milliseconds.
const (
	copyRecords = 1000
	copyBytes   = 1 << 20
)

// Copied is what a copy has come to.
type Copied struct {
	Begin   Position // where the copy begins
	Last    Position
	Records int // copied by this call
}

// Copy copies all that a journal has, records and the newest snapshot, to the end of
// another one, which is empty or has the beginning of it: what a copy that was cut short has left. A
// server may write the first one meanwhile. The error is of code Conflict if the other one has
// another history.
func Copy(ctx context.Context, to, from Store) (c Copied, err error) {
	if compactor, can := from.(Compactor); can {
		if c.Begin, err = compactor.Begin(ctx); err != nil {
			return c, err
		}
	}
	if c.Last, err = to.Last(ctx); err != nil {
		return c, err
	}
	switch {
	case c.Last == Position{} && c.Begin.Number > 0:
		err = found(ctx, to, from, c.Begin)
		c.Last = c.Begin
	case c.Last.Number > 0:
		err = continues(ctx, from, c.Begin, c.Last)
	}
	if err != nil {
		return c, err
	}
	if err := c.records(ctx, to, from); err != nil {
		return c, err
	}
	snapshot, err := from.Snapshot(ctx, c.Last.Number)
	if err != nil || snapshot.Data == nil || snapshot.Number <= c.Begin.Number {
		return c, err
	}
	return c, to.SaveSnapshot(ctx, snapshot.Position, snapshot.Data)
}

// found begins a copy with the snapshot where the journal begins.
func found(ctx context.Context, to, from Store, begin Position) error {
	snapshot, err := from.Snapshot(ctx, begin.Number)
	if err != nil {
		return err
	}
	if snapshot.Position != begin {
		return &Damage{After: begin, Offset: -1, Reason: "the snapshot with which the journal begins is not there or damaged"}
	}
	founder, can := to.(Founder)
	if !can {
		return berth.Errorf(berth.Invalid, "journal", "it cannot begin with record %d", begin.Number+1)
	}
	return founder.Found(ctx, begin, snapshot.Data)
}

// continues reports whether a journal goes on behind a place, by an error if not.
func continues(ctx context.Context, from Store, begin, last Position) error {
	if last == begin {
		return nil
	}
	for r, err := range from.Read(ctx, last.Number) {
		coded, is := errors.AsType[*berth.Error](err)
		switch {
		case is && coded.Code == berth.NotFound:
			return berth.Errorf(berth.Conflict, "journal", "the copy ends with record %d, and what is to be copied begins with record %d: copy it to an empty one", last.Number, begin.Number+1)
		case err != nil:
			return err
		case r.Hash == last.Hash:
			return nil
		}
		break
	}
	return berth.Errorf(berth.Conflict, "journal", "the copy has another history: its record %d is not one of what is to be copied", last.Number)
}

// records appends what follows.
func (c *Copied) records(ctx context.Context, to Appender, from Reader) error {
	var batch []Record
	size := 0
	write := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := to.Append(ctx, batch...); err != nil {
			return err
		}
		c.Last, c.Records = batch[len(batch)-1].Position(), c.Records+len(batch)
		batch, size = batch[:0], 0
		return nil
	}
	for r, err := range from.Read(ctx, c.Last.Number+1) {
		if err != nil {
			return err
		}
		batch = append(batch, r)
		size += len(r.Event) + len(r.Changes) + len(r.Effects)
		if len(batch) < copyRecords && size < copyBytes {
			continue
		}
		if err := write(); err != nil {
			return err
		}
	}
	return write()
}
