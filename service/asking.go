package service

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/site"
)

// A site at which others start jobs too may have given away what the last look at it showed
// free. So a promise that starts at once there, held or not, is not told before each such site
// of it has made its reservation. Until then the request is pending, and is so after a restart.
// If a site refuses, the request is placed anew in its window, by a new look at the site.

// question is what the sites of a promise are asked before it is told.
type question struct {
	times   int                              // it was refused where it is, on end
	tries   int                              // places that were tried
	refused map[berth.ResourceID]berth.PESet // since it was last placed apart from these
	words   string                           // of the site that last refused
	agreed  map[string]uint64                // the generation that sites have, by site
	// evade is the site that refused it where it was, if it is being placed anew for that: when it is
	// decided it is given other PEs in the same turn, before it begins.
	evade *keeper
	// lost says that an outage ended what was promised, before it was answered: it is placed
	// anew. A promise of several parts that has begun does not outlive a node.
	lost bool
}

// maxTries is how many places are tried. What starts at a site so often that it is always
// there first leaves no room for what starts at once.
const maxTries = 10

// asks reports whether a promise is told only when its sites have made it: one that starts
// before a site is looked at again, at a site at which others start jobs by themselves. A task
// of a workflow is promised with the others: if its site refuses it, it is moved or tried again.
// What is held without names is asked about when it is confirmed, since it is at no site before.
func (h *Host) asks(r *berth.Reservation) bool {
	for _, k := range h.takers(r) {
		if r.State == berth.Held && slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool {
			return k.ground.Load().ahead[a.Resource.Name] > 0 && a.Resource.Site == k.name
		}) {
			continue
		}
		if r.Start() <= h.core.engine.Now()+berth.Time(k.pace()/time.Second) {
			return true
		}
	}
	return false
}

// takers returns the sites of a promise at which others start jobs by themselves, so that these
// may have taken what it needs.
func (h *Host) takers(r *berth.Reservation) (list []*keeper) {
	if r.Request.IsJob() || r.Request.Task != nil {
		return nil
	}
	for i := range r.Allotments {
		k := h.sites[r.Allotments[i].Resource.Site]
		if k == nil || k.manager.Shadow || slices.Contains(list, k) {
			continue
		}
		if _, others := k.manager.Adapter.(site.Carrier); others {
			list = append(list, k)
		}
	}
	return list
}

// question returns what is asked about a request that is pending for that, nil if nothing is.
func (h *Host) question(id string) *question {
	k, q := h.core.card(id), h.questions[id]
	switch {
	case k != nil && k.end == "" && k.promise == nil: // it is to be decided again
		return nil
	case q != nil && q.lost:
		return nil
	case k == nil || !k.asking || k.end != "":
		delete(h.questions, id)
		return nil
	case q == nil:
		q = &question{refused: map[berth.ResourceID]berth.PESet{}, agreed: map[string]uint64{}}
		h.questions[id] = q
	}
	return q
}

// askAgain reports whether the sites of a promise are being asked about it.
func (h *Host) askAgain(k *card) bool { return k.asking && h.question(k.id) != nil }

// askAfterRestart has all promises asked about that were being asked about when the service
// stopped: no caller was told of them. It is called before the loop runs.
func (h *Host) askAfterRestart() {
	var asking, changed []*card
	h.core.cards.Scan(func(k *card) bool {
		if k.asking && k.end == "" && k.promise != nil {
			asking = append(asking, k)
		}
		return true
	})
	for _, k := range asking {
		takers := h.takers(k.promise)
		if len(takers) == 0 { // the site is not managed any more: the promise stands
			own := *k // others may look at it
			own.asking = false
			h.core.cards.Set(&own)
			changed = append(changed, &own)
			h.core.asked, h.core.last = "", nil
			continue
		}
		h.question(k.id)
		for _, at := range takers {
			at.poke()
		}
	}
	h.display.beginAgain(h.core, changed)
}

// ask notes which promises their sites are asked about from now on, and has them asked. The ids
// go on record, with those of what has ended to be placed anew: nothing of any of them is told.
func (h *Host) ask(list []news) (ids []string) {
	for i := range list {
		n := &list[i]
		switch q := h.questions[n.card.id]; change.Kind(n.what) {
		case change.Accepted:
			if n.card.state() != Pending || h.question(n.card.id) == nil {
				continue
			}
			ids = append(ids, n.card.id)
			if q != nil && q.evade != nil {
				h.evading = append(h.evading, n.card.id)
			}
		case change.Failed, change.Lost:
			if q == nil || n.card.end == "" {
				continue
			}
			q.lost = true
			ids = append(ids, n.card.id)
		case change.Rejected:
			if n.card.id == h.quiet {
				ids = append(ids, n.card.id)
			}
			continue
		default:
			continue
		}
		for _, at := range h.takers(n.card.promise) {
			at.poke()
		}
	}
	return ids
}

// told returns the news that are told: nothing of what a site is asked about.
func (h *Host) told(all []news) []news {
	if len(h.questions) == 0 && h.quiet == "" {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(n news) bool {
		q := h.questions[n.card.id]
		return n.card.id == h.quiet || q != nil && (q.lost || n.card.state() == Pending)
	})
}

// renew places those anew that the last look at a site has taken PEs from, or that were
// refused although the look showed them free.
func (h *Host) renew(k *keeper) {
	for _, id := range slices.Sorted(maps.Keys(h.questions)) {
		if q := h.questions[id]; q.lost {
			if c := h.core.card(id); c == nil || c.end == "" {
				delete(h.questions, id)
			} else if slices.Contains(h.takers(c.promise), k) {
				h.placeAnew(k, q, c.promise)
			}
			continue
		}
		q := h.question(id)
		if q == nil || !slices.Contains(h.takers(h.core.card(id).promise), k) {
			continue
		}
		r, live := h.core.engine.Reservation(id)
		if live && q.times >= doubts && r.Missing == 0 && q.tries < maxTries {
			q.times, q.tries = 0, q.tries+1
			if r, live = h.elsewhere(k, q, &r); live && r.Missing == 0 && !q.hasRefused(&r) {
				continue
			}
			q.times = doubts
		}
		if live && (r.Missing > 0 || q.times >= doubts) {
			h.placeAnew(k, q, &r)
		}
	}
}

// hasRefused reports whether a promise is where sites have refused it.
func (q *question) hasRefused(r *berth.Reservation) bool {
	return slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool { return a.PEs.Overlap(q.refused[a.Resource]) > 0 })
}

// elsewhere gives a promise other PEs than those that its sites have refused, if there
// are any, and returns it as it is then.
func (h *Host) elsewhere(k *keeper, q *question, r *berth.Reservation) (berth.Reservation, bool) {
	for i := range r.Allotments {
		pool := r.Allotments[i].Resource
		if pes := q.refused[pool]; !pes.Empty() && mayMove(r) {
			h.tell(k, engine.Relocate(r.Request.ID, pool, pes))
		}
	}
	return h.core.engine.Reservation(r.Request.ID)
}

// withdraw takes back promises of several parts that have begun, that no caller was told of and
// whose PEs are out of use from now on: they would end with these. They are placed anew.
func (h *Host) withdraw(k *keeper, fresh []berth.Outage) {
	for _, id := range slices.Sorted(maps.Keys(h.questions)) {
		q := h.question(id)
		r, live := h.core.engine.Reservation(id)
		if q == nil || !live || r.State != berth.Active || len(r.Allotments) == 1 {
			continue
		}
		hit := slices.ContainsFunc(fresh, func(o berth.Outage) bool {
			return o.From == 0 && slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool { return a.Resource == o.Resource && a.PEs.Overlap(o.PEs) > 0 })
		})
		if hit {
			q.lost = h.takeBack(k, q, &r)
		}
	}
}

// takeBack ends a promise that no caller was told of, and reports whether it is to be placed
// anew: there is time left for that in its window, and it was not tried too often. Else it is
// refused.
func (h *Host) takeBack(k *keeper, q *question, r *berth.Reservation) bool {
	no := k.refusal(r, cmp.Or(q.words, "others were faster"))
	no.Reason = berth.NoCapacity
	again := h.request(q, r)
	if q.tries >= maxTries || slices.ContainsFunc(again.Parts, func(p berth.Part) bool {
		return !slices.ContainsFunc(p.Variants, func(v berth.Variant) bool { return again.Ready.Add(v.Duration) <= again.Deadline })
	}) {
		h.tell(k, engine.Reject(r.Request.ID, no))
		return false
	}
	h.quiet = r.Request.ID
	h.tell(k, engine.Reject(r.Request.ID, no))
	h.quiet = ""
	return true
}

// request returns what is asked for when a promise is placed anew.
func (h *Host) request(q *question, r *berth.Reservation) *berth.Request {
	again, now := r.Request.Clone(), h.clock()
	again.Arrival, again.Ready = now, max(again.Ready, now)
	if q.times >= doubts && len(again.Parts) > 1 {
		again.Ready = max(again.Ready, now+1) // what has begun with several parts stays where it is
	}
	return again
}

// placeAnew gives a request another place in its window, or refuses it.
func (h *Host) placeAnew(k *keeper, q *question, r *berth.Reservation) {
	id, request := r.Request.ID, h.request(q, r)
	if !q.lost && !h.takeBack(k, q, r) {
		return
	}
	h.log.Info("a request that was to start at once is placed anew, because its site has given the nodes to others", "site", k.name, "id", id, "words", q.words)
	again := question{tries: q.tries + 1, refused: q.refused, words: q.words, agreed: map[string]uint64{}}
	if q.times >= doubts {
		again.evade = k
	}
	h.questions[id] = &again
	event := engine.Submit(request)
	if h.core.engine.BoundsCost(&event) {
		event.Foreseen = &engine.Foreseen{Admitted: true, Cost: engine.Cost{Largest: r.Terms.Delay, Idle: r.Terms.Idle, Complete: true}}
	}
	if err := h.step(event, asked{id: id}, nil); err != nil {
		h.log.Error("the engine does not take a request again", "id", id, "error", err)
	}
}

// evade gives what was just placed anew other PEs than those that its site has refused, or
// refuses it if there are none. What has several parts can only be moved before it begins.
func (h *Host) evade(ids []string) {
	for _, id := range ids {
		q := h.question(id)
		r, live := h.core.engine.Reservation(id)
		if q == nil || !live || q.evade == nil {
			continue
		}
		k := q.evade
		q.evade = nil
		if fresh, live := h.elsewhere(k, q, &r); live && q.hasRefused(&fresh) {
			_ = h.takeBack(k, &question{tries: maxTries, words: q.words}, &fresh) // for good
		}
	}
}

// answered takes in what a round has shown of what a site is asked about: ids are those that
// can be told now. Where the site has refused, it is looked at again at once.
func (h *Host) answered(k *keeper, want *wanted, did *done) (ids []string) {
	// about returns what is asked about a wish, if that is still promised.
	about := func(w *wish) (*question, *berth.Reservation) {
		if h.questions[w.id] == nil {
			return nil, nil
		}
		q := h.question(w.id)
		if q == nil || h.core.card(w.id).promise.Generation != w.generation {
			return nil, nil
		}
		return q, h.core.card(w.id).promise
	}
	for i := range want.wishes {
		w := &want.wishes[i]
		q, r := about(w)
		if q == nil {
			continue
		}
		if m, made := did.made[w.promise]; made && m.generation == w.generation && r.Missing == 0 {
			q.agreed[k.name] = w.generation
			if !slices.ContainsFunc(h.takers(r), func(at *keeper) bool { return q.agreed[at.name] != r.Generation }) {
				ids = append(ids, w.id)
			}
		}
	}
	for _, w := range did.refused {
		q, r := about(w)
		if q == nil {
			continue
		}
		for j := range r.Allotments {
			if a := &r.Allotments[j]; a.Resource.Site == k.name {
				q.refused[a.Resource] = q.refused[a.Resource].Or(a.PEs)
			}
		}
		q.times, q.words = q.times+1, did.failed[w.promise]
		k.agent.Forget()
		k.poke()
	}
	for id := range h.questions { // what was put off by the engine is promised like any other
		if q := h.question(id); q == nil {
			continue
		}
		if r := h.core.card(id).promise; !h.asks(r) && (r.Start() > h.clock() || len(h.takers(r)) == 0) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// agree tells promises that their sites were asked about, with the record of a number, which
// is not durable yet.
func (h *Host) agree(number uint64, ids []string) []news {
	var list []news
	for _, id := range ids {
		delete(h.questions, id)
		list = h.core.agreeTold(number, h.clock(), id, list)
	}
	return list
}

// agreeTold is agree with what is told of it, behind other news of the record.
func (c *Core) agreeTold(number uint64, now berth.Time, id string, list []news) []news {
	k := c.agree(number, id)
	kinds := []change.Kind{change.Queued, change.Accepted, change.Started}
	if k.promise.State != berth.Active {
		kinds = kinds[:2]
	}
	for _, kind := range kinds {
		list = append(list, news{number: number<<noticeBits | uint64(len(list)), at: now, what: string(kind), card: *k})
	}
	return list
}

// agree notes that a promise can be told.
func (c *Core) agree(number uint64, id string) *card {
	k := c.ownCard(number, c.card(id))
	k.asking, k.version = false, k.version+1
	return k
}

// ownCard returns a card that a record may change: a copy if others may look at it.
func (c *Core) ownCard(number uint64, k *card) *card {
	if c.shows && k.written != number {
		own := *k
		k = &own
		c.write(k, number)
	}
	return k
}

// askNoMore notes which promises ended by a record while their sites were asked about them, and are told so.
func (c *Core) askNoMore(number uint64, ids []string) {
	for _, id := range ids {
		if k := c.card(id); k != nil && k.end != "" {
			c.ownCard(number, k).asking = false
		}
	}
}

// askedUntilOver returns the ids of promises that have ended while their sites were asked about them, of what is told.
func askedUntilOver(told []news) (ids []string) {
	for i := range told {
		if k := &told[i].card; k.asking && k.end != "" && !slices.Contains(ids, k.id) {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// followAsking brings the cards up to date with what a record of an earlier life says of what
// sites are asked about, and returns what was told by it.
func (c *Core) followAsking(in *input, at berth.Time) (list []news) {
	for _, id := range in.asked.asking {
		if k := c.card(id); k != nil && k.end == "" {
			k.asking = true
		}
	}
	if in.delivery == nil {
		return nil
	}
	for _, id := range in.delivery.agreed {
		if k := c.card(id); k != nil && k.asking {
			list = c.agreeTold(c.position.Number, at, id, list)
		}
	}
	return list
}
