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
// free. So a promise that starts at once there is not told before the site has made its
// reservation. Until then the request is pending. If the site refuses, the request is placed
// anew in its window, by a new look at the site.

// question is what a site is asked before a promise is told.
type question struct {
	keeper  *keeper
	times   int         // it was refused where it is, on end
	tries   int         // places that were tried
	refused berth.PESet // of the pool of its place
	pool    berth.ResourceID
	words   string // of the site, when it last refused
}

// maxTries is how many places are tried. What starts at a site so often that it is always
// there first leaves no room for what starts at once.
const maxTries = 10

// asks reports whether a promise is told only when its site has made it: one that starts
// before the site is looked at again, at a site at which others start jobs by themselves. A task
// of a workflow is promised with the others: if its site refuses it, it is moved or tried again.
func (h *Host) asks(r *berth.Reservation) bool {
	if len(r.Allotments) != 1 || r.State == berth.Held || r.Request.IsJob() || r.Request.Task != nil {
		return false
	}
	k := h.sites[r.Allotments[0].Resource.Site]
	if k == nil || k.manager.Shadow {
		return false
	}
	_, others := k.manager.Adapter.(site.Carrier)
	return others && r.Start() <= h.core.engine.Now()+berth.Time(k.pace()/time.Second)
}

// question returns what is asked about a request that is pending for that, nil if nothing is.
func (h *Host) question(id string) *question {
	k, q := h.core.card(id), h.questions[id]
	switch {
	case k != nil && k.end == "" && k.promise == nil: // it is to be decided again
		return nil
	case k == nil || !k.asking || k.end != "":
		delete(h.questions, id)
		return nil
	case q == nil:
		q = &question{keeper: h.sites[k.promise.Allotments[0].Resource.Site]}
		h.questions[id] = q
	}
	return q
}

// askAgain has a promise asked about that its site has not made, and whose owner was not told
// before the service stopped, and reports whether it is asked about.
func (h *Host) askAgain(k *card) bool {
	if k.asking && h.question(k.id) != nil {
		return true // since the start
	}
	if k.promise == nil || k.end != "" || k.asking || !h.asks(k.promise) || h.core.delivered[k.promise.Allotments[0].Resource.Site][k.id] > 0 {
		return false
	}
	own := *k // others may look at it
	own.asking = true
	h.core.cards.Set(&own)
	h.core.last = &own
	h.question(k.id).keeper.poke()
	return true
}

// askAfterRestart has all promises asked about that were being asked about when the service
// stopped: those that were to start at once and that no round has seen at their site, nor
// missed there. Nobody was told of them. It is called before the loop runs.
func (h *Host) askAfterRestart() {
	for _, at := range slices.Sorted(maps.Keys(h.sites)) {
		soon := berth.Duration(h.sites[at].pace() / time.Second)
		for r := range h.core.engine.Due(at, berth.Forever) {
			k := h.core.card(r.Request.ID)
			if k == nil {
				continue
			}
			if _, seen := h.core.delivered[at][k.id]; !seen && r.Start() <= k.created.Add(soon) {
				h.askAgain(k)
			}
		}
	}
	h.display.beginAgain(h.core)
}

// ask notes which promises their sites are asked about from now on, and has them asked.
func (h *Host) ask(list []news) {
	for i := range list {
		if n := &list[i]; n.card.state() == Pending && change.Kind(n.what) == change.Accepted {
			if q := h.question(n.card.id); q != nil {
				q.keeper.poke()
			}
		}
	}
}

// told returns the news that are told: nothing of what a site is asked about.
func (h *Host) told(all []news) []news {
	if len(h.questions) == 0 && h.quiet == "" {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(n news) bool {
		return n.card.id == h.quiet || n.card.state() == Pending && h.questions[n.card.id] != nil
	})
}

// renew places those anew that the last look at a site has taken PEs from, or that were
// refused although the look showed them free.
func (h *Host) renew(k *keeper) {
	for _, id := range slices.Sorted(maps.Keys(h.questions)) {
		q := h.question(id)
		if q == nil || q.keeper != k {
			continue
		}
		r, live := h.core.engine.Reservation(id)
		if live && q.times >= doubts && r.Missing == 0 && q.tries < maxTries {
			q.times, q.tries = 0, q.tries+1
			if r, live = h.elsewhere(k, q, &r); live && r.Missing == 0 && r.Allotments[0].PEs.Overlap(q.refused) == 0 {
				continue
			}
			q.times = doubts
		}
		if live && (r.Missing > 0 || q.times >= doubts) {
			h.placeAnew(k, q, &r)
		}
	}
}

// elsewhere gives a promise other PEs of its pool than those that its site has refused, as far
// as there are any, and returns it as it is then.
func (h *Host) elsewhere(k *keeper, q *question, r *berth.Reservation) (berth.Reservation, bool) {
	if r.Allotments[0].Resource == q.pool {
		h.tell(k, engine.Relocate(r.Request.ID, q.pool, q.refused))
	}
	return h.core.engine.Reservation(r.Request.ID)
}

// placeAnew gives a request another place in its window, or refuses it.
func (h *Host) placeAnew(k *keeper, q *question, r *berth.Reservation) {
	id, now := r.Request.ID, h.clock()
	no := k.refusal(r, cmp.Or(q.words, "others were faster"))
	no.Reason = berth.NoCapacity
	request := r.Request.Clone()
	request.Arrival, request.Ready = now, max(request.Ready, now)
	fits := slices.ContainsFunc(request.Parts[0].Variants, func(v berth.Variant) bool { return request.Ready.Add(v.Duration) <= request.Deadline })
	if q.tries++; q.tries > maxTries || !fits {
		h.tell(k, engine.Reject(id, no))
		return
	}
	h.log.Info("a request that was to start at once is placed anew, because its site has given the nodes to others", "site", k.name, "id", id, "words", q.words)
	h.quiet = id
	h.tell(k, engine.Reject(id, no))
	h.quiet = ""
	again := *q
	again.times = 0
	h.questions[id] = &again
	if err := h.step(engine.Submit(request), asked{id: id}, nil); err != nil {
		h.log.Error("the engine does not take a request again", "id", id, "error", err)
		return
	}
	if h.question(id) == nil {
		return // it is answered, refused or promised for later; or it is decided with others
	}
	if fresh, live := h.core.engine.Reservation(id); live && q.times >= doubts {
		if fresh, live = h.elsewhere(k, q, &fresh); live && fresh.Allotments[0].PEs.Overlap(q.refused) > 0 {
			h.tell(k, engine.Reject(id, no))
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
			ids = append(ids, w.id)
		}
	}
	for _, w := range did.refused {
		q, r := about(w)
		if q == nil {
			continue
		}
		a := &r.Allotments[0]
		if q.pool != a.Resource {
			q.pool, q.refused = a.Resource, berth.PESet{}
		}
		q.times, q.refused, q.words = q.times+1, q.refused.Or(a.PEs), did.failed[w.promise]
		k.agent.Forget()
		k.poke()
	}
	for id := range h.questions { // what was put off by the engine is promised like any other
		if q := h.question(id); q != nil && q.keeper == k && !h.asks(h.core.card(id).promise) && h.core.card(id).promise.Start() > h.clock() {
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
		k := h.core.agree(number, id)
		kinds := []change.Kind{change.Queued, change.Accepted, change.Started}
		if k.promise.State != berth.Active {
			kinds = kinds[:2]
		}
		for _, kind := range kinds {
			list = append(list, news{number: number<<noticeBits | uint64(len(list)), at: h.clock(), what: string(kind), card: *k})
		}
	}
	return list
}

// agree notes that a promise can be told.
func (c *Core) agree(number uint64, id string) *card {
	k := c.card(id)
	if c.shows && k.written != number { // others may look at it
		own := *k
		k = &own
		c.write(k, number)
	}
	k.asking, k.version = false, k.version+1
	return k
}
