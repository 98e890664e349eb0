package service

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// heldBefore is a part of a promise until the history begins.
type heldBefore struct {
	of      *held
	at      berth.Interval
	npe     berth.Count
	unknown bool // which PEs it had is not kept, nor how many
}

// fit has promises lack PEs from their start on where a pool had too few for all: how many these had before the history begins is not known, and
// outages that are over took the rest.
func (h *heldPast) fit(core *Core, unknown map[string]bool) {
	if len(unknown) == 0 {
		return
	}
	pools := map[berth.ResourceID][]*heldBefore{}
	core.cards.Scan(func(k *card) bool {
		if k.promise == nil || h.idle[k.id] || k.gaveBack(h) {
			return true
		}
		for part := range k.promise.Allotments {
			a, of := &k.promise.Allotments[part], &h.by[k.id][part]
			end := min(a.End, h.now)
			if k.end != "" {
				end = min(end, k.ended(h))
			}
			if a.Start < end {
				npe := of.npe
				if len(of.stretches) > 0 && of.stretches[0].From <= a.Start {
					npe = of.stretches[0].NPE
				}
				pools[a.Resource] = append(pools[a.Resource], &heldBefore{of, berth.Interval{Start: a.Start, End: end}, npe, unknown[k.id] && len(k.promise.Allotments) == 1})
			}
		}
		return true
	})
	for i := range core.config.Sites {
		for k := range core.config.Sites[i].Pools {
			pool := &core.config.Sites[i].Pools[k]
			fitInto(pools[berth.PoolID(core.config.Sites[i].Name, pool.Name)], pool.PEs)
		}
	}
}

// fitInto is fit for a pool. Cost: O(n log n) for n parts, and O(n²) if they do not fit.
func fitInto(parts []*heldBefore, size berth.Count) {
	slices.SortStableFunc(parts, func(a, b *heldBefore) int { return cmp.Compare(a.at.Start, b.at.Start) })
	if tooMany(parts, size) <= 0 {
		return
	}
	for _, b := range parts {
		if !b.unknown {
			continue
		}
		beside := slices.DeleteFunc(slices.Clone(parts), func(o *heldBefore) bool { return o.at.Start >= b.at.End || b.at.Start >= o.at.End })
		over := min(b.npe, tooMany(beside, size))
		if over <= 0 {
			continue
		}
		b.npe -= over
		less := berth.Stretch{From: b.at.Start, NPE: b.npe}
		if len(b.of.stretches) > 0 && b.of.stretches[0].From <= b.at.Start {
			b.of.stretches[0] = less
		} else {
			b.of.stretches = slices.Insert(b.of.stretches, 0, less)
		}
	}
}

// tooMany returns how many PEs more than there are have been promised at a time at most.
func tooMany(parts []*heldBefore, size berth.Count) berth.Count {
	type step struct {
		at  berth.Time
		npe berth.Count
	}
	steps := make([]step, 0, 2*len(parts))
	for _, b := range parts {
		steps = append(steps, step{b.at.Start, b.npe}, step{b.at.End, -b.npe})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.npe, b.npe)) })
	taken, most := berth.Count(0), berth.Count(0)
	for _, s := range steps {
		taken += s.npe
		most = max(most, taken)
	}
	return most - size
}
