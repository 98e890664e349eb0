package engine_test

import (
	mathbits "math/bits"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// act is what a step of a history does.
type act int

const (
	actApply    act = iota // an event
	actOffer               // asks for offers, and takes one of them
	actLook                // looks at everything that can be looked at
	actRestore             // makes the restored twin anew
	actTakeOver            // lets the follower decide from now on
)

// step is one step of a history. It says all that is done, so that a history can
// be repeated without any of its steps.
type step struct {
	at    berth.Time
	act   act
	event engine.Event // actOffer: of the request to ask for
	pick  int          // of the offers, from 0; none if there are no more
}

// probe returns an event of the same class as another that changes nothing: it
// lets everything happen that is due before.
func probe(kind engine.EventKind) engine.Event {
	switch kind {
	case engine.EventFinish:
		return engine.Event{Kind: engine.EventFinish, ID: "?"}
	case engine.EventDown, engine.EventUp:
		return engine.Event{Kind: engine.EventUp, Resource: berth.PoolID("?", "?")}
	case engine.EventUpdateForecast:
		return engine.Event{Kind: engine.EventUpdateForecast}
	}
	return engine.Event{Kind: engine.EventCancel, ID: "?"}
}

// drawer draws the steps of a history, one after the other, looking at what is
// live.
type drawer struct {
	dice
	*setup
	m     *model
	e     *engine.Engine
	told  *consumer
	count int // of the requests
}

// next draws a step.
func (d *drawer) next(now berth.Time) step {
	s := step{at: now + berth.Time(d.IntN(d.pace+1))}
	switch {
	case d.chance(d.offers):
		r := d.request(d.newID("o"), s.at)
		return step{at: s.at, act: actOffer, event: engine.Event{Kind: engine.EventSubmit, Request: r}, pick: d.IntN(5)}
	case d.chance(d.looks):
		return step{at: now, act: actLook}
	case d.chance(2):
		return step{at: now, act: actRestore}
	case d.chance(2):
		return step{at: now, act: actTakeOver}
	}
	if event, found := d.opportunity(now); found && d.chance(45) {
		return step{at: now, event: event}
	}
	if s.event = d.event(s.at); d.unsettled() > 20 && d.chance(30) {
		s.event = d.eventOf(engine.EventSettle, s.at)
	}
	return s
}

// opportunity draws an event about a reservation in a state that is rare: a job that
// is about to start, or a promise that lacks PEs or was extended. It finds none if
// there is no such.
func (d *drawer) opportunity(at berth.Time) (event engine.Event, found bool) {
	for _, p := range d.m.live {
		if p.state == berth.Active {
			if event, found := d.against(p, at); found {
				return event, true
			}
			continue
		}
		moving := slices.ContainsFunc(p.transfers, func(t berth.Transfer) bool { return t.End > at })
		switch {
		case p.job && d.m.pools[d.m.poolNamed(p.allotments[0].Resource)].early():
			event = engine.Event{Kind: engine.EventDown, From: at + 1, Until: at + berth.Time(d.between(5, 20))}
			d.hits(&event, p, at)
			event.From = at + 1
			return event, true
		case p.job:
		case moving && (p.missing() > 0 || p.extended):
			f := d.forecast(at)
			f.Site = p.allotments[0].Resource.Site
			return engine.Event{Kind: engine.EventUpdateForecast, Forecast: f}, true
		case p.missing() > 0:
			return d.relieve(p, at), true
		case p.extended && d.chance(50):
			event = engine.Event{Kind: engine.EventDown, Until: at + 1}
			if d.chance(50) {
				event.From = at + 1
			}
			d.hits(&event, p, at)
			return event, true
		}
	}
	return event, false
}

// against draws an event that ends what runs, or makes it smaller: a promise that
// begins before a job that yields is over, or an outage that begins before parts are.
func (d *drawer) against(p *promise, at berth.Time) (event engine.Event, found bool) {
	a := &p.allotments[0]
	switch left := int(a.End - at); {
	case left < 3 || !d.chance(50):
	case !p.job && p.single() && !p.shown && d.m.outlives(p) && !a.PEs.Empty() && (p.missing() > 0 || p.request.Hold > 0):
		return d.avoid(p.id), true
	case p.job && d.config.Preempt && left < 64:
		r := d.request(d.newID("r"), at)
		*r = berth.Rigid(r.ID, at, at+berth.Time(d.between(0, left-1)), 0, d.m.pools[d.m.poolNamed(a.Resource)].pool.PEs, 1)
		r.Deadline, r.Site, r.Pool = r.Ready+berth.Time(d.between(12, 20)), a.Resource.Site, a.Resource.Name
		for _, x := range d.m.live {
			if x.state != berth.Active && !x.job && d.chance(50) {
				r.ID = x.id
				owns(r, x.request.User)
				return engine.Event{Kind: engine.EventModify, ID: x.id, Request: r}, true
			}
		}
		return engine.Event{Kind: engine.EventSubmit, Request: r}, true
	case !p.single():
		event = engine.Event{Kind: engine.EventDown, From: at + 1, Until: at + berth.Time(d.between(5, 20))}
		d.hits(&event, p, at)
		return event, true
	}
	return event, false
}

// relieve draws an event that can give a promise what it lacks, or changes it.
func (d *drawer) relieve(p *promise, at berth.Time) engine.Event {
	var inTheWay []string
	elsewhere := d.chance(40) // then it may be whole in another place
	for _, x := range d.m.live {
		there := x.start() < p.lastEnd() && x.lastEnd() > p.start() && x.allotments[0].Resource == p.allotments[0].Resource
		if x != p && (there || elsewhere) {
			inTheWay = append(inTheWay, x.id)
		}
	}
	switch n := d.IntN(10); {
	case n < 5 && len(inTheWay) > 0:
		return engine.Event{Kind: engine.EventCancel, ID: pick(d.dice, inTheWay...)}
	case n < 5 && len(d.m.outages) > 0:
		x := pick(d.dice, d.m.outages...)
		return engine.Event{Kind: engine.EventUp, Resource: d.m.pools[x.pool].id, PEs: setOf(x.pes)}
	case n < 7:
		return d.modify(p.id, at)
	case n == 7:
		return d.avoid(p.id)
	case n == 8:
		return engine.Event{Kind: engine.EventExtend, ID: p.id, Until: p.lastEnd() + berth.Time(d.between(1, 6))}
	}
	return d.event(at)
}

// unsettled returns how many effects wait to be settled.
func (d *drawer) unsettled() int { return d.told.effects - d.told.settled }

func (d *drawer) newID(letter string) string {
	d.count++
	return letter + strconv.Itoa(d.count)
}

// event draws an event. Where little is live, more is asked for.
func (d *drawer) event(at berth.Time) engine.Event {
	if len(d.m.live) < d.crowd && d.chance(35) {
		return d.eventOf(engine.EventSubmit, at)
	}
	sum := 0
	for _, kind := range eventKinds {
		sum += d.weights[kind]
	}
	n := d.IntN(sum)
	for _, kind := range eventKinds {
		if n -= d.weights[kind]; n < 0 {
			return d.eventOf(kind, at)
		}
	}
	panic("no kind of event has this weight")
}

// eventOf draws an event of a kind. One that wants a live reservation of some sort
// is about one, most of the time, and is a submission if there is none.
func (d *drawer) eventOf(kind engine.EventKind, at berth.Time) engine.Event {
	id, found := d.id(kind)
	if !found && d.chance(95) {
		kind = engine.EventSubmit
	}
	switch kind {
	case engine.EventSubmit:
		if d.chance(d.jobs) {
			return engine.Event{Kind: kind, Request: d.job(d.newID("j"), at)}
		}
		return engine.Event{Kind: kind, Request: d.request(d.newID("r"), at)}
	case engine.EventCancel:
		return d.over(id)
	case engine.EventConfirm, engine.EventCheckIn, engine.EventFinish:
		return engine.Event{Kind: kind, ID: id}
	case engine.EventModify:
		return d.modify(id, at)
	case engine.EventExtend:
		event := engine.Event{Kind: kind, ID: id, Until: at + berth.Time(d.between(1, 12))}
		if p := d.m.byID[id]; p != nil {
			event.Until = p.lastEnd() + berth.Time(d.between(0, 6))
		}
		return event
	case engine.EventRelocate:
		return d.avoid(id)
	case engine.EventDown, engine.EventUp:
		return d.outage(kind, at)
	case engine.EventUpdateForecast:
		return engine.Event{Kind: kind, Forecast: d.forecast(at)}
	case engine.EventSettle:
		if box := d.e.Outbox(); len(box) > 0 {
			return engine.Event{Kind: kind, Effect: pick(d.dice, box...).Number}
		}
	}
	return engine.Event{Kind: engine.EventWake}
}

// over draws an event that ends a reservation, by its owner or by its site. To both the same
// happens but for the reason. It takes no dice, so that histories are what they were.
func (d *drawer) over(id string) engine.Event {
	if p := d.m.byID[id]; p == nil || p.start()%3 != 0 {
		return engine.Event{Kind: engine.EventCancel, ID: id}
	}
	return engine.Reject(id, &berth.Refusal{Reason: berth.SiteRefused, Wanted: 1, Words: "no such user"})
}

// suits reports whether an event of a kind can mean a reservation.
func suits(kind engine.EventKind, p *promise) bool {
	ahead := p.state != berth.Active && !p.job
	switch kind {
	case engine.EventConfirm:
		return p.state == berth.Held
	case engine.EventCheckIn, engine.EventFinish:
		return p.state == berth.Active
	case engine.EventModify:
		return ahead
	case engine.EventExtend:
		return p.single() && !p.job
	case engine.EventRelocate:
		return (ahead || !p.job && p.state == berth.Active && !p.shown) && !p.allotments[0].PEs.Empty()
	}
	return true
}

// id draws the id of a reservation that an event of a kind is about: mostly one of
// the last five that it can mean, now and then any that there ever was. It reports
// whether there is any, or none is wanted.
func (d *drawer) id(kind engine.EventKind) (id string, found bool) {
	switch kind {
	case engine.EventWake, engine.EventSubmit, engine.EventUp, engine.EventUpdateForecast, engine.EventSettle:
		return "", true
	}
	if len(d.m.seen) > 0 && d.chance(2) {
		return pick(d.dice, d.m.seen...), true
	}
	if len(d.m.queue) > 0 && kind == engine.EventCancel && d.chance(20) {
		return pick(d.dice, d.m.queue...), true
	}
	var ids []string
	lacking := d.chance(60) // then what lacks PEs comes first
	for _, p := range slices.Backward(d.m.live) {
		if !suits(kind, p) {
			continue
		}
		if lacking && p.missing() > 0 {
			return p.id, true
		}
		if ids = append(ids, p.id); len(ids) == 5 && d.chance(90) {
			break
		}
	}
	if len(ids) > 0 {
		return pick(d.dice, ids...), true
	}
	if len(d.m.seen) > 0 {
		return d.m.seen[max(0, len(d.m.seen)-1-d.IntN(5))], false
	}
	return "?", false
}

// modify draws another request for a reservation, which is like its own or not.
func (d *drawer) modify(id string, at berth.Time) engine.Event {
	r := d.request(id, at)
	if p := d.m.byID[id]; p != nil && d.chance(95) {
		if owns(r, p.request.User); d.chance(60) {
			like := copied(p.request)
			like.Deadline += berth.Time(d.between(-1, 6))
			like.Hold, like.NoShow, r = r.Hold, r.NoShow, like
			if n := p.allotments[0].NPE; p.missing() > 0 && n > 0 { // as many PEs as are left
				like.Parts[0].Variants[0].NPE = n
			}
		}
	}
	return engine.Event{Kind: engine.EventModify, ID: id, Request: r}
}

// request draws a request that some pool can serve, unless it is foolish.
func (d *drawer) request(id string, at berth.Time) *berth.Request {
	ws := &d.wishes
	r := &berth.Request{ID: id, Arrival: at}
	if d.chance(ws.past) {
		r.Arrival -= berth.Time(d.between(0, 2))
	}
	if r.Ready = r.Arrival; !d.chance(ws.immediate) {
		r.Ready += berth.Time(d.between(0, d.lead))
	}
	pool := d.IntN(len(d.m.pools))
	d.require(r, pool)
	for i := range d.parts() {
		of := pool
		if i > 0 && d.chance(60) {
			of = d.IntN(len(d.m.pools))
		}
		r.Parts = append(r.Parts, d.part(of))
	}
	var longest berth.Duration
	for _, part := range r.Parts {
		shortest := part.Variants[0].Duration
		for _, v := range part.Variants {
			shortest = min(shortest, v.Duration)
		}
		longest = max(longest, shortest)
	}
	needed := longest
	if d.chance(80) {
		needed = d.m.scaled(r, longest, pool)
	}
	if d.m.moves(r) && d.chance(80) {
		needed += min(d.m.transfer(d.m.pools[pool].site, nil, r, at), 12)
	}
	r.Deadline = r.Ready.Add(needed) + berth.Time(d.between(0, d.slack))
	if d.chance(ws.hold) {
		r.Hold = berth.Duration(d.between(1, 12))
	}
	if d.chance(ws.noShow) {
		r.NoShow = berth.Duration(d.between(1, 5))
	}
	return r
}

// parts draws how many parts a request has.
func (d *drawer) parts() int {
	if d.chance(d.wishes.parts) {
		return pick(d.dice, 2, 2, 3)
	}
	return 1
}

// part draws a part for a pool.
func (d *drawer) part(pool int) berth.Part {
	var part berth.Part
	variants := 1
	if d.chance(d.wishes.variants) {
		variants = d.between(2, 3)
	}
	size := int(d.m.pools[pool].pool.PEs)
	for range variants {
		npe := d.between(1, max(1, (size+1)/2))
		switch {
		case d.chance(d.wishes.wide):
			npe = d.between(1, size)
		case d.chance(d.wishes.foolish):
			npe = size + 1
		}
		part.Variants = append(part.Variants, berth.Variant{NPE: berth.Count(npe), Duration: berth.Duration(d.between(1, d.longest))})
	}
	if d.chance(d.wishes.eligible) && (d.m.pools[pool].early() || d.chance(d.wishes.foolish)) {
		lo := d.IntN(size)
		part.Eligible = berth.NewPESet(berth.Run{Lo: berth.PE(lo), Hi: berth.PE(d.between(lo+1, size+1))})
		if d.chance(30) {
			part.Eligible = berth.PEsOf(berth.PE(d.IntN(size)), berth.PE(d.IntN(size)))
		}
	}
	if d.chance(d.wishes.eligible) {
		d.nodes(&part, pool)
	}
	if d.chance(d.wishes.constraint / 2) {
		part.Constraint = pick(d.dice, constraints...).text
	}
	return part
}

// nodes draws which PEs a part names, of the pool that it is drawn for and of others: the only
// ones that will do, and some that will not.
func (d *drawer) nodes(part *berth.Part, pool int) {
	some := func(pool int) berth.PoolPEs {
		p := &d.m.pools[pool]
		set := berth.PEsOf(berth.PE(d.IntN(int(p.pool.PEs))))
		for range d.between(0, int(p.pool.PEs)) {
			set = set.Or(berth.PEsOf(berth.PE(d.IntN(int(p.pool.PEs)))))
		}
		return berth.PoolPEs{Resource: p.id, PEs: set}
	}
	for other := range d.m.pools {
		if early := d.m.pools[other].early() || d.chance(d.wishes.foolish); early && (other == pool || d.chance(30)) {
			if d.chance(60) {
				part.Only = append(part.Only, some(other))
			}
			if d.chance(60) {
				part.Never = append(part.Never, some(other))
			}
		}
	}
}

// require draws what a request requires beside PEs: what a pool has, or not if it
// is foolish.
func (d *drawer) require(r *berth.Request, pool int) {
	ws, p, site := &d.wishes, &d.m.pools[pool], d.m.siteOf(pool)
	if d.chance(ws.user) {
		owns(r, pick(d.dice, "u", "v", "w", "x"))
	}
	if d.chance(ws.site) {
		r.Site = site.Name
	}
	if d.chance(ws.pool) {
		r.Pool = p.pool.Name
	}
	if d.chance(ws.memory) {
		r.MemoryMB = pick(d.dice, int64(1), 2)
	}
	if d.chance(ws.accelerators) {
		r.Accelerators = p.pool.Node.Accelerators
		if n := len(p.pool.Classes); n > 0 {
			r.Accelerators = p.pool.Classes[d.IntN(n)].Node.Accelerators
		}
	}
	if d.chance(ws.constraint) {
		r.Constraint = pick(d.dice, constraints...).text
		if n := len(p.pool.Classes); n > 0 && d.chance(50) {
			r.Constraint = p.pool.Classes[d.IntN(n)].Name
		}
	}
	if d.chance(ws.storage) {
		r.StorageMB = int64(d.between(1, 4))
		if site.StorageMB > 0 {
			if r.StorageMB = min(r.StorageMB, site.StorageMB); d.chance(10) {
				r.StorageMB = site.StorageMB
			}
		}
	}
	if d.chance(ws.partition) {
		for _, part := range site.Partitions {
			if part.Pool == p.pool.Name {
				r.Partition = part.Name
			}
		}
	}
	if d.chance(ws.software) && len(site.Software) > 0 {
		program := pick(d.dice, site.Software...)
		r.Software = program.Name
		if d.chance(ws.version) && program.Version != "" {
			r.Version = pick(d.dice, program.Version, "1", "1.10")
		}
		if d.chance(ws.licences) {
			r.Licences = 1
			if program.Licences > 1 {
				r.Licences = berth.Count(d.between(1, int(program.Licences)))
			}
		}
	}
	if d.chance(ws.foolish) {
		switch d.IntN(7) {
		case 0:
			r.MemoryMB = 9
		case 1:
			r.Accelerators = 3
		case 2:
			r.StorageMB = 8
		case 3:
			r.Partition = pick(d.dice, "x", "y")
		case 4:
			r.Software, r.Version, r.Licences = "solver", pick(d.dice, "", "2", "3"), berth.Count(d.IntN(5))
		case 5:
			r.Site = pick(d.dice, "a", "b", "c")
		case 6:
			r.Pool = pick(d.dice, "p", "q")
		}
	}
}

// job draws an ordinary job, now and then with a waiting limit, or longer than any
// time.
func (d *drawer) job(id string, at berth.Time) *berth.Request {
	pool := d.IntN(len(d.m.pools))
	part := d.part(pool)
	r := berth.Job(id, at, part.Variants[0].NPE, part.Variants[0].Duration)
	r.Parts[0].Eligible, r.Parts[0].Only, r.Parts[0].Never = part.Eligible, part.Only, part.Never
	d.require(&r, pool)
	if site := d.m.siteOf(pool); site.StorageMB > 0 && !d.chance(d.wishes.foolish) {
		r.StorageMB = 0
	}
	if row := program(d.m.siteOf(pool), &r); row >= 0 && d.m.siteOf(pool).Software[row].Licences > 0 && !d.chance(d.wishes.foolish) {
		r.Licences = 0
	}
	if d.chance(d.wishes.limit) {
		r.Deadline = at.Add(d.m.scaled(&r, part.Variants[0].Duration, pool)) + berth.Time(d.between(0, d.slack))
	}
	if d.chance(d.wishes.endless) {
		r.Parts[0].Variants[0].Duration, r.Deadline = 1<<42-1, berth.Forever
	}
	return &r
}

// avoid draws PEs that a reservation cannot have: mostly some of its own.
func (d *drawer) avoid(id string) engine.Event {
	event := engine.Event{Kind: engine.EventRelocate, ID: id}
	if p := d.m.byID[id]; p != nil && d.chance(95) {
		numbered := slices.DeleteFunc(slices.Clone(p.allotments), func(a berth.Allotment) bool { return a.PEs.Empty() })
		if len(numbered) > 0 {
			a := pick(d.dice, numbered...)
			mask := bits(a.PEs)
			if some := mask & d.Uint64(); some != 0 {
				mask = some
			}
			event.Resource, event.PEs = a.Resource, setOf(mask)
			return event
		}
	}
	pool := d.IntN(len(d.m.pools))
	event.Resource, event.PEs = d.m.pools[pool].id, d.somePEs(pool)
	return event
}

// somePEs draws PEs of a pool.
func (d *drawer) somePEs(pool int) berth.PESet {
	size := int(d.m.pools[pool].pool.PEs)
	lo := d.IntN(size)
	return berth.NewPESet(berth.Run{Lo: berth.PE(lo), Hi: berth.PE(min(size, lo+pick(d.dice, 1, 1, 1, 2, size)))})
}

// outage draws PEs that go out of use, now or announced, or come back: mostly such
// that are out of use, or where there is an announcement.
func (d *drawer) outage(kind engine.EventKind, at berth.Time) engine.Event {
	pool := d.IntN(len(d.m.pools))
	event := engine.Event{Kind: kind, Resource: d.m.pools[pool].id, PEs: d.somePEs(pool)}
	if d.chance(d.wishes.whole) {
		event.PEs = setOf(d.m.pools[pool].all)
	}
	if d.chance(d.wishes.named) {
		event.Name = pick(d.dice, "m", "n")
		if kind == engine.EventUp && d.chance(50) {
			if len(d.m.outages) > 0 {
				event.Resource, event.Name = d.m.pools[d.m.outages[0].pool].id, d.m.outages[0].name
			}
			if event.Name != "" {
				event.PEs = berth.PESet{}
				return event
			}
		}
		if kind == engine.EventUp {
			event.Name = ""
		}
	}
	if kind == engine.EventUp {
		if len(d.m.outages) > 0 && d.chance(90) {
			x := pick(d.dice, d.m.outages...)
			event.Resource, event.PEs = d.m.pools[x.pool].id, setOf(x.pes)
			if some := x.pes & d.Uint64(); some != 0 && d.chance(30) {
				event.PEs = setOf(some)
			}
		}
		return event
	}
	if d.chance(d.wishes.announced) {
		event.From = at + berth.Time(d.between(1, 12))
	}
	if d.chance(d.wishes.known) {
		event.Until = max(at, event.From) + berth.Time(d.between(1, 15))
	}
	id, _ := d.id(kind)
	for _, p := range d.m.live {
		if p.job && p.state != berth.Active && d.chance(50) { // one that is about to start
			id = p.id
		}
	}
	if p := d.m.byID[id]; p != nil && d.chance(80) {
		d.hits(&event, p, at)
	}
	return event
}

// hits makes an outage one that is in the way of a reservation.
func (d *drawer) hits(event *engine.Event, p *promise, at berth.Time) {
	a := pick(d.dice, p.allotments...)
	pool := d.m.poolNamed(a.Resource)
	event.Resource, event.PEs = a.Resource, d.somePEs(pool)
	if mask := bits(a.PEs); mask != 0 {
		event.PEs = setOf(mask & (d.Uint64() | 1<<mathbits.TrailingZeros64(mask)))
	}
	if d.chance(d.wishes.whole) {
		event.PEs = setOf(d.m.pools[pool].all)
		if spared := d.somePEs(pool); d.chance(70) && !spared.Equal(event.PEs) { // then something is left
			event.PEs = setOf(bits(event.PEs) &^ bits(spared))
		}
	}
	if event.From = max(event.From, at); event.From > at {
		event.From = max(at, a.Start+berth.Time(d.between(-2, 2)))
	}
	if event.Until != 0 {
		event.Until = max(event.From, min(a.End, at+20)) + berth.Time(d.between(0, 6))
		if event.Until <= event.From {
			event.Until++
		}
	}
}

// forecast draws what can be moved to a site from about now on.
func (d *drawer) forecast(at berth.Time) *berth.Forecast {
	f := &berth.Forecast{
		Site: pick(d.dice, d.config.Sites...).Name, From: at + berth.Time(d.between(-3, 2)), Period: berth.Duration(d.between(1, 5)),
	}
	sum := int64(0)
	for range d.between(1, 4) {
		sum += pick(d.dice, int64(0), 500, 1000, 3000, 9000) * int64(f.Period)
		f.Kilobytes = append(f.Kilobytes, sum)
	}
	return f
}
