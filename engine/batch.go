package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// A batch matcher decides order and place together: at every scheduling point it
// sees all pending requests that are ready, and what is free from now on. What it
// assigns starts as soon as its data allow, what has become hopeless is refused,
// and the rest is deferred to the next point (Tang and Liao, algorithm 2).
//
// Deviations: requests of several parts and moldable ones are decided one by one
// before, since the paper's jobs are atomic and rigid, at the earliest place in
// their windows; what others have been promised for later is not free, where the
// paper knows no promises; and a site's licences and storage are what is left of
// them.

// decideAll decides what is pending.
func (e *Engine) decideAll() {
	if e.settings.batch == nil {
		e.greedy()
		return
	}
	e.batch()
}

// batch is the pass of a batch matcher.
func (e *Engine) batch() {
	var pending []*berth.Request
	for p := range e.state.queue.order.Discards(e.state.now) {
		e.emit(Change{Kind: Refused, ID: p.Request.ID, Request: p.Request, Refusal: overShare(p.Request)})
	}
	for p := range e.state.queue.order.Round(e.state.now) {
		pending = append(pending, p.Request)
	}
	next := e.nextPoint()
	var ready []*berth.Request
	for _, r := range pending {
		if len(r.Parts) > 1 || len(r.Parts[0].Variants) > 1 {
			e.decide(r)
			continue
		}
		switch refusal := e.hopeless(r, e.state.now); {
		case refusal != nil:
			e.emit(Change{Kind: Refused, ID: r.ID, Request: r, Refusal: refusal})
		case r.Ready <= e.state.now:
			ready = append(ready, r)
		}
	}
	round := e.round(ready)
	for _, a := range e.settings.batch.Assign(&round, nil) {
		e.assign(ready[a.Job], &e.state.resources[a.Pool])
	}
	for _, r := range ready {
		if _, waits := e.state.queue.byID[r.ID]; !waits {
			continue
		}
		if refusal := e.hopeless(r, next); refusal != nil {
			e.emit(Change{Kind: Refused, ID: r.ID, Request: r, Refusal: refusal})
		}
	}
	e.again()
	e.replan()
}

// nextPoint returns when what is deferred is looked at again at the latest.
func (e *Engine) nextPoint() berth.Time {
	if p := berth.Time(e.config.Period); e.settings.trigger == OnPeriod {
		return e.state.now + p - (e.state.now%p+p)%p
	}
	return e.state.now + 1
}

// again sees to it that what is still pending is looked at again: at the next
// period, or, where PEs that are released are a reason to look, when the first of
// it is ready or becomes hopeless.
func (e *Engine) again() {
	if e.state.queue.len() == 0 {
		return
	}
	at := e.nextPoint()
	if e.settings.trigger != OnPeriod {
		at = berth.Forever
		for _, p := range e.state.queue.byID {
			look := p.Request.Ready
			if look <= e.state.now {
				look = max(e.state.now, p.Request.Deadline.Add(-e.least(p.Request))) + 1
			}
			at = min(at, look)
		}
	}
	if at < e.state.passAt() {
		e.emit(Change{Kind: Scheduled, Pass: at})
	}
}

// least returns how long a request takes from its decision to its end at least,
// wherever it could be served.
func (e *Engine) least(r *berth.Request) berth.Duration {
	least := berth.Duration(berth.TimeLimit)
	for i := range e.state.resources {
		res := &e.state.resources[i]
		if r.Parts[0].Variants[0].NPE <= res.pool.PEs {
			least = min(least, res.before(r)+res.lasts(r, r.Parts[0].Variants[0]).Duration)
		}
	}
	return least
}

// hopeless returns why a request could not be served even if everything were
// free from a time on, with transfers as they are foreseen now; nil if it could.
// To an unaware matcher only size and length count.
func (e *Engine) hopeless(r *berth.Request, from berth.Time) *berth.Refusal {
	if !e.config.Unaware {
		return e.impossibleFrom(r, &r.Parts[0], from)
	}
	v := r.Parts[0].Variants[0]
	refusal := &berth.Refusal{Reason: berth.TooLarge, Wanted: v.NPE}
	for i := range e.state.resources {
		res := &e.state.resources[i]
		if v.NPE > res.pool.PEs {
			refusal.Limit = max(refusal.Limit, res.pool.PEs)
			continue
		}
		possible := max(r.Ready, from).Add(res.runs(r))
		if possible <= r.Deadline {
			return nil
		}
		if refusal.Reason == berth.TooLarge || possible < refusal.Possible {
			refusal = &berth.Refusal{Reason: berth.DeadlineMissed, Resource: res.id, Wanted: v.NPE, Possible: possible}
		}
	}
	return refusal
}

// runs returns how long a rigid request runs on a resource, its transfer apart.
func (res *resource) runs(r *berth.Request) berth.Duration {
	return res.pool.SpeedFor(&r.Requirements).Scale(r.Parts[0].Variants[0].Duration)
}

// round describes the requests and what is free throughout from now on.
func (e *Engine) round(ready []*berth.Request) policy.Round {
	always := berth.Interval{Start: e.state.now, End: berth.Forever}
	kinds := map[string]int{"": 0} // of stocks: storage, then programs by name
	sites := map[string]int{}
	round := policy.Round{Now: e.state.now, Jobs: make([]policy.BatchJob, len(ready)), Pools: make([]policy.BatchPool, len(e.state.resources))}
	for i, r := range ready {
		job := &round.Jobs[i]
		job.NPE, job.Deadline = r.Parts[0].Variants[0].NPE, r.Deadline
		if r.StorageMB > 0 {
			job.Needs = append(job.Needs, policy.Need{Kind: 0, Amount: r.StorageMB})
		}
		if r.Licences > 0 {
			kind, known := kinds[r.Software]
			if !known {
				kind = len(kinds)
				kinds[r.Software] = kind
			}
			job.Needs = append(job.Needs, policy.Need{Kind: kind, Amount: int64(r.Licences)})
		}
	}
	for i := range e.state.resources {
		res := &e.state.resources[i]
		site, known := sites[res.id.Site]
		if !known {
			site = len(sites)
			sites[res.id.Site] = site
			round.Stocks = append(round.Stocks, e.left(res, kinds, always))
		}
		free, _ := e.state.calendar(res.id).Free(always)
		round.Pools[i] = policy.BatchPool{PEs: res.pool.PEs, Free: free, Site: site}
	}
	round.Run = func(job, pool int) berth.Duration { return e.state.resources[pool].runs(ready[job]) }
	round.Stage = func(job, pool int) berth.Duration { return e.state.resources[pool].awaits(ready[job]) }
	round.Serves = func(job, pool int) bool { return e.serves(ready[job], &e.state.resources[pool]) }
	decided := e.state.decided
	round.Draw = func(i int) uint64 { return e.settings.batchDraws.Uint64(decided<<32 + uint64(i)) }
	return round
}

// serves reports whether a resource has what a request requires, whoever uses it
// now.
func (e *Engine) serves(r *berth.Request, res *resource) bool {
	v := r.Parts[0].Variants[0]
	return v.NPE <= res.eligibleCount(r, &r.Parts[0]) && res.lacks(r) == "" && res.suits(r, v)
}

// left returns what is left of the stocks of a site, by kind. Of a program that
// is there in several versions it is the most of any.
func (e *Engine) left(res *resource, kinds map[string]int, always berth.Interval) []int64 {
	left := make([]int64, len(kinds))
	for i := range left {
		left[i] = int64(berth.Forever)
	}
	free := func(st *stock) int64 {
		n, _ := e.state.calendar(st.id).Free(always)
		return int64(n) * st.unit
	}
	if res.storage != nil {
		left[0] = free(res.storage)
	}
	seen := map[int]bool{}
	for i := range res.site.Software {
		kind, wanted := kinds[res.site.Software[i].Name]
		switch {
		case !wanted:
		case res.licences[i] == nil:
			left[kind] = int64(berth.Forever)
		case !seen[kind]:
			left[kind] = free(res.licences[i])
		default:
			left[kind] = max(left[kind], free(res.licences[i]))
		}
		seen[kind] = seen[kind] || wanted
	}
	return left
}

// assign promises a request the earliest place in a pool from now on, if that is
// where its data have arrived or, if PEs are held meanwhile, now. What an unaware
// matcher has sent to a place that cannot do it is refused there.
func (e *Engine) assign(r *berth.Request, res *resource) {
	part := &r.Parts[0]
	if e.config.Unaware {
		if refusal := e.impossibleOn(r, part, res); refusal != nil {
			e.emit(Change{Kind: Refused, ID: r.ID, Request: r, Refusal: refusal})
			return
		}
	}
	v := res.lasts(r, part.Variants[0])
	q := e.query(r, part, v, res)
	if q.Deadline = q.Ready.Add(v.Duration); q.Deadline > r.Deadline {
		return
	}
	c := e.state.calendar(res.id)
	fit, ok := calendar.Earliest(c, q)
	if fit, ok = e.beside(c, e.takes(r, res), q, fit, ok); ok {
		o := offer{res: res, variant: v, fit: fit}
		e.promise(r, []berth.Allotment{o.allotment()})
	}
}
