package dst

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// rot makes the newest snapshot unreadable, and reports whether there is one that may be.
func (m *media) rot() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.snapshots); n > 0 && m.snapshots[n-1].Number > m.begin.Number {
		m.rotten[m.snapshots[n-1].Number] = true
		return true
	}
	return false
}

// look opens what is left of the journal between two lives.
func (w *world) look() (journal.Store, error) {
	switch k := w.kept.(type) {
	case *inMemory:
		return openMemory(k.media.image(), nil)
	case *inDatabase:
		return openMemory(k.db.image(), nil)
	case *onDisk:
		return sqlite.Open(k.place(), sqlite.Options{})
	}
	return nil, errors.New("no such journal")
}

// withoutSnapshots is a journal that shows its records and no snapshot.
type withoutSnapshots struct{ journal.Store }

func (withoutSnapshots) Snapshot(context.Context, uint64) (journal.Snapshot, error) {
	return journal.Snapshot{}, nil
}

// audit checks what a life has left, and returns the place in the journal. That every event is decided again as it was, and
// that the schedule is valid, is looked at once for all lives, unless history is dropped in between.
func (w *world) audit(last bool) string {
	store, err := w.look()
	if err != nil {
		w.fault("opening what is left: %w", err)
		return ""
	}
	defer func() {
		if err := store.Close(); err != nil {
			w.fault("closing what is left: %w", err)
		}
	}()
	ctx := context.Background()
	end, err := store.Last(ctx)
	if err != nil {
		w.fault("reading what is left: %w", err)
		return ""
	}
	if end.Number == 0 {
		return "empty"
	}
	if w.plant.whole {
		w.tell(ctx, store)
	}
	if err := w.sameState(ctx, store); err != nil {
		w.fault("%w", err)
		return ""
	}
	if last || w.plan.has(featureCompact) {
		if _, err := service.Verify(ctx, store, nil); err != nil && !slices.Contains(decidedOtherwise, w.plan.before) {
			w.fault("deciding the events again: %w", err)
			return ""
		}
		if err := w.valid(ctx, store); err != nil && w.before == 0 { // what an earlier version decided is as it is
			w.fault("%w", err)
		}
	}
	return fmt.Sprint(end.Number, " ", end.Hash)
}

// tell adds what is left to the trace, record by record.
func (w *world) tell(ctx context.Context, store journal.Store) {
	from := uint64(1)
	if begin, err := store.(journal.Compactor).Begin(ctx); err == nil {
		from = begin.Number + 1
	}
	for rec, err := range store.Read(ctx, from) {
		if err != nil {
			w.fault("reading what is left: %w", err)
			return
		}
		w.record("record %d of %d: event %.300q, changes %.300q, effects %.300q", rec.Number, rec.At, rec.Event, rec.Changes, rec.Effects)
	}
}

// replay is the state by all records up to a place, which each audit follows on from.
type replay struct {
	core    *service.Core
	at      journal.Position
	decoder record.Decoder
}

// follow brings it to the end of a journal.
func (r *replay) follow(ctx context.Context, store journal.Store, w *world) error {
	end, err := store.Last(ctx)
	if err != nil {
		return err
	}
	if r.core != nil {
		for rec, err := range store.Read(ctx, r.at.Number) {
			if err != nil {
				return err
			}
			if rec.Number > r.at.Number {
				err = r.core.Follow(&rec, &r.decoder)
			} else if rec.Position() != r.at {
				err = fmt.Errorf("record %d is another one than after the last life", rec.Number)
			}
			if err != nil {
				return err
			}
		}
	} else if r.core, err = service.Recover(ctx, withoutSnapshots{store}, w.config, "test", w.plan.keep); err != nil {
		return err
	}
	r.at = end
	return nil
}

// checkedState returns a state that contradicts itself nowhere.
func checkedState(core *service.Core) ([]byte, error) {
	if err := core.Check(); err != nil {
		return nil, err
	}
	return core.Snapshot()
}

// sameState compares the state by the newest snapshot and what follows it with that by all records.
func (w *world) sameState(ctx context.Context, store journal.Store) error {
	core, err := service.Recover(ctx, store, w.config, "test", w.plan.keep)
	if err != nil {
		return fmt.Errorf("recovering: %w", err)
	}
	short, err := checkedState(core)
	if err != nil {
		return fmt.Errorf("recovering: %w", err)
	}
	if begin, err := store.(journal.Compactor).Begin(ctx); err != nil || begin.Number > 0 || w.before > 0 {
		return err // the beginning has been dropped, or the snapshot is of an earlier version, which knew less
	}
	newest, err := store.Snapshot(ctx, math.MaxUint64)
	if err != nil || newest.Data == nil {
		return err // it is the state by all records
	}
	if err := w.replayed.follow(ctx, store, w); err != nil {
		return fmt.Errorf("following all records: %w", err)
	}
	long, err := checkedState(w.replayed.core)
	if err != nil {
		return fmt.Errorf("recovering from the first record on: %w", err)
	}
	if !bytes.Equal(short, long) {
		at := 0
		for at < min(len(short), len(long)) && short[at] == long[at] {
			at++
		}
		around := func(b []byte) []byte { return b[max(0, at-60):min(len(b), at+60)] }
		return fmt.Errorf("the newest snapshot and what follows it give another state than all records, from byte %d on: %q, all records %q", at, around(short), around(long))
	}
	return nil
}

// valid has the validator judge the schedule that the journal tells.
func (w *world) valid(ctx context.Context, store journal.Store) error {
	lines, err := service.Schedule(ctx, store)
	if err != nil {
		return fmt.Errorf("the schedule: %w", err)
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return err
		}
	}
	report, err := check.File(bytes.NewReader(file.Bytes()), "journal", check.Against(w.config.Sites, 0))
	if err != nil {
		return fmt.Errorf("the schedule: %w", err)
	}
	// What gives up PEs after its start and before it runs may name no outage (seed 156): that is not held against it.
	// Of what had other PEs before history was dropped, it is not known any more which those were and how many, nor when what was
	// held until after its start began.
	unknown, late := map[string]bool{}, map[string]bool{}
	if begin, err := store.(journal.Compactor).Begin(ctx); err == nil && begin.Number > 0 {
		from := berth.Forever
		for rec, err := range store.Read(ctx, begin.Number+1) {
			if err == nil {
				from = rec.At
			}
			break
		}
		for i := range lines {
			id, before := lines[i].ID, lines[i].Accepted && lines[i].Arrival <= from
			unknown[id] = before && lines[i].PEs.Empty()
			late[id] = before && w.made[id] != nil && strings.Contains(w.made[id].body, `"hold"`)
		}
	}
	wrong := slices.DeleteFunc(report.Violations, func(v check.Violation) bool {
		among := func(known map[string]bool) bool {
			return slices.ContainsFunc(v.IDs, func(id string) bool { return known[id] })
		}
		return v.Class == check.Resized || v.Class == check.Capacity && among(unknown) || v.Class == check.Identity && among(late)
	})
	if len(wrong) > 0 {
		said, about := fmt.Sprint(wrong[0]), ""
		for i := range lines {
			if text, err := json.Marshal(&lines[i]); err == nil && (lines[i].Kind == berth.KindOutage || strings.Contains(said, lines[i].ID)) {
				about += "\n" + string(text)
			}
		}
		return fmt.Errorf("the schedule is not valid: %s%s", said, about)
	}
	return nil
}
