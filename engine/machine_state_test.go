package engine_test

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// What must hold whenever the engine has answered.

// settle judges the state behind the changes of one Apply, and goes on from it.
func (m *model) settle(o *occasion, e *engine.Engine) {
	m.compare(e)
	m.judgeOutages(o, e)
	m.judgeRoom(o)
	m.judgeNames(e)
	m.judgeTimes(o, e)
	if at, due := e.Next(); !due || at > m.now { // else something may just have come back
		m.judgeDegraded(o)
		m.judgeQueue()
	}
	if !o.timer && o.event.Kind == engine.EventDown {
		m.judgeDisplaced(o)
	}
	if len(o.stopped) > 0 && !o.gaveBack() { // else something may be free now that was not then
		for i := range o.stopped {
			m.judgeStopped(&o.stopped[i])
		}
	}
	for _, id := range o.jobs {
		if r := m.pending[id]; r != nil && r.IsJob() && !m.runs(r) {
			m.fault("endless-job", "job %q of %d s waits, and can run nowhere", id, r.Parts[0].Variants[0].Duration)
		}
	}
}

// compare compares what the engine says of its live reservations with what the
// changes said.
func (m *model) compare(e *engine.Engine) {
	i := 0
	for r := range e.Reservations() {
		if i >= len(m.live) || m.live[i].id != r.Request.ID {
			m.fault("ledger", "the engine has reservation %q, the changes made %v", r.Request.ID, m.ids())
			m.adopt(e)
			return
		}
		m.same(m.live[i], &r)
		i++
	}
	if i < len(m.live) {
		m.fault("ledger", "the changes made %v, the engine has %d reservations", m.ids(), i)
		m.adopt(e)
	}
	if e.Live() != len(m.live)+len(m.pending) {
		m.fault("ledger", "%d are live or pending, the engine has %d", len(m.live)+len(m.pending), e.Live())
	}
}

func (m *model) ids() []string {
	var ids []string
	for _, p := range m.live {
		ids = append(ids, p.id)
	}
	return ids
}

// same compares one reservation, and takes over what only the engine knows.
func (m *model) same(p *promise, r *berth.Reservation) {
	state := p.state
	if missing := p.missing(); state == berth.Confirmed || state == berth.Degraded {
		if state = berth.Confirmed; missing > 0 {
			state = berth.Degraded
		}
	}
	switch {
	case r.State != state || r.Missing != p.missing():
		m.fault("missing", "%q is %s and lacks %d PEs; it has %v and is owed %v, want %s", p.id, r.State, r.Missing, r.Allotments, p.owed, state)
		p.state = r.State
		for i := range p.owed {
			p.owed[i] = r.Allotments[i].NPE
		}
		p.owed[0] += r.Missing
	case r.Generation < p.generation:
		m.fault("generation", "%q is in generation %d, it was in %d", p.id, r.Generation, p.generation)
	}
	if !sameAllotments(p.allotments, r.Allotments) || !sameAllotments(p.held, heldOf(r.Stocks, r.Transfers)) {
		m.fault("ledger", "%q is at %v with %v, the changes put it at %v with %v", p.id, r.Allotments, heldOf(r.Stocks, r.Transfers), p.allotments, p.held)
		p.place(r.Allotments, heldOf(r.Stocks, r.Transfers), r.Transfers)
	}
	if r.CheckedIn != p.shown || r.Request.User != p.request.User {
		m.fault("ledger", "%q of %q, shown %v: want %q, %v", p.id, r.Request.User, r.CheckedIn, p.request.User, p.shown)
		p.shown = r.CheckedIn
	}
	p.state, p.generation = r.State, r.Generation
	if r.Expires != p.expires {
		if r.State != berth.Held || r.Expires > p.holdEnd || r.Expires < min(p.expires, p.firstEnd()) {
			m.fault("expiry", "%q expires at %d, want %d", p.id, r.Expires, p.expires)
		}
		p.expires = r.Expires
	}
}

func sameAllotments(a, b []berth.Allotment) bool {
	return slices.EqualFunc(a, b, func(x, y berth.Allotment) bool {
		return x.Resource == y.Resource && x.Start == y.Start && x.End == y.End && x.NPE == y.NPE && x.PEs.Equal(y.PEs)
	})
}

// adopt goes on with what the engine has, after a violation that is only counted.
func (m *model) adopt(e *engine.Engine) {
	was := m.byID
	m.live, m.byID = nil, map[string]*promise{}
	for r := range e.Reservations() {
		p := was[r.Request.ID]
		if p == nil || len(p.allotments) != len(r.Allotments) {
			p = &promise{id: r.Request.ID, request: copied(r.Request), job: r.Request.IsJob(), over: make([]bool, len(r.Allotments))}
			for i := range r.Allotments {
				p.owed = append(p.owed, r.Allotments[i].NPE)
				p.standard = append(p.standard, r.Request.Parts[i].Variants[0].Duration)
				p.length = append(p.length, r.Allotments[i].End.Sub(r.Allotments[i].Start))
			}
			p.deadline = r.Request.Deadline
		}
		p.state, p.generation, p.shown, p.expires = r.State, r.Generation, r.CheckedIn, r.Expires
		p.place(r.Allotments, heldOf(r.Stocks, r.Transfers), r.Transfers)
		m.live, m.byID[p.id] = append(m.live, p), p
	}
	for id := range m.pending {
		if _, live := m.byID[id]; live {
			delete(m.pending, id)
		}
	}
}

// judgeOutages compares what the engine has out of use with what it was told.
func (m *model) judgeOutages(o *occasion, e *engine.Engine) {
	if !slices.ContainsFunc(o.changes, func(c change.Change) bool { return c.Kind == change.CameUp || c.Kind == change.WentDown }) &&
		(o.timer || o.event.Kind != engine.EventDown && o.event.Kind != engine.EventUp) {
		return
	}
	told := m.told(e)
	if _, _, differ := m.other.difference(m.world, told, m.now); m.other != nil && !differ {
		m.outages = m.other
	}
	m.other = nil
	if pool, at, differ := m.outages.difference(m.world, told, m.now); differ {
		m.fault("outages", "at %d PEs %v of %v are out of use, want %v", at, setOf(told.at(pool, at)), m.pools[pool].id, setOf(m.outages.at(pool, at)))
		m.outages = told
	}
}

// judgeRoom judges that nothing is promised twice, and nothing on PEs that are out
// of use. What runs when an outage is announced may go on until it begins.
func (m *model) judgeRoom(o *occasion) {
	r := &m.scratch[2]
	r.clear(m.world, m.now)
	m.outages.out(m.world, r)
	begun := m.now // what begins at this moment may still have to happen
	if o.event.Kind != engine.EventWake && (o.timer || o.event.Kind != engine.EventDown) {
		begun--
	}
	if slices.ContainsFunc(m.outages, func(x outage) bool { return x.from > begun }) {
		for _, p := range m.live {
			for i := range p.allotments {
				a := &p.allotments[i]
				if pool := m.poolNamed(a.Resource); p.state == berth.Active && !p.over[i] && m.pools[pool].early() {
					m.spare(r, pool, bits(a.PEs)&^m.outages.at(pool, begun), a.End)
				}
			}
		}
	}
	for _, p := range m.live {
		for i := range p.allotments {
			if p.over[i] {
				continue
			}
			a := &p.allotments[i]
			pool := m.poolNamed(a.Resource)
			if clash, ok := r.take(m.world, pool, a.NPE, m.firm(p, i), max(a.Start, m.now), a.End); !ok {
				m.fault("double", "%q has PEs of %v at %d that are taken or out of use", p.id, clash.resource, clash.at)
			}
		}
		for i := range p.held {
			a := &p.held[i]
			stock := m.stock(a.Resource)
			if stock < 0 {
				m.fault("double", "%q holds %v, which nothing limits", p.id, a.Resource)
				continue
			}
			if clash, ok := r.takeStock(m.world, stock, int64(a.NPE), max(a.Start, m.now), a.End); !ok {
				m.fault("double", "%q holds %d of %v at %d, more than there is", p.id, a.NPE, clash.resource, clash.at)
			}
		}
	}
	m.judgePlans(r)
}

// spare gives PEs back from now until a time.
func (m *model) spare(r *room, pool int, pes uint64, until berth.Time) {
	from, to := r.clip(m.now, until)
	for i := from; i < to; i++ {
		r.pools[pool].busy[i] &^= pes
	}
}

// judgePlans judges that no job is planned where something is promised, or another
// job is planned.
func (m *model) judgePlans(r *room) {
	for _, id := range m.queue {
		plan, planned := m.plans[id]
		if !planned {
			continue
		}
		pool := m.poolNamed(plan.Resource)
		if clash, ok := r.take(m.world, pool, plan.NPE, bits(plan.PEs), max(plan.Start, m.now), plan.End); !ok {
			m.fault("plans", "job %q is planned on PEs of %v at %d that are taken", id, clash.resource, clash.at)
		}
	}
}

// judgeQueue judges that no job waits that should start: the one that arrived first
// or, where the pass takes any that fits, each.
func (m *model) judgeQueue() {
	pass, inOrder := m.config.Jobs, m.config.Order == "" || m.config.Order == "fcfs"
	all := pass == "lazy" && m.config.Order != "dpsar" // that one shows a pass some of the jobs only
	if len(m.queue) == 0 || pass == "conservative" || m.config.Trigger == engine.TriggerOnPeriod || !inOrder && !all {
		return
	}
	first := m.queue[0]
	for _, id := range m.queue {
		if m.pending[id].Arrival < m.pending[first].Arrival {
			first = id
		}
	}
	r := m.fill(&m.scratch[0], nil, false)
	for _, id := range m.queue {
		if (all || id == first) && m.search(wanted(m.pending[id]), r).at(m.now) {
			m.fault("queue", "job %q waits at %d, and could run", id, m.now)
		}
	}
}

// judgeTimes judges that nothing due has been left undone: before now, and at now
// if the occasion was a wake.
func (m *model) judgeTimes(o *occasion, e *engine.Engine) {
	woken := o.event.Kind == engine.EventWake
	passed := func(at berth.Time) bool { return at < m.now || woken && at == m.now }
	if at, due := e.Next(); due && woken && at <= m.now {
		m.fault("due", "after a wake at %d the engine wants to be woken at %d", m.now, at)
	}
	for _, p := range m.live {
		m.judgeUplink(p)
		switch p.state {
		case berth.Held:
			if passed(p.expires) || p.expires > p.firstEnd() {
				m.fault("expiry", "%q is held at %d, it expires at %d and its first part ends at %d", p.id, m.now, p.expires, p.firstEnd())
			}
		case berth.Active:
			for i := range p.allotments {
				if !p.over[i] && passed(p.allotments[i].End) {
					m.fault("due", "part %d of %q runs at %d, beyond its end %d", i, p.id, m.now, p.allotments[i].End)
				}
			}
			if wait := p.request.NoShow; wait > 0 && !p.shown && passed(p.start().Add(wait)) {
				m.fault("expiry", "%q is not used since %d, and not given up at %d", p.id, p.start(), m.now)
			}
		default:
			if passed(max(p.start(), p.confirmed)) {
				m.fault("due", "%q is %s at %d, its start was %d", p.id, p.state, m.now, p.start())
			}
		}
		if m.config.Staging == engine.StagingBefore && p.state != berth.Active && p.dataLate() && !p.late && p.start() > m.now {
			m.fault("told", "%q starts at %d, its data come as %v, and its owner does not know", p.id, p.start(), p.transfers)
			p.late = true
		}
	}
	for id, r := range m.pending {
		if r.IsJob() && woken && m.now > m.lastStart(r) {
			m.fault("due", "job %q is pending at %d, it could start until %d", id, m.now, m.lastStart(r))
		}
	}
}

// judgeUplink judges that data on their way, or still to be sent, have their share of
// the uplink for as long as they take, and others have none.
func (m *model) judgeUplink(p *promise) {
	stock := m.stock(berth.UplinkID())
	var shares []berth.Allotment
	for _, a := range p.held {
		if a.Resource.Kind == berth.UplinkKind {
			shares = append(shares, a)
		}
	}
	for i := range p.transfers {
		t := &p.transfers[i]
		at := slices.IndexFunc(shares, func(a berth.Allotment) bool { return a.Start == t.Since && a.End == t.End })
		switch {
		case at < 0 && (stock < 0 || t.End <= m.now || t.End >= berth.Forever):
		case at < 0:
			m.fault("uplink", "%q moves %+v, and holds nothing of the uplink", p.id, *t)
		case m.stocks[stock].carries(int64(shares[at].NPE))*int64(t.End-t.Since) < t.Kilobytes:
			m.fault("uplink", "%q moves %+v, and holds %+v of the uplink", p.id, *t, shares[at])
		default:
			shares = slices.Delete(shares, at, at+1)
		}
	}
	if len(shares) > 0 {
		m.fault("uplink", "%q moves %+v over the uplink, and holds also %+v", p.id, p.transfers, shares)
	}
}

// judgeDegraded judges that what lacks PEs has everything that it can have.
func (m *model) judgeDegraded(o *occasion) {
	for _, p := range m.live {
		if p.missing() == 0 || !p.single() || p.job {
			continue
		}
		a := &p.allotments[0]
		from := max(a.Start, m.now)
		if from >= a.End {
			continue
		}
		pool := m.poolNamed(a.Resource)
		r := m.fill(&m.scratch[0], nil, false)
		for _, mask := range m.beside(p.request, &p.request.Parts[0], pool, bits(a.PEs)) {
			if free := r.free(m.world, pool, mask&^p.refused, from, a.End); free > 0 && m.idleIn(p, pool) {
				m.fault("repair", "%q lacks %d PEs throughout [%d,%d), and %d are free", p.id, p.missing(), from, a.End, free)
			}
		}
		w := m.renewed(p)
		if p.state == berth.Active || a.Start < m.now || !m.decidable(w) {
			continue
		}
		if m.moves(p.request) && len(m.forecasts) > 0 {
			continue // data may need less time the later they are sent, and time alone repairs nothing
		}
		if start, ok := m.search(w, m.fill(&m.scratch[0], p, false)).first(w.ready); ok {
			m.fault("repair", "%q lacks %d PEs; there is room for all it is owed from %d on", p.id, p.missing(), start)
		}
	}
}

// idleIn reports whether something idle can be added to a promise: where PEs get
// their numbers when they start, what ends at this moment may still have them.
func (m *model) idleIn(p *promise, pool int) bool {
	if m.pools[pool].early() || p.state != berth.Active {
		return true
	}
	// What is announced for a PE that would be added takes it again.
	return m.idlePEs(pool)&^p.refused&^m.outages.during(pool, m.now, p.allotments[0].End) != 0
}

// idlePEs returns the PEs of a pool that are in use and that nothing runs on.
func (m *model) idlePEs(pool int) uint64 {
	idle := m.pools[pool].all &^ m.outages.at(pool, m.now)
	for _, x := range m.live {
		for i := range x.allotments {
			if a := &x.allotments[i]; x.state == berth.Active && !x.over[i] && m.poolNamed(a.Resource) == pool {
				idle &^= bits(a.PEs)
			}
		}
	}
	return idle
}

// displaced is a promise that an outage took from its place.
type displaced struct {
	p  *promise
	at berth.Allotment
}

// judgeDisplaced judges that an outage took no promise from its place for nothing,
// and changed none twice.
func (m *model) judgeDisplaced(o *occasion) {
	pool := m.poolNamed(o.event.Resource)
	for _, p := range m.live {
		if was, known := o.places[p.id]; known && p.generation > was+1+o.named(p.id) && !p.job && p.state != berth.Active { // what runs may get more when others have moved
			m.fault("one-generation", "an outage gives %q %d new generations", p.id, p.generation-was)
		}
	}
	if pool < 0 || m.pools[pool].early() {
		return
	}
	for _, d := range o.displaced {
		from := max(d.at.Start, m.now)
		if from >= d.at.End || d.p.job {
			continue
		}
		r := m.fill(&m.scratch[0], d.p, false)
		if free := r.free(m.world, pool, 0, from, d.at.End); free >= int32(d.at.NPE) && m.stillStocked(r, d.p) {
			m.fault("late-outage", "an outage displaces %q from [%d,%d), where %d PEs are free for its %d", d.p.id, d.at.Start, d.at.End, free, d.at.NPE)
		}
	}
}

// stopped is a job that had to yield, and where it ran.
type stopped struct {
	id string
	at berth.Allotment
}

// gaveBack reports whether anything else than the jobs that yield gave PEs back.
func (o *occasion) gaveBack() bool {
	ended, promised := 0, 0
	for i := range o.changes {
		switch o.changes[i].Kind {
		case change.Accepted:
			if !o.changes[i].Reservation.Request.IsJob() {
				promised++
			}
		case change.Vacated, change.NoShow, change.Expired, change.Failed, change.Lost, change.Cancelled, change.Rejected, change.CameUp, change.Resized:
			return true
		case change.Ended, change.Preempted:
			ended++
		}
	}
	return ended > len(o.stopped) || promised > 1 // what yields to one promise may leave something to another
}

// judgeStopped judges that a job was not stopped for nothing: its PEs are in use
// from now on.
func (m *model) judgeStopped(j *stopped) {
	pool := m.poolNamed(j.at.Resource)
	r := m.fill(&m.scratch[0], nil, false)
	if free := r.free(m.world, pool, bits(j.at.PEs), m.now, j.at.End); free >= int32(j.at.NPE) {
		m.fault("requeued", "job %q is stopped at %d on %v, and its PEs are free", j.id, m.now, j.at)
	}
}
