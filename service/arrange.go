package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// wanted is what should be at a site.
type wanted struct {
	now    berth.Time
	wishes []wish // by start, first what is promised
	names  map[site.Name]bool
	effect uint64 // number of the last effect that it answers
	// moved are the promises that are not over and have a reservation at the
	// site that is not wanted, with their ids.
	moved map[promise]string
	// over are the promises that are over and still have a reservation at the site, and why.
	over map[promise]unwanted
	// left are the reservations that the site took down by itself and that left jobs waiting,
	// with whether their promises are over: else they are among moved.
	left map[site.Name]bool
}

// unwanted says why a promise is not, or not so, at a site any more.
type unwanted struct {
	id, cause string
	lives     bool // its promise is at another site
}

// wish is one promise as it should be at a site.
type wish struct {
	site.Reservation
	id         string
	promise    promise
	generation uint64
	active     bool
	launch     []site.Share // what it gets when it is launched
	cause      string       // why it is as it is
	proposed   uint64       // number of the proposal that it is of; 0 if it is promised
}

func (w *wanted) reservations() []site.Reservation {
	list := make([]site.Reservation, len(w.wishes))
	for i := range w.wishes {
		list[i] = w.wishes[i].Reservation
	}
	return list
}

// wanted returns what should be real at a site by now: what runs, what starts
// within the horizon, and what was prepared before that.
//
// A promise that has changed since it was made real has another name, and its
// old reservation goes. One that is in use, or in which tasks wait, is changed in
// place instead, and goes on under the name that it has.
func (h *Host) wanted(k *keeper, state *site.State) wanted {
	booked := make(map[promise]booked, len(state.Ours))
	for i := range state.Ours {
		p := k.promiseOf(site.Name(state.Ours[i].Name))
		booked[p] = booked[p].with(&state.Ours[i])
	}
	waiting := k.tasksWait(state)
	w := wanted{now: h.clock()}
	added := map[string]bool{} // while anything is proposed
	wished := map[promise]bool{}
	add := func(r *berth.Reservation) {
		id, number := r.Request.ID, uint64(0)
		if p := h.proposedAt(k, id); p != nil {
			r, number = &p.is, p.number
		}
		if len(h.proposals) > 0 {
			added[id] = true
		}
		wish, some := h.wish(k, r, state.Licences)
		if len(waiting)+len(k.early) > 0 {
			wished[wish.promise] = true
		}
		if !some {
			return
		}
		there := booked[wish.promise]
		if there.inUse != "" && wish.active {
			wish.Name = there.inUse
		} else if name := waiting[wish.promise]; name != "" {
			wish.Name = name
		} else if have := there.last; have != nil && (number > 0 || len(wish.Differences(have, w.now)) == 0) {
			wish.Name = site.Name(have.Name) // it is changed in one step or not at all, or is as it should be
		}
		wish.proposed = number
		have := there.named(wish.Name)
		h.byHand(k, &wish, have, state.At)
		if wish.cause == "" && (have == nil || len(wish.Differences(have, w.now)) > 0) {
			wish.cause = h.causeAt(wish.id)
		}
		w.wishes = append(w.wishes, wish)
	}
	byStart := func(a, b *berth.Reservation) int {
		return cmp.Or(cmp.Compare(a.Start(), b.Start()), cmp.Compare(a.Request.ID, b.Request.ID))
	}
	due := slices.SortedFunc(h.core.engine.Due(k.name, w.now.Add(k.manager.Horizon)), byStart)
	w.wishes = make([]wish, 0, len(due))
	for _, r := range due {
		add(r)
	}
	rest := len(w.wishes)
	for _, r := range h.earlyOnes(k, waiting, wished) {
		add(&r)
	}
	for _, id := range slices.Sorted(maps.Keys(h.proposals)) {
		if r, live := h.core.engine.Reservation(id); live && !added[id] && h.proposedAt(k, id) != nil {
			add(&r)
		}
	}
	if len(w.wishes) > rest || len(h.proposals) > 0 {
		slices.SortStableFunc(w.wishes, func(a, b wish) int { // what is proposed needs what promises leave
			return cmp.Or(cmp.Compare(min(a.proposed, 1), min(b.proposed, 1)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.id, b.id))
		})
	}
	w.names = make(map[site.Name]bool, len(w.wishes))
	for i := range w.wishes {
		w.names[w.wishes[i].Name] = true
	}
	k.forgetWishes(len(w.wishes))
	k.forgetShared(h)
	w.effect = h.core.lastEffect()
	w.moved = h.moved(k, state, &w)
	w.over = h.over(k, state, &w)
	w.left = h.left(k, state, w.moved)
	return w
}

// booked is what a site has of one promise: mostly one reservation, of each generation at most one.
type booked struct {
	last  *site.Booking // that ends last
	inUse site.Name     // that is active; empty if none is
	rest  []*site.Booking
}

// with returns it with one more reservation.
func (b booked) with(one *site.Booking) booked {
	if one.Active {
		b.inUse = site.Name(one.Name)
	}
	if b.last != nil && b.last.End > one.End {
		b.rest = append(b.rest, one)
		return b
	}
	if b.last != nil {
		b.rest = append(b.rest, b.last)
	}
	b.last = one
	return b
}

// named returns the reservation of that name, nil if there is none.
func (b booked) named(name site.Name) *site.Booking {
	if b.last == nil || b.last.Name == string(name) {
		return b.last
	}
	for _, one := range b.rest {
		if one.Name == string(name) {
			return one
		}
	}
	return nil
}

// moved returns the promises that are not over and for which the site has a
// reservation that is not wanted. Cost: O(live reservations) if it is not known yet what
// some of these are of.
func (h *Host) moved(k *keeper, state *site.State, w *wanted) map[promise]string {
	moved, unknown := map[promise]string{}, map[promise]bool{}
	for i := range state.Ours {
		name := site.Name(state.Ours[i].Name)
		if w.names[name] {
			continue
		}
		p := k.promiseOf(name)
		if id := k.ids[p]; id == "" {
			unknown[p] = true
		} else if h.core.engine.At(id, k.name) {
			moved[p] = id
		}
	}
	if len(unknown) == 0 {
		return moved
	}
	for r := range h.core.engine.Due(k.name, berth.Forever) {
		if p := k.promise(r.Request.ID); unknown[p] {
			moved[p] = r.Request.ID
		}
	}
	return moved
}

// done is how far a round came.
type done struct {
	changed bool
	made    map[promise]made
	failed  map[promise]string // in words
	order   []promise          // of failed
	refused []*wish            // what the site would not have where it is
	never   []never            // what it will not have at all
	silent  int                // how often the site did not answer
	// verdicts are what it said to proposals.
	verdicts []verdict
}

// never is a promise that a site will not have, with its words.
type never struct {
	*wish
	words string
	fails berth.Time // before that it is only refused what was not told yet
}

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

// arranging is a round at work at a site.
type arranging struct {
	h        *Host
	k        *keeper
	booker   site.Booker
	many     site.ManyBooker // nil if the site can make only one at a time
	launcher site.Launcher   // nil if it starts things by itself
	carrier  site.Carrier    // nil if jobs come through the service alone
	have     map[site.Name]*site.Booking
	there    map[promise]bool // something of it is there
	emptying []site.Name      // reservations of promises that are elsewhere by now, with jobs in them
	done     *done
}

// arrange makes, changes and takes down reservations at a site until it has what
// is wanted, or does not answer any more. What is promised while that is under way
// is made too, without a rest and another look: a burst of promises is one round.
// But the round is over when it is time for the next look, or the site says that something has happened there.
func (h *Host) arrange(ctx context.Context, k *keeper, state *site.State, want *wanted) done {
	did := done{made: map[promise]made{}, failed: map[promise]string{}}
	booker, can := k.manager.Adapter.(site.Booker)
	if !can {
		return did
	}
	began := time.Now()
	a := &arranging{h: h, k: k, booker: booker, have: map[site.Name]*site.Booking{}, there: map[promise]bool{}, done: &did}
	a.many, _ = k.manager.Adapter.(site.ManyBooker)
	a.launcher, _ = k.manager.Adapter.(site.Launcher)
	a.carrier, _ = k.manager.Adapter.(site.Carrier)
	for i := range state.Ours {
		a.have[site.Name(state.Ours[i].Name)] = &state.Ours[i]
		a.there[k.promiseOf(site.Name(state.Ours[i].Name))] = true
	}
	a.releaseAll(ctx, state, want)
	a.takeUp(ctx, want)
	a.realise(ctx, want.wishes, want.now)
	for did.changed && did.silent < site.Patience && time.Since(began) < k.manager.Every && len(k.heard) == 0 {
		more, err := call(ctx, h, "", func(answer func(wanted, error)) {
			more := h.since(k, state, want)
			h.whenDurable(func(err error) { answer(more, err) })
		})
		if err != nil || len(more.wishes) == 0 {
			break
		}
		a.realise(ctx, more.wishes, more.now)
		want.wishes = append(want.wishes, more.wishes...) // the effects of these are answered by the next round
	}
	a.empty(ctx, want)
	did.takeVerdicts(k, want.wishes)
	return did
}

// mayGoOn reports whether the site may be asked for something: it answers, and no other
// server can have taken over.
func (a *arranging) mayGoOn() bool { return a.done.silent < site.Patience && a.h.leads() == nil }

// since is what is wanted at a site beyond what was wanted. It is nothing if any
// of that is wanted no more, or otherwise: then that goes first, after a look.
func (h *Host) since(k *keeper, state *site.State, want *wanted) wanted {
	known := map[site.Name]uint64{}
	for i := range want.wishes {
		known[want.wishes[i].Name] = want.wishes[i].generation
	}
	more := h.wanted(k, state)
	still := 0
	more.wishes = slices.DeleteFunc(more.wishes, func(w wish) bool {
		generation, is := known[w.Name]
		if is && generation == w.generation {
			still++
		}
		return is
	})
	if still < len(known) {
		more.wishes = nil
	}
	return more
}

// releaseAll takes down what is not wanted: it may be in the way of what is.
func (a *arranging) releaseAll(ctx context.Context, state *site.State, want *wanted) {
	for i := range state.Ours {
		name := site.Name(state.Ours[i].Name)
		if want.names[name] {
			continue
		}
		a.done.changed = true
		p := a.k.promiseOf(name)
		if id, moved := want.moved[p]; moved && a.carrier != nil {
			a.retire(ctx, p, id, name)
			continue
		}
		u := want.over[p]
		var stranded []site.Report
		if u.lives {
			stranded = a.k.handedIn(ctx, state, name)
		}
		if a.try(ctx, p, string(name), func() error { return a.booker.Release(ctx, name) }) {
			a.h.log.Info("a reservation was released at a site", "site", a.k.name, "reservation", name, "id", u.id, "jobs ended", jobsIn(state, name), "cause", u.cause)
			a.h.tellStranded(ctx, a.k, u.id, stranded)
		}
	}
}

// realise makes wishes real in their order. Those that are absent are made
// together if nothing else is to be done between them.
func (a *arranging) realise(ctx context.Context, wishes []wish, now berth.Time) {
	var absent, stuck []*wish
	for i := range wishes {
		w := &wishes[i]
		launch := a.launcher != nil && w.active
		booking := a.have[w.Name]
		right := booking != nil && len(w.Differences(booking, now)) == 0
		if booking == nil {
			absent = append(absent, w)
		}
		if launch || booking != nil && !right {
			a.reserve(ctx, absent)
			absent = nil
		}
		switch {
		case right:
			a.done.made[w.promise] = made{w.Name, w.generation}
		case booking != nil && a.carrier != nil && booking.Active && w.Start > now:
			a.unstart(ctx, w)
		case booking != nil && a.carrier != nil && !booking.Active:
			a.done.changed = true
			if outcome, err := a.ask(ctx, &w.Reservation, a.booker.Change); err == nil && outcome.Verdict == site.Refused && w.proposed == 0 {
				stuck = append(stuck, w)
			} else {
				a.booked(ctx, w, outcome, err)
			}
		case booking != nil:
			a.done.changed = true
			a.book(ctx, w, a.booker.Change)
		}
		if _, is := a.done.made[w.promise]; is && launch &&
			!a.try(ctx, w.promise, w.id, func() error { return a.launcher.Launch(ctx, w.Name, w.launch) }) {
			delete(a.done.made, w.promise)
		}
	}
	a.reserve(ctx, absent)
	a.unstick(ctx, stuck)
}

// unstart is for a reservation that has begun at the site for a change that was not made then, or was taken
// back. No site lets one begin again, so it is made anew, unless there are jobs in it.
func (a *arranging) unstart(ctx context.Context, w *wish) {
	a.done.changed = true
	err := site.ErrNotTried
	if a.mayGoOn() {
		err = a.carrier.Retire(ctx, w.Name)
	}
	if site.KindOf(err) == site.Conflict {
		err = fmt.Errorf("its reservation %s has begun before %s, for a change that was not made, and has jobs: it stays as it is for them", w.Name, instant(w.Start))
	}
	if !a.well(ctx, w.promise, w.id, err) {
		return
	}
	a.h.log.Info("a reservation was released at a site", "site", a.k.name, "reservation", w.Name, "id", w.id, "cause", "it had begun for a change that was not made")
	delete(a.have, w.Name)
	a.book(ctx, w, a.booker.Reserve)
}

// reserve makes what is absent.
func (a *arranging) reserve(ctx context.Context, absent []*wish) {
	a.done.changed = a.done.changed || len(absent) > 0
	if a.many == nil || len(absent) < 2 || !a.mayGoOn() {
		for _, w := range absent {
			a.book(ctx, w, a.booker.Reserve)
		}
		return
	}
	want := make([]site.Reservation, len(absent))
	for i, w := range absent {
		want[i] = w.Reservation
	}
	for i, answer := range a.many.ReserveMany(ctx, want) {
		a.booked(ctx, absent[i], answer.Outcome, answer.Err)
	}
}

// book makes or changes one reservation. In doubt the next round looks first.
func (a *arranging) book(ctx context.Context, w *wish, do func(context.Context, site.Reservation) (site.Outcome, error)) {
	outcome, err := a.ask(ctx, &w.Reservation, do)
	a.booked(ctx, w, outcome, err)
}

// ask asks the site for something, unless it does not answer.
func (a *arranging) ask(ctx context.Context, r *site.Reservation, do func(context.Context, site.Reservation) (site.Outcome, error)) (site.Outcome, error) {
	if !a.mayGoOn() {
		return site.Outcome{}, site.ErrNotTried
	}
	return do(ctx, *r)
}

// booked notes how an attempt to book ended.
func (a *arranging) booked(ctx context.Context, w *wish, o site.Outcome, err error) {
	if err == nil && o.Verdict == site.Refused {
		a.done.refused = append(a.done.refused, w)
		err = errors.New("the site refused it: " + o.Words)
	}
	if site.IsFinal(err) && !a.there[w.promise] {
		a.done.never = append(a.done.never, never{wish: w, words: err.Error()})
	}
	if a.well(ctx, w.promise, w.id, err) {
		a.done.made[w.promise] = made{w.Name, w.generation}
	}
	if o.Verdict == site.Made {
		what := "a reservation was made at a site"
		attributes := []any{
			"site", a.k.name, "reservation", w.Name, "id", w.id, "users", w.Users, "start", instant(w.Start), "end", instant(w.End), "nodes", site.NodesOf(w.Shares), "cause", w.cause,
		}
		if have := a.have[w.Name]; have != nil {
			what = "a reservation was updated at a site"
			attributes = append(attributes, "was", strings.Join(w.Differences(have, a.h.Now()), "; "))
		}
		a.h.log.Info(what, attributes...)
	}
}

func instant(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }

// try does something, unless the site does not answer, and reports whether it
// went well.
func (a *arranging) try(ctx context.Context, p promise, what string, do func() error) bool {
	err := site.ErrNotTried
	if a.mayGoOn() {
		err = do()
	}
	return a.well(ctx, p, what, err)
}

// well notes what went wrong, if anything did.
func (a *arranging) well(ctx context.Context, p promise, what string, err error) bool {
	if err == nil {
		return true
	}
	if ctx.Err() == nil && a.k.isNews(p, err) {
		a.h.log.Warn("a site is not as promised", "site", a.k.name, "what", what, "error", err)
	}
	a.done.fail(p, err)
	return false
}

// isNews reports whether a failure is another one than in the round before.
func (k *keeper) isNews(p promise, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble[p] != err.Error()
}
