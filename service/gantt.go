package service

import (
	"context"
	"math"
	"slices"
	"strings"

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
	IsAnnounced // of an outage that has not begun
)

// OutageBit marks the numbers of outages, which are counted apart from promises.
const OutageBit uint32 = 1 << 31

// Bar is what holds a run of PEs of a pool for some time. A promise has one bar for each
// run of its PEs. It names no user.
type Bar struct {
	Start, End berth.Time
	First      berth.PE
	PEs        berth.Count
	Number     uint32 // names the promise, the job or the outage; see Host.Spans
	Class      Class
	Flags      Flags
	owner      uint32 // numbers the user, from 1 on; 0 of an outage
}

// Picture is what holds the PEs of one pool. Its bars are shared and must not be written.
type Picture struct {
	PEs berth.Count // of the pool
	// Pages are all bars by First, Start and Number. A PE has one of them at a time,
	// beside outages, which may be where something is promised, and where others are. A page without changes is the same slice
	// in the next picture, so that who keeps something made of it sees what to make anew.
	Pages [][]Bar
	// Unplaced are promises to which no PE can be assigned now. Under late binding, while too
	// many PEs are out of use, they hold some and are provisional; others are the PEs that
	// degraded promises lack, which hold nothing. First is 0.
	Unplaced []Bar
	// Generation grows whenever the picture may have changed.
	Generation uint64
	// Event is the event behind which changes of the picture are told.
	Event uint64
	// Yours says whether some of the bars may be of the user who asked. Pictures of others
	// are the same for all of them.
	Yours bool
	you   uint32
}

// Shown returns the flags of a bar for the user who asked for the picture.
func (p *Picture) Shown(b *Bar) Flags {
	if p.you != 0 && b.owner == p.you {
		return b.Flags | IsMine
	}
	return b.Flags
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
	// Rows are the nodes by PE; empty for a pool whose nodes the site does not tell.
	Rows []Row
}

// Gantt returns what holds PEs of a pool, from what is remembered. All may see that;
// whose it is the picture says of one's own alone. The error is NotFound if there is no such
// pool. Cost: O(c p) for c changes since it was asked for last, each of one of at most
// maxPages pages of p bars, or O(n log n) for n requests that are live or remembered; beside
// the loop.
func (h *Host) Gantt(ctx context.Context, by Principal, id berth.ResourceID) (Picture, error) {
	m, pool, err := h.pool(by, id)
	if err != nil {
		return Picture{}, err
	}
	d, you := h.drawings.get(m, pool, id, by.User)
	return Picture{
		PEs: pool.PEs, Pages: d.pages, Unplaced: d.unplaced, Generation: d.generation, Event: m.number<<noticeBits | (1<<noticeBits - 1), Yours: you != 0, you: you,
	}, ctx.Err()
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
	unit := k.ground.Load().layout.Unit()
	for first := berth.PE(0); first < berth.PE(pool.PEs); {
		shares, known := k.ground.Load().layout.Shares(id.Name, berth.NewPESet(berth.Run{Lo: first, Hi: first + 1}))
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
	spans := m.occupation(by, window{siteName, math.MinInt64, math.MaxInt64, Mark{Start: math.MinInt64}})
	spans = slices.DeleteFunc(spans, func(s Span) bool { return s.Mark.InPictures() != number })
	if len(spans) == 0 {
		return nil, berth.Errorf(berth.NotFound, "number", "%d: nothing of that number is remembered at %q; ask for /v1/gantt again", number, siteName)
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.Mark.Compare(b.Mark) })
	return spans, ctx.Err()
}

// Named returns the numbers that pictures of a pool have for promises and jobs whose user, name or id
// contains a text, whatever its case, of those whose owner a principal sees. The error is NotFound if there is no
// such pool. Cost: O(n) for n requests that are live or remembered; beside the loop.
func (h *Host) Named(ctx context.Context, by Principal, id berth.ResourceID, text string) ([]uint32, error) {
	m, _, err := h.pool(by, id)
	if err != nil {
		return nil, err
	}
	text = strings.ToLower(text)
	numbers := []uint32{}
	m.cards.Scan(func(k *card) bool {
		if k.promise == nil || !slices.ContainsFunc(k.promise.Allotments, func(a berth.Allotment) bool { return a.Resource == id }) {
			return true
		}
		for _, name := range []string{k.request.User, k.request.Name, k.id} {
			if strings.Contains(strings.ToLower(name), text) {
				if k.seenBy(by) && !h.shadowed(k.request) {
					numbers = append(numbers, uint32(k.promise.Sequence)&^OutageBit)
				}
				break
			}
		}
		return true
	})
	slices.Sort(numbers)
	return numbers, ctx.Err()
}

// InPictures returns the number that bars of what has a mark have in pictures.
func (m Mark) InPictures() uint32 {
	if m.Accepted {
		return uint32(m.Number) &^ OutageBit
	}
	return uint32(m.Number) | OutageBit
}

// knows returns the error about a site that a principal may not look at.
func (m *model) knows(by Principal, name string) error {
	if !by.Can(Viewer) {
		return berth.Errorf(berth.Denied, "role", "%q is no role", by.Role)
	}
	if !by.Sites.Has(name) || !slices.ContainsFunc(m.config.Sites, func(s berth.Site) bool { return s.Name == name }) {
		return noSite(name)
	}
	return nil
}

// pool returns a pool that a principal may look at.
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
