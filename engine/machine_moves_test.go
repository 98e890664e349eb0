package engine_test

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// What must hold when a promise gets another place, or none.

// cause is why a promise has to move.
type cause string

const (
	byOutage cause = "outage" // its PEs go out of use
	byAvoid  cause = "avoid"  // its site will not give it its PEs
	byDelay  cause = "delay"  // an overrun takes its PEs
	byRepair cause = "repair" // it lacks PEs
	byData   cause = "data"   // its data come too late
)

// causeOf returns why a promise moves or is lost on an occasion.
func (m *model) causeOf(o *occasion, p *promise) cause {
	switch kind := o.event.Kind; {
	case o.timer:
	case kind == engine.EventDown && m.inOutage(o, p):
		return byOutage
	case kind == engine.EventRelocate && o.event.ID == p.id:
		return byAvoid
	case kind == engine.EventUpdateForecast && p.dataLate():
		return byData
	}
	if o.timer && m.config.Overrun == engine.OverrunDelay && slices.ContainsFunc(o.changes, func(c change.Change) bool { return c.Kind == change.Extended }) &&
		!o.lacking[p.id] {
		return byDelay
	}
	if o.timer && m.config.Overrun == engine.OverrunDelay && m.inOverrun(o, p) {
		return byDelay
	}
	return byRepair
}

// inOutage reports whether a promise lies in an outage that is told now, on its
// PEs where they have numbers.
func (m *model) inOutage(o *occasion, p *promise) bool {
	from, until := max(o.event.From, m.now), o.event.Until
	if until == 0 {
		until = berth.Forever
	}
	return slices.ContainsFunc(p.allotments, func(a berth.Allotment) bool {
		pool := m.poolNamed(a.Resource)
		return a.Resource == o.event.Resource && a.Start < until && from < a.End &&
			(!m.pools[pool].early() || bits(a.PEs)&bits(o.event.PEs) != 0)
	})
}

// inOverrun reports whether a promise lies where something goes on beyond its limit.
func (m *model) inOverrun(o *occasion, p *promise) bool {
	for i := range o.changes {
		c := &o.changes[i]
		x := m.byID[c.ID]
		if c.Kind != change.Extended || x == nil || x == p {
			continue
		}
		a, b := &x.allotments[0], &p.allotments[0]
		if a.Resource == b.Resource && b.Start < c.Until && m.now < b.End && b.NPE > 0 &&
			(!m.pools[m.poolNamed(a.Resource)].early() || bits(a.PEs)&bits(b.PEs) != 0) {
			return true
		}
	}
	return false
}

// judgeMoved judges another place of a promise, and takes it in.
func (m *model) judgeMoved(o *occasion, c *change.Change, p *promise) {
	why, other := m.causeOf(o, p), true
	if p.job || p.state == berth.Active || len(c.Moved) != len(p.allotments) {
		m.fault("moved", "%q moves, which is %s", p.id, p.state)
	} else {
		other = m.judgeMove(o, c, p, why)
	}
	w := m.renewed(p)
	before := *p
	w.again = &before
	p.place(c.Moved, heldOf(c.Stocks, c.Transfers), c.Transfers)
	m.moved(p, w, why, other)
}

// judgeMove judges that a promise had to move, and that it goes on its terms and no
// further than it must. It reports whether another variant would do.
func (m *model) judgeMove(o *occasion, c *change.Change, p *promise, why cause) (other bool) {
	old, start := p.allotments, c.Moved[0].Start
	w := m.renewed(p)
	switch why {
	case byAvoid:
		w.from, w.apart = m.poolNamed(o.event.Resource), bits(o.event.PEs)
		if !p.hasAny(o.event) {
			m.fault("moved", "%q moves from %v to %v, and has none of the PEs %v of %v", p.id, old, c.Moved, o.event.PEs, o.event.Resource)
		}
	case byDelay:
		if !m.inOverrun(o, p) {
			m.fault("moved", "%q at %v is delayed, and not in the way", p.id, old)
		}
		if start < old[0].Start {
			m.fault("nearest", "%q is delayed from %v to %v", p.id, old, c.Moved)
		}
		w = m.delayed(p)
	case byRepair:
		if !o.lacking[p.id] && p.missing() == 0 {
			m.fault("moved", "%q moves from %v to %v on %s without need", p.id, old, c.Moved, o.event.Kind)
		}
	}
	whole := c.Terms != nil && len(c.Terms.Variants) == 1 && p.missing() > 0 && c.Moved[0].NPE == c.Terms.Variants[0].NPE // by a narrower variant
	if why != byAvoid && why != byData && !whole && slices.EqualFunc(old, c.Moved, func(a, b berth.Allotment) bool {
		return a.Resource == b.Resource && a.Start == b.Start && a.End == b.End && a.NPE == b.NPE && a.PEs.Equal(b.PEs)
	}) {
		m.fault("moved", "%q moves from %v to where it was", p.id, old)
	}
	kept := m.sameShape(p, c.Moved, w)
	other = why != byDelay || !w.terms || !m.decidable(w)
	if p.vague || !m.decidable(w) {
		return other
	}
	s := m.search(w, m.fill(&m.scratch[0], p, false))
	first, found := s.first(w.ready)
	if old[0].Start >= m.now && s.at(old[0].Start) {
		first, found = old[0].Start, true
	}
	switch {
	case !w.terms: // another variant, which the rules of admission place
	case why == byDelay && p.extended && c.Moved[0].Resource != old[0].Resource: // the model does not know what was extended at another speed
	case why == byDelay && o.lacking[p.id]: // as whole as it was will do
	case !kept && found:
		m.fault("terms", "%q moves for %s from %v to %v in another shape than promised; there is room from %d on", p.id, why, old, c.Moved, first)
	case !kept && p.extended && why != byDelay:
		m.fault("terms", "%q, which was extended, moves for %s from %v to %v in another shape", p.id, why, old, c.Moved)
	case kept && found && start != first && (first == old[0].Start || start > first && start != old[0].Start):
		m.fault("nearest", "%q moves for %s from %v to %v; there is room from %d on", p.id, why, old, c.Moved, first)
	case kept && start == old[0].Start:
		m.judgeSameStart(o, c, p, why)
	}
	return other
}

// delayed asks for another place of a promise that an overrun is in the way of: in
// its window, but not before it was to begin; there with another variant; or else
// later in its own pool.
func (m *model) delayed(p *promise) *want {
	w := m.renewed(p)
	w.ready = max(w.ready, p.start())
	if p.vague || !m.decidable(w) {
		return w
	}
	r := m.fill(&m.scratch[0], p, false)
	if _, ok := m.search(w, r).first(w.ready); ok {
		return w
	}
	if w.terms = false; !p.extended {
		if _, ok := m.search(w, r).first(w.ready); ok {
			return w
		}
	}
	w.terms, w.deadline, w.only = true, berth.Forever, m.poolNamed(p.allotments[0].Resource)
	return w
}

// sameShape reports whether a promise has the PEs and the lengths that it is owed.
func (m *model) sameShape(p *promise, to []berth.Allotment, w *want) bool {
	for i := range to {
		pool := m.poolNamed(to[i].Resource)
		if pool < 0 || to[i].NPE != p.owed[i] {
			return false
		}
		is := to[i].End.Sub(to[i].Start)
		length, known := m.lengthOf(w, i, berth.Variant{NPE: p.owed[i], Duration: p.standard[i]}, pool)
		for k := range to {
			if m.endTogether(to, i) && to[k].Resource.Site == to[i].Resource.Site {
				other, is := m.lengthOf(w, k, berth.Variant{NPE: p.owed[k], Duration: p.standard[k]}, m.poolNamed(to[k].Resource))
				length, known = max(length, other), known && is
			}
		}
		if known && is != length && (m.config.Staging != engine.StagingHold || !m.moves(p.request) || is != p.length[i]) {
			return false
		}
	}
	return true
}

// judgeSameStart judges PEs that changed under a start that did not: those that
// the promise had are not free.
func (m *model) judgeSameStart(o *occasion, c *change.Change, p *promise, why cause) {
	r := &m.scratch[0]
	for i := range p.allotments {
		was := &p.allotments[i]
		pool, mine := m.poolNamed(was.Resource), bits(was.PEs)
		switch {
		case was.NPE != p.owed[i], why == byData,
			why == byAvoid && was.Resource == o.event.Resource && mine&bits(o.event.PEs) != 0:
			return
		}
		if _, free := r.take(m.world, pool, was.NPE, mine, was.Start, was.End); !free {
			return
		}
	}
	if !m.stillStocked(r, p) {
		return
	}
	if !slices.EqualFunc(p.allotments, c.Moved, func(a, b berth.Allotment) bool { return a.Resource == b.Resource && a.PEs.Equal(b.PEs) }) {
		m.fault("nearest", "%q moves for %s from %v to %v, and its place was free", p.id, why, p.allotments, c.Moved)
	}
}

// stillStocked reports whether what a promise holds of stocks is free for it.
func (m *model) stillStocked(r *room, p *promise) bool {
	return !slices.ContainsFunc(p.held, func(a berth.Allotment) bool {
		return r.stockFree(m.world, m.stock(a.Resource), max(a.Start, m.now), a.End) < int64(a.NPE)
	})
}

// moved notes the terms of a promise that has another place, which may be that of
// another variant. Which one is not known where several of a part come to the same there.
func (m *model) moved(p *promise, w *want, why cause, other bool) {
	of := &want{r: w.r, again: w.again}
	changed, several := false, false
	for i := range p.allotments {
		a := &p.allotments[i]
		p.length[i] = a.End.Sub(a.Start)
		first, more := m.variantOf(of, p.allotments, i)
		several = several || more
		length, known := m.lengthOf(of, i, berth.Variant{NPE: p.owed[i], Duration: p.standard[i]}, m.poolNamed(a.Resource))
		same := a.NPE == p.owed[i] && (!known || length == p.length[i] || length < p.length[i] && m.endTogether(p.allotments, i))
		variants := p.request.Parts[i].Variants
		if same && other && first >= 0 && variants[first].Duration != p.standard[i] && m.endTogether(p.allotments, i) {
			same, several = false, true // it may be either
		}
		if same || a.NPE == p.owed[i] && p.extended {
			continue
		}
		if first >= 0 && other {
			p.owed[i], p.standard[i], changed = a.NPE, variants[first].Duration, true
		}
	}
	p.vague = p.vague || changed && several
	if why == byDelay {
		p.deadline = max(p.deadline, p.lastEnd())
	}
	p.late = p.late && p.dataLate() // then its owner knows already
	m.judgeEnds(p, of)
	m.fits(p, w)
}

// judgeModified judges a promise that is for another request now.
func (m *model) judgeModified(o *occasion, c *change.Change, p *promise) {
	if o.event.Kind != engine.EventModify || o.event.ID != c.ID {
		m.fault("told", "%q is modified, which its owner did not ask for", c.ID)
	}
	before := *p
	p.request, p.over = copied(o.event.Request), make([]bool, len(c.Moved))
	w := wanted(p.request)
	w.again = &before
	p.place(c.Moved, heldOf(c.Stocks, c.Transfers), c.Transfers)
	m.setTerms(p, w)
	p.holdEnd = max(before.holdEnd, m.now.Add(p.request.Hold))
	m.fits(p, w)
	m.admitted(p, p)
}

// judgeLost judges that a promise is gone because nothing else was left.
func (m *model) judgeLost(o *occasion, p *promise) {
	why := m.causeOf(o, p)
	w := m.renewed(p)
	switch {
	case why == byDelay:
		w = m.delayed(p)
	case why != byOutage:
		m.fault("lost", "%q is lost on %s; only an outage or an overrun may take a promise", p.id, o.event.Kind)
		return
	case m.outlives(p):
		if !m.stillStocked(m.fill(&m.scratch[0], p, false), p) {
			return // others that were displaced have its licences or storage
		}
		m.fault("lost", "%q at a managed site is lost; it can be degraded", p.id)
		return
	}
	if p.job || p.state == berth.Active || !m.decidable(w) {
		return
	}
	r := m.fill(&m.scratch[0], p, false)
	if start, ok := m.search(w, r).first(w.ready); ok {
		m.fault("lost", "%q is lost for %s from %v; there is room on its terms from %d on", p.id, why, p.allotments, start)
		return
	}
	if w.terms = false; why == byDelay || p.extended {
		return
	}
	if start, ok := m.search(w, r).first(w.ready); ok {
		m.fault("lost", "%q is lost for %s from %v; there is room for another variant from %d on", p.id, why, p.allotments, start)
	}
}

// outlives reports whether a promise outlives the loss of its PEs.
func (m *model) outlives(p *promise) bool {
	return !p.job && p.single() && m.siteOf(m.poolNamed(p.allotments[0].Resource)).Managed
}

// judgeFailed judges that a reservation ended because its PEs are out of use.
func (m *model) judgeFailed(o *occasion, c *change.Change, p *promise) {
	if p.state != berth.Active {
		if p.allotments[0].NPE > 0 || p.owed[0] == 0 || p.start() > m.now {
			m.fault("failed", "%q, %s, fails at %d with %d PEs", p.id, p.state, m.now, p.allotments[0].NPE)
		}
		return
	}
	if m.outlives(p) {
		m.fault("failed", "%q at a managed site fails; it can be degraded", p.id)
	}
	for i := range p.allotments {
		a := &p.allotments[i]
		pool := m.poolNamed(a.Resource)
		if !p.over[i] && a.End > m.now && m.outages.at(pool, m.now)&bits(a.PEs) != 0 {
			return
		}
	}
	m.fault("announced", "%q fails at %d on %v, and its PEs are in use", p.id, m.now, p.allotments)
	_, _ = o, c
}

// judgeResized judges PEs that a reservation has lost, or got back.
func (m *model) judgeResized(o *occasion, c *change.Change, p *promise) {
	if len(c.Moved) != 1 || !m.outlives(p) {
		m.fault("resized", "%q is resized to %v", p.id, c.Moved)
		return
	}
	was, is := &p.allotments[0], &c.Moved[0]
	pool := m.poolNamed(was.Resource)
	if is.Resource != was.Resource || is.Start != was.Start || is.End != was.End || is.NPE > p.owed[0] || is.NPE < 0 {
		m.fault("resized", "%q, owed %d PEs, is resized from %v to %v", p.id, p.owed[0], *was, *is)
	}
	gone := m.firm(p, 0) &^ bits(is.PEs)
	from := max(was.Start, m.now)
	switch {
	case o.event.Kind == engine.EventRelocate && !o.timer && o.event.ID == p.id && o.event.Resource == was.Resource:
		if not := bits(o.event.PEs); gone&^not != 0 || bits(is.PEs)&not != 0 || p.state != berth.Active || p.shown {
			m.fault("resized", "%q, which has PEs %v and is not to have %v, gets %v", p.id, was.PEs, o.event.PEs, is.PEs)
		}
	case p.state == berth.Active:
		if gone&^m.outages.at(pool, m.now) != 0 {
			m.fault("announced", "%q, which runs, loses PEs %v that are in use at %d", p.id, setOf(gone), m.now)
		}
	case gone&^m.outages.during(pool, from, was.End)&^m.takenBy(o, pool, from, was.End) != 0:
		m.fault("resized", "%q loses PEs %v that are in use throughout [%d,%d)", p.id, setOf(gone), from, was.End)
	}
	if m.pools[pool].early() && !m.may(p.request, &p.request.Parts[0], pool, is.PEs) {
		m.fault("requirements", "%q gets PEs %v, which it may not use", p.id, is.PEs)
	}
	if is.NPE < was.NPE && o.event.Kind != engine.EventDown && o.event.Kind != engine.EventRelocate && !o.timer {
		m.fault("resized", "%q loses PEs on %s", p.id, o.event.Kind)
	}
}

// takenBy returns the PEs of a pool that promises which do not outlive the loss of
// PEs have got in the same Apply: rather than be lost they take what is left of the
// places of those that do.
func (m *model) takenBy(o *occasion, pool int, start, end berth.Time) uint64 {
	taken := uint64(0)
	for i := range o.changes {
		c := &o.changes[i]
		p := m.byID[c.ID]
		if c.Kind != change.Moved || p == nil || m.outlives(p) {
			continue
		}
		for k := range c.Moved {
			if a := &c.Moved[k]; m.poolNamed(a.Resource) == pool && a.Start < end && start < a.End {
				taken |= bits(a.PEs)
			}
		}
	}
	return taken
}

// judgeStarted judges a start: in time, and on PEs that nothing else uses.
func (m *model) judgeStarted(c *change.Change, p *promise) {
	if at := max(p.start(), p.confirmed); p.state == berth.Held || p.state == berth.Active || m.now != at {
		m.fault("start", "%q, %s, starts at %d instead of %d", p.id, p.state, m.now, at)
	}
	for i := range p.allotments {
		a := p.allotments[i]
		if i < len(c.PEs) && !c.PEs[i].Empty() {
			a.PEs = c.PEs[i]
		}
		pool, mine := m.poolNamed(a.Resource), bits(a.PEs)
		if a.PEs.Count() != a.NPE {
			m.fault("start", "%q starts on PEs %v, want %d", p.id, a.PEs, a.NPE)
		}
		if m.outages.at(pool, m.now)&mine != 0 {
			m.fault("start", "%q starts on PEs %v of %v, which are out of use", p.id, a.PEs, a.Resource)
		}
		for _, x := range m.live {
			for k := range x.allotments {
				b := &x.allotments[k]
				if x != p && x.state == berth.Active && !x.over[k] && b.Resource == a.Resource && bits(b.PEs)&mine != 0 {
					m.fault("start", "%q starts on PEs %v of %v, on which %q runs", p.id, a.PEs, a.Resource, x.id)
				}
			}
		}
	}
	if p.job {
		if last, ran := m.launched[p.id]; ran && p.generation <= last {
			m.fault("generation", "job %q starts again in generation %d, it had %d before", p.id, p.generation, last)
		}
		m.launched[p.id] = p.generation
	}
}

// judgeEnded judges an end: asked for, or at the limit where it may not go on.
func (m *model) judgeEnded(o *occasion, c *change.Change, p *promise) {
	if c.Part < 0 || c.Part >= len(p.over) || p.over[c.Part] || p.state != berth.Active {
		m.fault("ended", "part %d of %q, %s, ends", c.Part, p.id, p.state)
		return
	}
	a := &p.allotments[c.Part]
	if !o.timer && o.event.Kind == engine.EventFinish && o.event.ID == p.id {
		return
	}
	whole := m.scaled(p.request, p.request.Parts[0].Variants[0].Duration, m.poolNamed(a.Resource))
	switch yields := m.config.Preempt && p.job; {
	case m.now >= a.End:
	case yields && m.now.Sub(a.Start) >= whole: // it has run beyond its limit
		m.stop(o, p)
		return
	default:
		m.fault("ended", "part %d of %q ends at %d before its limit %d", c.Part, p.id, m.now, a.End)
	}
	if m.config.Overrun != engine.OverrunRunOn && m.config.Overrun != engine.OverrunDelay || !p.single() || a.NPE == 0 || m.now > a.End {
		return
	}
	r := &m.scratch[0]
	r.clear(m.world, m.now)
	m.outages.out(m.world, r)
	for _, x := range m.live {
		if x == p || x.transit {
			continue
		}
		for i := range x.held {
			h := &x.held[i]
			r.takeStock(m.world, m.stock(h.Resource), int64(h.NPE), max(h.Start, m.now), h.End)
		}
		if m.config.Overrun == engine.OverrunDelay && x.state != berth.Active && x.single() && (!m.config.Preempt || !p.job) {
			continue
		}
		for i := range x.allotments {
			if h := &x.allotments[i]; !x.over[i] {
				r.take(m.world, m.poolNamed(h.Resource), h.NPE, m.firm(x, i), max(h.Start, m.now), h.End)
			}
		}
	}
	until := a.End.Add(cmp.Or(m.config.Extension, 60))
	if m.roomFor(r, p, until) && until < m.now+span {
		m.fault("overrun", "%q ends at its limit %d; it could go on until %d", p.id, a.End, until)
	}
}

// roomFor reports whether the only part of a promise can last until a later end
// with what it holds.
func (m *model) roomFor(r *room, p *promise, until berth.Time) bool {
	a := &p.allotments[0]
	pool, mine := m.poolNamed(a.Resource), bits(a.PEs)
	if m.pools[pool].early() {
		if r.freePEs(m.world, pool, a.End, until)&mine != mine {
			return false
		}
	} else if r.free(m.world, pool, 0, a.End, until) < int32(a.NPE) || p.state == berth.Active && m.outages.during(pool, a.End, until)&mine != 0 {
		return false
	}
	return m.shortOf(r, p, until) == (berth.ResourceID{})
}

// shortOf returns the stock that is too small for a promise to last
// until a later end; the zero value if there is none.
func (m *model) shortOf(r *room, p *promise, until berth.Time) berth.ResourceID {
	for i := range p.held {
		h := &p.held[i]
		if h.Resource.Kind != berth.UplinkKind && r.stockFree(m.world, m.stock(h.Resource), max(h.End, m.now), until) < int64(h.NPE) {
			return h.Resource
		}
	}
	return berth.ResourceID{}
}

// judgeExtended judges a later end: asked for, or an overrun; and in the terms of
// its partition and quota.
func (m *model) judgeExtended(o *occasion, c *change.Change, p *promise) {
	a := &p.allotments[0]
	asked := !o.timer && o.event.Kind == engine.EventExtend && o.event.ID == p.id
	if !p.single() || c.Until <= a.End || p.job && asked {
		m.fault("extended", "%q is extended to %d", p.id, c.Until)
	}
	if !asked {
		if m.config.Overrun != engine.OverrunRunOn && m.config.Overrun != engine.OverrunDelay || p.state != berth.Active || m.now != a.End ||
			c.Until != a.End.Add(cmp.Or(m.config.Extension, 60)) {
			m.fault("extended", "%q goes on at %d until %d", p.id, m.now, c.Until)
		}
		return
	}
	if c.Until != o.event.Until {
		m.fault("extended", "%q is extended to %d, want %d", p.id, c.Until, o.event.Until)
	}
	if !m.permits(p.request, p.owed[0], c.Until.Sub(a.Start), m.poolNamed(a.Resource)) {
		m.fault("prolong", "%q is extended to %d s, longer than its partition permits", p.id, c.Until.Sub(a.Start))
	}
	if m.withinQuota(p.request.User, p, p.areaUntil(c.Until)) == no {
		m.fault("quota", "%q of %q is extended beyond the quota", p.id, p.request.User)
	}
	if !m.withinAhead(p.request.User, p, p.added(c.Until)) {
		m.fault("ahead", "%q of %q is extended further than may be promised", p.id, p.request.User)
	}
}

// extend takes in a later end.
func (m *model) extend(o *occasion, p *promise, until berth.Time) {
	a := &p.allotments[0]
	p.length[0] += until.Sub(a.End)
	for i := range p.held {
		if p.held[i].Resource.Kind != berth.UplinkKind {
			p.held[i].End = until
		}
	}
	a.End = until
	p.deadline = max(p.deadline, until)
	if !o.timer && o.event.Kind == engine.EventExtend {
		p.extended = true
	}
}

// judgeShortened judges that a job has to go: where a promise needs its PEs.
func (m *model) judgeShortened(c *change.Change, p *promise) {
	if !p.job || !m.config.Preempt || p.state != berth.Active || c.Until < m.now || c.Until >= p.lastEnd() {
		m.fault("requeued", "%q, %s, is cut to %d", p.id, p.state, c.Until)
	}
}

// judgeRequeued judges a job that is pending again: with all its work, or with
// what is left of it.
func (m *model) judgeRequeued(o *occasion, c *change.Change, p *promise) {
	if !p.job || c.Request == nil || !c.Request.IsJob() {
		m.fault("requeued", "%q is pending again", p.id)
		return
	}
	whole, is := p.request.Parts[0].Variants[0], c.Request.Parts[0].Variants[0]
	want := whole
	if c.Kind == change.Preempted {
		a := &p.allotments[0]
		if p.state != berth.Active || !m.config.Preempt {
			m.fault("requeued", "job %q, %s, is stopped at %d", p.id, p.state, m.now)
		}
		m.stop(o, p)
		ran, pool := min(a.End, m.now).Sub(a.Start), m.poolNamed(a.Resource)
		done := berth.Duration(0)
		for m.scaled(p.request, done+1, pool) <= ran && done < whole.Duration {
			done++
		}
		want.Duration = max(1, whole.Duration-done)
	} else if p.state == berth.Active {
		m.fault("requeued", "job %q, which runs, is pending again", p.id)
	}
	if is != want {
		m.fault("requeued", "job %q is pending again for %+v, want %+v", p.id, is, want)
	}
}

// stop notes a job that yields its PEs before its time to a promise that begins now.
func (m *model) stop(o *occasion, p *promise) {
	if a := p.allotments[0]; m.now < a.End {
		o.stopped = append(o.stopped, stopped{p.id, a})
	}
}

// judgeKept judges that what was asked of a promise was not possible.
func (m *model) judgeKept(o *occasion, c *change.Change, p *promise) {
	if c.Refusal == nil {
		m.fault("told", "%q is kept for no reason", p.id)
		return
	}
	w := m.renewed(p)
	switch kind := o.event.Kind; {
	case o.timer, kind != engine.EventUpdateForecast && o.event.ID != p.id:
		m.fault("told", "%q is kept, and nothing was asked", p.id)
	case kind == engine.EventModify:
		w = wanted(o.event.Request)
		w.again = p
		m.judgeNoRoom(w, "complete-modify", string(c.Refusal.Reason))
	case kind == engine.EventExtend:
		m.judgeNotProlonged(o, c, p)
	case kind == engine.EventRelocate:
		w.from, w.apart = m.poolNamed(o.event.Resource), bits(o.event.PEs)
		if !p.hasAny(o.event) {
			m.fault("told", "%q at %v is kept, and has none of the PEs %v of %v", p.id, p.allotments, o.event.PEs, o.event.Resource)
		}
		if p.state == berth.Active {
			m.judgeNoExchange(w, p)
			return
		}
		if !m.pools[w.from].early() {
			m.judgeNoOtherNames(w, p)
			return
		}
		m.judgeNoPlace(w, p, "to avoid PEs")
	case kind == engine.EventUpdateForecast:
		p.late = true
		m.judgeNoPlace(w, p, "for its data")
	default:
		m.fault("told", "%q is kept on %s", p.id, kind)
	}
}

// judgeNoExchange judges that a promise that has started keeps the PEs that its site
// does not give it because there are no others.
func (m *model) judgeNoExchange(w *want, p *promise) {
	a := &p.allotments[0]
	r := m.fill(&m.scratch[0], nil, false)
	left := bits(a.PEs) &^ w.apart
	for _, mask := range m.beside(p.request, &p.request.Parts[0], w.from, left) {
		// Of late binding, where events come before what is due of outages, those that end now go on.
		first := slices.Index(m.config.Instant, "arrival") < slices.Index(m.config.Instant, "capacity")
		idle := m.pools[w.from].early() || !first && m.idlePEs(w.from)&^w.apart != 0
		if left != 0 || idle && r.free(m.world, w.from, mask&^w.apart, m.now, a.End) > 0 {
			m.fault("complete-again", "%q keeps PEs %v, and need not: it has %v, others are free", p.id, a.PEs, setOf(left))
		}
	}
}

// judgeNoPlace judges that a promise stays because it can have no other place.
func (m *model) judgeNoPlace(w *want, p *promise, what string) {
	if !m.decidable(w) {
		return
	}
	r := m.fill(&m.scratch[0], p, false)
	if start, ok := m.search(w, r).first(w.ready); ok {
		m.fault("complete-again", "%q is kept, and should move %s: there is room from %d on", p.id, what, start)
		return
	}
	if w.terms = false; p.extended {
		return
	}
	if start, ok := m.search(w, r).first(w.ready); ok {
		m.fault("complete-again", "%q is kept, and should move %s: there is room for another variant from %d on", p.id, what, start)
	}
}

// judgeNotProlonged judges that a promise cannot last longer, and that the refusal
// names what is missing.
func (m *model) judgeNotProlonged(o *occasion, c *change.Change, p *promise) {
	a, until := &p.allotments[0], o.event.Until
	r := m.fill(&m.scratch[0], nil, m.config.Preempt)
	pool := m.poolNamed(a.Resource)
	if m.roomFor(r, p, until) && until < m.now+span && m.permits(p.request, p.owed[0], until.Sub(a.Start), pool) &&
		m.withinQuota(p.request.User, p, p.areaUntil(until)) == yes && m.withinAhead(p.request.User, p, p.added(until)) {
		m.fault("prolong", "%q cannot last until %d: %s, and nothing is in its way", p.id, until, c.Refusal.Reason)
	}
	named := c.Refusal.Resource
	if i := m.stock(named); i >= 0 && !slices.ContainsFunc(p.held, func(h berth.Allotment) bool {
		return h.Resource == named && (until >= m.now+span || r.stockFree(m.world, i, max(h.End, m.now), until) < int64(h.NPE))
	}) || c.Refusal.Reason == berth.NoLicence && named.Kind != berth.LicenceKind {
		m.fault("prolong", "%q cannot last until %d: %s of %v, which is not short", p.id, until, c.Refusal.Reason, named)
	}
}
