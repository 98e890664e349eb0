package engine_test

import (
	"math/rand/v2"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// dice draws for one history. All that a history is follows from its seed.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0))} }

// chance reports true in some of a hundred cases.
func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

// between returns one of lo to hi, both included.
func (d dice) between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

// pick returns one of a list, which must not be empty.
func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// setup is what the events of a history are drawn with: which features occur and
// how often. Every history draws its own, so that features meet that would drown
// in a mixture of everything (swarm testing; Groce et al. 2012).
type setup struct {
	config  engine.Config
	weights map[engine.EventKind]int
	wishes  wishes
	crowd   int // so much is to be live
	jobs    int // percent of what is submitted
	offers  int // percent of the steps
	looks   int // likewise
	pace    int // the longest pause between two events
	lead    int // the longest time from arrival to ready
	slack   int // the longest time that a window has to spare
	longest int // the longest duration

	scene *scene // with which the history begins, nil for none
	cast  cast   // of the scene
}

// wishes says, in percent, how often a request asks for something.
type wishes struct {
	parts, variants, eligible, site, pool, hold, noShow, user, limit                           int
	software, version, licences, memory, storage, accelerators, partition, constraint, foolish int
	immediate, endless, wide, whole, known, announced, past, named                             int
}

// theme is what a history is mostly about, so that what is rare comes often enough.
type theme int

const (
	ofNothing    theme = iota
	ofOutages          // where a reservation fails with its PEs
	ofRepair           // where it outlives them
	ofQueueing         // requests for now that wait as jobs
	ofPreemption       // jobs that yield
	ofData             // transfers, and forecasts of them
	ofOwners           // what owners do with their promises
	ofOverruns         // work that does not end in time
	themes
)

// theme draws a theme: what lacks PEs is rarest of all.
func (d dice) theme() theme {
	if d.chance(28) {
		return ofRepair
	}
	return theme(d.IntN(int(themes)))
}

// newSetup draws a configuration and what is to happen under it.
func (d dice) newSetup() *setup {
	about := [2]theme{d.theme(), d.theme()}
	s := &setup{config: d.newConfig(about), weights: map[engine.EventKind]int{}}
	s.pace, s.lead, s.slack, s.longest = pick(d, 1, 2, 3, 5), pick(d, 2, 6, 10), pick(d, 2, 6, 14), pick(d, 3, 6, 9)
	s.crowd, s.jobs, s.offers, s.looks = pick(d, 2, 4, 8), pick(d, 0, 20, 40, 60), pick(d, 0, 0, 3), pick(d, 0, 2)
	often := func() int { return pick(d, 0, 40, 70) }
	s.wishes = wishes{
		parts: pick(d, 0, 30, 60), variants: often(), eligible: often(), site: often(), pool: often(), hold: pick(d, 0, 30, 60), noShow: often(),
		user: pick(d, 30, 80, 100), limit: often(), software: often(), version: 75, licences: 70, memory: often(), storage: pick(d, 0, 40, 70),
		accelerators: often(), partition: often(), constraint: often(), foolish: pick(d, 0, 3, 10), immediate: pick(d, 10, 60), endless: pick(d, 0, 0, 0, 2),
		wide: pick(d, 10, 40), whole: 10, known: pick(d, 30, 80), announced: pick(d, 0, 50), past: 10, named: pick(d, 0, 50),
	}
	for _, kind := range eventKinds {
		s.weights[kind] = pick(d, 0, 1, 2)
	}
	s.weights[engine.EventSubmit] = pick(d, 8, 12)
	s.weights[engine.EventWake] = 1
	s.weights[engine.EventCancel] = max(1, s.weights[engine.EventCancel])
	s.weights[engine.EventSettle] = pick(d, 0, 0, 1)
	for _, one := range about {
		s.bend(d, one)
	}
	if s.wishes.hold > 0 {
		s.weights[engine.EventConfirm] = pick(d, 3, 6) // else holds only lapse
	}
	if s.config.Overrun == engine.OverrunRunOn || s.config.Overrun == engine.OverrunDelay {
		s.weights[engine.EventFinish] = pick(d, 3, 6) // else what runs never ends
	}
	if s.config.Staging == engine.StagingNone {
		s.weights[engine.EventUpdateForecast] = pick(d, 0, 0, 1)
	} else {
		s.wishes.storage = pick(d, 40, 80)
	}
	return s
}

// bend makes often what the theme of a history is about.
func (s *setup) bend(d dice, about theme) {
	ws, weights := &s.wishes, s.weights
	switch about {
	case ofOutages:
		weights[engine.EventDown], weights[engine.EventUp], weights[engine.EventExtend] = 4, 4, pick(d, 0, 3)
		ws.wide, ws.known, ws.whole, ws.announced = 60, 90, 50, pick(d, 0, 50, 90)
		s.lead, s.slack, s.jobs, ws.immediate, ws.hold = 10, pick(d, 0, 1, 3), pick(d, 0, 20), 10, pick(d, 0, 30)
	case ofRepair:
		weights[engine.EventDown], weights[engine.EventUp] = 5, pick(d, 3, 5)
		ws.wide, ws.known, ws.whole, ws.announced, ws.parts = 70, 70, pick(d, 20, 60), pick(d, 0, 50), pick(d, 0, 20)
		for _, kind := range []engine.EventKind{engine.EventModify, engine.EventExtend, engine.EventRelocate, engine.EventConfirm, engine.EventCancel} {
			weights[kind] = pick(d, 1, 3)
		}
		s.lead, s.slack, s.jobs, ws.hold = 10, pick(d, 0, 1, 4, 14), pick(d, 0, 20), pick(d, 0, 40)
	case ofQueueing:
		ws.immediate, ws.wide, s.pace = 85, 60, 1
		ws.parts, ws.variants = pick(d, 0, 20), pick(d, 0, 20)
	case ofPreemption:
		s.jobs, ws.immediate, ws.endless, ws.software = pick(d, 40, 60), 60, 0, pick(d, 40, 80)
		ws.constraint = max(ws.constraint, 40)
	case ofData:
		weights[engine.EventUpdateForecast] = pick(d, 4, 8)
		ws.storage, s.lead = 90, 10
	case ofOwners:
		for _, kind := range []engine.EventKind{engine.EventModify, engine.EventExtend, engine.EventRelocate, engine.EventConfirm, engine.EventCheckIn, engine.EventCancel} {
			weights[kind] = pick(d, 2, 4)
		}
		ws.hold = 50
	case ofOverruns:
		s.lead, s.jobs = pick(d, 6, 10), pick(d, 0, 30)
	}
}

// eventKinds lists the kinds of event in a fixed order, but for EventReject, which is drawn
// instead of EventCancel; the table of coverage checks that all kinds of change happen.
var eventKinds = []engine.EventKind{
	engine.EventWake, engine.EventSubmit, engine.EventCancel, engine.EventConfirm, engine.EventModify, engine.EventExtend, engine.EventCheckIn, engine.EventRelocate,
	engine.EventFinish, engine.EventDown, engine.EventUp, engine.EventUpdateForecast, engine.EventSettle,
}

// newConfig draws a configuration of small pools, so that requests meet.
func (d dice) newConfig(about [2]theme) engine.Config {
	c := engine.Config{
		Order: pick(d, policy.Queues...).Name, Match: pick(d, policy.Matches...).Name, Place: pick(d, policy.Placements...).Name,
		Choice: pick(d, policy.Choices()...), Horizon: pick(d, "", engine.HorizonCapped, engine.HorizonUnbounded),
		Seed: d.Uint64(), Explain: d.chance(40),
		Jobs: pick(d, engine.JobPasses()...).Name, Compress: d.chance(50),
		Staging: pick(d, engine.StagingNone, engine.StagingBefore, engine.StagingHold),
		Overrun: pick(d, "", engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay),
	}
	if d.chance(35) {
		c.Match, c.Unaware = pick(d, policy.Batches...).Name, d.chance(80)
	}
	if d.chance(30) {
		c.Order = "fcfs"
	}
	d.newOrder(&c)
	switch c.Trigger = pick(d, "", engine.TriggerOnArrival, engine.TriggerOnArrival, engine.TriggerOnInstant, engine.TriggerOnPeriod); {
	case c.Trigger == engine.TriggerOnPeriod:
		c.Period = berth.Duration(d.between(1, 6))
	case c.Trigger == "" && d.chance(50):
		c.Trigger = engine.TriggerOnInstant
	}
	if d.chance(50) {
		c.Eager = &policy.Eager{
			K1: policy.Permille(d.between(100, 900)), K2: policy.Permille(d.between(200, 900)), Grid: d.chance(50), RefuseAll: d.chance(50),
		}
	}
	if d.chance(40) {
		c.Limits = append(c.Limits, policy.Limit{Name: policy.LimitActive, Value: int64(d.between(2, 5))})
	}
	if d.chance(40) {
		c.Limits = append(c.Limits, policy.Limit{Name: policy.LimitPESeconds, Value: int64(d.between(20, 80))})
	}
	if d.chance(25) {
		c.Limits = append(c.Limits, policy.Limit{Name: policy.LimitBudget, Value: int64(d.between(60, 250))})
	}
	for i := range c.Limits { // it is the same for all three, since owns gives all the same name
		c.Limits[i].Scope = []policy.Scope{{}, {Account: policy.Every}, {QOS: policy.Every}}[c.Limits[i].Value%3]
	}
	if slices.Contains(about[:], ofData) && c.Staging == engine.StagingNone {
		c.Staging = engine.StagingBefore
	}
	if c.Staging != engine.StagingNone && d.chance(60) {
		c.Uplink = pick(d, int64(700), 1500, 3000, 3<<20+1)
	}
	c.Immediate = pick(d, "", engine.ImmediateRefuse, engine.ImmediateQueue)
	c.Preempt = d.chance(35)
	managed, sites := pick(d, 0, 50, 100), pick(d, 1, 1, 2, 3)
	for _, one := range about {
		switch one {
		case ofQueueing:
			if c.Immediate = engine.ImmediateQueue; c.Unaware || d.chance(80) {
				c.Match, c.Unaware = pick(d, policy.Matches...).Name, false // a batch matcher lets none wait as a job
			}
		case ofPreemption:
			c.Preempt = true
		case ofOverruns:
			c.Overrun = pick(d, engine.OverrunRunOn, engine.OverrunDelay, engine.OverrunDelay, engine.OverrunDelay)
		case ofOutages:
			managed = pick(d, 0, 0, 50)
		case ofRepair:
			managed, sites = pick(d, 60, 100), pick(d, 1, 1, 2)
		}
	}
	if d.chance(90) {
		c.Extension = berth.Duration(d.between(3, 12))
	}
	c.Instant = d.newInstant()
	for i := range sites {
		c.Sites = append(c.Sites, d.newSite(string(rune('a'+i)), d.chance(managed)))
	}
	if d.chance(8) {
		for range d.between(1, 3) {
			row := policy.AheadRow{Beyond: berth.Duration(d.between(0, 15)), Share: policy.Permille(pick(d, 0, 250, 500, 667, 900))}
			if d.chance(50) {
				row.Below = new(d.between(-2, 9))
			}
			c.Ahead = append(c.Ahead, row)
		}
	}
	return c
}

// newOrder draws the options of the order, and the users with their priorities.
func (d dice) newOrder(c *engine.Config) {
	for i := range d.between(0, 3) {
		c.Users = append(c.Users, berth.User{ID: string(rune('u' + i)), Priority: d.between(-2, 9)})
	}
	if d.chance(50) {
		return
	}
	c.Options = policy.OrderOptions{
		Scale: pick(d, 0, 3, 10), N: d.between(0, 2), NUJP: d.between(0, 2), Overflow: pick(d, "", policy.Defer, policy.Discard), Chain: d.chance(50),
		InUser: pick(d, "", policy.ShortestInUser, policy.FirstInUser, policy.LongestInUser), Aging: pick(d, berth.Duration(0), 1, 5),
	}
	if c.Options.InUser != policy.FirstInUser {
		c.Options.LengthClasses = d.between(0, 3)
	}
	if d.chance(50) {
		significant := pick(d, policy.Levels(-1), 0, 500, 4500, policy.AnyGap)
		c.Options.SD = &significant
	}
}

// newInstant draws an order of the classes of an instant, half of the time the
// default.
func (d dice) newInstant() []string {
	switch {
	case d.chance(50):
		return nil
	case d.chance(50):
		return engine.ArrivalsFirst()
	}
	for {
		names := engine.EndsFirst()
		d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		last := slices.Index(names, "start")
		if last > slices.Index(names, "end") && last > slices.Index(names, "capacity") && last > slices.Index(names, "period") {
			return names
		}
	}
}

// newSite draws a site of one or two pools.
func (d dice) newSite(name string, managed bool) berth.Site {
	s := berth.Site{Name: name, Managed: managed}
	speeds := []berth.Speed{0, 0, berth.StandardSpeed, 500, 1500, 2000}
	for i := range pick(d, 1, 1, 2) {
		p := berth.Pool{
			Name: string(rune('p' + i)), PEs: berth.Count(d.between(1, 6)), Binding: pick(d, berth.Early, berth.Late),
			Speed: pick(d, speeds...),
		}
		if d.chance(60) {
			p.Node.MemoryMB = pick(d, int64(2), 4)
		}
		if d.chance(50) {
			p.Node.Accelerators = d.between(1, 2)
			p.Node.AcceleratorSpeed = pick(d, speeds...)
		}
		if p.Binding == berth.Early && p.PEs > 1 && d.chance(40) {
			d.divide(&p)
		}
		if p.Binding == berth.Late && d.chance(50) {
			p.NameAhead = pick(d, berth.Duration(1), 3, 8, 1000)
		}
		if d.chance(60) {
			s.Partitions = append(s.Partitions, d.newPartition(p, pick(d, "x", "y")))
		}
		s.Pools = append(s.Pools, p)
	}
	if d.chance(70) {
		s.Software = append(s.Software, berth.Software{Name: "solver", Version: "1.2", Licences: berth.Count(pick(d, 0, 0, 0, 1, 2, 3))})
		if d.chance(50) {
			s.Software = append(s.Software, berth.Software{Name: "solver", Version: "2", Licences: berth.Count(pick(d, 0, 2))})
		}
		if d.chance(50) {
			s.Software = append(s.Software, berth.Software{Name: "viewer", Licences: berth.Count(pick(d, 0, 1))})
		}
	}
	if d.chance(60) {
		s.StorageMB = pick(d, int64(3), 6, 9, 3<<20+1)
	}
	if d.chance(80) {
		s.Link = berth.Link{DelayMS: pick(d, int64(0), 500, 2000), KilobytesPerSecond: pick(d, int64(0), 700, 1500, 3000)}
	}
	return s
}

// newPartition draws a partition of a pool.
func (d dice) newPartition(pool berth.Pool, name string) berth.Partition {
	p := berth.Partition{Name: name, Pool: pool.Name}
	if pool.Binding == berth.Early && d.chance(60) {
		lo := d.between(0, int(pool.PEs)-1)
		p.PEs = berth.NewPESet(berth.Run{Lo: berth.PE(lo), Hi: berth.PE(d.between(lo+1, int(pool.PEs)))})
	}
	if d.chance(40) {
		p.MaxNPE = berth.Count(d.between(1, int(pool.PEs)))
	}
	if d.chance(40) {
		p.MaxDuration = berth.Duration(d.between(3, 12))
	}
	return p
}
