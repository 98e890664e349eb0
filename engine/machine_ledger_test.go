package engine_test

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// promise is a live reservation as its owner knows it: what the changes said of it,
// and the terms on which it was made.
type promise struct {
	id         string
	request    *berth.Request
	job        bool
	state      berth.State
	allotments []berth.Allotment
	over       []bool // by part
	held       []berth.Allotment
	transfers  []berth.Transfer
	generation uint64
	shown      bool
	expires    berth.Time
	confirmed  berth.Time // when a hold was confirmed: it starts no earlier
	transit    bool       // it has no place for the moment
	struck     bool       // since an outage has taken PEs from it
	named      bool       // its PEs have had names
	refused    uint64     // PEs that its site has just not given it

	terms
}

// terms are what was promised. Only its owner changes them, with Modify and
// Prolong, and an overrun, which is not theirs.
type terms struct {
	owed     []berth.Count    // by part
	standard []berth.Duration // the durations of the variants, in standard seconds
	length   []berth.Duration // how long the parts last where they are, extensions included
	holdEnd  berth.Time       // the latest end of the hold
	deadline berth.Time       // a later end that was granted moves it
	extended bool
	vague    bool // several variants look like what was booked
	late     bool // its owner knows that its data come too late
}

// single reports whether a promise has one part.
func (p *promise) single() bool { return len(p.allotments) == 1 }

func (p *promise) start() berth.Time { return p.allotments[0].Start }

func (p *promise) firstEnd() berth.Time {
	end := p.allotments[0].End
	for i := range p.allotments {
		end = min(end, p.allotments[i].End)
	}
	return end
}

func (p *promise) lastEnd() berth.Time {
	end := p.allotments[0].End
	for i := range p.allotments {
		end = max(end, p.allotments[i].End)
	}
	return end
}

// areaUntil returns the PE-seconds of a promise of one part that is extended: what it lacks it may have then.
func (p *promise) areaUntil(until berth.Time) int64 {
	a := &p.allotments[0]
	return berth.Area(a.NPE, a.End.Sub(a.Start)) + berth.Area(p.owed[0], until.Sub(a.End))
}

// added returns what a promise of one part gets that is extended.
func (p *promise) added(until berth.Time) []berth.Allotment {
	a := p.allotments[0]
	a.Start, a.End, a.NPE = a.End, until, p.owed[0]
	return []berth.Allotment{a}
}

// missing returns how many PEs a promise lacks of those owed.
func (p *promise) missing() berth.Count {
	lack := berth.Count(0)
	for i := range p.allotments {
		lack += p.owed[i] - p.allotments[i].NPE
	}
	return lack
}

// hasAny reports whether a promise has one of the PEs that an event is about.
func (p *promise) hasAny(event *engine.Event) bool {
	return slices.ContainsFunc(p.allotments, func(a berth.Allotment) bool {
		return a.Resource == event.Resource && bits(a.PEs)&bits(event.PEs) != 0
	})
}

// place gives a promise its allotments and what belongs to them. It has not been used
// there yet.
func (p *promise) place(to, held []berth.Allotment, transfers []berth.Transfer) {
	p.allotments, p.held, p.transit, p.shown = slices.Clone(to), slices.Clone(held), false, false
	p.move(transfers)
}

// move takes in when the data of a promise are moved.
func (p *promise) move(transfers []berth.Transfer) {
	p.transfers = slices.Clone(transfers)
}

// toSite returns the transfer of the data of a promise to a site, if there is one.
func (p *promise) toSite(name string) (t berth.Transfer, found bool) {
	for _, t := range p.transfers {
		if t.Site == name {
			return t, true
		}
	}
	return t, false
}

// dataLate reports whether some of its data come after a promise starts.
func (p *promise) dataLate() bool {
	return slices.ContainsFunc(p.transfers, func(t berth.Transfer) bool { return t.End > p.start() })
}

// heldOf returns what a reservation holds beside its PEs: stocks, and shares of the
// uplink.
func heldOf(stocks []berth.Allotment, transfers []berth.Transfer) []berth.Allotment {
	held := slices.Clone(stocks)
	for _, t := range transfers {
		if t.Rate > 0 {
			held = append(held, berth.Allotment{Resource: berth.UplinkID(), Start: t.Since, End: t.End, NPE: t.Rate})
		}
	}
	return held
}

// copied returns a request that shares nothing with another.
func copied(r *berth.Request) *berth.Request {
	c := *r
	c.Parts = slices.Clone(r.Parts)
	for i := range c.Parts {
		c.Parts[i].Variants = slices.Clone(c.Parts[i].Variants)
	}
	return &c
}

// model knows what has been promised to whom, from the events and the changes.
type model struct {
	*world
	now       berth.Time
	live      []*promise // in the order of acceptance
	byID      map[string]*promise
	pending   map[string]*berth.Request
	forecasts map[string]*berth.Forecast
	paid      map[string]int64 // PE-seconds of a user that are charged for what is over
	outages   outages
	other     outages                    // the same as another reading of the last Up has it, nil if there is none
	plans     map[string]berth.Allotment // of jobs
	queue     []string                   // the waiting jobs in the order in which they came
	launched  map[string]uint64          // the generation in which a job last started
	seen      []string                   // ids in the order in which they came
	fault     func(invariant, format string, args ...any)
	hit       func(o *occasion, c *change.Change, r *berth.Request, p *promise)
	scratch   [3]room
}

func newModel(config *engine.Config) *model {
	return &model{
		world: newWorld(config), byID: map[string]*promise{}, pending: map[string]*berth.Request{},
		forecasts: map[string]*berth.Forecast{}, paid: map[string]int64{}, plans: map[string]berth.Allotment{}, launched: map[string]uint64{},
	}
}

// occasion is one Apply.
type occasion struct {
	event   *engine.Event
	timer   bool // nothing but what was due
	changes []change.Change
	now     int // the change at which the model is

	lacking   map[string]bool   // what was degraded before
	places    map[string]uint64 // the generations before an outage
	displaced []displaced       // by an outage, from late-binding PEs
	jobs      []string          // what has become a waiting job
	stopped   []stopped         // jobs that yield before their time
}

// charge has a user pay for the PEs of a promise until a time.
func (m *model) charge(p *promise, until berth.Time) {
	for i := range p.allotments {
		if a := &p.allotments[i]; !p.job && !p.transit && min(a.End, until) > a.Start {
			m.paid[p.request.User] += int64(a.NPE) * int64(min(a.End, until)-a.Start)
		}
	}
}

// drop forgets a promise.
func (m *model) drop(p *promise) {
	delete(m.byID, p.id)
	m.live = slices.DeleteFunc(m.live, func(x *promise) bool { return x == p })
}

// requestOf returns what a change is about, nil if it is not known.
func (m *model) requestOf(id string) *berth.Request {
	if p := m.byID[id]; p != nil {
		return p.request
	}
	return m.pending[id]
}

// take takes in the changes of one Apply: each is judged in the state in which
// it was made, and then becomes part of it.
func (m *model) take(o *occasion) {
	for o.now = range o.changes {
		c := &o.changes[o.now]
		if c.Kind != change.Accepted { // that is counted with its place
			m.hit(o, c, m.requestOf(c.ID), m.byID[c.ID])
		}
		if m.pend(o, c) || m.note(c) {
			continue
		}
		p := m.byID[c.ID]
		if p == nil {
			m.fault("ledger", "%s is about %q, which is not live", c.Kind, c.ID)
			continue
		}
		m.change(o, c, p)
	}
}

// pend takes in what concerns what is not decided yet, and reports whether the
// change was of that sort.
func (m *model) pend(o *occasion, c *change.Change) bool {
	switch c.Kind {
	case change.Queued:
		r := o.event.Request
		if r == nil || m.requestOf(c.ID) != nil {
			m.fault("ledger", "%q is queued, which was not asked for or is there already", c.ID)
			r = c.Request
		}
		m.pending[c.ID] = copied(r)
		m.seen = append(m.seen, c.ID)
		if r.IsJob() {
			m.wait(o, c.ID)
		}
	case change.Withdrawn, change.Refused, change.QueuedAsJob, change.Accepted, change.Planned:
		r := m.pending[c.ID]
		if r == nil {
			m.fault("ledger", "%s is about %q, which is not pending", c.Kind, c.ID)
			r = m.byID[c.ID].request
		}
		m.decide(o, c, r)
	default:
		return false
	}
	return true
}

// decide takes in what becomes of something pending.
func (m *model) decide(o *occasion, c *change.Change, r *berth.Request) {
	switch c.Kind {
	case change.Withdrawn:
		if o.event.Kind != engine.EventCancel || o.event.ID != c.ID {
			m.fault("told", "%q is withdrawn, which its owner did not ask for", c.ID)
		}
		m.decided(c.ID)
	case change.Refused:
		m.judgeRefused(c, r)
		m.decided(c.ID)
	case change.QueuedAsJob:
		m.judgeWaits(c, r)
		m.pending[c.ID] = copied(c.Request)
		m.wait(o, c.ID)
	case change.Accepted:
		p := &promise{
			id: c.ID, request: r, job: r.IsJob(), state: c.Reservation.State, generation: c.Reservation.Generation, expires: c.Reservation.Expires,
			over: make([]bool, len(c.Reservation.Allotments)),
		}
		p.place(c.Reservation.Allotments, heldOf(c.Reservation.Stocks, c.Reservation.Transfers), c.Reservation.Transfers)
		m.judgeAccepted(o, p)
		m.hit(o, c, r, p)
		m.decided(c.ID)
		m.live = append(m.live, p)
		m.byID[c.ID] = p
	case change.Planned:
		m.judgePlanned(c, r)
	}
}

// wait notes that a job waits, behind all others.
func (m *model) wait(o *occasion, id string) {
	o.jobs = append(o.jobs, id)
	m.queue = append(m.queue, id)
}

// decided notes that something is not pending any more.
func (m *model) decided(id string) {
	if m.pending[id].IsJob() {
		m.queue = slices.DeleteFunc(m.queue, func(x string) bool { return x == id })
	}
	delete(m.pending, id)
	delete(m.plans, id)
}

// note takes in what concerns no single reservation, and reports whether the
// change was of that sort.
func (m *model) note(c *change.Change) bool {
	switch c.Kind {
	case change.Advanced:
		if c.Now < m.now {
			m.fault("ledger", "time runs back from %d to %d", m.now, c.Now)
		}
		m.now = c.Now
		m.outages = m.outages.over(m.now)
	case change.Forecasted:
		f := *c.Forecast
		f.Kilobytes = slices.Clone(f.Kilobytes)
		m.forecasts[f.Site] = &f
	case change.Scheduled, change.Emitted, change.Settled, change.WentDown, change.OutageBegan, change.CameUp:
	default:
		return false
	}
	return true
}

// change takes in what becomes of a live reservation.
func (m *model) change(o *occasion, c *change.Change, p *promise) {
	m.displace(o, c, p)
	switch c.Kind {
	case change.Confirmed:
		p.state, p.expires, p.confirmed, p.shown = berth.Confirmed, 0, m.now, m.now > p.start()
	case change.Started:
		m.judgeStarted(c, p)
		p.state = berth.Active
		for i := range c.PEs {
			if !c.PEs[i].Empty() {
				p.allotments[i].PEs = c.PEs[i]
			}
		}
	case change.CheckedIn:
		p.shown = true
	case change.ChangeRefused:
		m.judgeKept(o, c, p)
	case change.Staged:
		p.move(c.Transfers)
		stocks := c.Stocks
		if stocks == nil {
			stocks = slices.DeleteFunc(slices.Clone(p.held), func(a berth.Allotment) bool { return a.Resource.Kind == berth.UplinkKind })
		}
		p.held = heldOf(stocks, c.Transfers)
	case change.Extended:
		m.judgeExtended(o, c, p)
		m.extend(o, p, c.Until)
	case change.Shortened:
		m.judgeShortened(c, p)
		p.allotments[0].End = c.Until
	case change.Resized:
		m.judgeResized(o, c, p)
		p.allotments, p.transit = slices.Clone(c.Moved), false
		if p.refused = 0; o.event.Kind == engine.EventRelocate && o.event.ID == p.id {
			p.refused = bits(o.event.PEs)
		}
	case change.Named:
		m.judgeNamed(c, p)
		p.named = true
		p.allotments = slices.Clone(c.Moved)
	case change.Vacated:
		for i := range p.allotments {
			if !m.pools[m.poolNamed(p.allotments[i].Resource)].early() {
				p.allotments[i].PEs = berth.PESet{} // its place was a number
			}
		}
		p.transit, p.struck = true, !o.timer && o.event.Kind == engine.EventDown
	case change.Moved:
		m.judgeMoved(o, c, p)
	case change.Modified:
		m.judgeModified(o, c, p)
	case change.Ended:
		m.judgeEnded(o, c, p)
		if p.over[c.Part] = true; !slices.Contains(p.over, false) {
			m.charge(p, m.now)
			m.drop(p)
		}
	default:
		m.leave(o, c, p)
	}
}

// displace notes what an outage takes from a place whose PEs have no numbers yet.
func (m *model) displace(o *occasion, c *change.Change, p *promise) {
	a := &p.allotments[0]
	switch {
	case o.timer || o.event.Kind != engine.EventDown || o.lacking[p.id] || p.state == berth.Active || p.transit,
		c.Kind != change.Moved && c.Kind != change.Resized && c.Kind != change.Lost,
		!p.single() || a.Resource != o.event.Resource || m.pools[m.poolNamed(a.Resource)].early(),
		slices.ContainsFunc(o.displaced, func(d displaced) bool { return d.p == p }):
		return
	}
	o.displaced = append(o.displaced, displaced{p, *a})
}

// leave takes in that a reservation is gone before its time.
func (m *model) leave(o *occasion, c *change.Change, p *promise) {
	switch c.Kind {
	case change.Requeued, change.Preempted:
		m.judgeRequeued(o, c, p)
		m.pending[c.ID] = copied(c.Request)
		m.wait(o, c.ID)
	case change.Cancelled:
		if o.event.Kind != engine.EventCancel || o.event.ID != c.ID {
			m.fault("told", "%q is cancelled, which its owner did not ask for", c.ID)
		}
		m.charge(p, m.now)
	case change.Rejected:
		if o.event.Kind != engine.EventReject || o.event.ID != c.ID || c.Refusal == nil || *c.Refusal != *o.event.Refusal {
			m.fault("told", "%q is rejected for %+v, which its site did not say", c.ID, c.Refusal)
		}
	case change.Expired:
		if p.state != berth.Held || m.now < p.expires {
			m.fault("expiry", "%q, %s until %d, expires at %d", c.ID, p.state, p.expires, m.now)
		}
		m.charge(p, m.now)
	case change.NoShow:
		if p.state != berth.Active || p.shown || p.request.NoShow == 0 || m.now < p.start().Add(p.request.NoShow) {
			m.fault("expiry", "%q is given up at %d as if it was not used", c.ID, m.now)
		}
		m.charge(p, berth.Forever)
	case change.Failed:
		m.judgeFailed(o, c, p)
	case change.Lost:
		m.judgeLost(o, p)
	default:
		m.fault("unclassified", "the model knows no change %q", c.Kind)
	}
	m.drop(p)
}

// fill makes a room of what is live, but for a promise and, if asked, the jobs
// that run.
func (m *model) fill(r *room, but *promise, preempted bool) *room {
	r.clear(m.world, m.now)
	m.outages.out(m.world, r)
	for _, p := range m.live {
		if p == but || p.transit || preempted && p.job && p.state == berth.Active {
			continue
		}
		for i := range p.allotments {
			if a := &p.allotments[i]; !p.over[i] {
				r.take(m.world, m.poolNamed(a.Resource), a.NPE, m.firm(p, i), max(a.Start, m.now), a.End)
			}
		}
		for i := range p.held {
			a := &p.held[i]
			r.takeStock(m.world, m.stock(a.Resource), int64(a.NPE), max(a.Start, m.now), a.End)
		}
	}
	m.fillRests(r, but)
	return r
}

// firm returns the PEs that a part of a promise has for good: those of late binding are names
// until it starts.
func (m *model) firm(p *promise, part int) uint64 {
	a := &p.allotments[part]
	if p.state != berth.Active && !m.pools[m.poolNamed(a.Resource)].early() {
		return 0
	}
	return bits(a.PEs)
}

// fillRests adds what is left of the places and stocks of promises from which an
// outage has taken PEs, if they outlive that, while they have no other.
func (m *model) fillRests(r *room, but *promise) {
	struck := slices.DeleteFunc(slices.Clone(m.live), func(p *promise) bool { return p == but || !p.transit || !p.struck || !m.outlives(p) })
	slices.SortStableFunc(struck, func(p, q *promise) int { return cmp.Compare(p.start(), q.start()) })
	for _, p := range struck {
		a := &p.allotments[0]
		pool, from := m.poolNamed(a.Resource), max(a.Start, m.now)
		if from >= a.End {
			continue
		}
		left, pes := max(0, min(a.NPE, berth.Count(r.free(m.world, pool, 0, from, a.End)))), uint64(0)
		if m.pools[pool].early() {
			pes = bits(a.PEs) & r.freePEs(m.world, pool, from, a.End)
		}
		r.take(m.world, pool, left, pes, from, a.End)
		for i := range p.held {
			h := &p.held[i]
			if stock := m.stock(h.Resource); r.stockFree(m.world, stock, max(h.Start, m.now), h.End) >= int64(h.NPE) {
				r.takeStock(m.world, stock, int64(h.NPE), max(h.Start, m.now), h.End)
			}
		}
	}
}

// before notes what an Apply is compared with.
func (m *model) before(o *occasion) {
	for _, p := range m.live {
		if p.missing() > 0 {
			if o.lacking == nil {
				o.lacking = map[string]bool{}
			}
			o.lacking[p.id] = true
		}
	}
	if o.event.Kind == engine.EventDown {
		o.places = map[string]uint64{}
		for _, p := range m.live {
			o.places[p.id] = p.generation
		}
	}
}

// outageTold takes in an outage or its end, as it was told.
func (m *model) outageTold(event *engine.Event) {
	pool := m.poolNamed(event.Resource)
	if event.Kind == engine.EventDown {
		m.outages = m.outages.down(pool, event, m.now)
		return
	}
	inForce := event.PEs.And(setOf(m.outages.at(pool, m.now)))
	if event.Name == "" && !inForce.Empty() && !inForce.Equal(event.PEs) {
		m.other = m.outages.up(pool, &engine.Event{PEs: inForce}, m.now) // that leaves alone what is announced for the others
	}
	m.outages = m.outages.up(pool, event, m.now)
}
