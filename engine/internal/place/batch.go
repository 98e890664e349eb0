package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/policy"
)

// Round describes requests of one rigid part, and what is free throughout from now
// on, to a batch matcher. A pool that the eager filter denies a request does not
// serve it. Running jobs are free where they yield.
func (f *Finder) Round(ready []*berth.Request, draws stream.Stream) policy.Round {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	always := berth.Interval{Start: f.state.Now(), End: berth.Forever}
	kinds := map[string]int{"": 0} // of stocks: storage, then programs by name
	sites := map[string]int{}
	round := policy.Round{Now: f.state.Now(), Jobs: make([]policy.BatchJob, len(ready)), Pools: make([]policy.BatchPool, len(f.pools))}
	searches := make([]search, len(ready))
	for i, r := range ready {
		searches[i] = f.search(r, nil)
		searches[i].admission()
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
	for i := range f.pools {
		p := &f.pools[i]
		site, known := sites[p.id.Site]
		if !known {
			site = len(sites)
			sites[p.id.Site] = site
			round.Stocks = append(round.Stocks, f.left(p, kinds, always))
		}
		free, _ := f.view(p).Free(always)
		round.Pools[i] = policy.BatchPool{PEs: p.config.PEs, Free: free, Site: site}
	}
	round.Run = func(job, pool int) berth.Duration { return searches[job].runs(&f.pools[pool]) }
	round.Stage = func(job, pool int) berth.Duration { return searches[job].awaits(&f.pools[pool]) }
	round.Serves = func(job, pool int) bool { return searches[job].serves(&f.pools[pool]) }
	tiers := f.newTiers(len(ready))
	round.Tiers = func(job int, serving bool) []policy.Tier { return tiers.of(job, ready[job], serving) }
	decided := f.state.Decided()
	round.Draw = func(i int) uint64 { return draws.Uint64(decided<<32 + uint64(i)) }
	return round
}

// runs returns how long a rigid request runs in a pool, its transfer apart.
func (x *search) runs(p *pool) berth.Duration {
	return p.config.SpeedFor(&x.r.Requirements).Scale(x.r.Parts[0].Variants[0].Duration)
}

// serves reports whether a pool could serve a request if nothing were in use.
func (x *search) serves(p *pool) bool {
	v := x.r.Parts[0].Variants[0]
	return v.NPE <= x.widest(0, p) && x.unmet(p) == "" && x.suits(p, v)
}

// left returns the free amount of each stock of a site, by kind. Of a program with
// several versions it is the largest free amount of one version.
func (f *Finder) left(p *pool, kinds map[string]int, always berth.Interval) []int64 {
	left := make([]int64, len(kinds))
	for i := range left {
		left[i] = int64(berth.Endless)
	}
	free := func(st state.Stock) int64 {
		n, _ := st.View().Free(always)
		return st.Amount(n)
	}
	if storage := f.state.Storage(p.siteAt); storage.Counted() {
		left[0] = free(storage)
	}
	seen := map[int]bool{}
	for i := range p.site.Software {
		kind, wanted := kinds[p.site.Software[i].Name]
		licences := f.state.Licences(p.siteAt, i)
		switch {
		case !wanted:
		case !licences.Counted():
			left[kind] = int64(berth.Endless)
		case !seen[kind]:
			left[kind] = free(licences)
		default:
			left[kind] = max(left[kind], free(licences))
		}
		seen[kind] = seen[kind] || wanted
	}
	return left
}

// Least returns the shortest time from the decision on a rigid request to its end, over
// all pools that could serve it.
func (f *Finder) Least(r *berth.Request) berth.Duration {
	x := f.search(r, nil)
	least := berth.Duration(berth.TimeLimit)
	for i := range f.pools {
		if p := &f.pools[i]; r.Parts[0].Variants[0].NPE <= p.config.PEs {
			least = min(least, x.transferBefore(p)+x.scaled(p, r.Parts[0].Variants[0]).Duration)
		}
	}
	return least
}

// Hopeless returns why a rigid request could not be served even if everything were
// free from a time on, with transfers as they are foreseen now; nil if it could. To
// an unaware matcher only size and length count.
func (f *Finder) Hopeless(r *berth.Request, from berth.Time, unaware bool) *berth.Refusal {
	x := f.search(r, nil)
	if !unaware {
		return x.impossible(0, from)
	}
	v := r.Parts[0].Variants[0]
	refusal := &berth.Refusal{Reason: berth.TooLarge, Wanted: v.NPE}
	for i := range f.pools {
		p := &f.pools[i]
		if v.NPE > p.config.PEs {
			refusal.Limit = max(refusal.Limit, p.config.PEs)
			continue
		}
		possible := max(r.Ready, from).Add(x.runs(p))
		if possible <= r.Deadline {
			return nil
		}
		if refusal.Reason == berth.TooLarge || possible < refusal.Possible {
			refusal = &berth.Refusal{Reason: berth.DeadlineMissed, Resource: p.id, Wanted: v.NPE, Possible: possible}
		}
	}
	return refusal
}

// Assign finds the earliest place in a pool from now on, if that is where the data
// of a rigid request have arrived or, if PEs are held meanwhile, now. ok is false if
// there is no such place now. A refusal says that there will be no place: the user's
// quota, the eager filter or, for an unaware matcher, a requirement rules it out.
func (f *Finder) Assign(r *berth.Request, pool int, unaware bool) (place Place, ok bool, refusal *berth.Refusal) {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	x, p := f.search(r, nil), &f.pools[pool]
	x.admission()
	if unaware {
		if o := x.obstacle(0, p, x.state.Now()); o.reason != "" {
			return place, false, o.refusal()
		}
	}
	v := x.scaled(p, r.Parts[0].Variants[0])
	if refusal := x.denies(p, v); refusal != nil {
		return place, false, refusal
	}
	view, takes := x.view(p), x.takesFor(p, x.takes(p), x.sharesIn(p), v)
	for x.way = range x.ways(0) {
		if v.NPE > x.eligibleCount(0, p) {
			continue
		}
		q := x.query(0, v, p)
		if q.Deadline = q.Ready.Add(v.Duration); q.Deadline > r.Deadline {
			return place, false, nil
		}
		fit, found := view.Earliest(q)
		if fit, found = x.withStocks(view, takes, q, fit, found); found {
			o := offer{pool: p, variant: v, fit: fit}
			return x.complete(t, []berth.Allotment{o.allotment()}), true, nil
		}
	}
	return place, false, nil
}

// Denied returns why no pool that could serve a rigid request admits it; nil if one
// does. The eager filter is asked as it would be for the place.
func (f *Finder) Denied(r *berth.Request) (refusal *berth.Refusal) {
	if f.Eager == nil && !f.limits() {
		return nil
	}
	x := f.search(r, nil)
	x.admission()
	for i := range f.pools {
		p := &f.pools[i]
		if o := x.obstacle(0, p, x.state.Now()); o.reason != "" {
			continue
		}
		no := x.denies(p, x.scaled(p, r.Parts[0].Variants[0]))
		if no == nil {
			return nil
		}
		if refusal == nil || no.Reason.Rank() > refusal.Reason.Rank() {
			refusal = no
		}
	}
	return refusal
}
