package place

import (
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// share is how many PEs of a pool are promised to a holder over time, and may be.
type share struct {
	most  berth.Count
	steps *state.Promised
}

// shares are those of all holders of a request in a pool: what is promised next is within each of them.
type shares []share

// inPool is a holder in a pool.
type inPool struct {
	of   state.Holder
	pool *pool
}

// shareOf returns how many PEs of a pool a holder may be promised at once: a part of the
// pool, and for a partition of its PEs there.
func (x *search) shareOf(p *pool, a *allowance) (most berth.Count, limited bool) {
	size := p.config.PEs
	if len(a.ahead) > 0 {
		return size, true
	}
	if a.of.Partition() != "" {
		if partition := x.partition(p); partition != nil && !partition.PEs.Empty() {
			size = partition.PEs.Count()
		}
	}
	return a.ShareOf(size)
}

// shared yields the holders of the request that have a share of a pool, and what is promised
// to each there.
func (x *search) shared(p *pool) iter.Seq2[*allowance, share] {
	return func(yield func(*allowance, share) bool) {
		for i := range x.allowed {
			a := &x.allowed[i]
			if !x.in(p, a) || x.r.IsJob() {
				continue
			}
			most, limited := x.shareOf(p, a)
			if limited && !yield(a, x.shareBy(p, a, most)) {
				return
			}
		}
	}
}

func (x *search) shareBy(p *pool, a *allowance, most berth.Count) share {
	at := inPool{a.of, p}
	if s, known := x.placed[at]; known {
		return s
	}
	s := x.used(a.of, x.again, p.id, most)
	if x.placed != nil || len(a.ahead) > 0 {
		s.steps = s.steps.Clone() // for what is added to it
	}
	x.reserve(s, a)
	if x.placed != nil {
		x.placed[at] = s
	}
	return s
}

// reserve counts as used what of a share may not be promised so far ahead.
func (x *search) reserve(s share, a *allowance) {
	left := s.most
	for i := range a.ahead {
		row := &a.ahead[i]
		if from, now := x.state.Now().Add(row.Beyond), row.Of(s.most); now < left && from < berth.TimeLimit {
			s.steps.Add(from, berth.TimeLimit, left-now)
			left = now
		}
	}
}

// sharesIn returns the shares of a pool that are limits.
func (x *search) sharesIn(p *pool) shares { return x.appendShares(nil, p) }

// appendShares is sharesIn, behind a list of the caller's.
func (x *search) appendShares(list shares, p *pool) shares {
	for _, s := range x.shared(p) {
		list = append(list, s)
	}
	return list
}

// use adds what was placed before the next search and is on no record.
func (x *search) use(a *berth.Allotment) {
	p := x.poolOf(a.Resource)
	for _, s := range x.shared(p) {
		s.steps.Add(a.Start, a.End, a.NPE)
	}
}

// Peak returns the most PEs of a pool that are promised to a holder at any one time.
func (f *Finder) Peak(of state.Holder, pool berth.ResourceID) berth.Count {
	return f.used(of, nil, pool, 0).peak(f.state.Now(), berth.Forever)
}

// used returns what is promised to a holder in a pool, but for one reservation.
func (f *Finder) used(of state.Holder, but *state.Entry, pool berth.ResourceID, most berth.Count) share {
	s := share{most: most, steps: f.state.Promised(of, pool)}
	if but == nil {
		return s
	}
	return f.without(s, of, but, pool)
}

// without returns a share without what a reservation of its holder has in a pool.
func (f *Finder) without(s share, of state.Holder, but *state.Entry, pool berth.ResourceID) share {
	if but.Request().IsJob() || !f.state.Holds(of, but) {
		return s
	}
	less := s
	for part := range but.Parts() {
		if a := but.Part(part); a.Resource == pool && a.NPE > 0 && a.Start < a.End && but.Holds(part) && f.state.Has(of, but, part) {
			if less.steps == s.steps {
				less.steps = s.steps.Clone()
			}
			less.steps.Add(a.Start, a.End, -a.NPE)
		}
	}
	return less
}

// from returns the first start from a time on at which the share leaves n PEs for a
// duration.
func (s share) from(start berth.Time, n berth.Count, d berth.Duration) berth.Time {
	return s.steps.From(start, s.most-n, d)
}

// drops returns when less is promised than before, when something may fit that did not.
func (s share) drops() (times []berth.Time) {
	was := berth.Count(0)
	for step := range s.steps.Steps(-berth.Forever) {
		if step.NPE < was {
			times = append(times, step.At)
		}
		was = step.NPE
	}
	return times
}

// left returns the most PEs that the shares leave throughout an interval; limited is false if there are none.
func (list shares) left(start, end berth.Time) (n berth.Count, limited bool) {
	for i := range list {
		if left := list[i].most - list[i].peak(start, end); i == 0 || left < n {
			n = left
		}
	}
	return n, len(list) > 0
}

// takesFor returns what a variant, scaled already, would take in a pool beside PEs: the
// stocks, which is what it is given, with a part of the shares, and of the budgets of months, behind.
func (x *search) takesFor(p *pool, takes []take, list shares, v berth.Variant) []take {
	for i := range list {
		if !list[i].steps.Empty() {
			takes = append(takes, take{share: &list[i], n: v.NPE})
		}
	}
	if x.hasMonths(p) {
		takes = append(takes, take{budgets: p, area: x.price(p, v.Area())})
	}
	return takes
}

// hasShares reports whether a holder of the request has a share of pools.
func (x *search) hasShares() bool {
	for i := range x.allowed {
		if _, limited := x.allowed[i].By(policy.ByShare); limited || len(x.allowed[i].ahead) > 0 {
			return true
		}
	}
	return false
}

// sharedFrom returns the first start from a time on at which the shares leave
// room for all of some allotments, which begin together; false if there is none by the
// deadline.
func (x *search) sharedFrom(allotments []berth.Allotment, start berth.Time) (berth.Time, bool) {
	if !x.hasShares() {
		return start, true
	}
	var seen []berth.ResourceID
	for again := true; again; {
		again, seen = false, seen[:0]
		for i := range allotments {
			id := allotments[i].Resource
			if slices.Contains(seen, id) {
				continue
			}
			seen = append(seen, id)
			at, ok := x.sharesIn(x.poolOf(id)).together(allotments, id, start)
			if x.bound = x.bound || !ok || at > start; !ok {
				return 0, false
			}
			if at > start {
				start, again = at, true
			}
		}
	}
	return start, lastEnd(allotments).Add(start.Sub(allotments[0].Start)) <= x.deadline
}

// together is from for those allotments that are of one pool, by all shares.
func (list shares) together(allotments []berth.Allotment, id berth.ResourceID, start berth.Time) (berth.Time, bool) {
	var blocks []berth.Variant // the longest first: in the k-th stretch the first of them are there
	for i := range allotments {
		if a := &allotments[i]; a.Resource == id {
			blocks = append(blocks, berth.Variant{NPE: a.NPE, Duration: a.End.Sub(a.Start)})
		}
	}
	slices.SortFunc(blocks, func(a, b berth.Variant) int { return int(b.Duration - a.Duration) })
	n := berth.Count(0)
	for i := range blocks {
		n += blocks[i].NPE
		blocks[i].NPE = n // needed until the end of this one
	}
	if slices.ContainsFunc(list, func(s share) bool { return n > s.most }) {
		return 0, false
	}
	for again := true; again; {
		again = false
		for _, s := range list {
			for i := range blocks {
				if at := s.from(start, blocks[i].NPE, blocks[i].Duration); at > start {
					start, again = at, true
				}
			}
		}
	}
	return start, true
}

// beside returns the most PEs of a pool that are used at once if some allotments, which
// begin together, come to what is used, and when that is.
func (s share) beside(allotments []berth.Allotment, id berth.ResourceID) (most berth.Count, when berth.Time) {
	at := func(from, to berth.Time, used berth.Count) {
		for i := range allotments {
			if a := &allotments[i]; a.Resource == id && a.Start < to && from < a.End {
				used += a.NPE
			}
		}
		if used > most {
			most, when = used, from
		}
	}
	start, end := allotments[0].Start, lastEnd(allotments)
	at(start, start+1, s.peak(start, start+1))
	for step := range s.steps.Steps(start) {
		if step.At >= end {
			break
		}
		if step.At > start {
			at(step.At, step.At+1, step.NPE)
		}
	}
	return most, when
}

// peak returns the most PEs that are used at once in an interval.
func (s share) peak(from, to berth.Time) berth.Count {
	most, _ := s.peakAt(from, to)
	return most
}

// peakAt is peak, and when that is.
func (s share) peakAt(from, to berth.Time) (most berth.Count, when berth.Time) {
	return s.steps.Peak(from, to)
}
