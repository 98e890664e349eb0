package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// greedy is the pass that decides every pending request, one at a time and for
// good, in the configured order: a promise now or a refusal now (Li et al.,
// section 3: requests are processed first come, first served).
func (e *Engine) greedy() {
	for _, r := range e.ordered() {
		allotments, refusal := e.place(r)
		if refusal != nil {
			e.emit(Change{Kind: Refused, ID: r.ID, Request: r, Refusal: refusal})
			continue
		}
		reservation := &berth.Reservation{
			Request: *r, State: berth.Confirmed,
			Sequence: e.state.sequence + 1, Allotments: allotments,
		}
		e.emit(Change{Kind: Accepted, ID: r.ID, Reservation: reservation})
		e.effect(EffectReserve, reservation)
	}
}

// ordered returns the pending requests in the configured order.
func (e *Engine) ordered() []*berth.Request {
	pending := slices.Clone(e.state.queue.pending)
	slices.SortStableFunc(pending, e.settings.order)
	return pending
}

// place finds allotments for all parts of a request, or says why not.
func (e *Engine) place(r *berth.Request) ([]berth.Allotment, *berth.Refusal) {
	for i := range r.Parts {
		if refusal := e.impossible(r, &r.Parts[i]); refusal != nil {
			return nil, refusal
		}
	}
	if len(r.Parts) > 1 {
		return e.coallocate(r)
	}
	for _, res := range e.state.resources {
		if fit, variant, ok := e.bestVariant(r, &r.Parts[0], res); ok {
			return []berth.Allotment{allotmentOf(res, variant, fit)}, nil
		}
	}
	return nil, e.noCapacity(r, &r.Parts[0])
}

// bestVariant returns the best fit of a part on a resource over its variants.
func (e *Engine) bestVariant(r *berth.Request, part *berth.Part, res resource) (best calendar.Fit, variant berth.Variant, found bool) {
	c := e.state.calendar(res.id)
	for _, v := range policy.Undominated(part.Variants) {
		fit, ok := c.Find(e.query(r, part, v), e.settings.place)
		if ok && (!found || e.settings.choice.Better(v, fit, variant, best)) {
			best, variant, found = fit, v, true
		}
	}
	return best, variant, found
}

// query asks for a variant within the request's window, as far as it is not
// over.
func (e *Engine) query(r *berth.Request, part *berth.Part, v berth.Variant) calendar.Query {
	return calendar.Query{
		Now: e.state.now, Ready: max(r.Ready, e.state.now), Deadline: r.Deadline,
		Duration: v.Duration, NPE: v.NPE, Eligible: part.Eligible, Horizon: e.settings.horizon,
	}
}

func allotmentOf(res resource, v berth.Variant, fit calendar.Fit) berth.Allotment {
	return berth.Allotment{Resource: res.id, Start: fit.Start, End: fit.End, NPE: v.NPE, PEs: fit.PEs}
}

// impossible reports why a part could not be served even if everything were
// free, testing in the order of berth.Reasons; nil if it could. Of several
// resources the one where the part got furthest is reported, the first of
// equals.
func (e *Engine) impossible(r *berth.Request, part *berth.Part) *berth.Refusal {
	var worst *berth.Refusal
	for _, res := range e.state.resources {
		refusal := e.impossibleOn(r, part, res)
		if refusal == nil {
			return nil
		}
		if worst == nil || refusal.Reason.Rank() > worst.Reason.Rank() ||
			(refusal.Reason == worst.Reason && refusal.Limit > worst.Limit) {
			worst = refusal
		}
	}
	return worst
}

func (e *Engine) impossibleOn(r *berth.Request, part *berth.Part, res resource) *berth.Refusal {
	var wanted berth.Count // the fewest PEs of any variant
	shortest := berth.Duration(berth.Forever)
	eligible := res.pool.PEs
	if !part.Eligible.Empty() {
		eligible = 0
		if res.pool.Binding == berth.Early {
			eligible = within(part.Eligible, res.pool.PEs)
		}
	}
	for _, v := range part.Variants {
		if wanted == 0 || v.NPE < wanted {
			wanted = v.NPE
		}
		if v.NPE <= eligible {
			shortest = min(shortest, v.Duration)
		}
	}
	possible := max(r.Ready, e.state.now).Add(shortest)
	switch {
	case wanted > res.pool.PEs:
		return &berth.Refusal{Reason: berth.TooLarge, Resource: res.id, Wanted: wanted, Limit: res.pool.PEs}
	case wanted > eligible:
		return &berth.Refusal{Reason: berth.NoSuitableSite, Resource: res.id, Wanted: wanted, Limit: eligible}
	case possible > r.Deadline:
		return &berth.Refusal{Reason: berth.DeadlineMissed, Resource: res.id, Wanted: wanted, Possible: possible}
	}
	return nil
}

// within returns how many PEs of the set are below size.
func within(set berth.PESet, size berth.Count) berth.Count {
	var n berth.Count
	for _, run := range set.Runs() {
		if hi := min(run.Hi, berth.PE(size)); run.Lo < hi {
			n += berth.Count(hi - run.Lo)
		}
	}
	return n
}

// noCapacity is the refusal of a part that others leave no room for. With
// Explain it names the most PEs that were free for as long as the narrowest
// variant needs, over all resources the part could use.
func (e *Engine) noCapacity(r *berth.Request, part *berth.Part) *berth.Refusal {
	var refusal *berth.Refusal
	for _, res := range e.state.resources {
		if e.impossibleOn(r, part, res) != nil {
			continue
		}
		narrowest := e.narrowest(r, part)
		if refusal == nil {
			refusal = &berth.Refusal{Reason: berth.NoCapacity, Resource: res.id, Wanted: narrowest.NPE}
		}
		if !e.settings.explain {
			break
		}
		free, start := e.state.calendar(res.id).MostFree(e.query(r, part, narrowest))
		if refusal.Nearest == nil || free > refusal.Nearest.NPE {
			refusal.Resource = res.id
			refusal.Nearest = &berth.Nearest{NPE: max(free, 0), Duration: narrowest.Duration, Start: start}
		}
	}
	return refusal
}

// narrowest returns the variant of the fewest PEs that is short enough for the
// window, the shortest of equals.
func (e *Engine) narrowest(r *berth.Request, part *berth.Part) berth.Variant {
	var best berth.Variant
	for _, v := range part.Variants {
		fits := max(r.Ready, e.state.now).Add(v.Duration) <= r.Deadline
		if fits && (best.NPE == 0 || v.NPE < best.NPE || (v.NPE == best.NPE && v.Duration < best.Duration)) {
			best = v
		}
	}
	return best
}
