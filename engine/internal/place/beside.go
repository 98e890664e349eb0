package place

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// What is left of the places of vacated reservations while others get theirs.

// Remains returns the allotment of a vacated reservation at its own time, beside what
// is left of those of others, with as many PEs of what is owed to it as there are; ok
// is false if its stocks are not there.
func (f *Finder) Remains(d *state.Entry, others []*state.Entry) (a berth.Allotment, ok bool) {
	for _, held := range f.besidePEs(d) {
		if free, _ := f.state.Stock(held.Resource).View().Free(held.Interval()); free < held.NPE {
			return a, false
		}
	}
	return f.Grown(d, berth.PESet{}, others), true
}

// Leaves reports whether something is left of the place of a vacated reservation, or
// of what it had beside its PEs.
func (f *Finder) Leaves(d *state.Entry) bool {
	return f.rest(d).NPE > 0 || len(f.besidePEs(d)) > 0
}

// rest returns what is left of the place of a vacated reservation from now on.
func (f *Finder) rest(d *state.Entry) berth.Allotment {
	a := d.Part(0)
	if a.Start = max(a.Start, f.state.Now()); a.Start >= a.End {
		a.NPE = 0
		return a
	}
	free, pes := f.view(f.poolOf(a.Resource)).Free(a.Interval())
	if a.PEs.Empty() {
		a.NPE = max(0, min(a.NPE, free))
	} else {
		a.PEs = a.PEs.And(pes)
		a.NPE = a.PEs.Count()
	}
	return a
}

// keep books what is left of the place of a vacated reservation, and of what it had
// beside its PEs.
func (f *Finder) keep(t *state.Trial, d *state.Entry) {
	a := f.rest(d)
	t.Book(&a)
	for _, held := range f.besidePEs(d) {
		if free, _ := f.state.Stock(held.Resource).View().Free(held.Interval()); free >= held.NPE {
			t.Book(&held)
		}
	}
}

// besidePEs returns what is left of the stocks of a vacated reservation, and of the
// shares of its transfers that have not begun; those that have keep theirs.
func (f *Finder) besidePEs(d *state.Entry) []berth.Allotment {
	var list []berth.Allotment
	add := func(a berth.Allotment) {
		if a.Start = max(a.Start, f.state.Now()); a.Start < a.End {
			list = append(list, a)
		}
	}
	for held := range d.Stocks() {
		add(held)
	}
	for tr := range d.Transfers() {
		if tr.Rate > 0 && !f.state.Begun(d, &tr) {
			add(berth.Allotment{Resource: berth.UplinkID(), Start: tr.Since, End: tr.End, NPE: tr.Rate})
		}
	}
	return list
}

// beside keeps what is left of vacated reservations while another gets a place. What
// can be told apart by its PEs is booked when it is in the way of a place that was
// found without it: most is in no one's way, and a place that is the nearest of more
// is the nearest of fewer. What counts alone tell is booked at once, in its order.
type beside struct {
	finder *Finder
	trial  *state.Trial
	left   []*state.Entry // that are not booked
	next   int            // how many are booked when one is in the way: twice as many each time
}

func (f *Finder) beside(t *state.Trial, w *Want) beside {
	b := beside{finder: f, trial: t, next: 1, left: make([]*state.Entry, 0, len(w.Beside))}
	for _, d := range w.Beside {
		switch {
		case d == w.Again:
		case d.Part(0).PEs.Empty() || len(f.besidePEs(d)) > 0:
			f.keep(t, d)
		default:
			b.left = append(b.left, d)
		}
	}
	return b
}

// inTheWay books what is in the way of a place, and some of what comes after it. It
// reports whether anything was.
func (b *beside) inTheWay(place []berth.Allotment) bool {
	first := slices.IndexFunc(b.left, func(d *state.Entry) bool {
		had := d.Part(0)
		return slices.ContainsFunc(place, func(a berth.Allotment) bool {
			return a.Resource == had.Resource && a.Start < had.End && had.Start < a.End && a.PEs.Overlap(had.PEs) > 0 &&
				a.PEs.Overlap(b.finder.rest(d).PEs) > 0
		})
	})
	if first < 0 {
		return false
	}
	last := min(first+b.next, len(b.left))
	for _, d := range b.left[first:last] {
		b.finder.keep(b.trial, d)
	}
	b.left = slices.Delete(b.left, first, last)
	b.next *= 2
	return true
}

// keepAll books all of it.
func (b *beside) keepAll() {
	for _, d := range b.left {
		b.finder.keep(b.trial, d)
	}
	b.left = nil
}
