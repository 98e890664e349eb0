package service

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// wishOf is what makes a wish: while none of it changes, a promise is wanted at the site as it was.
type wishOf struct {
	sequence, generation uint64
	active               bool
	ground               *ground
}

// keptWish is a wish that is remembered from one round to the next.
type keptWish struct {
	wishOf
	wish wish
	some bool
	turn uint64 // when it was last asked for
}

// wish returns a promise as it should be at a site; ok is false if nothing of it can be there, or its PEs get
// their names later. From then on its name there is known. Slices in it must not be written.
func (h *Host) wish(k *keeper, r *berth.Reservation, counts []site.Licence) (w wish, ok bool) {
	id, is := r.Request.ID, wishOf{r.Sequence, r.Generation, r.State == berth.Active, k.ground.Load()}
	kept := k.wishes[id]
	switch {
	case h.proposals[id] != nil, r.Request.Licences > 0: // which licences a site counts may change with each look
		w, ok = k.wish(r, counts)
	case kept == nil || kept.wishOf != is:
		w, ok = k.wish(r, counts)
		k.wishes[id] = &keptWish{wishOf: is, wish: w, some: ok, turn: k.turn}
	default:
		if h.options.wished != nil {
			anew, some := k.wish(r, counts)
			h.options.wished(kept.wish, anew, kept.some == some)
		}
		kept.turn = k.turn
		return kept.wish, kept.some
	}
	if ok {
		k.mine[w.promise], k.ids[w.promise] = true, id
	}
	return w, ok
}

// forgetWishes forgets the wishes that were not asked for since the last time, once they are as many
// as those that were.
func (k *keeper) forgetWishes(asked int) {
	if len(k.wishes) > 2*asked+64 {
		for id, kept := range k.wishes {
			if kept.turn != k.turn {
				delete(k.wishes, id)
			}
		}
	}
	k.turn++
}

// wish returns a promise as it should be at the site; ok is false if nothing of
// it can be there, or its PEs get their names later. What is promised late is else a number of cores
// or nodes until the site launches it, or for good where it launches nothing itself. Licences are held with
// it where the site counts them under the name of the software.
func (k *keeper) wish(r *berth.Reservation, counts []site.Licence) (w wish, ok bool) {
	w = wish{id: r.Request.ID, generation: r.Generation, active: r.State == berth.Active}
	w.Reservation = site.Reservation{
		Name: k.names.Of(r.Request.ID, r.Generation), Start: r.Start(),
		Partition: r.Request.Partition,
	}
	w.promise = k.promiseOf(w.Name)
	_, gated := k.manager.Adapter.(site.Gate)
	share(&w.Reservation, r.Request, gated)
	if name := r.Request.Software; r.Request.Licences > 0 && slices.ContainsFunc(counts, func(l site.Licence) bool { return l.Name == name }) {
		w.Licences = []site.Licence{{Name: name, Count: r.Request.Licences}}
	}
	_, launches := k.manager.Adapter.(site.Launcher)
	g := k.ground.Load()
	open, nodes := false, false // a part is without numbers; PEs are nodes
	var count berth.Count
	for i := range r.Allotments {
		a := &r.Allotments[i]
		if a.Resource.Site != k.name {
			continue
		}
		if a.NPE > 0 && a.PEs.Empty() && g.ahead[a.Resource.Name] > 0 {
			return w, false
		}
		nodes = g.nodes[a.Resource.Name]
		launched := launches && g.late[a.Resource.Name]
		if open = open || launched; w.active || !launched {
			shares, known := g.layout.Shares(a.Resource.Name, a.PEs)
			open = open || !known || len(shares) == 0
			w.launch = append(w.launch, shares...)
		}
		w.End = max(w.End, a.End) // all end together, but in records of an earlier version
		count += a.NPE
	}
	switch {
	case !open:
		w.Shares = w.launch
	case nodes:
		w.Nodes = count
	default:
		w.Cores = count
	}
	return w, count > 0
}
