package state

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
)

// Promised is how many PEs of one pool are promised to one holder over time. Once it
// was asked for it is kept with every change, because each request of a holder that has a
// share of a pool is placed beside all that it has. The zero value is nothing, and so is nil to those who look.
//
// The steps are kept in stretches of at most mostSteps, each with what is added to all of its steps and the most of them. So a change writes two
// stretches and a number in each between them, and a search passes stretches in which there is room. Cost of a change: O(mostSteps + stretches).
type Promised struct {
	stretches []stretch // ascending, none empty
	near      int       // the stretch in which a step was looked for last: the next one is there often, or just behind
}

// PromisedFrom is how many PEs are promised from a time on.
type PromisedFrom struct {
	At  berth.Time
	NPE berth.Count
}

// stretch is some steps of a Promised, one behind the other.
type stretch struct {
	first berth.Time     // of the first step
	base  berth.Count    // added to each step
	most  berth.Count    // of the steps, without base
	steps []PromisedFrom // never empty
}

// mostSteps bounds the steps of a stretch.
const mostSteps = 32

// stepPlace is a step of a Promised: before the first, stretch and step are -1.
type stepPlace struct{ stretch, step int }

// promisedOf returns it with such steps, which ascend; each differs from the one before it.
func promisedOf(steps []PromisedFrom) *Promised {
	p := new(Promised)
	for part := range slices.Chunk(steps, mostSteps/2) {
		s := stretch{steps: slices.Clone(part)}
		s.sum()
		p.stretches = append(p.stretches, s)
	}
	return p
}

// sum works out what a stretch keeps of its steps.
func (s *stretch) sum() {
	s.first, s.most = s.steps[0].At, s.steps[0].NPE
	for i := range s.steps {
		s.most = max(s.most, s.steps[i].NPE)
	}
}

// Empty reports whether nothing is promised.
func (p *Promised) Empty() bool { return p == nil || len(p.stretches) == 0 }

// Clone returns a copy that may be written. Cost: O(steps).
func (p *Promised) Clone() *Promised {
	if p == nil {
		return new(Promised)
	}
	c := &Promised{slices.Clone(p.stretches), p.near}
	for i := range c.stretches {
		c.stretches[i].steps = slices.Clone(c.stretches[i].steps)
	}
	return c
}

// at returns the step in force at a time.
func (p *Promised) at(t berth.Time) stepPlace {
	if p == nil {
		return stepPlace{-1, -1}
	}
	of := p.stretchAt(t)
	if of < 0 {
		return stepPlace{-1, -1}
	}
	steps := p.stretches[of].steps
	lo, hi := 1, len(steps)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); steps[mid].At <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return stepPlace{of, lo - 1}
}

// stretchAt returns the last stretch that begins by a time, -1 if none does.
func (p *Promised) stretchAt(t berth.Time) int {
	if of, n := p.near, len(p.stretches); of < n && p.stretches[of].first <= t {
		for end := min(of+4, n-1); of < end && p.stretches[of+1].first <= t; {
			of++
		}
		if of+1 == n || p.stretches[of+1].first > t {
			p.near = of
			return of
		}
	}
	lo, hi := 0, len(p.stretches) // it is in [lo-1, hi-1]
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); p.stretches[mid].first <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	p.near = max(0, lo-1)
	return lo - 1
}

// value returns what is promised from a step on.
func (p *Promised) value(at stepPlace) berth.Count {
	if at.stretch < 0 {
		return 0
	}
	s := &p.stretches[at.stretch]
	return s.base + s.steps[at.step].NPE
}

// At returns how many PEs are promised at a time. Cost: O(log steps).
func (p *Promised) At(t berth.Time) berth.Count { return p.value(p.at(t)) }

// Steps returns the steps from the one in force at a time on, or from the first.
func (p *Promised) Steps(from berth.Time) iter.Seq[PromisedFrom] {
	return func(yield func(PromisedFrom) bool) {
		if p.Empty() {
			return
		}
		at := p.at(from)
		for i, step := max(0, at.stretch), max(0, at.step); i < len(p.stretches); i, step = i+1, 0 {
			s := &p.stretches[i]
			for _, one := range s.steps[step:] {
				if !yield(PromisedFrom{one.At, s.base + one.NPE}) {
					return
				}
			}
		}
	}
}

// From returns the first time from a start on from which no more than some PEs are promised for a duration. Cost: O(log steps), and
// the steps of the stretches in which there are more, and the stretches until then.
func (p *Promised) From(start berth.Time, most berth.Count, d berth.Duration) berth.Time {
	if p.Empty() {
		return start
	}
	at, over := p.at(start), false // over: more are promised in the step that was looked at last
	for i, step := max(0, at.stretch), max(0, at.step); i < len(p.stretches); i, step = i+1, 0 {
		s := &p.stretches[i]
		if over {
			start, over = s.first, false
		}
		if s.first >= start.Add(d) {
			return start
		}
		if s.base+s.most <= most {
			continue
		}
		for _, one := range s.steps[step:] {
			if over {
				start = one.At
			}
			if one.At >= start.Add(d) {
				return start
			}
			over = s.base+one.NPE > most
		}
	}
	return start
}

// Peak returns the most PEs that are promised at once in an interval, and from when on; from its start if there is nothing.
func (p *Promised) Peak(from, to berth.Time) (most berth.Count, when berth.Time) {
	when = from
	if p.Empty() {
		return 0, when
	}
	at := p.at(from)
	for i, step := max(0, at.stretch), max(0, at.step); i < len(p.stretches) && p.stretches[i].first < to; i, step = i+1, 0 {
		s := &p.stretches[i]
		if s.base+s.most <= most {
			continue
		}
		for _, one := range s.steps[step:] {
			if one.At >= to {
				return most, when
			}
			if n := s.base + one.NPE; n > most {
				most, when = n, max(from, one.At)
			}
		}
	}
	return most, when
}

// cut makes a step begin at a time, and returns its place.
func (p *Promised) cut(t berth.Time) stepPlace {
	at := p.at(t)
	if at.stretch < 0 {
		if len(p.stretches) == 0 {
			p.stretches = append(p.stretches, stretch{first: t, steps: make([]PromisedFrom, 1, mostSteps)})
			p.stretches[0].steps[0].At = t
			return stepPlace{0, 0}
		}
		at = stepPlace{0, -1}
	}
	s, npe := &p.stretches[at.stretch], -p.stretches[at.stretch].base // before the first nothing is
	if at.step >= 0 {
		if s.steps[at.step].At == t {
			return at
		}
		npe = s.steps[at.step].NPE
	}
	at.step++
	s.steps = slices.Insert(s.steps, at.step, PromisedFrom{t, npe})
	s.first, s.most = s.steps[0].At, max(s.most, npe)
	if len(s.steps) < mostSteps {
		return at
	}
	behind := stretch{base: s.base, steps: append(make([]PromisedFrom, 0, mostSteps), s.steps[mostSteps/2:]...)}
	s.steps = s.steps[:mostSteps/2]
	s.sum()
	behind.sum()
	p.stretches = slices.Insert(p.stretches, at.stretch+1, behind)
	return p.parted(at)
}

// parted returns where a step is that may have been in the half of its stretch that cut took away.
func (p *Promised) parted(at stepPlace) stepPlace {
	if at.step >= len(p.stretches[at.stretch].steps) {
		return stepPlace{at.stretch + 1, at.step - mostSteps/2}
	}
	return at
}

// join drops a step if it changes nothing.
func (p *Promised) join(at stepPlace) {
	s, was := &p.stretches[at.stretch], berth.Count(0)
	switch {
	case at.step > 0:
		was = s.base + s.steps[at.step-1].NPE
	case at.stretch > 0:
		before := &p.stretches[at.stretch-1]
		was = before.base + before.steps[len(before.steps)-1].NPE
	}
	gone := s.steps[at.step].NPE
	if s.base+gone != was {
		return
	}
	if s.steps = slices.Delete(s.steps, at.step, at.step+1); len(s.steps) == 0 {
		p.stretches = slices.Delete(p.stretches, at.stretch, at.stretch+1)
		return
	}
	if s.first = s.steps[0].At; at.step == 0 && gone == s.most {
		s.sum() // another step before it has as many
	}
	if at.stretch+1 == len(p.stretches) || len(s.steps)+len(p.stretches[at.stretch+1].steps) > mostSteps/2 {
		return
	}
	next := &p.stretches[at.stretch+1]
	for _, one := range next.steps {
		s.steps = append(s.steps, PromisedFrom{one.At, one.NPE + next.base - s.base})
	}
	s.sum()
	p.stretches = slices.Delete(p.stretches, at.stretch+1, at.stretch+2)
}

// Add promises n PEs more throughout [from, to), which is not empty, or fewer if n is negative.
func (p *Promised) Add(from, to berth.Time, n berth.Count) {
	first := p.cut(from)
	end := p.cut(to) // behind first, which it leaves at its place or has parted
	first = p.parted(first)
	for i, lo := first.stretch, first.step; i <= end.stretch; i, lo = i+1, 0 {
		s, hi := &p.stretches[i], len(p.stretches[i].steps)
		if i == end.stretch {
			hi = end.step
		}
		if lo == 0 && hi == len(s.steps) {
			s.base += n
			continue
		}
		s.add(lo, hi, n)
	}
	p.join(end)
	p.join(first)
}

// add promises n PEs more in some steps of a stretch. The others are looked at only if those had the most and have fewer now.
func (s *stretch) add(lo, hi int, n berth.Count) {
	steps := s.steps[lo:hi]
	if len(steps) == 0 {
		return
	}
	most := steps[0].NPE
	for k := range steps {
		most = max(most, steps[k].NPE)
		steps[k].NPE += n
	}
	switch {
	case n >= 0:
		s.most = max(s.most, most+n)
	case most == s.most:
		s.sum()
	}
}

// check reports a stretch that is not as it has to be.
func (p *Promised) check() error {
	last := -berth.Forever
	for i := range p.stretches {
		is := &p.stretches[i]
		if n := len(is.steps); n == 0 || n >= mostSteps {
			return fmt.Errorf("stretch %d of %d has %d steps", i, len(p.stretches), n)
		}
		want := *is
		if want.sum(); is.first != want.first || is.most != want.most {
			return fmt.Errorf("stretch %d begins at %d with at most %d PEs; its steps, at %d with %d", i, is.first, is.most, want.first, want.most)
		}
		for _, one := range is.steps {
			if one.At <= last {
				return fmt.Errorf("a step at %d is behind one at %d", one.At, last)
			}
			last = one.At
		}
	}
	return nil
}

// hold counts the PEs that a part of a reservation holds, or takes them out, if they are
// counted at all.
func (l *ledger) hold(e *Entry, holders []counted, part int, sign berth.Count) {
	if !l.shares || !e.promises(part) {
		return
	}
	a := &e.r.Allotments[part]
	for i := range holders {
		h := &holders[i]
		if p, counted := h.has.promisedIn(a.Resource); counted && l.holding.has(h.of, e.r.Request, a.Resource) {
			p.Add(a.Start, a.End, sign*a.NPE)
		}
	}
}

// promisedIn returns what is promised in a pool; counted is false if that was never asked for.
func (t *tally) promisedIn(pool berth.ResourceID) (p *Promised, counted bool) {
	if t == nil || t.promised == nil {
		return nil, false
	}
	if t.lately.has != nil && t.lately.pool == pool {
		return t.lately.has, true
	}
	if p, counted = t.promised[pool]; counted {
		t.lately.pool, t.lately.has = pool, p
	}
	return p, counted
}

// promises reports whether a part holds PEs that are promised to its holders: those of
// running jobs are not.
func (e *Entry) promises(part int) bool {
	a := &e.r.Allotments[part]
	return !e.r.Request.IsJob() && a.Start < a.End && e.Holds(part)
}

// count adds a reservation to what its holders have, or takes it out.
func (l *ledger) count(e *Entry, sign int) {
	holders := l.holdersOf(e)
	l.enlist(e, holders, sign)
	l.useBy(e, holders, int64(sign))
	for part := range e.r.Allotments {
		l.hold(e, holders, part, berth.Count(sign))
	}
}

// Promised returns what is promised to a holder in a pool; nothing where there are no
// limits. What is over may be there until its reservation has ended. It must not be
// written, and is valid until the next change. Cost: O(n log n) for the n reservations
// of the holder when it is asked for the first time, and O(1) from then on.
func (s *State) Promised(h Holder, pool berth.ResourceID) *Promised {
	l := &s.ledger
	t := l.has(h)
	if t == nil || !l.limited {
		return nil
	}
	p, counted := t.promisedIn(pool)
	if !counted {
		if t.promised == nil {
			t.promised, l.shares = map[berth.ResourceID]*Promised{}, true
		}
		p = promisedOf(l.promisedNow(h, pool))
		t.promised[pool] = p
	}
	return p
}

// promisedNow counts what is promised from the reservations themselves.
func (l *ledger) promisedNow(h Holder, pool berth.ResourceID) []PromisedFrom {
	var p []PromisedFrom
	var list []*Entry
	if t := l.of[h.kind][h.name]; t != nil {
		list = t.owned
	}
	if h == Everyone() {
		list = l.inOrder()
	}
	for _, e := range list {
		for part := range e.r.Allotments {
			if a := &e.r.Allotments[part]; a.Resource == pool && e.promises(part) && l.holding.has(h, e.r.Request, pool) {
				p = append(p, PromisedFrom{a.Start, a.NPE}, PromisedFrom{a.End, -a.NPE})
			}
		}
	}
	slices.SortFunc(p, func(a, b PromisedFrom) int { return cmp.Compare(a.At, b.At) })
	used, n := berth.Count(0), 0
	for i := 0; i < len(p); {
		at, was := p[i].At, used
		for ; i < len(p) && p[i].At == at; i++ {
			used += p[i].NPE
		}
		if used != was {
			p[n] = PromisedFrom{at, used}
			n++
		}
	}
	return p[:n]
}
