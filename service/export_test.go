package service

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/site"
)

// StretchesAtOnce is how many stretches the loop finds in one go.
const StretchesAtOnce = stretchesAtOnce

// Effects returns the effects that have not been settled.
func (h *Host) Effects(ctx context.Context) ([]change.Effect, error) {
	return call(ctx, h, "", func(answer func([]change.Effect, error)) { answer(h.core.engine.Outbox(), nil) })
}

// NoticesOf returns the number behind which the notices of later records come.
func NoticesOf(record uint64) uint64 { return record << noticeBits }

// OneByOne has effects settled, and reports of tasks decided, each in a turn of the loop of its own, and
// calls between, if there is one, in the loop behind each of them that others follow.
func (o *Options) OneByOne(between func(h *Host, turn int)) {
	turn := 0
	o.turn = -1
	o.turned = func(h *Host) {
		if turn++; between != nil {
			between(h, turn)
		}
	}
}

// WishesAreAsMadeAnew has what is remembered of what should be at a site compared with the same made anew.
func (o *Options) WishesAreAsMadeAnew(wrong func(kept, anew string)) {
	o.wished = func(kept, anew wish, same bool) {
		if !same || !reflect.DeepEqual(kept, anew) {
			wrong(fmt.Sprintf("%+v", kept), fmt.Sprintf("%+v", anew))
		}
	}
}

// Here does something in a turn of the loop.
func (h *Host) Here(ctx context.Context, do func() error) error { return look(ctx, h, do) }

// StopHere has the service stop, and returns which record is the last one now. It is of the loop.
func (h *Host) StopHere() uint64 {
	h.closing.Do(func() { close(h.stop) })
	return h.core.position.Number
}

// ReportedHere returns how many tasks of a workflow have an outcome. It is of the loop.
func (h *Host) ReportedHere(id string) (n int) {
	if f := h.core.flows.byID[id]; f != nil {
		for i := range f.tasks {
			if f.tasks[i].outcome != "" {
				n++
			}
		}
	}
	return n
}

// PromiseHere has a request decided. It is of the loop.
func (h *Host) PromiseHere(r berth.Request) error {
	return h.step(engine.Submit(&r), asked{id: r.ID}, nil)
}

// Check looks for contradictions in a running service.
func (h *Host) Check(ctx context.Context) error {
	return look(ctx, h, func() error { return h.core.Check() })
}

func look(ctx context.Context, h *Host, f func() error) error {
	_, err := call(ctx, h, "", func(answer func(struct{}, error)) { answer(struct{}{}, f()) })
	return err
}

// TellLeft tells that tasks cannot follow a promise at a site.
func (h *Host) TellLeft(ctx context.Context, site, id, trouble string) {
	h.tellLeft(ctx, site, id, trouble)
}

// Records returns how many records there are.
func (h *Host) Records(ctx context.Context) (uint64, error) {
	return call(ctx, h, "", func(answer func(uint64, error)) { answer(h.core.position.Number, nil) })
}

// LetGo follows jobs of a watched site and lets n of them go, and
// returns how many are remembered and how many are counted.
func LetGo(jobs int) (remembered, counted int) {
	c := &Core{shadows: map[string]*shadow{}}
	for i := range jobs {
		c.see(0, &sighting{site: "s", job: &ShadowJob{ID: decimal(berth.PE(i))}, gone: true})
	}
	w := c.shadows["s"]
	return len(w.past) + len(w.jobs), w.figures().Seen
}

// ReadConfig reads a configuration from a record or a snapshot.
var ReadConfig = readConfig

// CheckPicture compares the picture of a pool, as it follows what changes, with one that is
// drawn from everything, and reports whether it followed.
func (h *Host) CheckPicture(id berth.ResourceID) (followed bool, err error) {
	m, pool, err := h.pool(Principal{User: "root", Role: Operator}, id)
	if err != nil {
		return false, err
	}
	h.drawings.mu.Lock()
	k := h.drawings.of[id]
	h.drawings.mu.Unlock()
	if k != nil && k.drawing != nil {
		_, known := m.diary.since(k.drawing.number, m.number)
		followed = known && k.drawing.generation != m.generation(id)
	}
	d, _ := h.drawings.get(m, pool, id, "")
	exchanged := map[uint32]bool{} // by number: what may have had other PEs before
	m.cards.Scan(func(k *card) bool {
		if r := k.promise; r != nil && r.Generation > 0 && (r.State == berth.Active || k.end != "") {
			exchanged[uint32(r.Sequence)&^OutageBit] = true
		}
		return true
	})
	now := h.Now()
	if err := heldOnce(pool, d.pages, func(b, o *Bar) bool { return min(b.End, o.End) <= now && (exchanged[b.Number] || exchanged[o.Number]) }); err != nil {
		return followed, err
	}
	if d.number != m.number {
		return followed, nil // nothing changed since
	}
	p := painter{m: m, pool: pool, id: id, owners: maps.Clone(h.drawings.of[id].owners)}
	plain := p.draw()
	for name, of := range map[string][2][][]Bar{"fixed": {d.fixed, plain.fixed}, "all": {d.pages, plain.pages}, "unplaced": {{d.unplaced}, {plain.unplaced}}} {
		for i := range of[0] {
			if !slices.Equal(of[0][i], of[1][i]) {
				return followed, fmt.Errorf("page %d of %s is %+v, want %+v", i, name, of[0][i], of[1][i])
			}
		}
	}
	for i, g := range d.legs { // that begin as if all before were laid out anew
		if at := slices.Index(d.late, g.first); at < 0 || i == 0 && at != 0 {
			return followed, fmt.Errorf("leg %d begins with %+v", i, g.first)
		}
	}
	if !slices.Equal(d.late, plain.late) {
		return followed, fmt.Errorf("late are %+v, want %+v", d.late, plain.late)
	}
	return followed, nil
}

// heldOnce returns an error about a PE that two bars hold at a time, beside outages, and beside what is past of work
// that may have got other PEs: it is drawn on those that it had last.
func heldOnce(pool *berth.Pool, pages [][]Bar, past func(b, o *Bar) bool) error {
	of := make([][]Bar, pool.PEs)
	for _, page := range pages {
		for _, b := range page {
			for pe := b.First; b.Class != ClassOutage && pe < b.First+berth.PE(b.PEs); pe++ {
				for _, o := range of[pe] {
					if o.Start < b.End && b.Start < o.End && !past(&b, &o) {
						return fmt.Errorf("PE %d is held by %+v and by %+v", pe, o, b)
					}
				}
				of[pe] = append(of[pe], b)
			}
		}
	}
	return nil
}

// WithFiles is withFiles.
var WithFiles = withFiles

// Bring is what a task brings, to test the shell that does it.
type Bring struct {
	By       Transfer
	From, To string
}

// WithBrought is withFiles with inputs that are brought, and outputs whose checksums are left.
func WithBrought(task site.Task, inputs, outputs []string, bring []Bring, note []string) site.Task {
	list := make([]brought, len(bring))
	for i := range bring {
		list[i] = brought{&bring[i].By, bring[i].From, bring[i].To}
	}
	return withFiles(task, inputs, outputs, list, note)
}

// CheckWriters is checkWriters, and WritersOf writersOf.
var (
	CheckWriters = checkWriters
	WritersOf    = writersOf
)

// RecordSince is recordSince.
func (h *Host) RecordSince(ctx context.Context, from uint64, since berth.Time, few uint64) (uint64, error) {
	return h.recordSince(ctx, from, since, few)
}

// MadeAt is madeAt.
var MadeAt = madeAt

// OweAtMost has hooks be owed no more than some notices.
func (h *Host) OweAtMost(ctx context.Context, most int) error {
	return look(ctx, h, func() error {
		h.core.hooks.most = most
		return nil
	})
}

// SameAgain returns an error if the hooks of a host are not as a core has them that follows the journal
// from its first record on.
func SameAgain(ctx context.Context, h *Host, store journal.Reader) error {
	return look(ctx, h, func() error {
		var decoder record.Decoder
		again, err := newCore(h.core.config, "test", 1<<30)
		if err != nil {
			return err
		}
		again.hooks.most = h.core.hooks.most
		for rec, err := range store.Read(ctx, 1) {
			if err == nil {
				err = again.Follow(&rec, &decoder)
			}
			if err != nil {
				return err
			}
		}
		if again.position.Number != h.core.position.Number {
			return nil // not all is durable
		}
		write := func(c *Core) []byte {
			w := wire.Writer(nil)
			s := saved{Hooks: c.savedHooks()}
			s.code(w)
			return w.Bytes()
		}
		is, was := write(h.core), write(again)
		if !bytes.Equal(is, was) {
			return fmt.Errorf("hooks are %d bytes, followed again %d: %+v\n%+v", len(is), len(was), h.core.savedHooks(), again.savedHooks())
		}
		restored, err := restoreCore(must(h.core.Snapshot()), h.core.position, "test", 1<<30)
		if err == nil && !bytes.Equal(write(restored), is) {
			err = fmt.Errorf("hooks of a snapshot are others")
		}
		return err
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// NamesSeen returns how many entries are kept of names of promises that were seen at a site.
func (h *Host) NamesSeen(ctx context.Context, at string) (int, error) {
	return call(ctx, h, "", func(answer func(int, error)) {
		k := h.sites[at]
		answer(len(k.mine)+len(k.ids), nil)
	})
}
