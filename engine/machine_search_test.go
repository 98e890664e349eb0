package engine_test

import (
	mathbits "math/bits"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// want is a question to the search: where all parts of a request can have room.
type want struct {
	r               *berth.Request
	again           *promise // that is placed anew: on its terms, if terms is set
	terms           bool
	admitted        bool   // only what admission lets in
	apart           uint64 // not these PEs
	from            int    // of this pool
	only            int    // only this pool, -1 for any
	ready, deadline berth.Time
}

// wanted asks for a request as it is.
func wanted(r *berth.Request) *want {
	return &want{r: r, only: -1, from: -1, ready: r.Ready, deadline: r.Deadline}
}

// renewed asks for a promise on its terms, in its window.
func (m *model) renewed(p *promise) *want {
	return &want{r: p.request, again: p, terms: true, only: -1, from: -1, ready: p.request.Ready, deadline: p.deadline}
}

// option is one way to have a part: a shape in a pool.
type option struct {
	pool   int
	npe    berth.Count
	length berth.Duration
	mask   uint64
	after  berth.Time // no start before
}

// need is what a request takes of a stock where its parts lie, from a lead before
// its start to its end.
type need struct {
	stock int
	units int64
	lead  berth.Duration
}

// search looks for room by trying every start, pool and shape.
type search struct {
	m       *model
	w       *want
	room    *room
	options [][]option // by part
	needs   [][]need   // by site
	idle    []bool     // by pool: the eager filter lets narrow requests in
	chosen  []option
}

// decidable reports whether the model knows enough to say where there is room.
// It does not know the order in which transfers get their share of an uplink, data
// that took no time, for how long PEs that were held for a transfer are held again, and which of two variants was
// booked that look the same.
func (m *model) decidable(w *want) bool {
	moves := m.moves(w.r)
	switch {
	case moves && m.stock(berth.UplinkID()) >= 0,
		w.terms && w.again.vague,
		moves && w.again != nil && len(w.again.transfers) == 0,
		moves && w.again != nil && m.config.Staging == engine.StagingHold:
		return false
	}
	return true
}

// search prepares a search in a room.
func (m *model) search(w *want, r *room) *search {
	s := &search{m: m, w: w, room: r}
	for site := range m.config.Sites {
		s.needs = append(s.needs, m.needs(w, site))
	}
	for i := range w.r.Parts {
		s.options = append(s.options, m.options(w, i))
	}
	if w.admitted && m.config.Eager != nil {
		for pool := range m.pools {
			s.idle = append(s.idle, m.idle(r, pool, w.deadline))
		}
	}
	return s
}

// options returns the ways to have a part if everything is free.
func (m *model) options(w *want, part int) []option {
	var list []option
	variants := w.r.Parts[part].Variants
	if w.terms {
		variants = []berth.Variant{{NPE: w.again.owed[part], Duration: w.again.standard[part]}}
	}
	for pool := range m.pools {
		if w.only >= 0 && pool != w.only || !m.meets(w.r, pool) {
			continue
		}
		for _, mask := range m.ways(w.r, &w.r.Parts[part], pool) {
			if pool == w.from {
				mask &^= w.apart
			}
			for _, v := range variants {
				length, known := m.lengthOf(w, part, v, pool)
				if !known || int(v.NPE) > mathbits.OnesCount64(mask) || !m.permits(w.r, v.NPE, length, pool) {
					continue
				}
				o := option{pool: pool, npe: v.NPE, length: length, mask: mask, after: max(m.now, w.ready)}
				if m.config.Staging == engine.StagingBefore {
					o.after = max(o.after, m.now.Add(m.arrives(w, m.pools[pool].site)))
				}
				list = append(list, o)
			}
		}
	}
	return list
}

// lengthOf returns how long a variant lasts in a pool, with what its promise was
// extended by. An extended promise is looked for only where the PEs are as fast
// as those that it has, and one that stays in its pool keeps its length.
func (m *model) lengthOf(w *want, part int, v berth.Variant, pool int) (length berth.Duration, known bool) {
	length = m.scaled(w.r, v.Duration, pool)
	if p := w.again; w.terms && (p.extended || w.only >= 0) {
		home := m.poolNamed(p.allotments[part].Resource)
		return p.length[part], m.scaled(w.r, v.Duration, home) == length
	}
	if m.config.Staging == engine.StagingHold {
		length += m.arrives(w, m.pools[pool].site)
	}
	return length, true
}

// arrives returns how long from now on the data of a request take to a site.
func (m *model) arrives(w *want, site int) berth.Duration {
	switch p := w.again; {
	case !m.moves(w.r):
		return 0
	case p != nil && m.dataAt(p, site, w.r):
		t, _ := p.toSite(m.config.Sites[site].Name)
		return max(0, t.End.Sub(m.now))
	}
	return m.transfer(site, m.forecasts[m.config.Sites[site].Name], w.r, m.now)
}

// dataAt reports whether the data of a promise are at a site, or on their way.
func (m *model) dataAt(p *promise, site int, r *berth.Request) bool {
	t, found := p.toSite(m.config.Sites[site].Name)
	return found && t.Start <= m.now && p.request.StorageMB == r.StorageMB
}

// needs returns what a request takes of the stocks of a site that serves it.
func (m *model) needs(w *want, site int) []need {
	var list []need
	of := &m.config.Sites[site]
	if w.r.IsJob() {
		return nil
	}
	if w.r.Licences > 0 {
		if row := program(of, w.r); row >= 0 {
			if i := m.stock(berth.LicenceID(of.Name, &of.Software[row])); i >= 0 {
				list = append(list, need{stock: i, units: m.stocks[i].units(int64(w.r.Licences))})
			}
		}
	}
	if i := m.stock(berth.StorageID(of.Name)); i >= 0 && w.r.StorageMB > 0 {
		n := need{stock: i, units: m.stocks[i].units(w.r.StorageMB)}
		if m.config.Staging == engine.StagingBefore {
			n.lead = m.arrives(w, site)
		}
		if w.again != nil && m.dataAt(w.again, site, w.r) {
			n.lead = endless // they are there, and stay there
		}
		list = append(list, n)
	}
	return list
}

// first returns the earliest start from a time on at which all parts find room; ok
// is false if there is none within what the model sees.
func (s *search) first(from berth.Time) (start berth.Time, ok bool) {
	for start = max(from, s.m.now); start < s.m.now+span; start++ {
		if start >= s.w.deadline {
			return 0, false
		}
		if s.at(start) {
			return start, true
		}
	}
	return 0, false
}

// at reports whether all parts find room together from a start on.
func (s *search) at(start berth.Time) bool {
	s.chosen = s.chosen[:0]
	return s.choose(0, start)
}

// choose tries every way to have a part and those behind it.
func (s *search) choose(part int, start berth.Time) bool {
	if part == len(s.options) {
		apart := slices.Clone(s.chosen)
		if s.endTogether(start) && s.together(start) && s.stocked(start) && s.admits(start) {
			return true
		}
		s.chosen = append(s.chosen[:0], apart...)
		return false
	}
	for _, o := range s.options[part] {
		end := start.Add(o.length)
		if start < o.after || end > s.w.deadline || end >= s.m.now+span {
			continue
		}
		if s.room.free(s.m.world, o.pool, o.mask, start, end) < int32(o.npe) {
			continue
		}
		s.chosen = append(s.chosen, o)
		if s.choose(part+1, start) {
			return true
		}
		s.chosen = s.chosen[:part]
	}
	return false
}

// endTogether has parts at one managed site last as long as the longest of them; false if one of them cannot.
func (s *search) endTogether(start berth.Time) bool {
	for i := range s.chosen {
		o := &s.chosen[i]
		site, length := s.m.pools[o.pool].site, o.length
		for k := range s.chosen {
			if s.m.pools[s.chosen[k].pool].site == site && s.m.config.Sites[site].Managed {
				length = max(length, s.chosen[k].length)
			}
		}
		if length == o.length {
			continue
		}
		o.length = length
		if end := start.Add(length); s.room.free(s.m.world, o.pool, o.mask, start, end) < int32(o.npe) || !s.m.permits(s.w.r, o.npe, length, o.pool) {
			return false
		}
	}
	return true
}

// together reports whether the parts have room beside each other. Where PEs have
// numbers every set of parts in one pool must find as many PEs as it wants in
// all among those that any of them may have (Hall's condition); elsewhere there
// must be enough at every second.
func (s *search) together(start berth.Time) bool {
	if len(s.chosen) == 1 {
		return true
	}
	for set := 1; set < 1<<len(s.chosen); set++ {
		first := mathbits.TrailingZeros(uint(set))
		pool := s.chosen[first].pool
		wanted, pes, shortest := berth.Count(0), uint64(0), endless
		for i := range s.chosen {
			o := &s.chosen[i]
			if set&(1<<i) == 0 {
				continue
			}
			if o.pool != pool {
				wanted = 0
				break
			}
			wanted += o.npe
			if s.m.pools[pool].early() {
				pes |= s.room.freePEs(s.m.world, pool, start, start.Add(o.length)) & o.mask
			}
			shortest = min(shortest, o.length)
		}
		switch {
		case wanted == 0:
		case s.m.pools[pool].early():
			if mathbits.OnesCount64(pes) < int(wanted) {
				return false
			}
		case s.room.free(s.m.world, pool, 0, start, start.Add(shortest)) < int32(wanted):
			return false
		}
	}
	return true
}

// stocked reports whether every site has what is taken of its stocks.
func (s *search) stocked(start berth.Time) bool {
	end := start
	for i := range s.chosen {
		end = max(end, start.Add(s.chosen[i].length))
	}
	done := uint64(0)
	for i := range s.chosen {
		site := s.m.pools[s.chosen[i].pool].site
		if done&(1<<site) != 0 {
			continue
		}
		done |= 1 << site
		for _, n := range s.needs[site] {
			from := max(s.m.now, start-berth.Time(n.lead))
			if s.room.stockFree(s.m.world, n.stock, from, end) < n.units {
				return false
			}
		}
	}
	return true
}

// admits reports whether admission lets in what is chosen.
func (s *search) admits(start berth.Time) bool {
	if !s.w.admitted {
		return true
	}
	area := int64(0)
	if len(s.m.config.Ahead) > 0 {
		list := make([]berth.Allotment, len(s.chosen))
		for i, o := range s.chosen {
			list[i] = berth.Allotment{Resource: s.m.pools[o.pool].id, Start: start, End: start.Add(o.length), NPE: o.npe}
		}
		if !s.m.withinAhead(s.w.r.User, s.w.again, list) {
			return false
		}
	}
	for i := range s.chosen {
		o := &s.chosen[i]
		area += berth.Area(o.npe, o.length)
		if s.idle != nil && !s.idle[o.pool] && !s.m.wide(o.npe, o.pool) {
			return false
		}
	}
	return s.m.withinQuota(s.w.r.User, s.w.again, area) == yes
}

// withinAhead reports whether a user may be promised PEs so far ahead beside what everyone has been, if a promise is given up.
func (m *model) withinAhead(user string, but *promise, list []berth.Allotment) bool {
	priority := 0
	for i := range m.config.Users {
		if own := m.config.Users[i].Priority; i == 0 || own < priority {
			priority = own // the lowest, for those who are not listed
		}
	}
	for i := range m.config.Users {
		if m.config.Users[i].ID == user {
			priority = m.config.Users[i].Priority
		}
	}
	for i := range list {
		size := m.pools[m.poolNamed(list[i].Resource)].pool.PEs
		for at := max(list[i].Start, m.now); at < list[i].End; at++ {
			most, n, bound := size, berth.Count(0), false
			for _, row := range m.config.Ahead {
				if at >= m.now.Add(row.Beyond) && (row.Below == nil || priority < *row.Below) {
					most, bound = min(most, berth.Count((int64(size)*int64(row.Share)+999)/1000)), true
				}
			}
			if !bound {
				continue
			}
			count := func(a *berth.Allotment) {
				if a.Resource == list[i].Resource && a.Start <= at && at < a.End {
					n += a.NPE
				}
			}
			for k := range list {
				count(&list[k])
			}
			for _, p := range m.live {
				for k := range p.allotments {
					if p != but && !p.job && !p.over[k] {
						count(&p.allotments[k])
					}
				}
			}
			if n > most {
				return false
			}
		}
	}
	return true
}

// answer is that of a rule: perhaps is where the rule can be read in two ways.
type answer int

const (
	no answer = iota
	perhaps
	yes
)

// limitIn returns a limit of a configuration that limits everyone alike, 0 for none.
func limitIn(c *engine.Config, name policy.LimitName) int64 {
	for _, l := range c.Limits {
		if l.Name == name {
			return l.Value
		}
	}
	return 0
}

// owns makes a request one of a user, whose account and whose QOS have their name, so that limits of all three
// come to the same.
func owns(r *berth.Request, user string) { r.User, r.Account, r.QOS = user, user, user }

// withinQuota reports whether a user may have that many PE-seconds more, if a
// promise of theirs is given up. A promise that lacks PEs can count as it is or
// as it was promised.
func (m *model) withinQuota(user string, but *promise, area int64) answer {
	mostLive, mostArea := limitIn(m.config, policy.LimitActive), limitIn(m.config, policy.LimitPESeconds)
	budget, paid := limitIn(m.config, policy.LimitBudget), m.paid[user]
	if user == "" {
		return yes
	}
	count, has, owed := 0, area, area
	for _, p := range m.live {
		if p == but || p.job || p.request.User != user {
			continue
		}
		count++
		for i := range p.allotments {
			a := &p.allotments[i]
			has += berth.Area(a.NPE, a.End.Sub(a.Start))
			owed += berth.Area(p.owed[i], a.End.Sub(a.Start))
		}
	}
	switch {
	case mostLive > 0 && int64(count) >= mostLive, mostArea > 0 && has > mostArea, budget > 0 && has+paid > budget:
		return no
	case mostArea > 0 && owed > mostArea, budget > 0 && owed+paid > budget:
		return perhaps
	}
	return yes
}

// wide reports whether the eager filter lets in that many PEs whatever is booked.
func (m *model) wide(npe berth.Count, pool int) bool {
	return int64(npe)*1000 >= int64(m.config.Eager.K1)*int64(m.pools[pool].pool.PEs)
}

// idle reports whether the eager filter lets in everything in a pool, because so
// little is booked until a deadline.
func (m *model) idle(r *room, pool int, deadline berth.Time) bool {
	booked, total := int64(0), int64(0)
	for i := range m.pools {
		if i == pool || m.config.Eager.Grid {
			booked += r.booked(m.world, i, deadline)
			total += berth.Area(m.pools[i].pool.PEs, deadline.Sub(m.now))
		}
	}
	return booked*1000 <= total*int64(m.config.Eager.K2)
}
