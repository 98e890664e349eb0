package service

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// standoff is a promise that its site refuses where it is.
type standoff struct {
	generation uint64                 // of the promise when it was last refused
	times      int                    // rounds on end
	refused    map[string]berth.PESet // where it was refused so far, by pool
	rest       berth.Time             // before that it is not placed anew: there was no other place
}

const (
	// doubts is how often on end a site has to refuse a promise before it is
	// placed anew. What keeps the nodes busy usually shows when the site is looked
	// at again, and moves the promise by itself.
	doubts = 2
	// truce is how long a promise for which there is no other place is left where
	// it is, and only tried again at the site.
	truce berth.Duration = 300
)

// replace has promises placed anew that their site refuses for no reason that
// shows: in their windows, apart from all PEs on which they were refused.
func (h *Host) replace(ctx context.Context, k *keeper, refused []*wish) {
	before := k.standoffs
	k.standoffs = map[promise]*standoff{}
	for _, w := range refused {
		s := before[w.promise]
		if s == nil {
			s = &standoff{refused: map[string]berth.PESet{}}
		}
		k.standoffs[w.promise] = s
		if s.generation != w.generation {
			s.generation, s.times = w.generation, 0
		}
		if s.times++; s.times < doubts {
			continue
		}
		if _, err := call(ctx, h, "", func(answer func(struct{}, error)) {
			h.avoid(k, w, s)
			answer(struct{}{}, nil)
		}); err != nil {
			return // the service stops
		}
	}
}

// endure notes when promises fail that their site will not have. Those that were not tried in
// this round keep the time that they had.
func (k *keeper) endure(now berth.Time, did *done) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.doomed
	k.doomed = map[promise]berth.Time{}
	for p, at := range before {
		if did.failed[p] == site.ErrNotTried.Error() {
			k.doomed[p] = at
		}
	}
	for i := range did.never {
		w := &did.never[i]
		at, known := before[w.promise]
		if !known {
			at = now.Add(k.manager.GiveUpAfter)
		}
		k.doomed[w.promise], w.fails = at, at
	}
}

// reject fails promises that their site will not have, wherever in it, and has not had for
// long: nothing could change that but its operator, and their PEs are for others. What its
// site is asked about before it is told is refused at once.
func (h *Host) reject(ctx context.Context, k *keeper, refused []never) {
	for _, w := range refused {
		if _, err := call(ctx, h, "", func(answer func(struct{}, error)) {
			if r, live := h.core.engine.Reservation(w.id); live && r.Generation == w.generation && (h.questions[w.id] != nil || h.clock() >= w.fails) {
				h.log.Warn("a promise has failed, because its site refuses it for good", "site", k.name, "id", w.id, "user", r.Request.User, "error", w.words)
				h.tell(k, engine.Reject(w.id, k.refusal(&r, w.words)))
			}
			answer(struct{}{}, nil)
		}); err != nil {
			return // the service stops
		}
	}
}

// refusal is the no of a site to a promise, in its words.
func (k *keeper) refusal(r *berth.Reservation, words string) *berth.Refusal {
	no := &berth.Refusal{Reason: berth.SiteRefused, Words: words}
	for i := range r.Allotments {
		if a := &r.Allotments[i]; a.Resource.Site == k.name {
			no.Resource, no.Wanted = a.Resource, no.Wanted+a.NPE
		}
	}
	return no
}

// mayMove reports whether a promise can be given other PEs: what has begun keeps them if it is in use or has several parts, as a
// running job does.
func mayMove(r *berth.Reservation) bool {
	return r.State != berth.Active || !r.CheckedIn && len(r.Allotments) == 1 && !r.Request.IsJob()
}

// avoid has one promise placed anew, if it still is where it was refused.
func (h *Host) avoid(k *keeper, w *wish, s *standoff) {
	now := h.clock()
	r, live := h.core.engine.Reservation(w.id)
	if !live || h.questions[w.id] != nil || r.Generation != w.generation || !mayMove(&r) || now < s.rest {
		return
	}
	at := slices.IndexFunc(r.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == k.name && !a.PEs.Empty() })
	if at < 0 {
		return // it has no numbers yet: there is nothing else to try
	}
	a := &r.Allotments[at]
	pes := s.refused[a.Resource.Name].Or(a.PEs)
	if r.State == berth.Active { // it stays where it can: only what is announced is in its way
		if pes = h.core.announced(a); pes.Empty() {
			return
		}
	}
	s.refused[a.Resource.Name] = pes
	h.tell(k, engine.Relocate(w.id, a.Resource, pes))
	if r, live := h.core.engine.Reservation(w.id); live && r.Generation == w.generation {
		s.rest, s.refused = now.Add(truce), map[string]berth.PESet{}
	}
}

// announced returns the PEs of an allotment that go out of use before it is over.
func (c *Core) announced(a *berth.Allotment) berth.PESet {
	var pes berth.PESet
	for o := range c.engine.Outages() {
		if o.Resource == a.Resource && o.From < a.End && o.Until > a.Start {
			pes = pes.Or(o.PEs.And(a.PEs))
		}
	}
	return pes
}

// unsuited is PEs of a promise that lack what it requires.
type unsuited struct {
	id string
	on berth.Allotment
}

// suit places promises anew some of whose PEs lack what they require, since nodes are made
// otherwise by now: in their windows, apart from those PEs. What is in use stays, and so
// does what has no other place.
func (h *Host) suit(k *keeper) {
	var list []unsuited
	for id, a := range h.core.engine.Unsuited(k.name) {
		list = append(list, unsuited{id, a})
	}
	for _, u := range list {
		before, live := h.core.engine.Reservation(u.id)
		if !live || h.questions[u.id] != nil {
			continue
		}
		if mayMove(&before) {
			h.tell(k, engine.Relocate(u.id, u.on.Resource, u.on.PEs))
		}
		if after, live := h.core.engine.Reservation(u.id); live && after.Generation == before.Generation {
			shares, _ := k.ground.Load().layout.Shares(u.on.Resource.Name, u.on.PEs) // PEs of its layout
			h.log.Warn("nodes of a promise no longer have what it requires; it is in use, or there are no others", "site", k.name, "id", u.id, "nodes", site.NodesOf(shares))
		}
	}
}
