package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// greedy is the pass that decides every pending request, one at a time and for
// good, in the configured order: a promise now or a refusal now (Li et al.,
// section 3: requests are processed first come, first served; Ahuja et al.: the
// manager reserves them one by one, in the order of the round). What a round
// defers is decided in the next one, at once.
func (e *Engine) greedy() {
	queue, submitted := &e.state.queue, e.state.submitted
	for queue.len() > 0 {
		for p := range queue.order.Discards(e.state.now) {
			e.emit(Change{Kind: Refused, ID: p.Request.ID, Request: p.Request, Refusal: overShare(p.Request)})
		}
		for p := range queue.order.Round(e.state.now) {
			e.decide(p.Request)
		}
	}
	if e.state.submitted > submitted { // some wait as jobs now
		e.look()
		return
	}
	e.replan()
}

// overShare is the refusal of a request that exceeds its user's share of a
// round and may not wait for another.
func overShare(r *berth.Request) *berth.Refusal {
	wanted := r.Parts[0].Variants[0].NPE
	for _, v := range r.Parts[0].Variants[1:] {
		wanted = min(wanted, v.NPE)
	}
	return &berth.Refusal{Reason: berth.Quota, Wanted: wanted}
}

// decide promises a pending request something, or refuses it.
func (e *Engine) decide(r *berth.Request) {
	allotments, refusal := e.placed(r)
	switch {
	case refusal != nil && e.mayWait(r, refusal):
		e.emit(Change{Kind: Waits, ID: r.ID, Request: jobOf(r)})
		return
	case refusal != nil:
		e.emit(Change{Kind: Refused, ID: r.ID, Request: r, Refusal: refusal})
		return
	}
	e.promise(r, allotments)
}

// promise makes a pending request a reservation.
func (e *Engine) promise(r *berth.Request, allotments []berth.Allotment) {
	reservation := &berth.Reservation{
		Request: r, State: berth.Confirmed,
		Sequence: e.state.sequence + 1, Generation: 1, Allotments: allotments,
	}
	reservation.Held, reservation.Staging = e.further(nil, r, allotments)
	if r.Hold > 0 {
		reservation.State = berth.Held
		reservation.Expires = min(e.state.now.Add(r.Hold), firstEnd(allotments))
	}
	e.preempt(allotments)
	e.yield(allotments)
	e.emit(Change{Kind: Accepted, ID: r.ID, Reservation: reservation})
	e.effect(EffectReserve, reservation)
}

// firstEnd returns the earliest end of any part.
func firstEnd(allotments []berth.Allotment) berth.Time {
	end := allotments[0].End
	for i := range allotments[1:] {
		end = min(end, allotments[i+1].End)
	}
	return end
}

// lastEnd returns the latest end of any part.
func lastEnd(allotments []berth.Allotment) berth.Time {
	end := allotments[0].End
	for i := range allotments[1:] {
		end = max(end, allotments[i+1].End)
	}
	return end
}

// mayWait reports whether a request that found no room waits as a job instead:
// one that wants to start when it arrives, and that could be a job.
func (e *Engine) mayWait(r *berth.Request, refusal *berth.Refusal) bool {
	return e.config.Immediate == Enqueue && refusal.Reason == berth.NoCapacity && r.Ready == r.Arrival &&
		len(r.Parts) == 1 && len(r.Parts[0].Variants) == 1 && e.counted(jobOf(r)) == nil
}

// jobOf returns the ordinary job that does the work of a request.
func jobOf(r *berth.Request) *berth.Request {
	j := *r
	j.Kind, j.Deadline, j.Hold, j.NoShow = berth.KindJob, berth.Forever, 0, 0
	return &j
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
	return e.matched(r, &r.Parts[0])
}

// matched asks the resources that could serve a part in the order of the
// match. Each is asked for admission, then for room. Of the refusals the most
// informative is reported, the one that got furthest in the order of
// berth.Reasons, the first of equals.
func (e *Engine) matched(r *berth.Request, part *berth.Part) ([]berth.Allotment, *berth.Refusal) {
	var best *offer
	var refusal *berth.Refusal
	for _, candidate := range e.ranked(r, part) {
		res := &e.state.resources[candidate.Index]
		denied := e.admit(r, part, res)
		if denied == nil {
			o, ok := e.bestVariant(r, part, res)
			if ok && e.settings.compare == nil {
				return []berth.Allotment{o.allotment()}, nil
			}
			if ok && (best == nil || e.settings.compare.Better(o.fit, best.fit)) {
				best = &o
			}
			if ok {
				continue
			}
			denied = e.noCapacity(r, part, res)
		}
		if refusal == nil || denied.Reason.Rank() > refusal.Reason.Rank() || closer(denied, refusal) {
			refusal = denied
		}
		if denied.Reason == berth.PolicyRefused && e.config.Eager.RefuseAll {
			break
		}
	}
	if best != nil {
		return []berth.Allotment{best.allotment()}, nil
	}
	return nil, refusal
}

// closer reports whether refusal a, of the same reason, came closer than b.
func closer(a, b *berth.Refusal) bool {
	return a.Reason == b.Reason && a.Nearest != nil && b.Nearest != nil && a.Nearest.NPE > b.Nearest.NPE
}

// ranked returns the resources that could serve the part, in the order of the
// match.
func (e *Engine) ranked(r *berth.Request, part *berth.Part) []policy.Candidate {
	candidates := e.candidates[:0]
	for i := range e.state.resources {
		res := &e.state.resources[i]
		if o := res.obstacle(r, part, e.state.now); o.reason == "" {
			candidates = append(candidates, policy.Candidate{Index: i, PEs: res.pool.PEs, Speed: res.pool.SpeedFor(&r.Requirements)})
		}
	}
	e.candidates = candidates
	if len(candidates) > 1 {
		e.settings.match.Rank(candidates, e.draw)
	}
	return candidates
}

// drawsPerDecision is how many random numbers one decision may draw: more than
// any sites file has pools.
const drawsPerDecision = 1 << 20

// draw returns the i-th random number of the present decision.
func (e *Engine) draw(i int) uint64 {
	return e.settings.draws.Uint64(e.state.decided*drawsPerDecision + uint64(i))
}

// offer is a fit of a variant on a resource.
type offer struct {
	res     *resource
	variant berth.Variant // its duration is that on the resource
	fit     calendar.Fit
}

func (o *offer) allotment() berth.Allotment {
	return berth.Allotment{
		Resource: o.res.id, Start: o.fit.Start, End: o.fit.End, NPE: o.variant.NPE, PEs: o.fit.PEs,
	}
}

// bestVariant returns the best fit of a part on a resource over its variants.
func (e *Engine) bestVariant(r *berth.Request, part *berth.Part, res *resource) (best offer, found bool) {
	c := e.state.calendar(res.id)
	eligible, takes := res.eligibleCount(r, part), e.takes(r, res)
	for _, v := range policy.Undominated(part.Variants) {
		v = res.lasts(r, v)
		if v.NPE > eligible || !res.permits(r, v) {
			continue
		}
		q := e.query(r, part, v, res)
		fit, ok := c.Find(q, e.settings.place)
		fit, ok = e.beside(c, takes, q, fit, ok)
		if ok && (!found || e.settings.choice.Better(v, fit, best.variant, best.fit)) {
			best, found = offer{res: res, variant: v, fit: fit}, true
		}
	}
	return best, found
}

// query asks for a variant, scaled already, within the request's window, as
// far as it is not over.
func (e *Engine) query(r *berth.Request, part *berth.Part, v berth.Variant, res *resource) calendar.Query {
	return calendar.Query{
		Now: e.state.now, Ready: max(r.Ready, res.earliest(r)), Deadline: r.Deadline,
		Duration: v.Duration, NPE: v.NPE, Eligible: res.eligible(r, part), Horizon: e.settings.horizon,
	}
}

// impossible reports why a part could not be served even if everything were
// free, testing in the order of berth.Reasons; nil if it could. Of several
// resources the one where the part got furthest is reported, the first of
// equals.
func (e *Engine) impossible(r *berth.Request, part *berth.Part) *berth.Refusal {
	return e.impossibleFrom(r, part, e.state.now)
}

// impossibleFrom reports the same of a decision at a time to come.
func (e *Engine) impossibleFrom(r *berth.Request, part *berth.Part, from berth.Time) *berth.Refusal {
	worst := obstacle{reason: berth.NoSuitableSite, wanted: fewest(part)} // if no resource is the one that is asked for
	for i, first := 0, true; i < len(e.state.resources); i++ {
		res := &e.state.resources[i]
		if !res.meant(r) {
			continue
		}
		o := res.obstacle(r, part, from)
		if o.reason == "" {
			return nil
		}
		if first || o.further(&worst) {
			worst, first = o, false
		}
	}
	return worst.refusal()
}

// fewest returns the fewest PEs that would do for a part.
func fewest(part *berth.Part) berth.Count {
	n := part.Variants[0].NPE
	for _, v := range part.Variants[1:] {
		n = min(n, v.NPE)
	}
	return n
}

// further reports whether a request gets further with an obstacle than with
// another.
func (o *obstacle) further(other *obstacle) bool {
	if o.reason != other.reason {
		return o.reason.Rank() > other.reason.Rank()
	}
	return o.limit > other.limit || o.possible < other.possible
}

func (e *Engine) impossibleOn(r *berth.Request, part *berth.Part, res *resource) *berth.Refusal {
	o := res.obstacle(r, part, e.state.now)
	return o.refusal()
}

// obstacle is why a resource could not serve a part even if everything were
// free; the zero value is that it could.
type obstacle struct {
	reason   berth.Reason
	resource berth.ResourceID
	wanted   berth.Count // the fewest PEs of any variant
	limit    berth.Count
	possible berth.Time // the earliest end, of a deadline that is missed
}

// refusal returns the same as an answer, nil if there is no obstacle.
func (o *obstacle) refusal() *berth.Refusal {
	if o.reason == "" {
		return nil
	}
	return &berth.Refusal{Reason: o.reason, Resource: o.resource, Wanted: o.wanted, Limit: o.limit, Possible: o.possible}
}

// obstacle returns the first test that a part, decided at a time, fails on the
// resource. How long it would take is looked at last, because that is dearest.
func (res *resource) obstacle(r *berth.Request, part *berth.Part, from berth.Time) obstacle {
	o := obstacle{resource: res.id, wanted: fewest(part)}
	eligible := res.eligibleCount(r, part)
	suits := func(v berth.Variant) bool { return v.NPE <= eligible && res.suits(r, v) }
	lacks := res.lacks(r)
	switch {
	case o.wanted > res.pool.PEs:
		o.reason, o.limit = berth.TooLarge, res.pool.PEs
		return o
	case lacks == berth.NoSuitableSite || !slices.ContainsFunc(part.Variants, suits):
		o.reason, o.limit = berth.NoSuitableSite, eligible
		return o
	case lacks != "":
		o.reason = lacks
		return o
	}
	shortest := berth.Duration(berth.Forever)
	for _, v := range part.Variants {
		if suits(v) {
			shortest = min(shortest, res.lasts(r, v).Duration)
		}
	}
	if part == &r.Parts[0] {
		from = from.Add(res.before(r)) // data are moved to the site of the first part alone
	}
	if possible := max(r.Ready, from).Add(shortest); possible > r.Deadline {
		o.reason, o.possible = berth.DeadlineMissed, possible
		return o
	}
	return obstacle{}
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

// noCapacity is the refusal of a part for which others leave no room on a
// resource; where it is a licence or storage that is wanting, it names that, with
// how much there is in all. With Explain it names the most PEs that were free for as long as
// the narrowest variant needs.
func (e *Engine) noCapacity(r *berth.Request, part *berth.Part, res *resource) *berth.Refusal {
	narrowest := e.narrowest(r, part, res)
	refusal := &berth.Refusal{Reason: berth.NoCapacity, Resource: res.id, Wanted: narrowest.NPE}
	if t := e.scarce(r, res, e.query(r, part, narrowest, res)); t != nil {
		refusal.Resource, refusal.Wanted, refusal.Limit = t.stock.id, t.n, t.stock.calendar.Size()
		return refusal
	}
	if e.settings.explain {
		free, start := e.state.calendar(res.id).MostFree(e.query(r, part, narrowest, res))
		refusal.Nearest = &berth.Nearest{NPE: max(free, 0), Duration: narrowest.Duration, Start: start}
	}
	return refusal
}

// narrowest returns the variant of the fewest PEs that is short enough for the
// window, the shortest of equals, scaled to the resource.
func (e *Engine) narrowest(r *berth.Request, part *berth.Part, res *resource) berth.Variant {
	var best berth.Variant
	for _, v := range part.Variants {
		v = res.lasts(r, v)
		fits := res.permits(r, v) && max(r.Ready, e.state.now.Add(res.before(r))).Add(v.Duration) <= r.Deadline
		if fits && (best.NPE == 0 || v.NPE < best.NPE || (v.NPE == best.NPE && v.Duration < best.Duration)) {
			best = v
		}
	}
	return best
}
