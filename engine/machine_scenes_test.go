package engine_test

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// Some outcomes need several things to happen one after the other at the right
// times, and events drawn one by one hardly ever do that. A scene draws such a
// sequence: it forces what it needs of the configuration and of the requests, and
// all else comes by chance. Its events are steps of the history like any others, so
// that they are judged, repeated and shrunk as those are. A scene that cannot go on,
// because a request was refused for example, ends there.

// scene is a sequence of events that leads to an outcome.
type scene struct {
	weight int                                 // how often it is played, compared with the others
	set    func(d dice, c *engine.Config) cast // makes a configuration what it needs
	play   func(s *stage)
}

// cast is the pools of a scene, as indices in the order of the configuration.
type cast struct {
	pool  int
	other int // of late binding, if the scene needs one
}

// scenes lists the scenes. The weights are such that the rarest features of
// configurations and requests meet each outcome often enough.
var scenes = []scene{
	{5, inDelays, overrunBeforeOutage},
	{2, withLicences, licenceTakenInOutage},
	{9, withYieldingJobs, moveOntoRunningJob},
	{5, inNumberedPool, extendAfterRefusal},
	{12, inManagedPool, obstacleGoes},
	{8, inTwoPools, partsInTwoPools},
	{2, withYieldingJobsInTwoPools, moveOntoJobElsewhere},
	{1, withYieldingJobsAndArrivalsFirst, extendAtTheEnd},
	{1, withYieldingOverruns, modifyOntoOverrun},
	{2, inRounds, decidedOnNextArrival},
	{2, inDiscards, discardedOnNextArrival},
	{4, withYieldingJobsInRounds, demandingJobYields},
	{2, inNumberedPool, outageBeginsOnJob},
}

// In each shard, the first scenesRound of every historiesRound histories begin with a scene.
const (
	historiesRound = 9
	scenesRound    = 5
)

// addScene draws a scene for a history, and makes its setup what the scene needs.
func (d dice) addScene(s *setup) {
	sum := 0
	for i := range scenes {
		sum += scenes[i].weight
	}
	n, at := d.IntN(sum), 0
	for n -= scenes[0].weight; n >= 0; n -= scenes[at].weight {
		at++
	}
	often := func() int { return pick(d, 30, 60) }
	ws := &s.wishes
	ws.foolish, ws.endless = 0, 0
	ws.variants, ws.eligible, ws.partition, ws.constraint, ws.software, ws.accelerators, ws.hold, ws.storage = often(), often(), often(), often(), often(), often(), often(), often()
	s.scene = &scenes[at]
	s.cast = s.scene.set(d, &s.config)
	if _, pool := s.cast.poolOf(&s.config); pool.Binding != berth.Late && d.chance(25) {
		d.divide(pool)
	}
}

// overrunBeforeOutage has a promise, which lacks a PE most of the time, lose its place to
// an overrun. Its PEs go out of use for good before it could have another: it is lost.
func overrunBeforeOutage(s *stage) {
	size, all := s.m.pools[s.cast.pool].pool.PEs, s.m.pools[s.cast.pool].all
	over := s.ask(s.plain(s.cast.pool, size-1, s.m.now, 22))
	if over == nil {
		return
	}
	s.wait(over.start())
	p := s.ask(s.varied(s.cast.pool, size, over.lastEnd(), berth.Duration(s.between(1, 4))))
	if p == nil || over.state != berth.Active {
		return
	}
	s.prolong(p)
	if s.chance(85) {
		s.down(s.cast.pool, all&^bits(over.allotments[0].PEs), 0, 0)
	}
	s.down(s.cast.pool, all, max(p.lastEnd(), over.lastEnd().Add(s.config.Extension)), 0)
	s.wait(over.lastEnd())
}

// licenceTakenInOutage has an outage displace a promise that lacks a PE, and an earlier one
// of two parts. The earlier one can have a place only with the licences of the other, which
// is lost.
func licenceTakenInOutage(s *stage) {
	size, all, early := s.m.pools[s.cast.pool].pool.PEs, s.m.pools[s.cast.pool].all, s.m.pools[s.cast.pool].early()
	licensed := func(r *berth.Request) *berth.Request {
		r.Software, r.Version, r.Licences = "solver", pick(s.dice, "", "1"), s.m.siteOf(s.cast.pool).Software[0].Licences
		return r
	}
	p := s.ask(licensed(s.varied(s.cast.pool, size, s.m.now+18, berth.Duration(s.between(8, 10)))))
	if p == nil {
		return
	}
	s.prolong(p)
	r := licensed(s.plain(s.cast.pool, 1, s.m.now+berth.Time(s.between(2, 3)), 1))
	r.Parts = append(r.Parts, r.Parts[0])
	length := r.Deadline.Sub(r.Ready)
	until := p.start() + berth.Time(s.between(1, 3))
	r.Deadline = until.Add(length)
	thief := s.ask(r)
	if thief == nil || thief.lastEnd() > p.start() || thief.state == berth.Active {
		return
	}
	rest := all
	for i := range thief.allotments {
		rest &^= bits(thief.allotments[i].PEs)
	}
	s.down(s.cast.pool, rest&-rest, 0, 0)
	from := berth.Time(0)
	if early && s.chance(60) {
		from = max(thief.start(), s.m.now+1)
	}
	s.down(s.cast.pool, all, from, until)
}

// moveOntoRunningJob has a promise lose PEs while a job is about to start on the only others
// that it could have. Once the job runs it yields to promises, and the next event on which
// the engine repairs moves the promise there.
func moveOntoRunningJob(s *stage) {
	size, all, early := s.m.pools[s.cast.pool].pool.PEs, s.m.pools[s.cast.pool].all, s.m.pools[s.cast.pool].early()
	last := pick(s.dice, engine.EventExtend, engine.EventExtend, engine.EventExtend, engine.EventExtend,
		engine.EventRelocate, engine.EventRelocate, engine.EventDown, engine.EventDown, engine.EventUpdateForecast)
	least := 1
	if last == engine.EventRelocate {
		least = 2
	}
	npe := berth.Count(s.between(least, int(size)/2))
	first := s.ask(s.plain(s.cast.pool, size, s.m.now, 10))
	if first == nil {
		return
	}
	p := s.ask(s.varied(s.cast.pool, npe, first.lastEnd()+berth.Time(s.between(0, 3)), berth.Duration(s.between(2, 4))))
	if p == nil {
		return
	}
	s.prolong(p)
	r := s.job(s.cast.pool, size-npe, p.lastEnd().Sub(s.m.now)+berth.Duration(s.between(0, 6)))
	s.submit(r)
	s.do(engine.Event{Kind: engine.EventCancel, ID: first.id})
	job := s.m.byID[r.ID]
	if job == nil || job.state == berth.Active {
		return
	}
	out := all &^ bits(job.allotments[0].PEs)
	if !early {
		out = 1<<npe - 1
	} else if mine := bits(p.allotments[0].PEs); npe > 1 && (last == engine.EventRelocate || s.chance(30)) {
		out &^= mine & -mine
	}
	s.down(s.cast.pool, out, 0, 0)
	if p.missing() == 0 {
		return
	}
	s.wait(s.m.now)
	event := engine.Event{Kind: last, ID: p.id, Resource: p.allotments[0].Resource}
	switch last {
	case engine.EventExtend:
		event = engine.Event{Kind: last, ID: p.id, Until: p.lastEnd() + berth.Time(s.between(1, 3))}
	case engine.EventRelocate:
		event.PEs = p.allotments[0].PEs
	case engine.EventDown:
		event.ID, event.Name, event.PEs = "", "n", setOf(out)
		if early && s.chance(60) {
			event.From = s.m.now + 1
		}
	case engine.EventUpdateForecast:
		event = engine.Event{Kind: last, Forecast: s.forecast(s.m.now)}
	}
	s.do(event)
}

// extendAfterRefusal has a site refuse PEs to a promise that has just started. No others
// are free, and an extension gives it the same PEs again.
func extendAfterRefusal(s *stage) {
	size, all := s.m.pools[s.cast.pool].pool.PEs, s.m.pools[s.cast.pool].all
	p := s.ask(s.varied(s.cast.pool, size, s.m.now, berth.Duration(s.between(2, 6))))
	if p == nil {
		return
	}
	s.confirm(p)
	s.wait(p.start())
	some := all & s.Uint64()
	if some == 0 || some == all {
		some = 1
	}
	s.do(engine.Event{Kind: engine.EventRelocate, ID: p.id, Resource: s.m.pools[s.cast.pool].id, PEs: setOf(some)})
	s.do(engine.Event{Kind: engine.EventExtend, ID: p.id, Until: p.lastEnd() + berth.Time(s.between(1, 4))})
}

// extendAtTheEnd has a promise that lacks a PE be extended at its very end, when another
// promise begins. A job yields, and leaves more than both take. Under late binding nothing
// else gives PEs to a promise on its own extension: a site refuses none of those.
func extendAtTheEnd(s *stage) {
	size := s.m.pools[s.cast.pool].pool.PEs
	r := s.varied(s.cast.pool, 2, s.m.now, berth.Duration(s.between(16, 20)))
	r.NoShow = 0
	p := s.ask(r)
	if p == nil {
		return
	}
	s.confirm(p)
	s.wait(p.start())
	s.submit(s.job(s.cast.pool, size-2, p.lastEnd().Sub(s.m.now)+20))
	s.wait(s.m.now)
	mine := bits(p.allotments[0].PEs)
	s.down(s.cast.pool, mine&-mine, 0, 0)
	s.ask(s.plain(s.cast.pool, 1, p.lastEnd(), 4))
	s.x.do(step{at: p.lastEnd(), event: engine.Event{Kind: engine.EventExtend, ID: p.id, Until: p.lastEnd() + berth.Time(s.between(1, 4))}})
}

// obstacleGoes has a promise lack PEs, and then takes away what keeps it from PEs: later in
// its window, or beside it.
func obstacleGoes(s *stage) {
	size, early := s.m.pools[s.cast.pool].pool.PEs, s.m.pools[s.cast.pool].early()
	beside := s.chance(15)
	npe := berth.Count(s.between(1, int(size)))
	if beside {
		npe = size - 1
	}
	r := s.varied(s.cast.pool, npe, s.m.now+berth.Time(s.between(6, 9)), berth.Duration(s.between(2, 6)))
	if !beside {
		r.Deadline += r.Deadline - r.Ready
	}
	p := s.ask(r)
	if p == nil {
		return
	}
	s.prolong(p)
	length, start := p.lastEnd().Sub(p.start()), p.start()
	latest := p.deadline.Add(-length) // at which it may start
	until, hold := berth.Time(0), berth.Duration(s.between(2, 3))
	var other *promise
	switch {
	case beside:
		other = s.ask(s.plain(s.cast.pool, 1, start, length))
	case latest <= start:
		return
	case early && s.chance(45):
		until = start + berth.Time(s.between(1, int(latest-start)))
		s.do(engine.Event{Kind: engine.EventDown, Resource: s.m.pools[s.cast.pool].id, PEs: setOf(s.m.pools[s.cast.pool].all), Name: "m", From: p.lastEnd()})
	default:
		until = start + berth.Time(s.between(1, int(latest-start)))
		in := s.plain(s.cast.pool, size, p.lastEnd(), max(1, latest.Sub(p.lastEnd())+1))
		if s.chance(45) {
			in.Hold = hold + s.config.Period
		}
		other = s.ask(in)
	}
	out := uint64(1)<<(size-npe+1) - 1
	if mine := bits(p.allotments[0].PEs); early && beside {
		out = mine & -mine
	} else if early {
		out = s.m.pools[s.cast.pool].all&^mine | mine&-mine | mine&s.Uint64()
	}
	s.down(s.cast.pool, out, 0, until)
	switch {
	case p.missing() == 0:
	case other == nil:
		s.do(engine.Event{Kind: engine.EventUp, Resource: s.m.pools[s.cast.pool].id, Name: "m"})
	case other.state == berth.Held:
		s.wait(other.expires)
	default:
		s.do(engine.Event{Kind: engine.EventCancel, ID: other.id})
	}
}

// partsInTwoPools has an outage or a forecast meet a promise with one part in a pool of each
// binding.
func partsInTwoPools(s *stage) {
	early, late := &s.m.pools[s.cast.pool], &s.m.pools[s.cast.other]
	npe, few := early.pool.PEs, s.chance(25)
	if few {
		npe = (npe + 1) / 2
	}
	r := s.varied(s.cast.pool, npe, s.m.now+8, berth.Duration(s.between(2, 5)))
	r.Site, r.Pool = s.m.siteOf(s.cast.pool).Name, ""
	if s.chance(40) {
		r.Requirements = berth.Requirements{StorageMB: r.StorageMB}
	}
	r.Parts[0].Constraint, r.Constraint = r.Constraint, "" // late binding meets hardly any
	r.Parts[0].Eligible = setOf(early.all)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: berth.Count(s.between(1, int(late.pool.PEs))), Duration: 2}}})
	slack := berth.Time(pick(s.dice, 0, 2, 12))
	r.Deadline += 4 + slack
	p := s.ask(r)
	if p == nil {
		return
	}
	from, until := berth.Time(0), berth.Time(0)
	if s.chance(70) {
		from = max(s.m.now+1, p.start())
	}
	if slack > 4 {
		until = p.start() + berth.Time(s.between(1, 3))
	}
	switch {
	case few:
		s.do(engine.Event{Kind: engine.EventRelocate, ID: p.id, Resource: early.id, PEs: p.allotments[0].PEs})
	case s.m.moves(r) && s.chance(75):
		f := s.forecast(s.m.now)
		f.Site = r.Site
		s.do(engine.Event{Kind: engine.EventUpdateForecast, Forecast: f})
	default:
		s.down(s.cast.pool, early.all, from, until)
	}
}

// moveOntoJobElsewhere has an announced outage displace a promise that is about to start
// into another pool, where a running job yields at once.
func moveOntoJobElsewhere(s *stage) {
	early, late := &s.m.pools[s.cast.pool], &s.m.pools[s.cast.other]
	s.submit(s.job(s.cast.other, late.pool.PEs, 40))
	s.wait(s.m.now)
	r := s.plain(s.cast.pool, min(early.pool.PEs, late.pool.PEs), s.m.now+8, berth.Duration(s.between(2, 5)))
	r.Pool = ""
	r.Deadline += 40
	p := s.ask(r)
	if p == nil || p.allotments[0].Resource != early.id || p.start() <= s.m.now {
		return
	}
	s.x.do(step{at: p.start(), event: engine.Event{Kind: engine.EventDown, Resource: early.id, PEs: setOf(early.all), From: p.start() + 1}})
}

// modifyOntoOverrun has a promise be modified to begin now, where a job runs beyond its
// limit: the job has no work left and ends.
func modifyOntoOverrun(s *stage) {
	size := s.m.pools[s.cast.pool].pool.PEs
	r := s.job(s.cast.pool, size, 3)
	s.submit(r)
	s.wait(s.m.now)
	job := s.m.byID[r.ID]
	if job == nil {
		return
	}
	p := s.ask(s.plain(s.cast.pool, 1, job.lastEnd()+20, 2))
	s.wait(job.lastEnd())
	if p == nil {
		return
	}
	other := s.plain(s.cast.pool, berth.Count(s.between(1, int(size))), s.m.now, 2)
	other.ID = p.id
	s.do(engine.Event{Kind: engine.EventModify, ID: p.id, Request: other})
}

// decidedOnNextArrival has a request wait for another of the same user that comes before it
// in the round. The other is withdrawn, and the arrival of a third decides the request.
func decidedOnNextArrival(s *stage) {
	first := s.plain(s.cast.pool, 1, s.m.now+10, 1)
	r := s.varied(s.cast.pool, 1, s.m.now, 3)
	last := s.plain(s.cast.pool, 1, s.m.now+10, 9)
	for _, one := range []*berth.Request{first, last} {
		one.Parts[0].Variants = one.Parts[0].Variants[:1]
	}
	if len(r.Parts[0].Variants) == 1 { // else a batch matcher would not decide it ahead of time
		r.Parts = append(r.Parts, r.Parts[0])
	}
	if s.chance(50) {
		r.Deadline += 12 // else it is too late then
	}
	owns(first, r.User)
	owns(last, r.User)
	s.do(engine.Event{Kind: engine.EventSubmit, Request: first})
	s.do(engine.Event{Kind: engine.EventSubmit, Request: r})
	last.Arrival++
	s.x.do(step{at: last.Arrival, event: engine.Event{Kind: engine.EventCancel, ID: first.ID}})
	s.do(engine.Event{Kind: engine.EventSubmit, Request: last})
}

// discardedOnNextArrival has a shorter job arrive while one of the same user waits: the
// order discards the one that waits.
func discardedOnNextArrival(s *stage) {
	size := s.m.pools[s.cast.pool].pool.PEs
	s.submit(s.job(s.cast.pool, size, 12))
	long, short := s.job(s.cast.pool, 1, 9), s.job(s.cast.pool, 1, 2)
	if s.chance(70) {
		long.Deadline = s.m.now + 60
	}
	for _, one := range []*berth.Request{long, short} {
		owns(one, "u")
		s.do(engine.Event{Kind: engine.EventSubmit, Request: one})
	}
}

// demandingJobYields has a promise begin where a job runs that asks for more than PEs.
func demandingJobYields(s *stage) {
	size := s.m.pools[s.cast.pool].pool.PEs
	r := s.demanding(s.cast.pool, berth.Count(s.between(1, int(size))), berth.Duration(s.between(8, 20)))
	s.submit(r)
	s.wait(s.m.now)
	if job := s.m.byID[r.ID]; job == nil || job.state != berth.Active {
		return
	}
	s.ask(s.plain(s.cast.pool, size, s.m.now+berth.Time(s.between(1, 6)), berth.Duration(s.between(1, 4))))
}

// outageBeginsOnJob has an announced outage begin where a job runs and beside it a promise waits.
func outageBeginsOnJob(s *stage) {
	size := s.m.pools[s.cast.pool].pool.PEs
	r := s.demanding(s.cast.pool, berth.Count(s.between(1, int(size)-1)), berth.Duration(s.between(8, 20)))
	if s.chance(60) {
		r.Deadline = s.m.now.Add(s.m.scaled(r, r.Parts[0].Variants[0].Duration, s.cast.pool)) + berth.Time(s.between(0, 6))
	}
	s.submit(r)
	s.wait(s.m.now)
	if job := s.m.byID[r.ID]; job == nil || job.state != berth.Active {
		return
	}
	if p := s.ask(s.varied(s.cast.pool, size-r.Parts[0].Variants[0].NPE, s.m.now+berth.Time(s.between(1, 6)), berth.Duration(s.between(2, 4)))); p != nil {
		s.prolong(p)
	}
	from := s.m.now + berth.Time(s.between(2, 7))
	s.down(s.cast.pool, s.m.pools[s.cast.pool].all, from, from+berth.Time(pick(s.dice, 2, 9)))
	s.wait(from)
}
