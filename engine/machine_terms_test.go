package engine_test

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// What must hold of a promise when it is made, and of a refusal.

// judgeAccepted judges what a request or job got, and notes its terms.
func (m *model) judgeAccepted(o *occasion, p *promise) {
	r := p.request
	m.setTerms(p, wanted(r))
	if p.job {
		m.judgeJob(p)
		return
	}
	m.fits(p, wanted(r))
	m.admitted(p, nil)
	state, expires := berth.Confirmed, berth.Time(0)
	if r.Hold > 0 {
		state, expires = berth.Held, min(m.now.Add(r.Hold), p.firstEnd())
	}
	p.holdEnd = m.now.Add(r.Hold)
	if p.state != state || p.expires != expires {
		m.fault("expiry", "%q is %s until %d, want %s until %d", p.id, p.state, p.expires, state, expires)
	}
	_ = o
}

// setTerms finds the variants that a promise got, and notes what is owed.
func (m *model) setTerms(p *promise, w *want) {
	r, n := p.request, len(p.allotments)
	p.terms = terms{
		owed: make([]berth.Count, n), standard: make([]berth.Duration, n), length: make([]berth.Duration, n), deadline: r.Deadline,
	}
	if n != len(r.Parts) {
		m.fault("shape", "%q has %d allotments for %d parts", p.id, n, len(r.Parts))
	}
	for i := range min(n, len(r.Parts)) {
		a := &p.allotments[i]
		p.owed[i], p.length[i] = a.NPE, a.End.Sub(a.Start)
		p.standard[i] = r.Parts[i].Variants[0].Duration
		pool := m.poolNamed(a.Resource)
		found, several := m.variantOf(w, p.allotments, i)
		p.vague = p.vague || several
		if found < 0 && p.job && m.config.Preempt { // it runs until a promise needs its PEs
			found = 0
		}
		if found < 0 {
			m.fault("shape", "%q has %d PEs of %v for %d s, which is none of its variants", p.id, a.NPE, a.Resource, p.length[i])
			continue
		}
		p.standard[i] = r.Parts[i].Variants[found].Duration
		if !m.permits(r, a.NPE, p.length[i], pool) {
			m.fault("requirements", "%q has %d PEs for %d s in a partition that does not take it", p.id, a.NPE, p.length[i])
		}
	}
	m.judgeEnds(p, w)
}

// variantOf returns which variant of a part an allotment is, -1 for none, and whether it may be another one as well. Where
// parts end together, it is the longest that is no longer, and one of them has to be as long as that.
func (m *model) variantOf(w *want, to []berth.Allotment, part int) (found int, several bool) {
	a, longest := &to[part], berth.Duration(-1)
	lasts := a.End.Sub(a.Start)
	found = -1
	for k, v := range w.r.Parts[part].Variants {
		length, known := m.lengthOf(w, part, v, m.poolNamed(a.Resource))
		switch {
		case v.NPE != a.NPE:
		case known && length != lasts && (!m.endTogether(to, part) || length > lasts || length < longest):
		case !known || length == longest || length == lasts:
			several = several || found >= 0 && w.r.Parts[part].Variants[found] != v
			found, longest = k, length
		case length > longest:
			found, longest, several = k, length, false
		}
	}
	return found, several
}

// endTogether reports whether a part has others of its request beside it at a managed site, so that all of them end together.
func (m *model) endTogether(to []berth.Allotment, part int) bool {
	site := m.pools[m.poolNamed(to[part].Resource)].site
	if !m.config.Sites[site].Managed {
		return false
	}
	for i := range to {
		if i != part && to[i].Resource.Site == to[part].Resource.Site {
			return true
		}
	}
	return false
}

// judgeEnds judges when parts end that are at one managed site: together, and none of them longer than the longest.
func (m *model) judgeEnds(p *promise, w *want) {
	for i := range p.allotments {
		if !m.endTogether(p.allotments, i) {
			continue
		}
		exact := false
		for k := range p.allotments {
			a := &p.allotments[k]
			if a.Resource.Site != p.allotments[i].Resource.Site {
				continue
			}
			if a.End != p.allotments[i].End {
				m.fault("together", "%q has parts at %s that end at %d and at %d", p.id, a.Resource.Site, a.End, p.allotments[i].End)
			}
			for _, v := range append([]berth.Variant{{NPE: p.owed[k], Duration: p.standard[k]}}, p.request.Parts[k].Variants...) {
				length, known := m.lengthOf(w, k, v, m.poolNamed(a.Resource))
				exact = exact || !known || v.NPE == a.NPE && length == a.End.Sub(a.Start)
			}
		}
		if !exact && !p.vague && m.decidable(w) {
			m.fault("together", "%q has parts at %s that all last longer than they want", p.id, p.allotments[i].Resource.Site)
		}
	}
}

// judgeJob judges where a job runs.
func (m *model) judgeJob(p *promise) {
	a, v := &p.allotments[0], p.request.Parts[0].Variants[0]
	pool := m.poolNamed(a.Resource)
	whole := m.scaled(p.request, v.Duration, pool)
	length := a.End.Sub(a.Start)
	switch {
	case !m.meets(p.request, pool), !m.may(p.request, &p.request.Parts[0], pool, a.PEs):
		m.fault("requirements", "job %q runs on %v %v, which does not serve it", p.id, a.Resource, a.PEs)
	case a.NPE != v.NPE, length > whole, length < whole && !m.config.Preempt:
		m.fault("shape", "job %q runs on %d PEs for %d s, want %d for %d s", p.id, a.NPE, length, v.NPE, whole)
	case a.Start != m.now, length == whole && a.End > p.request.Deadline:
		m.fault("window", "job %q runs throughout [%d,%d) at %d, its limit is %d", p.id, a.Start, a.End, m.now, p.request.Deadline)
	}
}

// fits judges where a promise is: that each part has a pool that meets the
// requirements, lies in the window, begins when the data are there, and that
// the stocks it takes are held at every site.
func (m *model) fits(p *promise, w *want) {
	r := p.request
	several := ""
	if !p.single() {
		several = "parts-"
	}
	for i := range p.allotments {
		a := &p.allotments[i]
		pool := m.poolNamed(a.Resource)
		if pool < 0 || !m.meets(r, pool) {
			m.fault(several+"requirements", "%q is on %v, which does not meet its requirements", p.id, a.Resource)
			continue
		}
		if m.pools[pool].early() && (!m.may(r, &r.Parts[i], pool, a.PEs) || a.PEs.Count() != a.NPE) {
			m.fault("requirements", "%q has PEs %v of %v, %d of them, which it may not use", p.id, a.PEs, a.Resource, a.NPE)
		}
		if a.Start < r.Ready || a.Start < m.now || a.End > p.deadline || a.Start != p.start() {
			m.fault("window", "%q is at [%d,%d), not in [%d,%d), or not at once", p.id, a.Start, a.End, r.Ready, p.deadline)
		}
		site := m.pools[pool].site
		if m.config.Staging == engine.StagingBefore && m.moves(r) && !p.late && (w.again == nil || len(w.again.transfers) > 0) && a.Start < m.now.Add(m.arrives(w, site)) {
			m.fault(several+"data", "%q starts at %d, its data are at %s after %d s", p.id, a.Start, a.Resource.Site, m.arrives(w, site))
		}
		m.holds(p, w, pool, several)
	}
	if m.config.Staging == engine.StagingBefore && m.moves(r) && !p.late && p.dataLate() {
		m.fault("data", "%q starts at %d, its data come as %v", p.id, p.start(), p.transfers)
	}
}

// holds judges what a promise holds of the stocks of a site.
func (m *model) holds(p *promise, w *want, pool int, several string) {
	site := m.pools[pool].site
	end := p.start()
	for i := range p.allotments {
		if p.allotments[i].Resource.Site == m.config.Sites[site].Name {
			end = max(end, p.allotments[i].End)
		}
	}
	shared := m.stock(berth.UplinkID()) >= 0
	for _, n := range m.needs(w, site) {
		from := p.start()
		if !shared {
			from = max(m.now, from-berth.Time(n.lead))
		}
		id := m.stocks[n.stock].id
		if t, moved := p.toSite(m.config.Sites[site].Name); id.Kind == berth.StorageKind && moved {
			from = min(from, max(m.now, t.Start))
		}
		if !slices.ContainsFunc(p.held, func(a berth.Allotment) bool {
			return a.Resource == id && int64(a.NPE) >= n.units && a.Start <= from && a.End >= end
		}) {
			m.fault(several+"stocks", "%q holds %v, and not %d of %v throughout [%d,%d)", p.id, p.held, n.units, id, from, end)
		}
	}
}

// admitted judges a promise by quota and eager filter, as if another, whose place
// it takes, was given up.
func (m *model) admitted(p, but *promise) {
	area := int64(0)
	for i := range p.allotments {
		area += berth.Area(p.owed[i], p.length[i])
	}
	if m.withinQuota(p.request.User, but, area) == no {
		m.fault("quota", "%q of %q with %d PE-seconds exceeds the quota", p.id, p.request.User, area)
	}
	if !m.withinAhead(p.request.User, p, p.allotments) {
		m.fault("ahead", "%q of %q at %v is more than may be promised so far ahead", p.id, p.request.User, p.allotments)
	}
	if m.config.Eager == nil {
		return
	}
	for i := range p.allotments {
		pool := m.poolNamed(p.allotments[i].Resource)
		if m.wide(p.owed[i], pool) || m.idle(m.fill(&m.scratch[0], but, false), pool, p.request.Deadline) ||
			m.config.Preempt && m.idle(m.fill(&m.scratch[0], but, true), pool, p.request.Deadline) {
			continue
		}
		m.fault("eager", "%q has %d PEs of %v, which the eager filter denies it", p.id, p.owed[i], p.allotments[i].Resource)
	}
}

// judgeRefused judges a refusal: that there is no room for what could be served.
func (m *model) judgeRefused(c *change.Change, r *berth.Request) {
	if c.Refusal == nil {
		m.fault("complete", "%q is refused for no reason", r.ID)
		return
	}
	reason := c.Refusal.Reason
	if reason == berth.Quota && c.Refusal.Resource == (berth.ResourceID{}) && m.config.Options.Overflow == policy.Discard && m.config.Order == "dpsar" {
		return // more than its user's share of a round
	}
	possible := m.possible(r, r.Deadline)
	switch _, batch := policy.BatchNamed(m.config.Match); {
	case r.IsJob():
		if possible && m.now <= m.lastStart(r) {
			m.fault("refused-job", "job %q is refused with %s; it could run", r.ID, reason)
		}
		return
	case batch && rigid(r):
		m.judgeHopeless(r, reason)
		return
	}
	if len(r.Parts) == 1 {
		impossible := reason.Rank() <= berth.DeadlineMissed.Rank()
		if possible == impossible && m.decidable(wanted(r)) {
			m.fault("reason", "%q is refused with %s; on an empty world it is possible: %v", r.ID, reason, possible)
		}
	}
	m.judgeNoRoom(wanted(r), "complete", string(reason))
	if reason == berth.NoCapacity && m.config.Immediate == engine.ImmediateQueue && r.Ready == r.Arrival && rigid(r) && m.runs(r) {
		m.fault("immediate", "%q for now finds no room and could run as a job, but is refused", r.ID)
	}
}

func rigid(r *berth.Request) bool { return len(r.Parts) == 1 && len(r.Parts[0].Variants) == 1 }

// judgeNoRoom fails if there is room for what was refused.
func (m *model) judgeNoRoom(w *want, invariant, what string) {
	w.admitted = true
	if !m.decidable(w) {
		return
	}
	s := m.search(w, m.fill(&m.scratch[0], w.again, m.config.Preempt))
	if m.config.Eager != nil && m.config.Eager.RefuseAll && slices.Contains(s.idle, false) {
		return // the first pool that is asked may have denied it
	}
	if start, ok := s.first(w.ready); ok {
		if len(w.r.Parts) > 1 {
			invariant += "-parts"
		}
		m.fault(invariant, "%q is refused with %s; there is room from %d on: %v", w.r.ID, what, start, s.told())
	}
}

// told returns where the search has found room.
func (s *search) told() []berth.Allotment {
	var list []berth.Allotment
	for _, o := range s.chosen {
		list = append(list, berth.Allotment{Resource: s.m.pools[o.pool].id, NPE: o.npe, End: berth.Time(o.length), PEs: setOf(o.mask)})
	}
	return list
}

// possible reports whether a request could be served from now on by a deadline if
// everything were free.
func (m *model) possible(r *berth.Request, deadline berth.Time) bool {
	w := wanted(r)
	w.deadline = deadline
	m.scratch[1].clear(m.world, m.now)
	_, ok := m.search(w, &m.scratch[1]).first(max(r.Ready, m.now))
	return ok
}

// lastStart returns when a job with a waiting limit can start at the latest, in the
// fastest pool.
func (m *model) lastStart(r *berth.Request) berth.Time {
	if r.Deadline >= berth.Forever {
		return berth.Forever
	}
	shortest := endless
	for pool := range m.pools {
		shortest = min(shortest, m.scaled(r, r.Parts[0].Variants[0].Duration, pool))
	}
	return max(r.Arrival, r.Deadline-berth.Time(shortest))
}

// judgeHopeless judges what a batch matcher has refused: it was not possible any
// more at its next scheduling point, or its user may not have it.
func (m *model) judgeHopeless(r *berth.Request, reason berth.Reason) {
	if m.config.Unaware || reason == berth.Quota || reason == berth.PolicyRefused {
		return
	}
	next := m.now + 1
	if m.config.Trigger == engine.TriggerOnPeriod {
		next = m.now - m.now%berth.Time(m.config.Period) + berth.Time(m.config.Period)
	}
	w := wanted(r)
	if !m.decidable(w) || m.config.Staging == engine.StagingBefore && m.moves(r) { // what arrives later is not known yet
		return
	}
	m.scratch[1].clear(m.world, m.now)
	if start, ok := m.search(w, &m.scratch[1]).first(max(r.Ready, next)); ok {
		m.fault("complete", "%q is refused with %s by a batch matcher; it could run from %d on", r.ID, reason, start)
	}
}

// runs reports whether the work of a request could run somewhere as a job.
func (m *model) runs(r *berth.Request) bool {
	job := *r
	job.Kind, job.Deadline = berth.KindJob, berth.Forever
	w := wanted(&job)
	return slices.ContainsFunc(m.options(w, 0), func(o option) bool { return o.length < berth.TimeLimit })
}

// judgeWaits judges that a request waits as a job: it wanted to start when it
// arrived, found no room, and can run somewhere.
func (m *model) judgeWaits(c *change.Change, r *berth.Request) {
	switch {
	case m.config.Immediate != engine.ImmediateQueue, r.Ready != r.Arrival, !rigid(r), c.Request == nil:
		m.fault("immediate", "%q waits as a job; it is not a request for now", r.ID)
		return
	case !m.runs(r):
		m.fault("immediate", "%q waits as a job that can run nowhere", r.ID)
	}
	m.judgeNoRoom(wanted(r), "complete", "a place in the queue")
}

// judgePlanned judges that a plan is where the job can run, and no later than
// another that it takes the place of.
func (m *model) judgePlanned(c *change.Change, r *berth.Request) {
	before, planned := m.plans[c.ID]
	if delete(m.plans, c.ID); c.Plan == nil {
		return
	}
	if planned && c.Plan.Start >= before.Start {
		m.fault("plans", "the plan of job %q moves from %d to %d", r.ID, before.Start, c.Plan.Start)
	}
	m.plans[c.ID] = *c.Plan
	pool := m.poolNamed(c.Plan.Resource)
	if pool < 0 || !m.meets(r, pool) || c.Plan.Start <= m.now || c.Plan.NPE != r.Parts[0].Variants[0].NPE {
		m.fault("requirements", "job %q is planned at %+v", r.ID, *c.Plan)
	}
}
