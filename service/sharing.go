package service

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// SiteChanged is what a Notice is about if the reservation of a promise was changed at
// its site by hand. Who else may use it is taken over; all else is put back.
const SiteChanged = "site_changed"

// sameSharing reports whether two requests of a user let the same others in.
func sameSharing(a, b *berth.Request) bool {
	return a.Account == b.Account && a.Group == b.Group && slices.Equal(slices.Sorted(slices.Values(a.Users)), slices.Sorted(slices.Values(b.Users)))
}

// share says who may use a reservation: the user of its request and those they share it with, in its account where the site knows
// accounts.
func share(w *site.Reservation, r *berth.Request, accounts bool) {
	if r.Account != "" && accounts {
		w.Accounts = []string{r.Account}
	}
	switch {
	case r.Group != "":
		w.Groups = []string{r.Group}
	case len(r.Users) == 0:
		w.Users = []string{r.User}
	case slices.Contains(r.Users, berth.EveryUser):
	default:
		w.Users = slices.Compact(slices.Sorted(slices.Values(append([]string{r.User}, r.Users...))))
	}
}

// byHand looks at what a site has of a promise for what others have changed there: the
// journal says that it was as promised. Users and accounts who may use it too are taken
// over, for as long as the promise lasts. It returns a wish that wants them.
func (h *Host) byHand(k *keeper, w *wish, have *site.Booking, now berth.Time) {
	extra, has := k.shared[w.promise], h.core.delivered[k.name][w.id]
	own := has == mayBeAsProposed && w.proposed == 0 // what is not as promised may be the service's own doing
	if have != nil && (has == w.generation || own) {
		extra.users, extra.accounts = beyond(have.Users, w.Users), beyond(have.Accounts, w.Accounts)
		was := k.shared[w.promise]
		if !slices.Equal(extra.users, was.users) || !slices.Equal(extra.accounts, was.accounts) {
			k.shared[w.promise] = extra
			if added := slices.Concat(without(extra.users, was.users), without(extra.accounts, was.accounts)); len(added) > 0 {
				h.tellChanged(k, w, "may be used by "+strings.Join(added, ", ")+" too, which is taken over")
			}
		}
		w.admit(extra)
		if what := w.Differences(have, now); len(what) > 0 && !own {
			w.cause = "it was changed by hand at the site"
			if text := strings.Join(what, "; "); k.told[w.promise] != text {
				k.told[w.promise] = text
				h.tellChanged(k, w, text+"; it is put back")
			}
		} else {
			delete(k.told, w.promise)
		}
		return
	}
	w.admit(extra)
}

// admit lets others in too.
func (w *wish) admit(extra sharing) {
	w.Users, w.Accounts = append(slices.Clip(w.Users), extra.users...), append(slices.Clip(w.Accounts), extra.accounts...)
}

// forgetShared forgets what was changed by hand in reservations of promises that are over.
func (k *keeper) forgetShared(h *Host) {
	over := func(p promise) bool {
		_, live := h.core.engine.Reservation(k.ids[p])
		return !live
	}
	maps.DeleteFunc(k.shared, func(p promise, _ sharing) bool { return over(p) })
	maps.DeleteFunc(k.told, func(p promise, _ string) bool { return over(p) })
}

// beyond returns the names that are in a list beyond another one. Nothing is beyond an empty
// list, which stands for everybody.
func beyond(have, want []string) []string {
	if len(want) == 0 {
		return nil
	}
	return without(have, want)
}

// without returns the names of a list that are not in another one.
func without(list, other []string) []string {
	var more []string
	for _, name := range list {
		if !slices.Contains(other, name) {
			more = append(more, name)
		}
	}
	return more
}

// tellChanged tells what was changed by hand in a reservation at a site.
func (h *Host) tellChanged(k *keeper, w *wish, what string) {
	h.log.Warn("a reservation was changed by hand at a site", "site", k.name, "reservation", w.Name, "id", w.id, "what", what)
	h.recordTasks(&taskLook{site: k.name, events: []taskEvent{{reservation: w.id, what: SiteChanged, trouble: "reservation " + string(w.Name) + " at " + k.name + ": " + what}}})
}

// sharing is who was let into a reservation at its site by hand.
type sharing struct{ users, accounts []string }

// entry is what a request wants to do at a site.
func (k *keeper) entry(r *berth.Request) *site.Entry {
	e := &site.Entry{User: r.User, Sharing: r.Sharing}
	for i := range r.Parts {
		for _, v := range r.Parts[i].Variants {
			shape := site.Shape{Nodes: v.NPE, Duration: v.Duration, Accelerators: int(v.NPE) * r.Accelerators}
			if k.ground.Load().layout.Unit() != site.UnitNode {
				shape.Nodes, shape.Cores = 0, v.NPE
			}
			e.Shapes = append(e.Shapes, shape)
		}
	}
	return e
}

// gated returns why a site does not let a request in. If some of its variants exceed limits
// and some do not, those are left out where trim allows it.
func (h *Host) gated(ctx context.Context, k *keeper, p *site.Partition, r *berth.Request, trim bool) error {
	gate, has := k.manager.Adapter.(site.Gate)
	if !has {
		named := r.Sharing
		if h.options.Projects.restricts() { // then it says to whom it is charged, here as well
			named.Account = ""
		}
		if !named.Alone() {
			if r.QOS != "" {
				return berth.Errorf(berth.Invalid, "qos", "site %s knows no QOS; leave it out, or name another site", k.name)
			}
			return berth.Errorf(berth.Invalid, "account", "site %s knows no accounts, and runs what its user hands in; leave account, users and group out, or name another site", k.name)
		}
		return nil
	}
	if r.User == "" {
		return nil
	}
	entry := k.entry(r)
	admission, err := gate.Admits(ctx, p, entry)
	if err != nil {
		h.log.Warn("a site does not tell who may use a partition", "site", k.name, "partition", p.Name, "error", err)
		return nil
	}
	if admission.No != "" {
		if r.Alone() {
			return berth.Errorf(berth.Denied, "partition", "%s of site %s is closed to user %s: %s; name another partition", p.Name, k.name, r.User, admission.No)
		}
		if r.QOS != "" && r.Account == "" && len(r.Users) == 0 && r.Group == "" {
			return berth.Errorf(berth.Denied, "qos", "user %s at site %s: %s; name another QOS, or leave it out", r.User, k.name, admission.No)
		}
		return berth.Errorf(berth.Denied, "account", "user %s at site %s: %s; name an account and users that it has together", r.User, k.name, admission.No)
	}
	at := 0
	for i := range r.Parts {
		fits := make([]berth.Variant, 0, len(r.Parts[i].Variants))
		var why string
		for _, v := range r.Parts[i].Variants {
			if admission.TooMuch == nil || admission.TooMuch[at] == "" {
				fits = append(fits, v)
			} else if why == "" {
				why = admission.TooMuch[at]
			}
			at++
		}
		switch {
		case why == "":
		case len(fits) == 0 || !trim:
			return berth.Errorf(berth.Denied, "limits", "user %s at site %s: %s; ask for less, or name another account", r.User, k.name, why)
		default:
			r.Parts = slices.Clone(r.Parts)
			r.Parts[i].Variants = fits
		}
	}
	return nil
}
