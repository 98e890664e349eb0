package place

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// nearest finds the place that is nearest to what the promise has, or had: as many
// of its PEs at its start, else the same start elsewhere, else the earliest start in
// the window, there too on as many of its PEs as are free. Ties go to its own pool,
// then to the order of the match.
func (x *search) nearest(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	for part := range x.r.Parts {
		if refusal := x.impossible(part, x.state.Now()); refusal != nil {
			return nil, refusal
		}
	}
	g := x.group(t, true)
	if allotments, ok := g.at(x.again.Start()); ok { // within the window, and not before now
		return allotments, nil
	}
	allotments, refusal := x.earliest(t)
	if refusal != nil {
		return nil, refusal
	}
	if same, ok := g.at(allotments[0].Start); ok {
		return same, nil
	}
	return allotments, nil
}

// earliest finds the earliest start of all parts.
func (x *search) earliest(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	if len(x.r.Parts) > 1 {
		return x.coallocate(t)
	}
	var best offer
	var refusal *berth.Refusal
	for _, candidate := range x.ranked(0) {
		p := &x.pools[candidate.Index]
		o, ok := x.firstIn(p, func(fit calendar.Fit) berth.Time { return fit.Start })
		switch {
		case ok && (best.pool == nil || o.fit.Start < best.fit.Start):
			best = o
		case !ok && best.pool == nil:
			if no := x.noCapacity(0, p); refusal == nil || closer(no, refusal) {
				refusal = no
			}
		}
	}
	if best.pool == nil {
		return nil, refusal
	}
	return []berth.Allotment{best.allotment()}, nil
}

// firstIn returns the earliest by a time of the earliest fits of the only part in a
// pool, one for each variant that is admitted there; the first of equals.
func (x *search) firstIn(p *pool, by func(calendar.Fit) berth.Time) (best offer, found bool) {
	view, takes, within := x.view(p), x.takes(p), x.sharesIn(p)
	for x.way = range x.ways(0) {
		eligible := x.eligibleCount(0, p)
		for _, v := range x.variants(0) {
			v = x.scaled(p, v)
			if v.NPE > eligible || !x.permits(p, v) || x.denies(p, v) != nil {
				continue
			}
			q := x.query(0, v, p)
			fit, ok := view.Earliest(q)
			fit, ok = x.withStocks(view, x.takesFor(p, takes, within, v), q, fit, ok)
			if ok && fit.End.Valid() && (!found || by(fit) < by(best.fit)) {
				best, found = offer{pool: p, variant: v, fit: fit}, true
			}
		}
	}
	return best, found
}

// prefer returns n PEs of a set: as many of the preferred ones as there are, and the
// lowest-numbered others.
func prefer(set, preferred berth.PESet, n berth.Count) berth.PESet {
	kept := set.And(preferred).Lowest(n)
	if rest := n - kept.Count(); rest > 0 {
		return kept.Or(set.Minus(kept).Lowest(rest))
	}
	return kept
}

// Grown returns the allotment of a reservation at its own time with as many of the PEs
// owed to it as possible: those that it has, without the lost ones, and free ones. PEs
// that vacated reservations still have at their places are not free. Under late binding
// a reservation that has not started has no PE numbers, and takes any free PEs.
func (f *Finder) Grown(d *state.Entry, lost berth.PESet, vacated []*state.Entry) berth.Allotment {
	a := d.Part(0)
	from, owed := max(a.Start, f.state.Now()), d.Variant(0).NPE
	if from >= a.End {
		return a
	}
	t := f.state.Try()
	defer t.Close()
	active := d.State() == berth.Active
	if active {
		gone := a
		if gone.Start, gone.PEs = from, a.PEs.And(lost); !gone.PEs.Empty() {
			gone.NPE = gone.PEs.Count()
			t.Give(&gone)
		}
	} else {
		t.Release(d)
	}
	p := f.poolOf(a.Resource)
	if active || p.config.Binding == berth.Early {
		for _, other := range vacated {
			if had := other.Part(0); had.PEs.Empty() || had.Resource == a.Resource && had.Start < a.End && from < had.End {
				f.keep(t, other)
			}
		}
	}
	x := f.search(d.Request(), d)
	kept := a.PEs.Minus(lost)
	more := max(0, owed-kept.Count())
	free, pes := f.view(p).Free(berth.Interval{Start: from, End: a.End})
	switch late := p.config.Binding == berth.Late; {
	case late && active: // a reservation that ends now may still hold its PEs
		idle, _ := f.state.Idle(p.index, min(more, max(0, free)), lost, a.End)
		a.PEs = kept.Or(idle)
		a.NPE = a.PEs.Count()
		return a
	case late: // which PEs these are is decided again
		a.NPE, a.PEs = max(0, min(free, owed)), berth.PESet{}
		return a
	}
	pes = pes.Minus(lost)
	if !active {
		kept = kept.And(pes) // not those that are out of use
	}
	pes = x.mostEligible(p, pes, kept)
	if active {
		a.PEs = kept.Or(pes.Lowest(more))
	} else {
		a.PEs = prefer(pes, kept, owed)
	}
	a.NPE = a.PEs.Count()
	return a
}

// mostEligible returns those of some PEs that the only part may use beside the PEs that it
// keeps; where its constraints can be met in several ways, the most of any, the first of
// equals.
func (x *search) mostEligible(p *pool, pes, kept berth.PESet) berth.PESet {
	var most berth.PESet
	for i, way := range x.waysOf(0, p, kept) {
		set := pes
		if x.way = way; x.restricted(0, p) {
			set = pes.And(x.eligible(0, p))
		}
		if i == 0 || set.Count() > most.Count() {
			most = set
		}
	}
	return most
}

func (f *Finder) poolOf(id berth.ResourceID) *pool {
	index, known := f.state.Index(id)
	if !known {
		panic("engine: no pool " + id.Name + " at site " + id.Site)
	}
	return &f.pools[f.placeOf[index]]
}

// freeFor returns for how long an allotment is free from its start.
func (f *Finder) freeFor(a *berth.Allotment) berth.Duration {
	view := f.view(f.poolOf(a.Resource))
	low, high := berth.Duration(0), a.End.Sub(a.Start)
	for high-low > 1 {
		middle := low + (high-low)/2
		b := *a
		b.End = a.Start.Add(middle)
		if view.Takes(&b) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Extension returns the refusal of a later end of a reservation on its PEs, nil if it is
// possible, asked for by a role. Where jobs yield, those that run are no obstacle.
func (f *Finder) Extension(d *state.Entry, until berth.Time, role string) *berth.Refusal {
	a := d.Part(0)
	p := f.poolOf(a.Resource)
	x := f.search(d.Request(), d)
	extra := a
	extra.Start, extra.End = max(a.End, f.state.Now()), until
	if d.State() != berth.Active && f.state.NamesAhead(a.Resource) {
		extra.PEs = berth.PESet{} // it gets others by name where it needs to
	}
	if !x.permits(p, berth.Variant{NPE: a.NPE, Duration: until.Sub(a.Start)}) {
		return &berth.Refusal{Reason: berth.NoSuitableSite, Resource: a.Resource, Wanted: a.NPE}
	}
	if over := f.overExtension(d, until, role, nil); over != nil {
		return over
	}
	if short := f.StockShort(d, until); short != nil {
		return short
	}
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	if !f.Free(&extra) {
		return &berth.Refusal{
			Reason: berth.NoCapacity, Resource: a.Resource, Wanted: a.NPE,
			Nearest: &berth.Nearest{NPE: a.NPE, Start: a.End, Duration: f.freeFor(&extra)},
		}
	}
	return nil
}

// StockShort returns the refusal that names the first stock of a reservation that is
// short until a later end, nil if all suffice.
func (f *Finder) StockShort(d *state.Entry, until berth.Time) *berth.Refusal {
	for a := range d.Stocks() {
		st := f.state.Stock(a.Resource)
		free, _ := st.View().Free(berth.Interval{Start: max(a.End, f.state.Now()), End: until})
		if free >= a.NPE {
			continue
		}
		refusal := &berth.Refusal{Reason: berth.NoCapacity, Resource: a.Resource, Wanted: a.NPE, Limit: st.View().Size()}
		if a.Resource.Kind == berth.LicenceKind {
			refusal.Reason = berth.NoLicence
		}
		return refusal
	}
	return nil
}

// Free reports whether an allotment is free: the PEs that it has by name, or else as
// many.
func (f *Finder) Free(a *berth.Allotment) bool {
	return f.view(f.poolOf(a.Resource)).Takes(a) && len(f.state.Claimed(a)) == 0
}

// InTheWay returns reservations that have not started and without which blocks of
// one pool are free: at each time at which they are not, those that start last go
// first, of equals those accepted last, as few as are needed. ok is false if no choice
// is enough. Reservations of several parts are left alone unless several
// is set; in a pool of late binding no reservation goes where it is enough that
// yielding, which run, stop. Cost: O(live reservations), and O(log n) looks at the
// calendar for each of those that go.
func (f *Finder) InTheWay(blocks []berth.Allotment, several bool, yielding []*state.Entry) (displaced []*state.Entry, ok bool) {
	if len(blocks) == 0 {
		return nil, true
	}
	p := f.poolOf(blocks[0].Resource)
	late := p.config.Binding == berth.Late
	var candidates []*state.Entry // those that overlap a block; nil until one is needed
	t := f.state.Try()
	defer t.Close()
	view := t.View(p.index)
	for _, j := range yielding {
		if a := j.Part(0); late && a.Resource == p.id {
			t.Shorten(&a, t.Now())
		}
	}
	for i := range blocks {
		for !view.Takes(&blocks[i]) {
			if candidates == nil {
				candidates = f.overlapping(blocks, several, late)
			}
			short := blocks[i]
			if late {
				short.Start = shortage(view, &short)
				short.End = short.Start + 1
			}
			next := slices.IndexFunc(candidates, func(d *state.Entry) bool { return d != nil && overlaps(d, &short, late) })
			if next < 0 {
				return nil, false
			}
			release(t, candidates[next], p)
			displaced = append(displaced, candidates[next])
			candidates[next] = nil
		}
		t.Book(&blocks[i])
	}
	slices.SortFunc(displaced, state.ByStart)
	if late {
		displaced = slices.DeleteFunc(displaced, func(d *state.Entry) bool { return reinstate(t, d, p) })
	}
	return displaced, true
}

// overlapping returns the reservations that have not started and overlap blocks of one pool, those
// that start last first. Cost: that of Within, and sorting what is returned.
func (f *Finder) overlapping(blocks []berth.Allotment, several, late bool) []*state.Entry {
	from, until := berth.Forever, f.state.Now()
	for i := range blocks {
		from, until = min(from, blocks[i].Start), max(until, blocks[i].End-1)
	}
	list := f.state.Within(from, until, func(d *state.Entry) bool {
		if d.State() == berth.Active || d.Vacant() || !several && d.Parts() != 1 {
			return false
		}
		for i := range blocks {
			if overlaps(d, &blocks[i], late) {
				return true
			}
		}
		return false
	})
	slices.SortFunc(list, func(a, b *state.Entry) int { return state.ByStart(b, a) })
	return list
}

// overlaps reports whether a part of a reservation holds something of a block; of a
// pool of late binding any PE will do.
func overlaps(d *state.Entry, b *berth.Allotment, late bool) bool {
	allotments := d.Look().Allotments
	for i := range allotments {
		a := &allotments[i]
		if a.Resource == b.Resource && a.NPE > 0 && a.Start < b.End && a.End > b.Start && (late || a.PEs.Overlap(b.PEs) > 0) {
			return true
		}
	}
	return false
}

// FirstShort returns the first time at which a block, which is not free throughout, is
// not free in a pool of late binding. Cost: O(log of its duration) looks at the calendar.
func FirstShort(view state.View, b *berth.Allotment) berth.Time {
	low, high := b.Start, b.End // up to low it is free, up to high it is not
	for high-low > 1 {
		head := *b
		head.End = low + (high-low)/2
		if view.Takes(&head) {
			low = head.End
		} else {
			high = head.End
		}
	}
	return low
}

// shortage returns the last time at which a block is not free in a pool of late
// binding.
func shortage(view state.View, b *berth.Allotment) berth.Time {
	low, high := b.Start, b.End // from high on it is free, from low on it is not
	for high-low > 1 {
		tail := *b
		tail.Start = low + (high-low)/2
		if view.Takes(&tail) {
			high = tail.Start
		} else {
			low = tail.Start
		}
	}
	return low
}

// release frees the PEs of a pool that a reservation holds before its start.
func release(t *state.Trial, d *state.Entry, p *pool) {
	for i := range d.Parts() {
		if a := d.Part(i); a.Resource == p.id && a.NPE > 0 {
			if p.config.Binding == berth.Late {
				a.PEs = berth.PESet{} // outages are counted beside it, whatever its PEs are called
			}
			if a.Start = max(a.Start, t.Now()); a.Start < a.End {
				t.Give(&a)
			}
		}
	}
}

// reinstate books a released reservation again if its place is free.
func reinstate(t *state.Trial, d *state.Entry, p *pool) bool {
	mark := t.Mark()
	for i := range d.Parts() {
		a := d.Part(i)
		if a.Resource != p.id || a.NPE == 0 {
			continue
		}
		if a.Start = max(a.Start, t.Now()); a.Start >= a.End {
			continue
		}
		if !t.View(p.index).Takes(&a) {
			t.Undo(mark)
			return false
		}
		t.Book(&a)
	}
	return true
}
