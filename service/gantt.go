package service

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Class is what a bar of a picture is.
type Class uint8

// The classes. A cell that several touch shows the one with the most PE-seconds.
const (
	ClassFree Class = iota // of cells alone
	ClassPromise
	ClassJob
	ClassDegraded
	ClassOutage
)

// Flags says more about a bar.
type Flags uint8

// The flags.
const (
	Provisional Flags = 1 << iota // the PEs are chosen at the start; these are where they would be now
	OpenStart                     // the true start lies before the one shown
	OpenEnd                       // the end lies behind the one shown, or is unknown
	IsHeld
	IsActive
	IsMine // of the user who asks
	IsOver
)

// OutageBit marks the numbers of outages, which are counted apart from promises.
const OutageBit uint32 = 1 << 31

// Bar is what holds a run of PEs of a pool for some time. A promise has one bar for each
// run of its PEs. It names nobody.
type Bar struct {
	Start, End berth.Time
	First      berth.PE
	PEs        berth.Count
	Number     uint32 // names the promise, the job or the outage; see Host.Spans
	Class      Class
	Flags      Flags
}

// Picture is what holds the PEs of one pool in a window of time.
type Picture struct {
	PEs  berth.Count // of the pool
	Bars []Bar       // by First, Start and Number
	// Unplaced are promises to which no PE can be assigned now, although they hold some:
	// under late binding, while too many PEs are out of use. First is 0.
	Unplaced []Bar
	// Generation grows whenever the picture may have changed.
	Generation uint64
	// Event is the event behind which changes of the picture are told.
	Event uint64
}

// Row is a node of a pool and its PEs.
type Row struct {
	Name  string
	First berth.PE
	PEs   berth.Count
}

// PoolRows is what the rows of a picture stand for.
type PoolRows struct {
	PEs     berth.Count
	Binding berth.Binding
	// Rows are the nodes by PE; empty of a pool of which no site tells the nodes.
	Rows []Row
}

// bar is a Bar with its user.
type bar struct {
	Bar
	user string
}

// drawing is the whole picture of a pool at one generation. It is not written any more.
type drawing struct {
	generation uint64
	bars       []bar
	unplaced   []bar
}

// drawings keeps the latest drawing of each pool, so that all who look at one generation
// share the work. The zero value is empty.
type drawings struct {
	mu sync.Mutex
	of map[berth.ResourceID]*shelf
}

type shelf struct {
	mu      sync.Mutex // one draws, the others wait for it
	drawing *drawing
}

// get returns the drawing of a pool that the model shows.
func (d *drawings) get(m *model, pool *berth.Pool, id berth.ResourceID) *drawing {
	d.mu.Lock()
	if d.of == nil {
		d.of = map[berth.ResourceID]*shelf{}
	}
	k := d.of[id]
	if k == nil {
		k = &shelf{}
		d.of[id] = k
	}
	d.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation := m.generation(id); k.drawing == nil || k.drawing.generation != generation {
		k.drawing = m.draw(pool, id)
	}
	return k.drawing
}

// Gantt returns what holds PEs of a pool at some time in [from, to), as far as it is
// remembered. All may see that; whose it is the picture says of one's own alone. The error
// is NotFound if there is no such pool. Cost: O(n log n) for n requests that are live or
// remembered, once for each generation, and then O(n); beside the loop.
func (h *Host) Gantt(ctx context.Context, by Principal, id berth.ResourceID, from, to berth.Time) (Picture, error) {
	m, pool, err := h.pool(by, id)
	if err != nil {
		return Picture{}, err
	}
	d := h.drawings.get(m, pool, id)
	p := Picture{PEs: pool.PEs, Generation: d.generation, Event: m.number<<noticeBits | (1<<noticeBits - 1)}
	p.Bars, p.Unplaced = window(d.bars, by.User, from, to), window(d.unplaced, by.User, from, to)
	return p, ctx.Err()
}

// GanttGeneration returns the generation of the picture of a pool, without drawing it.
func (h *Host) GanttGeneration(by Principal, id berth.ResourceID) (uint64, error) {
	m, _, err := h.pool(by, id)
	if err != nil {
		return 0, err
	}
	return m.generation(id), nil
}

// Rows returns what the rows of the picture of a pool stand for. The error is NotFound if
// there is no such pool.
func (h *Host) Rows(_ context.Context, by Principal, id berth.ResourceID) (PoolRows, error) {
	_, pool, err := h.pool(by, id)
	if err != nil {
		return PoolRows{}, err
	}
	r := PoolRows{PEs: pool.PEs, Binding: pool.Binding}
	k := h.sites[id.Site]
	if k == nil {
		return r, nil
	}
	unit := k.manager.Layout.Unit()
	for first := berth.PE(0); first < berth.PE(pool.PEs); {
		shares, known := k.manager.Layout.Shares(id.Name, berth.NewPESet(berth.Run{Lo: first, Hi: first + 1}))
		if !known || len(shares) != 1 {
			r.Rows = nil
			return r, nil
		}
		if n := len(r.Rows); n > 0 && r.Rows[n-1].Name == shares[0].Node && unit == site.UnitCore {
			r.Rows[n-1].PEs++
		} else {
			r.Rows = append(r.Rows, Row{Name: shares[0].Node, First: first, PEs: 1})
		}
		first++
	}
	return r, nil
}

// Spans returns what a number of a picture stands for at a site: the parts of a promise or
// a job, or an outage. Whose it is only the owner and operators see. The error is NotFound
// if nothing of that number is remembered there.
func (h *Host) Spans(ctx context.Context, by Principal, siteName string, number uint32) ([]Span, error) {
	m, err := h.seen()
	if err != nil {
		return nil, err
	}
	if err := m.knows(by, siteName); err != nil {
		return nil, err
	}
	spans := m.occupation(by, siteName, math.MinInt64, math.MaxInt64, Mark{Start: math.MinInt64})
	spans = slices.DeleteFunc(spans, func(s Span) bool { return numbered(s.Mark) != number })
	if len(spans) == 0 {
		return nil, berth.Errorf(berth.NotFound, "number", "%d: nothing of that number is remembered at %q; ask for /v1/gantt again", number, siteName)
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.Mark.Compare(b.Mark) })
	return spans, ctx.Err()
}

// numbered returns the number in pictures of what has a mark.
func numbered(m Mark) uint32 {
	if m.Accepted {
		return uint32(m.Number) &^ OutageBit
	}
	return uint32(m.Number) | OutageBit
}

// knows returns the error about a site that somebody may not look at.
func (m *model) knows(by Principal, name string) error {
	if !by.Can(Viewer) {
		return berth.Errorf(berth.Denied, "role", "%q is no role", by.Role)
	}
	if !by.Sites.Has(name) || !slices.ContainsFunc(m.config.Sites, func(s berth.Site) bool { return s.Name == name }) {
		return noSite(name)
	}
	return nil
}

// pool returns a pool that somebody may look at.
func (h *Host) pool(by Principal, id berth.ResourceID) (*model, *berth.Pool, error) {
	m, err := h.seen()
	if err != nil {
		return nil, nil, err
	}
	if err := m.knows(by, id.Site); err != nil {
		return nil, nil, err
	}
	for i := range m.config.Sites {
		s := &m.config.Sites[i]
		for j := range s.Pools {
			if s.Name == id.Site && s.Pools[j].Name == id.Name {
				return m, &s.Pools[j], nil
			}
		}
	}
	return nil, nil, berth.Errorf(berth.NotFound, "pool", "no pool %q at %q", id.Name, id.Site)
}

// window returns the bars of a window, with those of a user marked.
func window(all []bar, user string, from, to berth.Time) []Bar {
	bars := make([]Bar, 0, len(all))
	for i := range all {
		b := all[i].Bar
		if b.Start >= to || b.End <= from {
			continue
		}
		if all[i].user != "" && all[i].user == user {
			b.Flags |= IsMine
		}
		bars = append(bars, b)
	}
	return bars
}

// draw draws a pool.
func (m *model) draw(pool *berth.Pool, id berth.ResourceID) *drawing {
	d := &drawing{generation: m.generation(id)}
	var late []unbound
	for i := range m.outages {
		o := &m.outages[i]
		if o.Resource == id && o.From < o.Until {
			b := Bar{Start: o.From, End: o.Until, Number: uint32(o.Number) | OutageBit, Class: ClassOutage}
			if o.From == 0 {
				b.Flags |= OpenStart
			}
			if o.Until >= berth.Forever {
				b.Flags |= OpenEnd
			}
			d.bars = appendRuns(d.bars, bar{Bar: b}, o.PEs)
		}
	}
	m.cards.Scan(func(k *card) bool {
		if k.promise == nil {
			return true
		}
		for part := range k.promise.Allotments {
			a := k.promise.Allotments[part]
			if a.Resource != id {
				continue
			}
			if k.end != "" {
				a.End = min(a.End, k.changed)
			}
			if a.Start >= a.End {
				continue
			}
			b := bar{Bar{Start: a.Start, End: a.End, PEs: a.NPE, Number: uint32(k.promise.Sequence) &^ OutageBit, Class: k.class(), Flags: k.flags()}, k.request.User}
			if a.End >= berth.Forever {
				b.Flags |= OpenEnd
			}
			if a.PEs.Empty() {
				late = append(late, unbound{b, k.promise.Sequence, part})
				continue
			}
			d.bars = appendRuns(d.bars, b, a.PEs)
		}
		return true
	})
	d.layOut(pool, late)
	slices.SortFunc(d.bars, compareBars)
	slices.SortFunc(d.unplaced, compareBars)
	return d
}

func compareBars(a, b bar) int {
	return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Number, b.Number), cmp.Compare(a.PEs, b.PEs))
}

// appendRuns appends one bar for each run of PEs.
func appendRuns(bars []bar, b bar, pes berth.PESet) []bar {
	for _, r := range pes.Runs() {
		b.First, b.PEs = r.Lo, berth.Count(r.Hi-r.Lo)
		bars = append(bars, b)
	}
	return bars
}

// class returns what the bars of a card are.
func (k *card) class() Class {
	switch {
	case k.request.IsJob():
		return ClassJob
	case k.end == "" && (k.promise.State == berth.Degraded || k.promise.Missing > 0):
		return ClassDegraded
	}
	return ClassPromise
}

func (k *card) flags() Flags {
	switch {
	case k.end != "":
		return IsOver
	case k.promise.State == berth.Held:
		return IsHeld
	case k.promise.State == berth.Active:
		return IsActive
	}
	return 0
}

// unbound is a bar without PEs, and its place in the order of starts.
type unbound struct {
	bar
	sequence uint64
	part     int
}
