package service

import (
	"context"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// aside is how much later a reservation is put whose place another one needs first:
// behind all that is promised at a site by any horizon in use.
const aside berth.Duration = 300 * 24 * 3600

// retire takes down a reservation whose promise is elsewhere by now. One with jobs
// stays until they are there too.
func (a *arranging) retire(ctx context.Context, p promise, id string, name site.Name) {
	if !a.mayGoOn() {
		a.well(ctx, p, string(name), site.ErrNotTried)
		return
	}
	err := a.carrier.Retire(ctx, name)
	if site.KindOf(err) == site.Conflict {
		a.emptying = append(a.emptying, name)
		return
	}
	if a.well(ctx, p, string(name), err) {
		a.h.log.Info("a reservation was released at a site", "site", a.k.name, "reservation", name, "id", id, "cause", "its promise is elsewhere")
	}
}

// empty carries jobs to where their promises are by now, and takes down the
// reservations that they leave. Those of promises that are not due at the site yet
// stay, and are changed in the next round.
func (a *arranging) empty(ctx context.Context, want *wanted) {
	early := map[promise]string{}
	for _, name := range a.emptying {
		p := a.k.promiseOf(name)
		to, made := a.done.made[p]
		id := want.moved[p]
		if id == "" { // its reservation was to stay until it could not be changed
			at := slices.IndexFunc(want.wishes, func(w wish) bool { return w.promise == p })
			id = want.wishes[at].id
		}
		switch {
		case made:
			if a.carry(ctx, p, id, name, to.name) && name != to.name &&
				a.try(ctx, p, string(name), func() error { return a.carrier.Retire(ctx, name) }) {
				a.h.log.Info("jobs have moved with their promise", "site", a.k.name, "id", id, "from", name, "to", to.name)
			}
		case a.done.failed[p] == "":
			early[p] = id
		}
	}
	if len(early) == 0 {
		return
	}
	_, _ = call(ctx, a.h, "", func(answer func(struct{}, error)) { // the error is that the service stops
		maps.Copy(a.k.early, early)
		answer(struct{}{}, nil)
	})
}

// left returns the reservations of promises of this service that the site took down by itself, and that have left jobs
// waiting. Of promises that are at the site still it notes the ids in moved.
func (h *Host) left(k *keeper, state *site.State, moved map[promise]string) map[site.Name]bool {
	var left map[site.Name]bool
	for i := range state.Pending {
		name := site.Name(state.Pending[i].Left)
		p := k.promiseOf(name)
		if _, known := left[name]; known || p == "" {
			continue
		}
		id := h.ownerOf(k, state, name)
		if id == "" {
			continue // it is none of this service's, or is forgotten
		}
		if left == nil {
			left = map[site.Name]bool{}
		}
		if left[name] = !h.core.engine.At(id, k.name); !left[name] {
			moved[p] = id
		}
	}
	return left
}

// takeUp ends the jobs that were left waiting by reservations of promises that are over, as they end where
// this service takes these down, and has those carried whose promises are not.
func (a *arranging) takeUp(ctx context.Context, want *wanted) {
	for _, name := range slices.Sorted(maps.Keys(want.left)) {
		p := a.k.promiseOf(name)
		if !want.left[name] {
			a.emptying = append(a.emptying, name)
			continue
		}
		a.done.changed = true
		if a.try(ctx, p, string(name), func() error { return a.booker.Release(ctx, name) }) {
			a.h.log.Info("jobs were ended that waited in a reservation when its site took it down", "site", a.k.name, "reservation", name)
		}
	}
}

// carry carries the jobs of a reservation to another one. What cannot be carried is told, so
// that its owner can do it.
func (a *arranging) carry(ctx context.Context, p promise, id string, from, to site.Name) bool {
	err := site.ErrNotTried
	if a.mayGoOn() {
		err = a.carrier.Carry(ctx, from, to)
	}
	fresh := err != nil && site.KindOf(err) != site.Unreachable && ctx.Err() == nil && a.k.isNews(p, err)
	if a.well(ctx, p, string(from), err) {
		return true
	}
	if fresh {
		a.h.tellLeft(ctx, a.k.name, id, err.Error())
	}
	return false
}

// unstick is for reservations with jobs that the site does not change to what is
// wanted. Those that need one another's places all leave them first. What still
// cannot be changed is made anew, and its jobs follow.
func (a *arranging) unstick(ctx context.Context, stuck []*wish) {
	for _, w := range stuck {
		have := a.have[w.Name]
		away := site.Reservation{
			Name: w.Name, Start: have.Start.Add(aside), End: have.End.Add(aside), Partition: have.Partition, Users: have.Users, Accounts: have.Accounts, Groups: have.Groups, Licences: have.Licences,
		}
		if len(w.Shares) > 0 && !w.Shares[0].Cores.Empty() || w.Cores > 0 {
			away.Cores = have.Cores
		} else {
			away.Nodes = berth.Count(len(have.Shares))
		}
		_, _ = a.ask(ctx, &away, a.booker.Change) // what keeps it in the way shows next
	}
	for _, w := range stuck {
		outcome, err := a.ask(ctx, &w.Reservation, a.booker.Change)
		if fresh := a.k.names.Of(w.id, w.generation); err == nil && outcome.Verdict == site.Refused && fresh != w.Name && a.have[fresh] == nil {
			anew := w.Reservation
			anew.Name = fresh
			if outcome, err = a.ask(ctx, &anew, a.booker.Reserve); err == nil && outcome.Verdict != site.Refused {
				a.emptying = append(a.emptying, w.Name)
				w.Name = fresh
			}
		}
		a.booked(ctx, w, outcome, err)
	}
}

// jobsIn returns the jobs that wait or run in a reservation.
func jobsIn(state *site.State, name site.Name) []site.JobID {
	var jobs []site.JobID
	for _, list := range [][]site.Job{state.Pending, state.Running} {
		for i := range list {
			if list[i].Reservation == string(name) {
				jobs = append(jobs, list[i].ID)
			}
		}
	}
	return jobs
}
