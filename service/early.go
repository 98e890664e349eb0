package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// makingTime is how long a site may take to make a reservation that was asked for
// early; a healthy one takes a second or two.
const makingTime = 20 * time.Second

// Prepare has the sites of a reservation make it now, however far away its start
// is, so that tasks can be handed in. It returns once all of them have it, and
// keeps it there until it is over. Errors: NotFound; Conflict if it is over or at a
// site that makes no reservations; Unavailable if a site does not make it in time.
func (h *Host) Prepare(ctx context.Context, ask Ask, id string) (Reservation, error) {
	limit, cancel := context.WithTimeout(ctx, makingTime)
	defer cancel()
	for {
		missing, err := call(ctx, h, ask.By.User, func(answer func(*unmade, error)) { answer(h.prepare(&ask, id)) })
		switch {
		case err != nil:
			return Reservation{}, err
		case missing == nil:
			return h.Get(ctx, ask.By, id)
		}
		select {
		case <-missing.round:
		case <-limit.Done():
			if ctx.Err() != nil {
				return Reservation{}, ctx.Err()
			}
			why := missing.trouble
			if why == "" {
				why = "no answer within " + makingTime.String()
			}
			return Reservation{}, berth.Errorf(berth.Unavailable, "site", "%q has not made reservation %s yet, which stands: %s", missing.site, id, why)
		}
	}
}

// unmade is a site that does not have a reservation yet.
type unmade struct {
	site, trouble string
	round         <-chan struct{} // closed after the site's next round
}

// prepare asks the sites for a reservation, and returns the first that does not
// have it; nil if all have.
func (h *Host) prepare(ask *Ask, id string) (*unmade, error) {
	c, err := h.may(ask, id)
	if err != nil {
		return nil, err
	}
	r, live := h.core.engine.Reservation(id)
	if !live {
		return nil, gone(c)
	}
	var missing *unmade
	for i := range r.Allotments {
		k := h.sites[r.Allotments[i].Resource.Site]
		if k == nil {
			return nil, berth.Errorf(berth.Conflict, "site", "%q has no adapter, so no task can be handed in there; use the site's own commands", r.Allotments[i].Resource.Site)
		}
		if _, books := k.manager.Adapter.(site.Booker); !books {
			return nil, berth.Errorf(berth.Conflict, "site", "%q makes no reservations; ask at a site of kind slurm or local", k.name)
		}
		if a := &r.Allotments[i]; a.NPE > 0 && a.PEs.Empty() {
			if named := a.Start.Add(-k.ground.Load().ahead[a.Resource.Name]); k.ground.Load().ahead[a.Resource.Name] > 0 && named > h.clock() {
				return nil, berth.Errorf(berth.Conflict, "site", "%q binds late: reservation %s gets its nodes at %s, and takes tasks from then on", k.name, id, instant(named))
			}
		}
		round := k.nextRound()
		if at := k.at(id, r.Generation); !at.Made {
			k.early[k.promise(id)] = id
			k.poke()
			if missing == nil {
				missing = &unmade{k.name, at.Trouble, round}
			}
		}
	}
	return missing, nil
}

// nextRound returns a channel that is closed once the site was looked at again.
func (k *keeper) nextRound() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rounds
}

// roundIsOver tells those who wait for it; the caller holds the lock.
func (k *keeper) roundIsOver() {
	close(k.rounds)
	k.rounds = make(chan struct{})
}

// isEarly reports whether a reservation is at the site before the horizon.
func (k *keeper) isEarly(id string) bool {
	return len(k.early) > 0 && k.early[k.promise(id)] != ""
}

// tasksWait returns the reservations of ours in which tasks wait at the site: of
// several of one promise the latest, to which the tasks of the others are carried.
func (k *keeper) tasksWait(state *site.State) map[promise]site.Name {
	waiting := map[promise]site.Name{}
	for i := range state.Pending {
		if p := k.promiseOf(site.Name(state.Pending[i].Reservation)); p != "" {
			waiting[p] = ""
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	for i := range state.Ours {
		name := site.Name(state.Ours[i].Name)
		p, generation, _ := k.names.Split(name)
		last, some := waiting[promise(p)]
		if _, before, _ := k.names.Split(last); some && (last == "" || generation > before) {
			waiting[promise(p)] = name
		}
	}
	return waiting
}

// earlyOnes returns the reservations beyond the horizon that are to be at the site
// all the same: those that were prepared, and those in which tasks wait, which
// is how a restarted service knows of them. Cost: O(live reservations) after
// a restart with tasks that wait, else O(what is prepared).
func (h *Host) earlyOnes(k *keeper, waiting map[promise]site.Name, wished map[promise]bool) []berth.Reservation {
	unknown := false
	for p, name := range waiting {
		switch id := k.ids[p]; {
		case name == "" || wished[p] || k.early[p] != "":
		case id == "":
			unknown = true
		case h.core.engine.At(id, k.name):
			k.early[p] = id
		}
	}
	if unknown {
		h.findEarly(k, waiting)
	}
	var found []berth.Reservation
	for p, id := range k.early {
		if wished[p] {
			continue
		}
		if r, live := h.core.engine.Reservation(id); live {
			found = append(found, r)
		} else {
			delete(k.early, p)
		}
	}
	slices.SortFunc(found, func(a, b berth.Reservation) int {
		return cmp.Or(cmp.Compare(a.Start(), b.Start()), cmp.Compare(a.Sequence, b.Sequence))
	})
	return found
}

// findEarly notes to which reservations the names at the site belong.
func (h *Host) findEarly(k *keeper, waiting map[promise]site.Name) {
	for r := range h.core.engine.Due(k.name, berth.Forever) {
		if p := k.promise(r.Request.ID); waiting[p] != "" {
			k.early[p] = r.Request.ID
		}
	}
}
