package service

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// Verified is what Verify found to be right.
type Verified struct {
	From, To journal.Position // the first place and the last
	Records  int
	// State is the hash of the engine's state at the end.
	State string
}

// Verify reads a journal from its beginning, or from the oldest state that is
// kept if its beginning was dropped, checks the chain of hashes, decides every
// event again under the configuration of its time, and compares. The error says
// at which record what differs.
func Verify(ctx context.Context, store journal.Store, progress func(number uint64)) (v Verified, err error) {
	err = whileKept(func() error {
		v, err = verify(ctx, store, progress)
		return err
	})
	return v, err
}

// whileKept reads a journal, and begins again where it begins now if a service has dropped meanwhile what
// was to be read next.
func whileKept(read func() error) error {
	const most = 20 // else it is no longer what a service does
	for try := 1; ; try++ {
		err := read()
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.NotFound || try == most {
			return err
		}
	}
}

func verify(ctx context.Context, store journal.Store, progress func(number uint64)) (Verified, error) {
	var v Verified
	var judge *engine.Engine
	if c, drops := store.(journal.Compactor); drops {
		begin, err := c.Begin(ctx)
		if err != nil {
			return v, err
		}
		if v.From = begin; begin.Number > 0 {
			snapshot, err := store.Snapshot(ctx, begin.Number)
			if err != nil {
				return v, err
			}
			core, err := restoreCore(snapshot.Data, snapshot.Position, "", 1)
			if err != nil {
				return v, fmt.Errorf("the snapshot at record %d: %w", begin.Number, err)
			}
			judge = core.engine
		}
	}
	v.To = v.From
	var decoder record.Decoder
	err := ahead(ctx, store, v.From.Number, parseRecord, func() error { return nil }, func(p *verifiable) (err error) {
		if judge, err = redecide(judge, p, &decoder); err != nil {
			return err
		}
		v.To, v.Records = p.rec.Position(), v.Records+1
		if progress != nil {
			progress(p.rec.Number)
		}
		return nil
	})
	if u, is := errors.AsType[*unreadable](err); is {
		return v, u.err // which says where
	}
	if err != nil {
		return v, err
	}
	if judge != nil {
		if err := judge.Check(); err != nil {
			return v, err
		}
		v.State = judge.Hash()
	}
	return v, nil
}

// verifiable is a record and what came in with it.
type verifiable struct {
	rec journal.Record
	in  input
}

func parseRecord(rec *journal.Record, decoder *record.Decoder) (p verifiable, err error) {
	p.rec = *rec
	p.in, err = parseInput(rec.Event, decoder)
	return p, err
}

// redecide decides a record again and returns the engine after it.
func redecide(judge *engine.Engine, p *verifiable, decoder *record.Decoder) (*engine.Engine, error) {
	in, err := &p.in, error(nil)
	switch {
	case in.event == nil && in.config == nil && len(p.rec.Changes) > 0:
		err = errors.New("it changes something, and only tells what was seen or answered")
	case in.event == nil && in.config == nil:
		return judge, nil
	case in.config != nil && judge == nil:
		judge, err = engine.New(*in.config)
	case in.config != nil:
		judge, err = engine.Restore(*in.config, judge.Snapshot())
	case judge == nil:
		err = errors.New("nothing says which configuration was in force")
	default:
		return judge, decoder.RedecideEvent(judge, &p.rec, *in.event)
	}
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", p.rec.Number, err)
	}
	return judge, nil
}

// Export writes the records of a journal from a number on as JSON Lines.
func Export(ctx context.Context, store journal.Reader, from uint64, w io.Writer) (journal.Position, error) {
	var decoder record.Decoder
	return journal.Export(w, store.Read(ctx, from), func(rec *journal.Record) (journal.Line, error) {
		in, err := parseInput(rec.Event, &decoder)
		if err != nil || in.event == nil {
			return journal.Plain(rec)
		}
		plain := *rec
		plain.Event = record.AppendEvent(nil, in.event)
		return decoder.Line(&plain)
	})
}
