package engine

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
)

// What becomes of promises whose PEs go out of use. At a managed site a
// reservation is a place in which its owner runs what he likes, so it outlives
// the loss of PEs: only those that are lost are replaced, nothing moves under
// what runs, and what cannot be replaced leaves the reservation degraded until
// it can be. Elsewhere, in a simulation, a reservation is what runs in it, and
// fails with its PEs.

// outlives reports whether a reservation outlives the loss of some of its PEs.
func (e *Engine) outlives(d *entry) bool {
	return !d.Request.IsJob() && len(d.Allotments) == 1 && e.state.managed[d.Allotments[0].Resource.Site]
}

// shrink takes the PEs that are lost from a reservation; of one whose PEs have
// no numbers yet it takes all, to be found again.
func (e *Engine) shrink(d *entry, lost berth.PESet) {
	to := d.Allotments[0]
	to.PEs = without(to.PEs, lost)
	to.NPE = to.PEs.Count()
	e.resize(d, to)
}

// resize gives a reservation another number of PEs, or other ones, for the same
// time.
func (e *Engine) resize(d *entry, to berth.Allotment) {
	e.emit(Change{Kind: Resized, ID: d.Request.ID, Moved: []berth.Allotment{to}, entry: d})
	e.effect(EffectReserve, &d.Reservation)
}

// repair looks for what degraded reservations lack, in the order of their
// starts: beside what they have; if that is not all, and they have not started,
// for another place in their windows; and else for as much as there is.
func (e *Engine) repair() {
	if len(e.state.degraded) == 0 {
		return
	}
	var degraded []*entry
	for _, d := range e.state.degraded {
		degraded = append(degraded, d)
	}
	slices.SortFunc(degraded, byStart)
	for _, d := range degraded {
		grown, extra := e.grown(d)
		if extra.NPE < d.Missing && d.State != berth.Active && d.Start() >= e.state.now {
			var allotments []berth.Allotment
			var refusal *berth.Refusal
			e.without(d, func() { allotments, refusal = e.place(d.Request) })
			if refusal == nil {
				e.emit(Change{Kind: Moved, ID: d.Request.ID, entry: d})
				e.yield(allotments)
				e.relocate(d, allotments)
				e.effect(EffectReserve, &d.Reservation)
				continue
			}
		}
		if extra.NPE > 0 {
			e.yield([]berth.Allotment{extra})
			e.resize(d, grown)
		}
	}
}

// grown returns a degraded reservation's allotment with as much of what it
// lacks as there is, and that alone.
func (e *Engine) grown(d *entry) (whole, extra berth.Allotment) {
	a := d.Allotments[0]
	whole, extra = a, a
	res := e.resourceOf(a.Resource)
	extra.Start = max(a.Start, e.state.now)
	free, pes := e.state.calendar(a.Resource).Free(berth.Interval{Start: extra.Start, End: a.End})
	if free < 0 || extra.Start >= a.End {
		free = 0
	}
	extra.NPE, extra.PEs = min(free, d.Missing), berth.PESet{}
	if idle, late := e.state.idleOf(a.Resource); late && d.State == berth.Active {
		extra.PEs = idle.Lowest(extra.NPE)
		extra.NPE = extra.PEs.Count() // what ends at this moment may not have given its PEs back yet
	} else if !late {
		if eligible := res.eligible(d.Request, &d.Request.Parts[0]); !eligible.Empty() {
			pes = pes.And(eligible)
		}
		extra.PEs = lowest(pes, extra.NPE)
		extra.NPE = extra.PEs.Count()
	}
	whole.NPE += extra.NPE
	whole.PEs = berth.NewPESet(append(slices.Clone(a.PEs.Runs()), extra.PEs.Runs()...)...)
	return whole, extra
}

// lowest returns the n lowest-numbered PEs of a set, all if it has no more.
func lowest(set berth.PESet, n berth.Count) berth.PESet {
	var runs []berth.Run
	for _, run := range set.Runs() {
		if n <= 0 {
			break
		}
		run.Hi = min(run.Hi, run.Lo+berth.PE(n))
		n -= berth.Count(run.Hi - run.Lo)
		runs = append(runs, run)
	}
	return berth.NewPESet(runs...)
}

// resize folds Resized.
func (s *state) resize(e *entry, to []berth.Allotment) error {
	if len(to) != 1 || len(e.Allotments) != 1 || to[0].Resource != e.Allotments[0].Resource || to[0].NPE < 0 {
		return fmt.Errorf("reservation %q cannot be resized so", e.Request.ID)
	}
	was, a := e.Allotments[0], to[0]
	from := max(a.Start, s.now)
	s.ledger.hold(e, -1)
	if from < a.End {
		if err := s.unbook(&was, from); err != nil {
			return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
		}
		if err := s.book(&a, from); err != nil {
			return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
		}
	}
	if idle, late := s.idleOf(a.Resource); late && e.State == berth.Active {
		idle.Add(was.PEs)
		idle.Delete(a.PEs)
	}
	e.Allotments = slices.Clone(to)
	e.Generation++
	s.lacks(e, e.Missing+was.NPE-a.NPE)
	s.ledger.hold(e, 1)
	return nil
}

// lacks notes how many PEs a reservation lacks of what was promised.
func (s *state) lacks(e *entry, missing berth.Count) {
	if e.Missing = missing; missing > 0 {
		s.degraded[e.Request.ID] = e
		if e.State == berth.Confirmed {
			e.State = berth.Degraded
		}
		return
	}
	delete(s.degraded, e.Request.ID)
	if e.State == berth.Degraded {
		e.State = berth.Confirmed
	}
}
