package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/chance"
)

// maxCases is how many of the latest entries chances are told from. A question about that many took
// 0.05 s where each is booked for an hour, and 3.7 s where each is for 400 days.
const maxCases = 20_000

// An hour and a day are from when on it is told whether a request would be accepted.
const (
	inAnHour = berth.Duration(3600)
	inADay   = 24 * inAnHour
)

// Chance is a question about a request, and how probable it is.
type Chance struct {
	chance.Question
	chance.Chance
}

// Chances tells how probable it is that a request is accepted if it is made in an hour and in a
// day, in a window that is as much later, and that an ordinary job of its size has started at the last
// moment at which it could end in time: by what became of requests and jobs that who asks may
// see, at the site that the request names, or at all. Of what has several parts or variants the first
// variants count, together. There are none for what no pool holds. looked is how many entries were looked at. The errors are those of Offers.
// Cost: O(n log n) for the latest 20,000, beside the loop.
func (h *Host) Chances(ctx context.Context, ask Ask, r berth.Request) (list []Chance, looked int, err error) {
	if err := h.mayAsk(&ask, &r); err != nil {
		return nil, 0, err
	}
	now := h.Now()
	ask.FromNow.arrive(&r, now)
	m, err := h.seen()
	if err != nil {
		return nil, 0, err
	}
	pes, widest := berth.Count(0), berth.Count(0)
	for i := range m.config.Sites {
		s := &m.config.Sites[i]
		if k := h.sites[s.Name]; !ask.By.Sites.Has(s.Name) || r.Site != "" && r.Site != s.Name || k != nil && k.manager.Shadow {
			continue
		}
		for k := range s.Pools {
			pes, widest = pes+s.Pools[k].PEs, max(widest, s.Pools[k].PEs)
		}
	}
	if wider(&r, widest) {
		return nil, 0, nil
	}
	var cards []*card
	m.cards.Scan(func(k *card) bool {
		if looked++; k.seenBy(ask.By) && !h.shadowed(k.request) && k.isAt(r.Site) {
			cards = append(cards, k)
		}
		return looked%1024 != 0 || ctx.Err() == nil
	})
	slices.SortStableFunc(cards, func(a, b *card) int { return cmp.Compare(a.request.Arrival, b.request.Arrival) })
	cards = cards[max(0, len(cards)-maxCases):]
	history := make([]chance.Entry, 0, len(cards))
	for _, k := range cards {
		history = k.entries(history)
	}
	like := asCase(&r)
	like.Arrival, like.Ready = now, max(like.Ready, now)
	questions := []chance.Question{{Kind: chance.Accepted, Later: inAnHour}, {Kind: chance.Accepted, Later: inADay}}
	if within := like.Deadline.Sub(now) - like.Duration; like.Deadline < berth.Forever && within >= 0 {
		questions = append(questions, chance.Question{Kind: chance.Started, Later: within})
	}
	for _, q := range questions {
		if err := ctx.Err(); err != nil {
			return nil, looked, err
		}
		list = append(list, Chance{q, chance.Ask(history, pes, q, now, like.At(q))})
	}
	return list, looked, nil
}

// wider reports whether each variant of a part has more PEs than the largest pool.
func wider(r *berth.Request, widest berth.Count) bool {
	for i := range r.Parts {
		if !slices.ContainsFunc(r.Parts[i].Variants, func(v berth.Variant) bool { return v.NPE <= widest }) {
			return true
		}
	}
	return false
}

// isAt tells whether a card says something of a site; empty is any.
func (k *card) isAt(name string) bool {
	if name == "" {
		return true
	}
	if k.promise == nil {
		return k.request.Site == "" || k.request.Site == name
	}
	return slices.ContainsFunc(k.promise.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == name })
}

// asCase returns what a request asks for as one case: the first variants of its parts together.
func asCase(r *berth.Request) chance.Entry {
	e := chance.Entry{Arrival: r.Arrival, Ready: r.Ready, Deadline: r.Deadline, Job: r.IsJob()}
	for i := range r.Parts {
		v := &r.Parts[i].Variants[0]
		e.NPE, e.Duration = e.NPE+v.NPE, max(e.Duration, v.Duration)
	}
	return e
}

// entries appends what a card says to a history: a case, and what its further parts take.
func (k *card) entries(history []chance.Entry) []chance.Entry {
	e := asCase(k.request)
	state := k.state()
	e.Accepted = k.promise != nil && state != Pending && state != Refused
	e.Answered = e.Accepted || state == Refused || state == Expired
	// What was withdrawn before it was decided, or before it started, says nothing of that.
	if e.Beside = state.Over() && !e.Answered; !e.Accepted {
		return append(history, e)
	}
	for i := range k.promise.Allotments {
		a := &k.promise.Allotments[i]
		e.NPE, e.Place, e.Freed = a.NPE, a.Interval(), a.End
		if k.end != "" {
			e.Freed = min(e.Freed, cmp.Or(k.until, k.changed))
		}
		e.Promised = e.Place
		history = append(history, e)
		e.Beside = true
	}
	return history
}
