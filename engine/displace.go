package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Promises whose PEs go out of use, or are needed by other promises. At a managed site
// the owner of a reservation decides what runs in it, so it outlives the loss of PEs:
// lost PEs are replaced, running work is not moved, and a reservation is degraded while
// replacements are missing. At other sites, as in a simulation, a reservation is the
// work that runs in it, and fails with its PEs.

// outlives reports whether a reservation outlives the loss of some of its PEs.
func (e *Engine) outlives(d *state.Entry) bool {
	return !d.Request().IsJob() && d.Parts() == 1 && e.state.Managed(d.Part(0).Resource.Site)
}

// outliving returns the reservations that outlive the loss of some of their PEs.
func (e *Engine) outliving(some []*state.Entry) (list []*state.Entry) {
	for _, d := range some {
		if e.outlives(d) {
			list = append(list, d)
		}
	}
	return list
}

// keeping returns those of some vacated reservations that outlive that, and of whose
// places something is left. What is placed beside them takes nothing of it, so that
// the others need not be asked again.
func (e *Engine) keeping(some []*state.Entry) []*state.Entry {
	return slices.DeleteFunc(e.outliving(some), func(d *state.Entry) bool { return !e.finder.Leaves(d) })
}

// numbered returns those whose PEs have numbers: the others have what is left in
// their order.
func numbered(some []*state.Entry) (list []*state.Entry) {
	for _, d := range some {
		if !d.Part(0).PEs.Empty() {
			list = append(list, d)
		}
	}
	return list
}

// without takes d, which is at most once among them, out of some reservations.
func without(some []*state.Entry, d *state.Entry) []*state.Entry {
	if i := slices.Index(some, d); i >= 0 {
		return slices.Delete(some, i, i+1)
	}
	return some
}

// vacate lets reservations give up their places.
func (e *Engine) vacate(displaced []*state.Entry) {
	for _, d := range displaced {
		e.emitOf(d, change.Change{Kind: change.Vacated})
	}
}

// replace gives vacated reservations other places, one after the other as they come,
// which is by start: the nearest place that keeps its terms; a place after its window, if
// overdue is set; its own time with fewer PEs, if it outlives that. A reservation without
// such a place is lost; a job waits again. While a reservation that outlives its loss has no
// other place, the others leave it the PEs that remain at its own.
func (e *Engine) replace(displaced []*state.Entry, overdue bool) {
	keeping := e.keeping(displaced)
	for moved := true; moved; {
		moved = false
		var left []*state.Entry
		for _, d := range displaced {
			if e.settledWithOthers(d) {
				continue
			}
			if d.Request().IsJob() {
				e.emitOf(d, change.Change{Kind: change.Requeued, Request: d.Request()})
				continue
			}
			var beside []*state.Entry
			if !overdue {
				beside = keeping
			}
			found, refusal := e.finder.Place(place.Want{Again: d, Beside: beside, Overdue: overdue})
			if refusal != nil {
				left = append(left, d)
				continue
			}
			e.move(d, &found)
			keeping = without(keeping, d)
			moved = len(left) > 0 // for which there may be room now
		}
		displaced = left
	}
	for _, d := range displaced {
		if keeping = without(keeping, d); e.settledWithOthers(d) {
			continue
		}
		if found, refusal := e.finder.Place(place.Want{Again: d, Beside: numbered(keeping), Overdue: overdue}); refusal == nil {
			e.move(d, &found)
			continue
		}
		if e.outlives(d) && d.End() > e.state.Now() && !overdue {
			if remains, ok := e.finder.Remains(d, keeping); ok {
				e.resize(d, &remains)
				continue
			}
		}
		found, refusal := e.finder.Place(place.Want{Again: d, Overdue: overdue}) // better that another loses PEs than that this one is lost
		if refusal == nil {
			e.move(d, &found)
			continue
		}
		if e.displacedTask(d) {
			continue
		}
		e.emitOf(d, change.Change{Kind: change.Lost, Refusal: refusal})
	}
}

// settledWithOthers reports whether a reservation that was vacated has another place already,
// or is gone: tasks of workflows get theirs with those before them.
func (e *Engine) settledWithOthers(d *state.Entry) bool {
	return !d.Vacant() || e.state.Entry(d.ID()) != d
}

// move gives a reservation another place.
func (e *Engine) move(d *state.Entry, to *place.Place) {
	if !d.Vacant() {
		e.emitOf(d, change.Change{Kind: change.Vacated})
	}
	e.makeRoom(to.Allotments)
	terms := to.Terms
	terms.Expires = d.Terms().Expires
	e.emitOf(d, change.Change{Kind: change.Moved, Moved: to.Allotments, Terms: &terms, Stocks: to.Stocks, Transfers: to.Transfers})
}

// repair looks for the PEs that degraded reservations lack, in the order of their
// starts: all PEs owed, at their own time or, before the start, elsewhere in their
// windows; else as many as are free. PEs that a move frees are there for the others.
// Reservation but, if not nil, is left out.
func (e *Engine) repair(but *state.Entry) {
	e.repairWhere(func(d *state.Entry) bool { return d != but })
}

// repairBegun is repair where nothing was given back but time has passed: what has begun
// may find PEs free for the rest of its time that were not free before.
func (e *Engine) repairBegun() {
	e.repairWhere(func(d *state.Entry) bool { return d.Start() < e.state.Now() })
}

func (e *Engine) repairWhere(wanted func(*state.Entry) bool) {
	for again := true; again; {
		again = false
		for _, d := range e.state.Degraded() {
			if wanted(d) && e.state.Entry(d.ID()) == d { // an earlier repair may have ended it
				again = e.mend(d) || again
			}
		}
	}
}

// mend repairs one reservation. It reports whether the reservation has moved.
func (e *Engine) mend(d *state.Entry) (moved bool) {
	grown := e.finder.Grown(d, berth.PESet{}, nil)
	if grown.NPE < d.Variant(0).NPE && d.State() != berth.Active && d.Start() >= e.state.Now() {
		if found, refusal := e.finder.Place(place.Want{Again: d}); refusal == nil {
			e.move(d, &found)
			return true
		}
	}
	if grown.NPE > d.Part(0).NPE {
		e.resize(d, &grown)
	}
	return false
}

// resize gives a reservation other PEs for the same time.
func (e *Engine) resize(d *state.Entry, to *berth.Allotment) {
	extra := *to
	extra.Start = max(extra.Start, e.state.Now())
	if !d.Vacant() {
		extra.PEs = to.PEs.Minus(d.Part(0).PEs)
		extra.NPE = to.NPE - d.Part(0).NPE
		if !to.PEs.Empty() {
			extra.NPE = extra.PEs.Count()
		}
	}
	if extra.NPE > 0 {
		e.jobs.MakeWay([]berth.Allotment{extra})
	}
	e.emitOf(d, change.Change{Kind: change.Resized, Moved: []berth.Allotment{*to}})
}
