package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// wanted is what should be at a site.
type wanted struct {
	now    berth.Time
	wishes []wish // by start
	effect uint64 // number of the last effect that it answers
}

// wish is one promise as it should be at a site.
type wish struct {
	site.Reservation
	id         string
	promise    promise
	generation uint64
	active     bool
	launch     []site.Share // what it gets when it is launched
}

func (w *wanted) reservations() []site.Reservation {
	list := make([]site.Reservation, len(w.wishes))
	for i := range w.wishes {
		list[i] = w.wishes[i].Reservation
	}
	return list
}

// wanted returns what should be real at a site by now: what runs, and what
// starts within the horizon.
//
// A promise that has changed since it was made real has another name, and its
// old reservation goes, with all that runs in it. One that is in use is changed
// in place instead, and goes on under the name that it has.
func (h *Host) wanted(k *keeper, state *site.State) wanted {
	inUse := map[promise]site.Name{}
	for i := range state.Ours {
		if name := site.Name(state.Ours[i].Name); state.Ours[i].Active {
			p := k.promiseOf(name)
			inUse[p] = name
		}
	}
	w := wanted{now: h.clock()}
	for r := range h.core.engine.Due(k.name, w.now.Add(k.manager.Horizon)) {
		wish, some := k.wish(&r)
		if !some {
			continue
		}
		if name, used := inUse[wish.promise]; used && wish.active {
			wish.Name = name
		}
		w.wishes = append(w.wishes, wish)
	}
	slices.SortStableFunc(w.wishes, func(a, b wish) int { return cmp.Compare(a.Start, b.Start) })
	w.effect = h.core.lastEffect()
	return w
}

// wish returns a promise as it should be at the site; ok is false if nothing of
// it can be there. What is promised late is so many cores or nodes until the
// site launches it, or for good where it launches nothing itself.
func (k *keeper) wish(r *berth.Reservation) (w wish, ok bool) {
	w = wish{id: r.Request.ID, promise: k.promise(r.Request.ID), generation: r.Generation, active: r.State == berth.Active}
	w.Reservation = site.Reservation{
		Name: site.NameOf(k.name, r.Request.ID, r.Generation), Start: r.Start(), End: r.End(),
		Partition: r.Request.Partition, Users: []string{r.Request.User},
	}
	_, launches := k.manager.Adapter.(site.Launcher)
	open, nodes := false, false // a part is without numbers; PEs are nodes
	var count berth.Count
	for i := range r.Allotments {
		a := &r.Allotments[i]
		if a.Resource.Site != k.name {
			continue
		}
		shares, known := k.manager.Layout.Shares(a.Resource.Name, a.PEs)
		open = open || !known || len(shares) == 0 || launches && k.late[a.Resource.Name]
		first, _ := k.manager.Layout.Shares(a.Resource.Name, berth.PEsOf(0))
		nodes = len(first) > 0 && first[0].Cores.Empty()
		w.launch = append(w.launch, shares...)
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

// done is how far a round came.
type done struct {
	changed bool
	made    map[promise]made
	failed  map[promise]string // in words
	order   []promise          // of failed
	refused []*wish            // what the site would not have where it is
	silent  int                // how often the site did not answer
}

// patience is how often in a round a site may not answer. Each time takes as long
// as the adapter waits, and the next round begins with the same.
const patience = 3

// fail notes that something is not as it should be.
func (d *done) fail(p promise, err error) {
	if d.failed[p] == "" {
		d.order = append(d.order, p)
		d.failed[p] = err.Error()
	}
	if site.KindOf(err) == site.Unreachable {
		d.silent++
	}
}

// words says what a round could not do; nothing if it did everything.
func (d *done) words() string {
	switch n := len(d.order); n {
	case 0:
		return ""
	case 1:
		return d.failed[d.order[0]]
	default:
		return fmt.Sprintf("%s (and %d more)", d.failed[d.order[0]], n-1)
	}
}

// arrange makes, changes and takes down reservations at a site until it has what
// is wanted, or does not answer any more.
func (h *Host) arrange(ctx context.Context, k *keeper, state *site.State, want *wanted) done {
	did := done{made: map[promise]made{}, failed: map[promise]string{}}
	booker, can := k.manager.Adapter.(site.Booker)
	if !can {
		return did
	}
	have := map[site.Name]*site.Booking{}
	for i := range state.Ours {
		have[site.Name(state.Ours[i].Name)] = &state.Ours[i]
	}
	wishes := map[site.Name]bool{}
	for i := range want.wishes {
		wishes[want.wishes[i].Name] = true
	}
	try := func(p promise, what string, do func() error) bool {
		err := errors.New("not tried: the site does not answer")
		if did.silent < patience {
			err = do()
		}
		if err == nil {
			return true
		}
		if ctx.Err() == nil && k.isNews(p, err) {
			h.log.Warn("a site is not as promised", "site", k.name, "what", what, "error", err)
		}
		did.fail(p, err)
		return false
	}
	// What is not wanted goes first: it may be in the way of what is.
	for i := range state.Ours {
		if name := site.Name(state.Ours[i].Name); !wishes[name] {
			did.changed = true
			p := k.promiseOf(name)
			try(p, string(name), func() error { return booker.Release(ctx, name) })
		}
	}
	launcher, _ := k.manager.Adapter.(site.Launcher)
	for i := range want.wishes {
		w := &want.wishes[i]
		booking := have[w.Name]
		right := booking != nil && len(w.Differences(booking, want.now)) == 0
		if !right {
			did.changed = true
			right = try(w.promise, w.id, func() error {
				o, err := makeReal(ctx, booker, w, booking)
				if err == nil && o.Verdict == site.Refused {
					did.refused = append(did.refused, w)
				}
				return outcome(o, err)
			})
		}
		if right && launcher != nil && w.active {
			right = try(w.promise, w.id, func() error { return launcher.Launch(ctx, w.Name, w.launch) })
		}
		if right {
			did.made[w.promise] = made{w.Name, w.generation}
		}
	}
	return did
}

// isNews reports whether a failure is another one than in the round before.
func (k *keeper) isNews(p promise, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble[p] != err.Error()
}

// makeReal makes or changes a reservation. In doubt the next round looks first.
func makeReal(ctx context.Context, booker site.Booker, w *wish, booking *site.Booking) (site.Outcome, error) {
	if booking != nil {
		return booker.Change(ctx, w.Reservation)
	}
	return booker.Reserve(ctx, w.Reservation)
}

// outcome makes an error of what is neither there nor made.
func outcome(o site.Outcome, err error) error {
	if err == nil && o.Verdict == site.Refused {
		return errors.New("the site refused it: " + o.Words)
	}
	return err
}
