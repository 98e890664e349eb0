package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
)

// Span is what holds PEs of a pool at a site for some time: a reservation, a job
// or an outage.
type Span struct {
	Kind berth.Kind // berth.KindRequest, berth.KindJob or berth.KindOutage
	berth.Allotment
	State State // empty of an outage
	// ID and User are there for those only who own it.
	ID, User string
	Mark     Mark // its place in the order
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
// as it is remembered, behind a mark and at most so many, in order. Anybody may
// see that; whose it is only the owner and operators see. The error is NotFound
// if there is no such site. Cost: O(n log n) for n requests that are live or
// remembered.
func (h *Host) Occupation(ctx context.Context, by Principal, site string, from, to berth.Time, after Mark, limit int) ([]Span, error) {
	if !by.Can(Viewer) {
		return nil, berth.Errorf(berth.Denied, "role", "%q is no role; want viewer, user or operator", by.Role)
	}
	m, err := h.seen()
	if err != nil {
		return nil, err
	}
	if !by.Sites.Has(site) || !slices.ContainsFunc(m.config.Sites, func(s berth.Site) bool { return s.Name == site }) {
		return nil, noSite(site)
	}
	spans := m.occupation(by, site, from, to, after)
	slices.SortFunc(spans, func(a, b Span) int { return a.Mark.Compare(b.Mark) })
	return spans[:min(limit, len(spans))], ctx.Err()
}

func (m *model) occupation(by Principal, site string, from, to berth.Time, after Mark) []Span {
	var spans []Span
	add := func(s Span) {
		if s.Resource.Site == site && s.Start < s.End && s.Start < to && s.End > from && s.Mark.Compare(after) > 0 {
			spans = append(spans, s)
		}
	}
	for _, o := range m.outages {
		add(Span{
			Kind: berth.KindOutage, Mark: Mark{Start: o.From, Number: o.Number},
			Allotment: berth.Allotment{Resource: o.Resource, Start: o.From, End: o.Until, NPE: o.PEs.Count(), PEs: o.PEs},
		})
	}
	m.cards.Scan(func(k *card) bool {
		if k.promise == nil {
			return true
		}
		for part, a := range k.promise.Allotments {
			if k.end != "" {
				a.End = min(a.End, k.changed)
			}
			s := Span{Kind: cmp.Or(k.request.Kind, berth.KindRequest), Allotment: a, State: k.state(), Mark: Mark{a.Start, true, k.promise.Sequence, part}}
			if k.seenBy(by) {
				s.ID, s.User = k.id, k.request.User
			}
			add(s)
		}
		return true
	})
	return spans
}
