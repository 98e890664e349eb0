package service

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// own returns a site's state in which a reservation is ours if this service's journal
// knows the promise, whatever it is called. What bears a name of ours and belongs to
// a promise that the journal does not know was made by another service or from other
// data: it is foreign, and so planned around and never touched.
//
// If there is any at the first look, and the service was not told to adopt it, the
// site is not served until it is gone: its maker may still be at work, or the
// data are not those that the site was served from. The reservations are returned then.
func (h *Host) own(k *keeper, state *site.State) (*site.State, []site.Booking) {
	h.forgetNames(k, state)
	strange := func(b site.Booking) bool { return !k.mine[k.promiseOf(site.Name(b.Name))] }
	if !h.recognise(k, state) {
		k.served, k.strangers = true, nil
		return state, nil
	}
	var strangers []site.Booking
	for _, b := range state.Ours {
		if strange(b) {
			strangers = append(strangers, b)
		}
	}
	if k.manager.Adopt && !k.served {
		h.log.Warn("reservations of another service, or of other data, are adopted; those that are not promised here are taken down with the jobs in them",
			"site", k.name, "reservations", names(strangers))
		k.adopted = map[promise]bool{}
		for i := range strangers {
			p := k.promiseOf(site.Name(strangers[i].Name))
			k.mine[p], k.adopted[p] = true, true
		}
		k.served = true
		return state, nil
	}
	if now := names(strangers); !slices.Equal(now, k.strangers) {
		k.strangers = now
		h.log.Warn("reservations bear a name of Berth's and belong to no promise of this service; they are left alone", "site", k.name, "reservations", now, "served", k.served)
	}
	own := *state
	own.Ours = slices.DeleteFunc(slices.Clone(state.Ours), strange)
	own.Foreign = slices.Concat(state.Foreign, strangers)
	if k.served {
		strangers = nil
	}
	return &own, strangers
}

// recognise finds out which reservations with names of ours belong to promises of
// this service, and whether some do not. Cost: O(remembered requests) if there is one not seen before.
func (h *Host) recognise(k *keeper, state *site.State) (strange bool) {
	fresh := map[promise]bool{}
	for i := range state.Ours {
		p := k.promiseOf(site.Name(state.Ours[i].Name))
		mine, seen := k.mine[p]
		if strange = strange || !mine; !seen {
			fresh[p] = true
			k.mine[p] = k.adopted[p]
		}
	}
	if len(fresh) == 0 {
		return strange
	}
	h.core.cards.Ascend(&card{}, func(c *card) bool {
		if p := k.promise(c.id); fresh[p] {
			k.mine[p] = true
		}
		return true
	})
	return slices.ContainsFunc(state.Ours, func(b site.Booking) bool { return !k.mine[k.promiseOf(site.Name(b.Name))] })
}

// forgetNames forgets the names of promises that are not remembered any more, and that the site does not show, once there are as many of them as of
// others. What is seen again after that is recognised as after a restart. Cost: O(names, and what the site shows), O(1) on average.
func (h *Host) forgetNames(k *keeper, state *site.State) {
	if len(k.mine)+len(k.ids) <= k.namesKept {
		return
	}
	shown := map[promise]bool{}
	for i := range state.Ours {
		shown[k.promiseOf(site.Name(state.Ours[i].Name))] = true
	}
	for _, jobs := range [][]site.Job{state.Running, state.Ended, state.Pending} {
		for i := range jobs {
			shown[k.promiseOf(site.Name(cmp.Or(jobs[i].Left, jobs[i].Reservation)))] = true
		}
	}
	maps.DeleteFunc(k.ids, func(p promise, id string) bool { return !shown[p] && (id == "" || h.core.card(id) == nil) })
	maps.DeleteFunc(k.mine, func(p promise, _ bool) bool {
		_, remembered := k.ids[p]
		return !shown[p] && !remembered
	})
	k.namesKept = 2*(len(k.mine)+len(k.ids)) + 64
}

func names(bookings []site.Booking) []string {
	list := make([]string, len(bookings))
	for i := range bookings {
		list[i] = bookings[i].Name
	}
	return list
}

// refuse has nothing made at a site that has reservations of another service.
func (k *keeper) refuse(state *site.State, want *wanted, strangers []site.Booking) {
	const most = 3 // enough to see whose they are
	var list []string
	for i := range strangers[:min(most, len(strangers))] {
		b := &strangers[i]
		list = append(list, fmt.Sprintf("%s of %s until %s", b.Name, strings.Join(slices.Concat(b.Users, b.Accounts), ","), time.Unix(int64(b.End), 0).UTC().Format(time.RFC3339)))
	}
	text := fmt.Sprintf("the site is not served: %d reservations there were made by another service or from other data: %s", len(strangers), strings.Join(list, "; "))
	if len(strangers) > most {
		text += "; …"
	}
	text += ". Stop that service, or start this one with its data; berth serve --adopt takes down those that are not promised here, with the jobs in them"
	did := done{made: map[promise]made{}, failed: map[promise]string{}}
	err := &site.Error{Kind: site.Conflict, Op: "serve", Msg: text}
	for i := range want.wishes {
		did.fail(want.wishes[i].promise, err)
	}
	k.reached(state, want, &did)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view.Trouble, k.unserved = text, text
}

// servable returns why nothing can be promised at a site, nil if it can.
func (k *keeper) servable() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unserved == "" {
		return nil
	}
	return berth.Errorf(berth.Unavailable, "site", "%q: %s", k.name, k.unserved)
}
