package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/site"
)

// tell tells the engine what a site says.
func (h *Host) tell(k *keeper, event engine.Event) {
	if err := h.step(event, asked{}, nil); err != nil {
		h.log.Error("the engine does not take what a site says", "site", k.name, "event", event.Kind, "resource", event.Resource, "error", err)
	}
}

// sayResized writes down which promises lack PEs from now on, lack none any more, or have other ones.
func (h *Host) sayResized(list []news) {
	for i := range list {
		switch r := list[i].card.promise; {
		case change.Kind(list[i].what) != change.Resized || r == nil || list[i].card.state() == Pending || len(r.Allotments) == 0:
		case r.Missing > 0:
			h.log.Warn("a promise lacks PEs, because nodes are out of use and none are free instead", "site", r.Allotments[0].Resource.Site, "id", list[i].card.id, "missing", r.Missing, "left", r.Allotments[0].NPE)
		case list[i].lacked == 0:
			h.log.Info("a promise has other PEs", "site", r.Allotments[0].Resource.Site, "id", list[i].card.id)
		default:
			h.log.Info("a promise has all of its PEs again", "site", r.Allotments[0].Resource.Site, "id", list[i].card.id)
		}
	}
}

// outOfUse is the outages of a site as it shows them, by pool and name. Each has one
// cause at the site, after which it is named; what is out of use is their union.
type outOfUse map[berth.ResourceID]map[string]berth.Outage

// add notes an outage from one time to another; what has begun has no From.
func (n outOfUse) add(k *keeper, pool, name string, pes berth.PESet, from, until, now berth.Time) {
	if from >= until || until <= now || pes.Empty() {
		return
	}
	if from <= now {
		from = 0
	}
	id := berth.PoolID(k.name, pool)
	if n[id] == nil {
		n[id] = map[string]berth.Outage{}
	}
	n[id][name] = berth.Outage{Name: name, Resource: id, PEs: pes, From: from, Until: until}
}

// taking returns what notes an outage of shares of a site, which promises are placed around.
func (n outOfUse) taking(k *keeper, now berth.Time) func(name string, shares []site.Share, from, until berth.Time) {
	return func(name string, shares []site.Share, from, until berth.Time) {
		for pool, pes := range k.ground.Load().layout.PEs(shares) {
			n.add(k, pool, name, pes, from, until, now)
		}
	}
}

// takenOut returns what maintenance takes out of use.
func (h *Host) takenOut(k *keeper, now berth.Time) outOfUse {
	is := outOfUse{}
	for _, m := range h.core.maintenance {
		if m.Site == k.name {
			takeAll(m.left(now), m.shares(k.ground.Load().layout), m.outage, is.taking(k, now))
		}
	}
	return is
}

// tellOutOfUse tells the engine which PEs are out of use at a site, and when, as far
// as that is not what it knows: first what is over, then what is new, by time.
func (h *Host) tellOutOfUse(k *keeper, state *site.State) {
	k.last = state
	h.tellOutages(k, h.unusable(k, state, h.clock()), func(string) bool { return true })
}

// tellMaintenance is tellOutOfUse for maintenance alone, before the first look at a site.
func (h *Host) tellMaintenance(k *keeper) {
	h.tellOutages(k, h.takenOut(k, h.clock()), isMaintenance)
}

// tellOutages tells the engine which outages there are of those with some names at a site.
func (h *Host) tellOutages(k *keeper, is outOfUse, about func(name string) bool) {
	var over, nameless []berth.Outage
	for o := range h.core.engine.Outages() {
		switch now, still := is[o.Resource][o.Name]; {
		case o.Resource.Site != k.name || !about(o.Name):
		case o.Name == "":
			nameless = append(nameless, o) // of a record of before outages had names
		case !still:
			over = append(over, o)
		case now.From == o.From && now.Until == o.Until && now.PEs.Equal(o.PEs):
			delete(is[o.Resource], o.Name)
		}
	}
	var fresh []berth.Outage
	for _, outages := range is {
		for _, o := range outages {
			fresh = append(fresh, o)
		}
	}
	slices.SortFunc(fresh, func(a, b berth.Outage) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Until, b.Until), cmp.Compare(a.Resource.Name, b.Resource.Name), cmp.Compare(a.Name, b.Name))
	})
	h.withdraw(k, fresh)
	for i := range over {
		h.tell(k, engine.UpNamed(over[i].Resource, over[i].Name))
	}
	for i := range fresh {
		h.tell(k, engine.Down(fresh[i]))
	}
	for i := range nameless {
		h.tell(k, engine.Up(nameless[i].Resource, nameless[i].PEs))
	}
}

// unusable returns when PEs are out of use: those of nodes that are gone or not up,
// those that run what is not ours, until its limit, and those of reservations that are
// not ours. The end of what has outrun its limit is not known. A node that is drained
// serves what runs on it to the end; of a node whose condition the manager does not
// know, what was told last counts.
func (h *Host) unusable(k *keeper, state *site.State, now berth.Time) outOfUse {
	is := h.takenOut(k, now)
	take := is.taking(k, now)
	ours := map[string]bool{}
	for i := range state.Ours {
		ours[state.Ours[i].Name] = true
	}
	for i := range state.Running {
		if job := &state.Running[i]; !ours[job.Reservation] {
			until := job.End
			if until <= now {
				until = berth.Forever
			}
			take("job "+string(job.ID), job.Shares, now, until)
		}
	}
	for i := range state.Foreign {
		b := &state.Foreign[i]
		switch {
		case b.Floats:
			take("reservation "+b.Name, b.Shares, now, berth.Forever)
		case b.Repeat.Each == "":
			take("reservation "+b.Name, b.Shares, b.Start, b.End)
		default:
			name := func(at berth.Time) string { return fmt.Sprintf("reservation %s at %d", b.Name, at) }
			takeAll(b.Occurrences(h.foreseen(k, now)), b.Shares, name, take)
		}
	}
	unknown := map[string]bool{}
	for i := range state.Nodes {
		node := &state.Nodes[i]
		name, whole := "node "+node.Name, []site.Share{{Node: node.Name}}
		switch {
		case node.Condition == site.Down || node.Condition == site.Drained && node.Busy == 0:
			take(name, whole, now, berth.Forever)
		case node.Condition == site.Drained:
			take(name, whole, h.runsUntil(k, whole, now), berth.Forever)
		case node.Condition == site.Unknown:
			unknown[name] = true
		}
	}
	for pool, pes := range k.ground.Load().layout.Gone() {
		is.add(k, pool, "gone", pes, now, berth.Forever, now)
	}
	for o := range h.core.engine.Outages() {
		if unknown[o.Name] && o.Resource.Site == k.name {
			is.add(k, o.Resource.Name, o.Name, o.PEs, o.From, o.Until, now)
		}
	}
	return is
}

// runsUntil returns when the last reservation ends that runs on shares now; now
// if none does.
func (h *Host) runsUntil(k *keeper, shares []site.Share, now berth.Time) berth.Time {
	pes := k.ground.Load().layout.PEs(shares)
	until := now
	for r := range h.core.engine.Due(k.name, now) {
		for i := range r.Allotments {
			a := &r.Allotments[i]
			if r.State == berth.Active && a.Resource.Site == k.name && !a.PEs.And(pes[a.Resource.Name]).Empty() {
				until = max(until, a.End)
			}
		}
	}
	return until
}

// used returns the promises to whose reservations jobs belong.
func (k *keeper) used(jobs []site.Job) map[promise]bool {
	used := map[promise]bool{}
	for i := range jobs {
		if p := k.promiseOf(site.Name(jobs[i].Reservation)); p != "" {
			used[p] = true
		}
	}
	return used
}

// tellUsed notes which reservations are in use: a job runs in them, or has run. A job
// that ended before it had any node, because it was cancelled or can never start, has
// not.
func (h *Host) tellUsed(k *keeper, state *site.State) {
	unused := map[promise]string{}
	for r := range h.core.engine.Due(k.name, h.clock()) {
		if r.State == berth.Active && !r.CheckedIn {
			unused[k.promise(r.Request.ID)] = r.Request.ID
		}
	}
	if len(unused) == 0 {
		return
	}
	var used []string
	look := func(j *site.Job) {
		p := promise(j.Reservation[:max(0, strings.LastIndexByte(j.Reservation, '_'))]) // if it is one of ours
		if id, is := unused[p]; is {
			used = append(used, id)
			delete(unused, p)
		}
	}
	for i := range state.Running {
		look(&state.Running[i])
	}
	for i := range state.Ended {
		if j := &state.Ended[i]; len(j.Shares) > 0 {
			look(j)
		}
	}
	for _, id := range used {
		h.tell(k, engine.CheckIn(id))
	}
}

// countIdle adds what reservations that have started have held since the last
// look although nothing runs in them now. A time in which the site was not
// looked at for long is unknown, and nothing is added.
func (h *Host) countIdle(k *keeper, state *site.State) {
	since := k.looked
	k.looked = state.At
	if since == 0 || state.At <= since || state.At-since > berth.Time(farApart*max(1, int64(k.pace().Seconds()))) {
		return
	}
	used := k.used(state.Running)
	for r := range h.core.engine.Due(k.name, h.clock()) {
		from := max(since, r.Start())
		if r.State != berth.Active || used[k.promise(r.Request.ID)] || from >= state.At {
			continue
		}
		for i := range r.Allotments {
			if a := &r.Allotments[i]; a.Resource.Site == k.name {
				h.counts.idle.WithLabelValues(k.name).Add(float64(a.NPE) * float64(state.At-from))
			}
		}
	}
}
