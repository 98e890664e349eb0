package service

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// Schedule returns what a journal says was decided, as lines of a schedule file
// in the order of arrival: everything that was refused, and everything that
// holds or has held PEs, where it was in the end, with the PEs that it had at each time. What
// was given back before it began is left out. What was out of use when has lines of its own. What
// was extended has the deadline that it has by that. What runs loses the PEs of an announced outage when that begins.
// Cost: the whole journal, from the oldest state that it keeps.
func Schedule(ctx context.Context, store journal.Store) ([]berth.Line, error) {
	var core *Core
	var held *heldPast
	err := whileKept(func() (err error) {
		core, err = historySeen(ctx, store, func(from *Core) (look func(*past)) {
			held = newHeldPast(from)
			return held.follow
		})
		return err
	})
	if err != nil || core == nil {
		return nil, err
	}
	held.expect(core)
	var lines []berth.Line
	core.cards.Scan(func(k *card) bool {
		lines = append(lines, k.lines(&core.config, held)...)
		return true
	})
	lines = append(lines, held.told()...)
	slices.SortStableFunc(lines, func(a, b berth.Line) int { return cmp.Compare(a.Arrival, b.Arrival) })
	berth.TellSizes(lines, core.config.Sites)
	return lines, nil
}

// history follows a journal from the oldest state that it keeps, and forgets
// nothing. It is nil if the journal is empty.
func history(ctx context.Context, store journal.Store) (*Core, error) {
	return historySeen(ctx, store, func(*Core) func(*past) { return nil })
}

// historySeen is history, and calls begin with the core of the oldest state, nil for none; what that returns, if
// it is not nil, sees each record that follows.
func historySeen(ctx context.Context, store journal.Store, begin func(*Core) func(*past)) (core *Core, err error) {
	from := uint64(0)
	if c, drops := store.(journal.Compactor); drops {
		first, err := c.Begin(ctx)
		if err != nil {
			return nil, err
		}
		if from = first.Number; from > 0 {
			snapshot, err := store.Snapshot(ctx, from)
			if err != nil {
				return nil, err
			}
			if core, err = restoreCore(snapshot.Data, snapshot.Position, "", math.MaxInt); err != nil {
				return nil, fmt.Errorf("the snapshot at record %d: %w", from, err)
			}
		}
	}
	return historyBehind(ctx, store, core, from, begin(core))
}

// historyBehind follows a journal behind a record on from a core, nil for none yet, and forgets nothing. look, which may be
// nil, sees each record before. With an error it returns the core as it was before the record that could not be read or followed.
func historyBehind(ctx context.Context, store journal.Reader, core *Core, after uint64, look func(*past)) (*Core, error) {
	var decoder record.Decoder
	for rec, err := range store.Read(ctx, after+1) {
		if err != nil {
			return core, err
		}
		p, err := parsePast(&rec, &decoder)
		if err == nil && core == nil && p.in.config != nil {
			core, err = newCore(*p.in.config, "", math.MaxInt)
		}
		if err == nil && core == nil {
			err = fmt.Errorf("nothing says which configuration was in force")
		}
		if err == nil && look != nil {
			look(&p)
		}
		if err == nil {
			err = core.followPast(&p)
		}
		if err != nil {
			return core, fmt.Errorf("record %d: %w", rec.Number, err)
		}
	}
	return core, nil
}

// lines returns what a card says, a line for each part.
func (k *card) lines(config *engine.Config, held *heldPast) []berth.Line {
	r := k.request
	line := berth.Line{
		ID: k.id, Kind: cmp.Or(r.Kind, berth.KindRequest), User: r.User, Arrival: r.Arrival, Ready: r.Ready, Deadline: r.Deadline,
		Wanted: berth.WantedOf(r, 0),
	}
	if line.Deadline >= berth.Forever {
		line.Deadline = 0 // a job without one
	}
	first := r.Parts[0].Variants[0]
	line.NPE, line.Duration = first.NPE, first.Duration
	ended := k.ended(held)
	switch {
	case k.end == Refused || k.end == Expired:
		line.Reason = berth.Expired
		if k.refusal != nil {
			line.Reason = k.refusal.Reason
		}
		return []berth.Line{line}
	case k.promise == nil || k.gaveBack(held):
		return nil // pending, or given back before it began
	}
	var lines []berth.Line
	for part, a := range k.promise.Allotments {
		of := line
		of.Accepted, of.Site, of.Pool = true, a.Resource.Site, a.Resource.Name
		of.NPE, of.Duration, of.Start, of.End = a.NPE, a.End.Sub(a.Start), &a.Start, &a.End
		of.Wanted = berth.WantedOf(r, part)
		if of.Extended = k.extended(config, part); of.Extended > 0 && of.Deadline > 0 {
			of.Deadline = max(of.Deadline, a.End)
		}
		if len(k.promise.Allotments) > 1 {
			of.Part = part + 1
		}
		if fails, is := held.fails[k.id]; is && fails < a.End {
			of.ActualEnd = &fails
		}
		if k.end != "" && ended < a.End {
			of.ActualEnd = &ended
		}
		held.tell(&of, k.id, part)
		lines = append(lines, of)
	}
	return lines
}

// ended returns when what is over gave its PEs back.
func (k *card) ended(held *heldPast) berth.Time {
	if at, noted := held.over[k.id]; noted {
		return at
	}
	return k.until // the record of that has been dropped
}

// gaveBack reports whether a promise gave its PEs back before it began.
func (k *card) gaveBack(held *heldPast) bool {
	return k.end != "" && (k.promise.Start() >= k.ended(held) || held.idle[k.id])
}

// extended returns how much longer the place of a promise is than what was asked
// for takes there: a promise of one part is extended by so much.
func (k *card) extended(config *engine.Config, part int) berth.Duration {
	if len(k.promise.Allotments) > 1 || k.request.IsJob() {
		return 0
	}
	a := &k.promise.Allotments[part]
	length := a.End.Sub(a.Start)
	for _, t := range k.promise.Transfers {
		if t.Site == a.Resource.Site && (config.Staging == engine.StagingHold || k.request.Task != nil) {
			length -= t.End.Sub(t.Start)
		}
	}
	speed := speedAt(config, a.Resource, &k.request.Requirements)
	least := length
	for _, v := range k.request.Parts[part].Variants {
		if over := length - speed.Scale(v.Duration); v.NPE == a.NPE+k.promise.Missing && over >= 0 {
			least = min(least, over)
		}
	}
	if least == length { // none of its sizes: nothing can be said
		return 0
	}
	return least
}

// speedAt returns the speed at which a pool serves what has these requirements.
func speedAt(config *engine.Config, id berth.ResourceID, r *berth.Requirements) berth.Speed {
	for i := range config.Sites {
		for k := range config.Sites[i].Pools {
			if pool := &config.Sites[i].Pools[k]; berth.PoolID(config.Sites[i].Name, pool.Name) == id {
				return pool.SpeedFor(r)
			}
		}
	}
	return berth.StandardSpeed
}
