package engine_test

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// judgeNamed judges that PEs got names as they should: those of a promise that has not started,
// where it is, as many as it has.
func (m *model) judgeNamed(c *change.Change, p *promise) {
	if p.state == berth.Active || p.state == berth.Held || p.transit || p.job || len(c.Moved) != len(p.allotments) {
		m.fault("names", "%q, %s, gets names as %v", p.id, p.state, c.Moved)
		return
	}
	fresh := false
	for i := range c.Moved {
		was, is := p.allotments[i], c.Moved[i]
		pool := m.poolNamed(is.Resource)
		fresh = fresh || !was.PEs.Equal(is.PEs)
		ahead := m.pools[pool].pool.NameAhead
		if was.PEs = is.PEs; was.Resource != is.Resource || was.Start != is.Start || was.End != is.End || was.NPE != is.NPE {
			m.fault("names", "%q, %v, gets names as %v", p.id, p.allotments, c.Moved)
		}
		if !m.pools[pool].early() && (ahead == 0) != is.PEs.Empty() && is.NPE > 0 || is.PEs.Count() != is.NPE && ahead > 0 {
			m.fault("names", "%q, of a pool that names %d s ahead, gets PEs %v for its %d", p.id, ahead, is.PEs, is.NPE)
		}
	}
	if !fresh {
		m.fault("names", "%q gets the names that it has, %v", p.id, c.Moved)
	}
}

// judgeNames judges that the promises whose time has come have names, the others none unless they had, and that
// no name is given twice at a time, nor that of what is out of use or runs longer when its
// promise starts.
func (m *model) judgeNames(e *engine.Engine) {
	next, some := e.Next()
	settled := !some || next > m.now // else names may be given next
	for _, p := range m.live {
		for i := range p.allotments {
			a := &p.allotments[i]
			pool := m.poolNamed(a.Resource)
			if m.pools[pool].early() || p.over[i] || p.state == berth.Active {
				continue
			}
			named, due := !a.PEs.Empty(), m.namedBy(p) <= m.now && m.pools[pool].pool.NameAhead > 0 && a.NPE > 0
			if named && (!due && !p.named || a.PEs.Count() != a.NPE) || !named && due && settled {
				m.fault("names", "%q, %s from %d on, has names %v at %d for its %d PEs", p.id, p.state, p.start(), a.PEs, m.now, a.NPE)
			}
			if a.PEs.Empty() {
				continue
			}
			from, mine := max(p.start(), m.now), bits(a.PEs)
			if gone := m.outages.at(pool, from) & mine; gone != 0 {
				m.fault("names", "%q is to start at %d on PEs %v, and %v of them are out of use then", p.id, from, a.PEs, setOf(gone))
			}
			for _, x := range m.live {
				for k := range x.allotments {
					b := &x.allotments[k]
					same := x == p && k == i
					if same || x.over[k] || b.Resource != a.Resource || bits(b.PEs)&mine == 0 || max(b.Start, m.now) >= a.End || b.End <= from {
						continue
					}
					m.fault("names", "%q, %v, and %q, %s, %v, have PEs in common", p.id, *a, x.id, x.state, *b)
				}
			}
		}
	}
}

// namedBy returns when a promise gets names at the latest: as early as the pool of any of its
// parts wants that, once it is confirmed.
func (m *model) namedBy(p *promise) berth.Time {
	if p.state == berth.Held || p.job {
		return berth.Forever
	}
	ahead := berth.Duration(0)
	for i := range p.allotments {
		if pool := &m.pools[m.poolNamed(p.allotments[i].Resource)]; !pool.early() && p.allotments[i].NPE > 0 {
			ahead = max(ahead, pool.pool.NameAhead)
		}
	}
	return p.start().Add(-ahead)
}

// named returns how often a promise got names: each is a generation of its own, which its site
// sees only the last of.
func (o *occasion) named(id string) (n uint64) {
	for i := range o.changes {
		if c := &o.changes[i]; c.Kind == change.Named && c.ID == id {
			n++
		}
	}
	return n
}

// judgeNoOtherNames judges that a promise keeps names that its site does not give it because
// there are none instead: fewer than it has are neither taken when it starts nor refused.
func (m *model) judgeNoOtherNames(w *want, p *promise) {
	from := max(p.start(), m.now)
	for i := range p.allotments {
		a := &p.allotments[i]
		if m.poolNamed(a.Resource) != w.from {
			continue
		}
		free := m.pools[w.from].all &^ w.apart &^ m.outages.during(w.from, from, a.End)
		for _, x := range m.live {
			for k := range x.allotments {
				// What starts later gives way.
				if b := &x.allotments[k]; b.Resource == a.Resource && !x.over[k] && (x != p || k < i) && (x == p || x.state == berth.Active || x.start() <= from) && b.End > from {
					free &^= bits(b.PEs)
				}
			}
		}
		if setOf(free).Count() < a.NPE {
			return
		}
	}
	m.fault("complete-again", "%q keeps the names %v, and could have others than %v", p.id, p.allotments, setOf(w.apart))
}
