package service

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// Span is what holds PEs of a pool at a site for some time: a reservation, a job
// or an outage.
type Span struct {
	Kind berth.Kind // berth.KindRequest, berth.KindJob or berth.KindOutage
	berth.Allotment
	State State // empty of an outage
	// ID, User and Name, which may be empty, are there for those only who own it.
	ID, User, Name string
	// Seen is when an outage without a start was first seen; it began by then.
	Seen berth.Time
	Mark Mark // its place in the order
}

// Mark is the place of a Span among all: spans are ordered by start, then
// outages before what was accepted, then by number, and by part.
type Mark struct {
	Start    berth.Time
	Accepted bool
	Number   uint64
	Part     int
}

// Compare orders marks.
func (m Mark) Compare(o Mark) int {
	kind := 0
	switch {
	case m.Accepted && !o.Accepted:
		kind = 1
	case !m.Accepted && o.Accepted:
		kind = -1
	}
	return cmp.Or(cmp.Compare(m.Start, o.Start), kind, cmp.Compare(m.Number, o.Number), cmp.Compare(m.Part, o.Part))
}

// Occupation returns what holds PEs of a site at some time in [from, to), as far
// it is remembered, behind a mark and at most limit, in order. All may
// see that; whose it is only the owner and operators see. The error is NotFound
// if there is no such site. Cost: O(log n) for each change since it was asked for last and for
// each that holds PEs then, for n requests that are live or remembered; O(n log n) for the first.
func (h *Host) Occupation(ctx context.Context, by Principal, site string, from, to berth.Time, after Mark, limit int) ([]Span, error) {
	if !by.Can(Viewer) {
		return nil, berth.Errorf(berth.Denied, "role", "%q is no role; want viewer, user or operator", by.Role)
	}
	m, spots, err := h.agenda.follow(h)
	if err != nil {
		return nil, err
	}
	if !by.Sites.Has(site) || !slices.ContainsFunc(m.config.Sites, func(s berth.Site) bool { return s.Name == site }) {
		return nil, noSite(site)
	}
	return m.occupied(by, window{site, from, to, after}, spots, limit), ctx.Err()
}

// occupied returns what a window has, in order and at most limit.
func (m *model) occupied(by Principal, w window, spots *btree.BTreeG[spot], limit int) []Span {
	spans := m.outOfUse(w)
	most := limit + min(len(spans), math.MaxInt-limit) // outages stand somewhere in between
	w.eachSpot(spots, func(s *spot) bool {
		if k, _ := m.cards.Get(&card{id: s.id}); k != nil {
			if s := k.span(by, s.part); w.has(&s) {
				spans = append(spans, s)
			}
		}
		return len(spans) < most
	})
	slices.SortFunc(spans, func(a, b Span) int { return a.Mark.Compare(b.Mark) })
	return spans[:min(limit, len(spans))]
}

// window is what of a site's occupation is asked for.
type window struct {
	site     string
	from, to berth.Time
	after    Mark
}

func (w *window) has(s *Span) bool {
	return s.Resource.Site == w.site && s.Start < s.End && s.Start < w.to && s.End > w.from && s.Mark.Compare(w.after) > 0
}

// outOfUse returns the outages that a window has.
func (m *model) outOfUse(w window) (spans []Span) {
	var begun map[uint64]beginning
	for i := range m.outages {
		s := spanOf(&m.outages[i])
		if !w.has(&s) {
			continue
		}
		if s.Start == 0 {
			if begun == nil {
				begun = beginnings(m.notes)
			}
			if began := begun[m.outages[i].Number]; began.known {
				s.Start = began.at
			} else {
				s.Seen = began.at
			}
		}
		spans = append(spans, s)
	}
	return spans
}

func spanOf(o *berth.Outage) Span {
	return Span{
		Kind: berth.KindOutage, Mark: Mark{Start: o.From, Number: o.Number},
		Allotment: berth.Allotment{Resource: o.Resource, Start: o.From, End: o.Until, NPE: o.PEs.Count(), PEs: o.PEs},
	}
}

// span returns a part of what is promised, as a principal sees it.
func (k *card) span(by Principal, part int) Span {
	a := k.promise.Allotments[part]
	if k.end != "" {
		a.End = min(a.End, k.until)
	}
	s := Span{Kind: cmp.Or(k.request.Kind, berth.KindRequest), Allotment: a, State: k.state(), Mark: Mark{a.Start, true, k.promise.Sequence, part}}
	if k.seenBy(by) {
		s.ID, s.User, s.Name = k.id, k.request.User, k.request.Name
	}
	return s
}

// occupation returns all that a window has of what is remembered, in no order. Cost: O(n).
func (m *model) occupation(by Principal, w window) []Span {
	spans := m.outOfUse(w)
	m.cards.Scan(func(k *card) bool {
		if k.promise == nil {
			return true
		}
		for part := range k.promise.Allotments {
			if s := k.span(by, part); w.has(&s) {
				spans = append(spans, s)
			}
		}
		return true
	})
	return spans
}
