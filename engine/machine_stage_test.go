package engine_test

import (
	mathbits "math/bits"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// What scenes need of a configuration.

// inSite makes a site a managed one and returns it, and where its pools begin.
func inSite(d dice, c *engine.Config) (site *berth.Site, first int) {
	at := d.IntN(len(c.Sites))
	for i := range at {
		first += len(c.Sites[i].Pools)
	}
	site = &c.Sites[at]
	site.Managed = true
	for k := range site.Pools {
		site.Pools[k].Classes = nil // scenes set how many PEs there are, and how they are bound
	}
	return site, first
}

// openTo lets partitions of a pool take what fits in the pool.
func openTo(site *berth.Site, pool string) {
	for i := range site.Partitions {
		if p := &site.Partitions[i]; p.Pool == pool {
			*p = berth.Partition{Name: p.Name, Pool: p.Pool}
		}
	}
}

// inManagedPool needs a pool of a managed site with some PEs.
func inManagedPool(d dice, c *engine.Config) cast {
	site, first := inSite(d, c)
	k := d.IntN(len(site.Pools))
	site.Pools[k].PEs = max(site.Pools[k].PEs, 2)
	openTo(site, site.Pools[k].Name)
	return cast{pool: first + k}
}

// poolOf returns a pool of a configuration, and its site.
func (at cast) poolOf(c *engine.Config) (*berth.Site, *berth.Pool) {
	n := at.pool
	for i := range c.Sites {
		site := &c.Sites[i]
		if n < len(site.Pools) {
			return site, &site.Pools[n]
		}
		n -= len(site.Pools)
	}
	panic("a scene without its pool")
}

// inNumberedPool needs one in which PEs have numbers before they start.
func inNumberedPool(d dice, c *engine.Config) cast {
	at := inManagedPool(d, c)
	_, pool := at.poolOf(c)
	pool.Binding, pool.NameAhead = berth.Early, 0
	return at
}

// inDelays needs promises that yield to an overrun.
func inDelays(d dice, c *engine.Config) cast {
	c.Overrun, c.Extension = engine.OverrunDelay, berth.Duration(d.between(3, 9))
	at := inNumberedPool(d, c)
	if d.chance(40) {
		_, pool := at.poolOf(c)
		pool.Binding, pool.NameAhead = berth.Late, 5 // else no outage could be announced
	}
	return at
}

// withYieldingJobsInRounds needs jobs that yield to promises where requests are decided together.
func withYieldingJobsInRounds(d dice, c *engine.Config) cast {
	c.Match, c.Unaware = pick(d, policy.Batches...).Name, d.chance(70)
	return withYieldingJobs(d, c)
}

// withLicences needs licences that are counted.
func withLicences(d dice, c *engine.Config) cast {
	at := inManagedPool(d, c)
	site, pool := at.poolOf(c)
	pool.PEs = max(pool.PEs, 3)
	site.Software = append([]berth.Software{{Name: "solver", Version: "1.2", Licences: berth.Count(d.between(1, 2))}},
		slices.DeleteFunc(site.Software, func(s berth.Software) bool { return s.Name == "solver" })...)
	return at
}

// withYieldingJobs needs jobs that yield to promises.
func withYieldingJobs(d dice, c *engine.Config) cast {
	c.Preempt = true
	at := inManagedPool(d, c)
	_, pool := at.poolOf(c)
	pool.PEs = max(pool.PEs, 4)
	return at
}

// inTwoPools needs a site with a pool of each binding.
func inTwoPools(d dice, c *engine.Config) cast {
	if d.chance(60) {
		c.Staging = pick(d, engine.StagingBefore, engine.StagingHold)
	}
	site, first := inSite(d, c)
	if len(site.Pools) < 2 {
		site.Pools = append(site.Pools, berth.Pool{Name: "q", PEs: berth.Count(d.between(1, 4))})
	}
	site.Pools[0].Binding, site.Pools[1].Binding = berth.Early, berth.Late
	site.Pools[0].NameAhead = 0
	if d.chance(50) { // a partition that both are in
		site.Partitions = []berth.Partition{{Name: "x", Pool: site.Pools[0].Name}, {Name: "x", Pool: site.Pools[1].Name}}
	}
	return cast{pool: first, other: first + 1}
}

// withYieldingJobsInTwoPools needs both.
func withYieldingJobsInTwoPools(d dice, c *engine.Config) cast {
	c.Preempt = true
	return inTwoPools(d, c)
}

// withYieldingJobsAndArrivalsFirst needs an extension that comes before the end at the
// same time.
func withYieldingJobsAndArrivalsFirst(d dice, c *engine.Config) cast {
	c.Instant = engine.ArrivalsFirst()
	at := withYieldingJobs(d, c)
	_, pool := at.poolOf(c)
	pool.Binding = berth.Late
	return at
}

// withYieldingOverruns needs jobs that go on beyond their limits until they have to yield.
func withYieldingOverruns(d dice, c *engine.Config) cast {
	c.Overrun, c.Extension = pick(d, engine.OverrunRunOn, engine.OverrunDelay), berth.Duration(d.between(5, 12))
	return withYieldingJobs(d, c)
}

// inRounds needs requests that are decided together, one of each user at a time.
func inRounds(d dice, c *engine.Config) cast {
	c.Match, c.Unaware = pick(d, policy.Batches...).Name, d.chance(70)
	c.Trigger, c.Period, c.Order = engine.TriggerOnArrival, 0, "dpsar"
	c.Options = policy.OrderOptions{N: 1, NUJP: 1, Overflow: pick(d, "", policy.Defer), Aging: pick(d, berth.Duration(0), 1, 5)}
	return inManagedPool(d, c)
}

// inDiscards needs an order that lets no more than one job of a user wait.
func inDiscards(d dice, c *engine.Config) cast {
	at := inRounds(d, c)
	c.Match, c.Unaware = pick(d, policy.Matches[1:]...).Name, false
	c.Options.Overflow = policy.Discard
	return at
}

// stage is where a scene is played.
type stage struct {
	*drawer
	x *machine
}

// do lets the next event happen, at once.
func (s *stage) do(event engine.Event) { s.x.do(step{at: s.m.now, event: event}) }

// wait lets everything happen that is due until a time.
func (s *stage) wait(until berth.Time) {
	s.x.do(step{at: max(until, s.m.now), event: engine.Event{Kind: engine.EventWake}})
}

// submit submits a request or job, and waits until it may have been decided.
func (s *stage) submit(r *berth.Request) {
	s.do(engine.Event{Kind: engine.EventSubmit, Request: r})
	if p := berth.Time(s.config.Period); s.m.byID[r.ID] == nil && p > 0 {
		s.wait((s.m.now + p - 1) / p * p)
	} else if s.m.byID[r.ID] == nil && s.config.Trigger != engine.TriggerOnArrival {
		s.wait(s.m.now)
	}
}

// ask submits a request and returns its promise; nil if it has none.
func (s *stage) ask(r *berth.Request) *promise {
	s.submit(r)
	return s.m.byID[r.ID]
}

// down takes PEs out of use, from a time on, or from now on if that is 0.
func (s *stage) down(pool int, pes uint64, from, until berth.Time) {
	s.do(engine.Event{Kind: engine.EventDown, Resource: s.m.pools[pool].id, PEs: setOf(pes), From: from, Until: until})
}

// prolong lets a promise last longer, now and then.
func (s *stage) prolong(p *promise) {
	if s.chance(35) {
		s.do(engine.Event{Kind: engine.EventExtend, ID: p.id, Until: p.lastEnd() + berth.Time(s.between(1, 2))})
	}
}

// confirm confirms a promise that is held.
func (s *stage) confirm(p *promise) {
	if p.state == berth.Held {
		s.do(engine.Event{Kind: engine.EventConfirm, ID: p.id})
	}
}

// lasting returns a duration that is at least so long in a pool for a request.
func (s *stage) lasting(r *berth.Request, pool int, least berth.Duration) berth.Duration {
	d := berth.Duration(1)
	for s.m.scaled(r, d, pool) < least {
		d++
	}
	return d
}

// pin has a request served in a pool alone.
func (s *stage) pin(r *berth.Request, pool int) {
	r.Site, r.Pool = s.m.siteOf(pool).Name, s.m.pools[pool].pool.Name
}

// plain draws a request for some PEs of a pool that asks for nothing else, from a time
// on and for at least so long. It has no time to spare.
func (s *stage) plain(pool int, npe berth.Count, ready berth.Time, least berth.Duration) *berth.Request {
	r := &berth.Request{ID: s.newID("s"), Arrival: s.m.now, Ready: ready}
	s.pin(r, pool)
	r.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: npe, Duration: s.lasting(r, pool, least)}}}}
	s.fitted(r, pool)
	return r
}

// varied draws a request for some PEs of a pool, from a time on and for at least so
// long. What else it asks for comes by chance. It has no time to spare.
func (s *stage) varied(pool int, npe berth.Count, ready berth.Time, least berth.Duration) *berth.Request {
	r := &berth.Request{ID: s.newID("s"), Arrival: s.m.now, Ready: ready}
	s.require(r, pool)
	r.StorageMB = min(r.StorageMB, 4) // all the storage of a site may take years to fill
	if len(s.m.pools) > 1 && s.chance(85) {
		s.pin(r, pool)
	}
	r.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: npe, Duration: s.lasting(r, pool, least)}}}}
	if s.m.pools[pool].early() && s.chance(s.wishes.eligible) {
		r.Parts[0].Eligible = setOf(s.m.pools[pool].all)
	}
	enough := func(mask uint64) bool { return mathbits.OnesCount64(mask) >= int(npe) }
	for i := 0; i < 4 && r.Constraint != "" && !slices.ContainsFunc(s.m.ways(r, &r.Parts[0], pool), enough); i++ {
		r.Constraint = pick(s.dice, constraints...).text
	}
	if s.chance(s.wishes.hold) {
		r.Hold = berth.Duration(s.between(20, 40))
	}
	if s.chance(s.wishes.noShow) {
		r.NoShow = berth.Duration(s.between(2, 5))
	}
	s.fitted(r, pool)
	return r
}

// fitted gives a request of one variant a window that just suffices, and other
// variants by chance: always where a batch matcher promises only those ahead of time.
func (s *stage) fitted(r *berth.Request, pool int) {
	v := r.Parts[0].Variants[0]
	needed := s.m.scaled(r, v.Duration, pool)
	if s.m.moves(r) {
		transfer := s.m.transfer(s.m.pools[pool].site, nil, r, s.m.now)
		if s.config.Staging == engine.StagingHold {
			needed += transfer
		} else {
			r.Ready = max(r.Ready, s.m.now.Add(transfer)+berth.Time(s.config.Period))
		}
	}
	if _, batch := policy.BatchNamed(s.config.Match); batch && r.Ready > s.m.now || s.chance(s.wishes.variants) {
		v.Duration += berth.Duration(s.between(0, 2))
		r.Parts[0].Variants = append(r.Parts[0].Variants, v)
	}
	r.Deadline = r.Ready.Add(needed)
}

// demanding draws a job for some PEs of a pool that lasts at least so long. What else it asks
// for comes by chance.
func (s *stage) demanding(pool int, npe berth.Count, least berth.Duration) *berth.Request {
	r := s.varied(pool, npe, s.m.now, least)
	r.Kind, r.Hold, r.NoShow, r.Ready, r.Deadline = berth.KindJob, 0, 0, s.m.now, berth.Forever
	r.Parts[0].Variants = r.Parts[0].Variants[:1]
	return r
}

// job draws a job for some PEs of a pool that lasts at least so long.
func (s *stage) job(pool int, npe berth.Count, least berth.Duration) *berth.Request {
	r := berth.Job(s.newID("k"), s.m.now, npe, 1)
	s.pin(&r, pool)
	r.Parts[0].Variants[0].Duration = s.lasting(&r, pool, least)
	return &r
}
