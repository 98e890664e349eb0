package service

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// span is a time during which something is out of use, [from, until).
type span struct{ from, until berth.Time }

// outOfUse is when the PEs of a site are out of use, by pool. The spans of a PE
// are in order and apart from each other once they are joined.
type outOfUse map[string]map[berth.PE][]span

func (o outOfUse) add(pool string, pes berth.PESet, s span) {
	if s.from >= s.until {
		return
	}
	if o[pool] == nil {
		o[pool] = map[berth.PE][]span{}
	}
	for _, run := range pes.Runs() {
		for pe := run.Lo; pe < run.Hi; pe++ {
			o[pool][pe] = append(o[pool][pe], s)
		}
	}
}

// joined returns the union of spans, from now on.
func joined(spans []span, now berth.Time) []span {
	var union []span
	for _, s := range slices.SortedFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.from, b.from) }) {
		s.from = max(s.from, now)
		if last := len(union) - 1; last >= 0 && s.from <= union[last].until {
			union[last].until = max(union[last].until, s.until)
		} else if s.from < s.until {
			union = append(union, s)
		}
	}
	return union
}

// beyond returns what of spans is not in others. Both are joined.
func beyond(spans, others []span) []span {
	var left []span
	for _, s := range spans {
		for _, o := range others {
			if o.until <= s.from || s.until <= o.from {
				continue
			}
			if s.from < o.from {
				left = append(left, span{s.from, o.from})
			}
			s.from = o.until
		}
		if s.from < s.until {
			left = append(left, s)
		}
	}
	return left
}

// tell tells the engine what a site says.
func (h *Host) tell(k *keeper, event *engine.Event) {
	if _, err := h.step(event, Key{}); err != nil {
		h.log.Error("the engine does not take what a site says", "site", k.name, "event", event.Kind, "resource", event.Resource, "error", err)
	}
}

// tellOutOfUse tells the engine which PEs are out of use at a site, and when, as
// far as that is new.
func (h *Host) tellOutOfUse(k *keeper, state *site.State) {
	now := h.clock()
	is := h.unusable(k, state, now)
	pools := map[string]bool{}
	for pool := range is {
		pools[pool] = true
	}
	for pool := range k.told {
		pools[pool] = true
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		h.tellPool(k, pool, is[pool], now)
	}
	k.told = is
}

// unusable returns when PEs are out of use: those of nodes that are gone or not
// up, those that run what is not ours, until its limit, and those of reservations
// that are not ours. What has outrun its limit ends nobody knows when. A node that is
// drained serves what runs on it to the end; of one of which the manager does not
// know what it is, what was told last counts.
func (h *Host) unusable(k *keeper, state *site.State, now berth.Time) outOfUse {
	is := outOfUse{}
	take := func(shares []site.Share, s span) {
		for pool, pes := range k.manager.Layout.PEs(shares) {
			if s.from <= now || !k.late[pool] { // promises without numbers are not placed around what is to come
				is.add(pool, pes, s)
			}
		}
	}
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
			take(job.Shares, span{now, until})
		}
	}
	for i := range state.Foreign {
		b := &state.Foreign[i]
		take(b.Shares, span{max(b.Start, now), b.End})
	}
	for i := range state.Nodes {
		node := &state.Nodes[i]
		whole := []site.Share{{Node: node.Name}}
		switch {
		case node.Condition == site.Down || node.Condition == site.Drained && node.Busy == 0:
			take(whole, span{now, berth.Forever})
		case node.Condition == site.Drained:
			take(whole, span{h.runsUntil(k, whole, now), berth.Forever})
		case node.Condition == site.Unknown:
			for pool, pes := range k.manager.Layout.PEs(whole) {
				for _, run := range pes.Runs() {
					for pe := run.Lo; pe < run.Hi; pe++ {
						for _, s := range k.told[pool][pe] {
							is.add(pool, berth.PEsOf(pe), s)
						}
					}
				}
			}
		}
	}
	for pool, pes := range k.manager.Layout.Gone() {
		is.add(pool, pes, span{now, berth.Forever})
	}
	for _, pes := range is {
		for pe := range pes {
			pes[pe] = joined(pes[pe], now)
		}
	}
	return is
}

// runsUntil returns when the last reservation ends that runs on shares now; now
// if none does.
func (h *Host) runsUntil(k *keeper, shares []site.Share, now berth.Time) berth.Time {
	pes := k.manager.Layout.PEs(shares)
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

// tellPool tells what is new about one pool: first which PEs are back, or out of
// use at less or other times than was told, then what is out of use, by time.
func (h *Host) tellPool(k *keeper, pool string, is map[berth.PE][]span, now berth.Time) {
	var back []berth.PE
	fresh := map[span][]berth.PE{}
	all := map[berth.PE]bool{}
	for pe := range is {
		all[pe] = true
	}
	for pe := range k.told[pool] {
		all[pe] = true
	}
	for _, pe := range slices.Sorted(maps.Keys(all)) {
		told := joined(k.told[pool][pe], now)
		more := beyond(is[pe], told)
		toCome := slices.ContainsFunc(more, func(s span) bool { return s.from > now })
		if len(beyond(told, is[pe])) > 0 || k.late[pool] && toCome {
			back, more = append(back, pe), is[pe]
		}
		for _, s := range more {
			fresh[s] = append(fresh[s], pe)
		}
	}
	resource := berth.PoolID(k.name, pool)
	if len(back) > 0 {
		h.tell(k, &engine.Event{Kind: engine.Up, Resource: resource, PEs: berth.PEsOf(back...)})
	}
	for _, s := range slices.SortedFunc(maps.Keys(fresh), func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.until, b.until))
	}) {
		event := engine.Event{Kind: engine.Down, Resource: resource, PEs: berth.PEsOf(fresh[s]...)}
		if s.from > now {
			event.From = s.from
		}
		if s.until < berth.Forever {
			event.Until = s.until
		}
		h.tell(k, &event)
	}
}

// used returns the promises to whose reservations jobs belong.
func (k *keeper) used(lists ...[]site.Job) map[promise]bool {
	used := map[promise]bool{}
	for _, jobs := range lists {
		for i := range jobs {
			if p := k.promiseOf(site.Name(jobs[i].Reservation)); p != "" {
				used[p] = true
			}
		}
	}
	return used
}

// tellUsed notes which reservations are in use: a job runs in them, or has run.
func (h *Host) tellUsed(k *keeper, state *site.State) {
	used := k.used(state.Running, state.Ended)
	if len(used) == 0 {
		return
	}
	for r := range h.core.engine.Due(k.name, h.clock()) {
		if r.State == berth.Active && !r.Shown && used[k.promise(r.Request.ID)] {
			h.tell(k, &engine.Event{Kind: engine.Show, ID: r.Request.ID})
		}
	}
}

// countIdle adds what reservations that have started have held since the last
// look although nothing runs in them now. Of a time in which the site was not
// looked at for long nobody knows, and nothing is added.
func (h *Host) countIdle(k *keeper, state *site.State) {
	const most = 4 // looks left out
	since := k.looked
	k.looked = state.At
	if since == 0 || state.At <= since || state.At-since > berth.Time(most*max(1, int64(k.manager.Every.Seconds()))) {
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
