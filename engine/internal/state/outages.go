package state

import (
	"fmt"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
)

// outage is PEs out of use. What is out of use is the union of all outages: each
// PE at each time is booked once, whichever of them it is in, but while work that
// began before the outage still holds it. Such a PE is booked for the outage as
// soon as that work gives it back.
type outage struct {
	berth.Outage
	begins, ends timer
	booked       []berth.Allotment // in this outage's name, disjoint
}

// block returns what an outage takes from now on. Calendars end where times do.
func (s *State) block(o *berth.Outage) berth.Allotment {
	return berth.Allotment{
		Resource: o.Resource, Start: max(s.now, o.From), End: min(o.Until, berth.TimeLimit-1), NPE: o.PEs.Count(), PEs: o.PEs,
	}
}

// subtract returns what is left of blocks without a block: disjoint blocks that
// cover all else. Cost: O(blocks), each is divided into three at the most.
func subtract(blocks []berth.Allotment, cut *berth.Allotment) []berth.Allotment {
	if !slices.ContainsFunc(blocks, func(b berth.Allotment) bool { return meet(&b, cut) }) {
		return blocks
	}
	var left []berth.Allotment
	add := func(b berth.Allotment) {
		if b.NPE = b.PEs.Count(); b.NPE > 0 && b.Start < b.End {
			left = append(left, b)
		}
	}
	for i := range blocks {
		b := blocks[i]
		if !meet(&b, cut) {
			left = append(left, b)
			continue
		}
		outside, early, late := b, b, b
		outside.PEs = b.PEs.Minus(cut.PEs)
		early.PEs = b.PEs.And(cut.PEs)
		late.PEs = early.PEs
		early.End, late.Start = cut.Start, cut.End
		add(outside)
		add(early)
		add(late)
	}
	return left
}

// meet reports whether two blocks of one pool have a PE at a time in common.
func meet(a, b *berth.Allotment) bool {
	return a.Start < b.End && b.Start < a.End && a.PEs.Overlap(b.PEs) > 0
}

// beyond returns what of an outage is in none of the others, as disjoint blocks.
func (s *State) beyond(o *berth.Outage) []berth.Allotment {
	blocks := []berth.Allotment{s.block(o)}
	if blocks[0].Start >= blocks[0].End || o.PEs.Empty() {
		return nil
	}
	for _, other := range s.outages {
		if other.From < o.Until && other.Until > o.From && other.Resource == o.Resource && other.Number != o.Number {
			cut := s.block(&other.Outage)
			blocks = subtract(blocks, &cut)
		}
	}
	return blocks
}

// unheld returns what of blocks of one pool running work does not hold.
func (s *State) unheld(blocks []berth.Allotment) []berth.Allotment {
	if len(blocks) == 0 {
		return nil
	}
	for _, e := range s.running(blocks[0].Resource) {
		for part := range e.r.Allotments {
			if a := &e.r.Allotments[part]; a.Resource == blocks[0].Resource && e.Holds(part) {
				held := *a
				held.Start = min(held.Start, s.now)
				if blocks = subtract(blocks, &held); len(blocks) == 0 {
					return nil
				}
			}
		}
	}
	return blocks
}

// running returns what runs in a pool, by sequence.
func (s *State) running(pool berth.ResourceID) []*Entry {
	return s.ActiveIn(pool, func(*Entry) bool { return true })
}

// Uncovered returns what an outage would take of its pool that is not out of use
// already and not held by running work, as disjoint blocks. Cost: O(outages +
// reservations that are active there, or in several pools).
func (s *State) Uncovered(o *berth.Outage) []berth.Allotment { return s.unheld(s.beyond(o)) }

// addOutage folds WentDown.
func (s *State) addOutage(o *berth.Outage) error {
	if o == nil || o.PEs.Empty() || o.From >= o.Until {
		return fmt.Errorf("an outage without PEs or time")
	}
	i, known := s.Index(o.Resource)
	if !known || o.PEs.Max() >= berth.PE(s.pools[i].size) {
		return fmt.Errorf("outage %d: no PEs %v of %v", o.Number, o.PEs, o.Resource)
	}
	added := &outage{Outage: *o}
	for _, b := range s.Uncovered(o) {
		if err := s.bookOut(added, &b); err != nil {
			return err
		}
	}
	if idle := s.pools[i].idle; idle != nil && o.From == 0 {
		idle.Delete(o.PEs)
	}
	s.outage = max(s.outage, o.Number)
	s.outages = append(s.outages, added)
	s.timeOutage(added)
	return nil
}

// timeOutage sets the timers of an outage.
func (s *State) timeOutage(o *outage) {
	if o.From != 0 {
		o.begins = timer{At: o.From, Class: ClassCapacity, Sequence: o.Number, Part: OfBegin}
		s.timers.add(&o.begins)
	}
	if o.Until < berth.Forever {
		o.ends = timer{At: o.Until, Class: ClassCapacity, Sequence: o.Number, Part: OfEnd}
		s.timers.add(&o.ends)
	}
}

// beginOutage folds OutageBegan.
func (s *State) beginOutage(began *berth.Outage) error {
	i := slices.IndexFunc(s.outages, func(o *outage) bool { return o.Number == began.Number })
	if i < 0 || s.outages[i].From == 0 || s.outages[i].From > s.now {
		return fmt.Errorf("no outage %d that begins", began.Number)
	}
	s.timers.drop(&s.outages[i].begins)
	s.outages[i].From = 0
	if p, _ := s.Index(began.Resource); s.pools[p].idle != nil {
		s.pools[p].idle.Delete(s.outages[i].PEs)
	}
	return nil
}

// endOutage folds CameUp: some or all of the PEs of an outage are not part of it
// any more.
func (s *State) endOutage(back *berth.Outage) error {
	i := slices.IndexFunc(s.outages, func(o *outage) bool { return o.Number == back.Number })
	if i < 0 {
		return fmt.Errorf("no outage %d", back.Number)
	}
	o := s.outages[i]
	lifted := o.Outage
	lifted.PEs = o.PEs.And(back.PEs)
	o.PEs = o.PEs.Minus(lifted.PEs)
	if err := s.lift(o, lifted.PEs); err != nil {
		return err
	}
	if o.PEs.Empty() {
		s.timers.drop(&o.begins)
		s.timers.drop(&o.ends)
		s.outages = slices.Delete(s.outages, i, i+1)
	}
	if p, _ := s.Index(o.Resource); s.pools[p].idle != nil {
		idle := lifted.PEs.Minus(s.outNow(o.Resource))
		for _, e := range s.running(o.Resource) {
			for part := range e.r.Allotments {
				if a := &e.r.Allotments[part]; a.Resource == o.Resource && e.Holds(part) {
					idle = idle.Minus(a.PEs)
				}
			}
		}
		s.pools[p].idle.Add(idle)
	}
	return nil
}

// bookOut books a block in the name of an outage.
func (s *State) bookOut(o *outage, b *berth.Allotment) error {
	if err := s.book(b, b.Start); err != nil {
		return fmt.Errorf("outage %d: %w", o.Number, err)
	}
	o.booked = append(o.booked, *b)
	return nil
}

// lift gives back what is booked of some PEs in the name of an outage that they are
// not part of any more. What other outages take of it is booked in their name.
func (s *State) lift(o *outage, pes berth.PESet) error {
	booked := o.booked
	o.booked = nil
	for i := range booked {
		b := booked[i]
		if b.Start = max(b.Start, s.now); b.Start >= b.End {
			continue
		}
		kept, gone := b, b
		kept.PEs, gone.PEs = b.PEs.Minus(pes), b.PEs.And(pes)
		if gone.PEs.Empty() {
			o.booked = append(o.booked, b)
			continue
		}
		if err := s.unbook(&b, b.Start); err != nil {
			return fmt.Errorf("outage %d: %w", o.Number, err)
		}
		if kept.NPE = kept.PEs.Count(); kept.NPE > 0 {
			if err := s.bookOut(o, &kept); err != nil {
				return err
			}
		}
		gone.NPE = gone.PEs.Count()
		if err := s.reclaim(&gone); err != nil {
			return err
		}
	}
	return nil
}

// announced reports whether PEs of a pool go out of use before a time.
func (s *State) announced(i int, until berth.Time) bool {
	return slices.ContainsFunc(s.outages, func(o *outage) bool { return o.From > 0 && o.From < until && o.Resource == s.pools[i].id })
}

// outNow returns the PEs of a pool of the outages that have begun.
func (s *State) outNow(resource berth.ResourceID) berth.PESet {
	var out berth.PESet
	for _, o := range s.outages {
		if o.Resource == resource && o.From == 0 {
			out = out.Or(o.PEs)
		}
	}
	return out
}

// yield gives back what outages that have not begun have of an allotment which work gets
// that runs from now on: they have it when that work is over.
func (s *State) yield(a *berth.Allotment) error {
	for _, o := range s.outages {
		held := *a
		held.Start = s.now
		for i := 0; i < len(o.booked); i++ {
			b := o.booked[i]
			if b.Start = max(b.Start, s.now); b.Resource != a.Resource || !meet(&b, &held) {
				continue
			}
			if err := s.unbook(&b, b.Start); err != nil {
				return fmt.Errorf("outage %d: %w", o.Number, err)
			}
			o.booked = slices.Delete(o.booked, i, i+1)
			for _, left := range subtract([]berth.Allotment{b}, &held) {
				if err := s.bookOut(o, &left); err != nil {
					return err
				}
			}
			i = -1 // what was left is behind, and meets the allotment no more
		}
	}
	return nil
}

// reclaim books what has just been given back for the outages that it is in.
func (s *State) reclaim(given *berth.Allotment) error {
	return s.claims(given, func(o *outage, b berth.Allotment) error { return s.bookOut(o, &b) })
}

// Claimed returns what of an allotment is in outages, as disjoint blocks.
func (s *State) Claimed(given *berth.Allotment) []berth.Allotment {
	var claimed []berth.Allotment
	_ = s.claims(given, func(_ *outage, b berth.Allotment) error { // which cannot fail
		claimed = append(claimed, b)
		return nil
	})
	return claimed
}

// claims calls visit for disjoint blocks: what of an allotment is in outages, each with
// the first of them that it is in.
func (s *State) claims(given *berth.Allotment, visit func(*outage, berth.Allotment) error) error {
	if len(s.outages) == 0 || given.Start >= given.End || given.PEs.Empty() {
		return nil
	}
	rest := []berth.Allotment{*given}
	for _, o := range s.outages {
		if o.From >= given.End || o.Until <= given.Start || o.Resource != given.Resource || o.PEs.Empty() {
			continue
		}
		b := s.block(&o.Outage)
		for i := range rest {
			if !meet(&rest[i], &b) {
				continue
			}
			taken := rest[i]
			taken.Start, taken.End = max(taken.Start, b.Start), min(taken.End, b.End)
			taken.PEs = taken.PEs.And(b.PEs)
			taken.NPE = taken.PEs.Count()
			if err := visit(o, taken); err != nil {
				return err
			}
		}
		rest = subtract(rest, &b)
	}
	return nil
}

// Outages yields what is out of use or announced to be, in the order in which the
// engine learned of it.
func (s *State) Outages() iter.Seq[berth.Outage] {
	return func(yield func(berth.Outage) bool) {
		for _, o := range s.outages {
			if !yield(o.Outage) {
				return
			}
		}
	}
}

// Outage returns the outage of that number.
func (s *State) Outage(number uint64) (o berth.Outage, ok bool) {
	i := slices.IndexFunc(s.outages, func(o *outage) bool { return o.Number == number })
	if i < 0 {
		return o, false
	}
	return s.outages[i].Outage, true
}

// takeForecast folds Forecasted.
func (s *State) takeForecast(f *berth.Forecast) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("a forecast: %w", err)
	}
	s.forecasts[f.Site] = f
	return nil
}
