package state

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// Promised is how many PEs of one pool are promised to one holder over time. Once it
// was asked for it is kept with every change, because each request of a holder that has a
// share of a pool is placed beside all that it has. The zero value is nothing.
type Promised []PromisedFrom // ascending; before the first nothing is, and nothing from the last on

// PromisedFrom is how many PEs are promised from a time on.
type PromisedFrom struct {
	At  berth.Time
	NPE berth.Count
}

// At returns the step in force at a time: -1 before the first.
func (p Promised) At(t berth.Time) int {
	i, found := slices.BinarySearchFunc(p, t, func(s PromisedFrom, t berth.Time) int {
		return cmp.Compare(s.At, t)
	})
	if found {
		return i
	}
	return i - 1
}

// cut makes a step begin at a time, and returns it.
func (p *Promised) cut(at berth.Time) int {
	i, npe := p.At(at), berth.Count(0)
	if i >= 0 {
		if npe = (*p)[i].NPE; (*p)[i].At == at {
			return i
		}
	}
	*p = slices.Insert(*p, i+1, PromisedFrom{at, npe})
	return i + 1
}

// join drops a step that changes nothing.
func (p *Promised) join(i int) {
	if was := (*p)[:i]; (*p)[i].NPE == 0 && i == 0 || i > 0 && was[i-1].NPE == (*p)[i].NPE {
		*p = slices.Delete(*p, i, i+1)
	}
}

// Add returns what is promised with n PEs more throughout [from, to), which is not
// empty, or fewer if n is negative. It writes p. Cost: O(steps), and most of it moves
// those behind: 16 bytes each.
func (p Promised) Add(from, to berth.Time, n berth.Count) Promised {
	first := p.cut(from)
	end := p.cut(to)
	for i := first; i < end; i++ {
		p[i].NPE += n
	}
	p.join(end)
	p.join(first)
	return p
}

// hold counts the PEs that a part of a reservation holds, or takes them out, if they are
// counted at all.
func (l *ledger) hold(e *Entry, part int, sign berth.Count) {
	if !l.shares || !e.promises(part) {
		return
	}
	l.holdOf(OfUser(e.r.Request.User), e, part, sign)
	for _, h := range l.holding.beside(&e.r) {
		l.holdOf(h, e, part, sign)
	}
}

func (l *ledger) holdOf(h Holder, e *Entry, part int, sign berth.Count) {
	a, t := &e.r.Allotments[part], l.of[h.kind][h.name]
	if t == nil {
		return
	}
	if p, counted := t.promised[a.Resource]; counted && l.holding.has(h, e.r.Request, a.Resource) {
		t.promised[a.Resource] = p.Add(a.Start, a.End, sign*a.NPE)
	}
}

// promises reports whether a part holds PEs that are promised to its holders: those of
// running jobs are not.
func (e *Entry) promises(part int) bool {
	a := &e.r.Allotments[part]
	return !e.r.Request.IsJob() && a.Start < a.End && e.Holds(part)
}

// count adds a reservation to what its holders have, or takes it out.
func (l *ledger) count(e *Entry, sign int) {
	l.enlist(e, sign)
	l.use(e, int64(sign))
	for part := range e.r.Allotments {
		l.hold(e, part, berth.Count(sign))
	}
}

// Promised returns what is promised to a holder in a pool; nothing where there are no
// limits. What is over may be there until its reservation has ended. It must not be
// written, and is valid until the next change. Cost: O(n log n) for the n reservations
// of the holder when it is asked for the first time, and O(1) from then on.
func (s *State) Promised(h Holder, pool berth.ResourceID) Promised {
	l := &s.ledger
	t := l.of[h.kind][h.name]
	if t == nil || !l.limited {
		return nil
	}
	p, counted := t.promised[pool]
	if !counted {
		if t.promised == nil {
			t.promised, l.shares = map[berth.ResourceID]Promised{}, true
		}
		p = l.promisedNow(h, pool)
		t.promised[pool] = p
	}
	return p
}

// promisedNow counts what is promised from the reservations themselves.
func (l *ledger) promisedNow(h Holder, pool berth.ResourceID) Promised {
	var p Promised
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
