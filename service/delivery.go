package service

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/site"
)

// What a site has of a promise, as Happening.What has it. They are no changes of the
// engine, which decides what is promised; they say what was delivered.
const (
	Made   change.Kind = "made"   // the site has it as promised
	Unmade change.Kind = "unmade" // the site does not have it as promised, or not any more
)

// delivery is what is new of promises at a site after a round. The journal has it, so that
// what was given of each is known when it is over.
type delivery struct {
	site string
	news []delivered
	// agreed are the ids of those that are told now: all their sites have what they were asked for.
	agreed []string
}

// delivered is what a site has of a promise.
type delivered struct {
	id         string
	generation uint64 // that is there as promised; 0 if none is; or one of those below
}

// What a site has that had a promise as promised and was proposed a change of it since: as it was
// or as was proposed, until a round has seen which. It is on record before the site is asked, so
// that a service that starts again does not take its own proposal for a change by hand.
// No promise reaches that many generations.
const (
	mayBeAsProposed  = math.MaxUint64     // who may use it is as promised
	mayBeSharedAnew  = math.MaxUint64 - 1 // who may use it was proposed too
	leastOfProposals = mayBeSharedAnew
)

// isOfProposal reports whether it is not known which of two the site has.
func (d *delivered) isOfProposal() bool { return d.generation >= leastOfProposals }

func (d *delivery) code(c *wire.Coder) {
	wire.Name(c, 1, &d.site)
	wire.List(c, 2, &d.news, func(c *wire.Coder, n *delivered) {
		wire.String(c, 1, &n.id)
		wire.Uint(c, 2, &n.generation)
		c.End()
	})
	wire.List(c, 3, &d.agreed, wire.BareText[string])
	c.End()
}

// about returns what is new of a promise; ok is false if nothing is.
func (d *delivery) about(id string) (news delivered, ok bool) {
	if d == nil {
		return news, false
	}
	i := slices.IndexFunc(d.news, func(n delivered) bool { return n.id == id })
	if i < 0 {
		return news, false
	}
	return d.news[i], true
}

// deliver notes what a round has shown of promises at a site, and returns the record of it.
// Nothing is decided by it.
func (c *Core) deliver(now berth.Time, d *delivery) *journal.Record {
	rec := &journal.Record{At: now, Version: c.version, Event: appendDelivery(nil, d)}
	c.place(rec)
	c.noteDelivered(d)
	return rec
}

// noteDelivered remembers what a site has of promises that are not over.
func (c *Core) noteDelivered(d *delivery) {
	known := c.delivered[d.site]
	if known == nil {
		known = map[string]uint64{}
		c.delivered[d.site] = known
	}
	for _, n := range d.news {
		if k := c.card(n.id); k != nil && k.end == "" {
			known[n.id] = n.generation
			if c.shows {
				c.arrived = append(c.arrived, n.id)
			}
		}
	}
}

// savedDelivered returns what is remembered, in its written form.
func (c *Core) savedDelivered() []delivery {
	var all []delivery
	for _, name := range slices.Sorted(maps.Keys(c.delivered)) {
		d := delivery{site: name}
		for _, id := range slices.Sorted(maps.Keys(c.delivered[name])) {
			d.news = append(d.news, delivered{id, c.delivered[name][id]})
		}
		if len(d.news) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// noteProposed puts on record that sites which have a promise as promised are asked about a change
// of it. They are asked when that is durable.
func (h *Host) noteProposed(p *proposal) {
	now, live := h.core.engine.Reservation(p.id)
	if !live {
		return
	}
	for _, k := range h.takers(&p.is) {
		was, is := h.core.delivered[k.name][p.id], uint64(mayBeAsProposed)
		if !sameSharing(now.Request, p.is.Request) || was == mayBeSharedAnew {
			is = mayBeSharedAnew
		}
		if was > 0 && was != is {
			h.persist(h.core.deliver(h.clock(), &delivery{site: k.name, news: []delivered{{p.id, is}}}), consequences{})
		}
	}
}

// tellDelivered puts on record which promises a site has as promised, if that is new.
func (h *Host) tellDelivered(ctx context.Context, k *keeper, want *wanted, did *done) {
	if _, books := k.manager.Adapter.(site.Booker); !books {
		return
	}
	_, _ = call(ctx, h, "", func(answer func(struct{}, error)) { // the error is that the service stops
		defer answer(struct{}{}, nil)
		defer h.hear(k, did.verdicts) // behind what is told of promises as they were
		news := delivery{site: k.name}
		known := h.core.delivered[k.name]
		for i := range want.wishes {
			w := &want.wishes[i]
			if w.proposed > 0 {
				continue
			}
			_, made := did.made[w.promise]
			was, seen := known[w.id]
			switch {
			case made && was >= leastOfProposals && h.proposedAt(k, w.id) != nil: // it is asked about that from the next round on
			case made && was != w.generation:
				news.news = append(news.news, delivered{w.id, w.generation})
			case !made && (was > 0 || w.active && !seen && h.questions[w.id] == nil):
				news.news = append(news.news, delivered{w.id, 0})
			}
		}
		news.agreed = h.answered(k, want, did)
		if len(news.news)+len(news.agreed) == 0 {
			return
		}
		rec := h.core.deliver(h.clock(), &news)
		told := h.agree(rec.Number, news.agreed)
		h.core.oweAgreed(rec.Number, rec.At, news.agreed)
		decided := h.decided(told)
		h.counts.add(told)
		h.persist(rec, consequences{news: told})
		for i := range decided {
			d := &decided[i]
			if !h.core.keys.answered(&d.waiting.key) {
				h.remember(asked{key: d.waiting.key, id: d.answer.Reservation.ID}, outcome{Answer: *d.answer})
			}
			h.whenDurable(func(failed error) { d.waiting.answer(d.answer, failed) })
		}
	})
}

// Delivered is what was given of a promise, by the record.
type Delivered struct {
	// Start, End and NPE are what was promised last.
	Start, End berth.Time
	NPE        berth.Count
	// Made is when its sites had it as promised for the first time, Whole from when on it
	// had all its PEs within its time; 0 if that never was.
	Made, Whole berth.Time
	// Short is how many PE-seconds of what was promised up to now, or to its end, were not
	// there.
	Short int64
}

// tally adds up what was given of a promise while its records are read.
type tally struct {
	managed func(site string) bool
	id      string

	at         berth.Time // up to when it is added up
	allotments []berth.Allotment
	owed       []berth.Count // by part
	there      map[string]bool
	over       bool
	ended      berth.Time // when it was over
	broken     bool       // lost, failed or rejected
	delivered  Delivered
}

// follow adds a record, which is behind those before.
func (t *tally) follow(p *past) {
	t.advance(p.at)
	if news, is := p.in.delivery.about(t.id); is && !news.isOfProposal() {
		t.there[p.in.delivery.site] = news.generation > 0
	}
	for i := range p.changes {
		if x := &p.changes[i]; x.ID == t.id {
			t.take(x)
		}
	}
	if t.delivered.Made == 0 && len(t.allotments) > 0 && t.lacks(p.at, false) == 0 {
		t.delivered.Made = p.at
	}
}

// take takes in a change of the promise.
func (t *tally) take(x *change.Change) {
	switch x.Kind {
	case change.Queued:
		*t = tally{managed: t.managed, id: t.id, at: t.at, there: map[string]bool{}}
	case change.Accepted:
		t.promise(x.Reservation.Allotments)
	case change.Moved, change.Modified:
		t.promise(x.Moved)
		clear(t.there)
	case change.Resized:
		if len(t.allotments) == 0 {
			return // the record of what was promised is no longer kept
		}
		t.allotments = slices.Clone(x.Moved)
	case change.Extended:
		for i := range t.allotments {
			t.allotments[i].End = x.Until
		}
	case change.Ended:
		if x.Part < len(t.allotments) {
			t.allotments[x.Part].End = min(t.allotments[x.Part].End, t.at)
		}
	case change.Cancelled, change.Expired, change.NoShow, change.Failed, change.Rejected, change.Lost:
		t.over, t.ended, t.broken = true, t.at, isBroken(x.Kind)
	}
}

func (t *tally) promise(allotments []berth.Allotment) {
	t.allotments, t.owed = slices.Clone(allotments), nil
	for i := range allotments {
		t.owed = append(t.owed, allotments[i].NPE)
	}
}

// advance adds what is missing up to a time.
func (t *tally) advance(to berth.Time) {
	if !t.over && len(t.allotments) > 0 && to > t.at {
		for i := range t.allotments {
			a := &t.allotments[i]
			if from, until := max(t.at, a.Start), min(to, a.End); from < until {
				t.delivered.Short += int64(t.missing(i)) * int64(until-from)
			}
		}
		if start := max(t.at, t.allotments[0].Start); t.delivered.Whole == 0 && start < to && t.lacks(start, true) == 0 {
			t.delivered.Whole = start
		}
	}
	t.at = max(t.at, to)
}

// missing is how many PEs of a part are not there.
func (t *tally) missing(part int) berth.Count {
	a := &t.allotments[part]
	if t.managed(a.Resource.Site) && !t.there[a.Resource.Site] {
		return t.owed[part]
	}
	return max(0, t.owed[part]-a.NPE)
}

// lacks is how many PEs are not there; of parts that are over at a time none is, if running
// is set.
func (t *tally) lacks(at berth.Time, running bool) (n berth.Count) {
	for i := range t.allotments {
		if !running || t.allotments[i].End > at {
			n += t.missing(i)
		}
	}
	return n
}

// result is what was given up to now; nil if nothing was promised at a managed site, or its
// time has not come.
func (t *tally) result(now berth.Time) *Delivered {
	t.advance(now)
	if len(t.allotments) == 0 || t.allotments[0].Start > now && t.delivered.Made == 0 || !slices.ContainsFunc(t.allotments, func(a berth.Allotment) bool { return t.managed(a.Resource.Site) }) {
		return nil
	}
	d := t.delivered
	d.Start = t.allotments[0].Start
	for i := range t.allotments {
		d.End = max(d.End, t.allotments[i].End)
		d.NPE += t.owed[i]
	}
	return &d
}
