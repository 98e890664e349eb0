package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// complement fills in what follows from the rest of a reservation: terms that a
// record of an earlier format does not have, what is missing of them, and when a
// hold runs out.
func (s *State) complement(e *Entry) {
	r := e.write()
	if r.Request.IsJob() {
		return
	}
	if len(r.Terms.Variants) == 0 {
		r.Terms = s.termsOf(r)
	}
	s.setMissing(e)
	CapHold(r)
}

// termsOf returns the terms of a reservation that has none on record: the variants
// that have as many PEs as it was promised, within the window of its request. Only a
// reservation of one part can have been extended.
func (s *State) termsOf(r *berth.Reservation) berth.Terms {
	t := berth.Terms{Deadline: max(r.Request.Deadline, r.End()), Expires: cmp.Or(r.Terms.Expires, r.Expires)}
	for i := range r.Request.Parts {
		variants := r.Request.Parts[i].Variants
		chosen := variants[0]
		for _, v := range variants {
			if v.NPE == r.Allotments[i].NPE+r.Missing {
				chosen = v
				break
			}
		}
		t.Variants = append(t.Variants, chosen)
	}
	if pool, known := s.Index(r.Allotments[0].Resource); known && len(t.Variants) == 1 {
		run := s.pools[pool].config.SpeedFor(&r.Request.Requirements).Scale(t.Variants[0].Duration)
		t.Extended = max(0, r.Allotments[0].Interval().Length()-run-staged(r))
	}
	return t
}

// staged returns for how long a reservation of one part holds its PEs while its data
// are moved, in seconds.
func staged(r *berth.Reservation) berth.Duration {
	if len(r.Transfers) == 0 {
		return 0
	}
	t := &r.Transfers[0]
	return max(0, t.End.Sub(max(t.Start, r.Start())))
}

// setMissing derives what a reservation of one part lacks of what is owed to it,
// and whether it is degraded.
func (s *State) setMissing(e *Entry) {
	r := e.write()
	if r.Missing = 0; len(r.Allotments) == 1 && len(r.Terms.Variants) == 1 {
		r.Missing = max(0, r.Terms.Variants[0].NPE-r.Allotments[0].NPE)
	}
	switch {
	case r.Missing > 0:
		s.degraded[e.ID()] = e
		if r.State == berth.Confirmed {
			r.State = berth.Degraded
		}
	default:
		delete(s.degraded, e.ID())
		if r.State == berth.Degraded {
			r.State = berth.Confirmed
		}
	}
}

// CapHold lets a hold run out at the first end of the reservation at the latest.
func CapHold(r *berth.Reservation) {
	if r.State == berth.Held && r.Terms.Expires > 0 {
		r.Expires = min(r.Terms.Expires, firstEnd(r.Allotments))
	}
}

// confirm makes a held reservation a confirmed one.
func (s *State) confirm(e *Entry) error {
	if e.r.State != berth.Held {
		return fmt.Errorf("it is %s, not held", e.r.State)
	}
	s.timers.drop(&e.first)
	r := e.write()
	r.State, r.Expires, r.Terms.Expires = berth.Confirmed, 0, 0
	r.CheckedIn = s.now > e.Start() // a late confirmation counts as check-in
	s.setMissing(e)
	s.ledger.setApart(e)
	s.timers.add(s.waitFor(e))
	return nil
}

// start makes a reservation active and takes its PEs out of the idle sets.
func (s *State) start(e *Entry, pes []berth.PESet) error {
	r := e.write()
	r.State = berth.Active
	s.ledger.setApart(e)
	s.enlistActive(e)
	for part := range r.Allotments {
		a := &r.Allotments[part]
		if i, _ := s.Index(a.Resource); s.pools[i].idle != nil {
			if part >= len(pes) || pes[part].Count() != a.NPE {
				return fmt.Errorf("it starts without its %d PEs", a.NPE)
			}
			a.PEs = pes[part]
			s.pools[i].idle.Delete(a.PEs)
			if err := s.yield(a); err != nil {
				return err
			}
		}
		s.timers.reset(e.timer(part), endOf(e, part)) // the first was that of the start
	}
	s.awaitCheckIn(e)
	return nil
}

// awaitCheckIn sets the timer of a reservation that has started and is given up if
// it is not used.
func (s *State) awaitCheckIn(e *Entry) {
	if wait := e.r.Request.NoShow; wait > 0 && !e.r.CheckedIn {
		t := &timer{At: e.Start().Add(wait), Class: ClassExpiry, Sequence: e.r.Sequence, Part: OfNoShow, entry: e}
		e.addition().noShow = t
		s.timers.add(t)
	}
}

func (s *State) dropNoShow(e *Entry) {
	if x := e.rare; x != nil && x.noShow != nil {
		s.timers.drop(x.noShow)
		x.noShow = nil
	}
}

// extend lets the only part of a reservation last until a later end, with its
// stocks. The window of its terms goes with it.
func (s *State) extend(e *Entry, c *change.Change) error {
	r := e.write()
	a, until := &r.Allotments[0], c.Until
	if len(r.Allotments) > 1 || until <= a.End || e.vacant {
		return fmt.Errorf("it cannot be extended to %d", until)
	}
	s.ledger.count(e, -1)
	if err := s.rebook(a, until); err != nil {
		return err
	}
	if len(r.Stocks) > 0 {
		if err := s.giveStocks(r.Stocks); err != nil {
			return err
		}
		r.Stocks = slices.Clone(r.Stocks) // shared with the change that brought them
		for i := range r.Stocks {
			r.Stocks[i].End = until
		}
		if err := s.takeStocks(r.Stocks); err != nil {
			return err
		}
	}
	if len(r.Terms.Variants) > 0 {
		r.Terms.Extended += until.Sub(a.End)
		r.Terms.Deadline = max(r.Terms.Deadline, until)
	}
	if c.Terms != nil {
		r.Terms.Delay, r.Terms.Idle = c.Terms.Delay, c.Terms.Idle
	}
	a.End = until
	e.write().Generation++
	s.ledger.count(e, 1)
	if e.r.State == berth.Active {
		s.timers.reset(e.timer(0), endOf(e, 0))
		return nil
	}
	CapHold(r)
	s.timers.drop(&e.first)
	s.timers.add(s.waitFor(e))
	return nil
}

// shorten lets a running job end earlier.
func (s *State) shorten(e *Entry, until berth.Time) error {
	r := e.write()
	a := &r.Allotments[0]
	if r.State != berth.Active || len(r.Allotments) > 1 || until < s.now || until >= a.End {
		return fmt.Errorf("it cannot be shortened to %d", until)
	}
	if err := s.rebook(a, until); err != nil {
		return err
	}
	tail := *a
	tail.Start = until
	if err := s.reclaim(&tail); err != nil {
		return err
	}
	a.End = until
	e.write().Generation++
	s.timers.reset(e.timer(0), endOf(e, 0))
	return nil
}

// vacate takes a reservation that has not started from its place. Data on their
// way to it keep their share of the uplink until it has another place, or is gone.
func (s *State) vacate(e *Entry) error {
	if e.r.State == berth.Active || e.vacant {
		return fmt.Errorf("it has no place that it can leave")
	}
	s.timers.drop(&e.first)
	s.ledger.count(e, -1)
	for i := range e.r.Allotments {
		a := &e.r.Allotments[i]
		from := max(a.Start, s.now)
		if from >= a.End {
			continue // of one that is held, as if it had run
		}
		if err := s.unbook(a, from); err != nil {
			return err
		}
	}
	for i := range e.r.Allotments {
		if a := &e.r.Allotments[i]; s.NamesAhead(a.Resource) && !a.PEs.Empty() {
			e.write().Allotments[i].PEs = berth.PESet{} // its place was a number of PEs
		}
	}
	e.vacant = true
	return s.giveBeside(e, s.waiting(e))
}

// move gives a reservation another place.
func (s *State) move(e *Entry, c *change.Change) error {
	if !e.vacant {
		if err := s.vacate(e); err != nil {
			return err
		}
	}
	if err := s.giveUplink(e.r.Transfers, s.begun(e)); err != nil {
		return err
	}
	if len(c.Moved) == 0 || len(c.Moved) != len(e.r.Request.Parts) {
		return fmt.Errorf("it moves to %d places", len(c.Moved))
	}
	r := e.write()
	if c.Terms != nil {
		r.Terms = *c.Terms
	}
	s.leavePools(e)
	e.allot(c.Moved)
	s.enterPools(e)
	r.Stocks, r.Transfers = c.Stocks, c.Transfers
	r.Generation++
	r.CheckedIn = false // if it was, then for its start before
	e.vacant = false
	s.complement(e)
	for i := range e.r.Allotments {
		if err := s.book(&e.r.Allotments[i], max(e.r.Allotments[i].Start, s.now)); err != nil {
			return err
		}
	}
	if err := s.takeBeside(e, every); err != nil {
		return err
	}
	s.ledger.count(e, 1)
	s.timers.add(s.waitFor(e))
	return nil
}

// modify makes a reservation one for another request, with another place.
func (s *State) modify(e *Entry, c *change.Change) error {
	if c.Request == nil || len(c.Moved) != len(c.Request.Parts) {
		return fmt.Errorf("it is modified to nothing")
	}
	if !e.vacant {
		if err := s.vacate(e); err != nil {
			return err
		}
	}
	r := e.write()
	r.Request, e.running = c.Request, int32(len(c.Moved))
	if e.rare != nil {
		e.rare.multi = nil
	}
	if c.Terms == nil { // on record without terms, which follow from its place
		r.Terms, r.Missing = berth.Terms{Expires: r.Terms.Expires}, 0
	}
	return s.move(e, c)
}

// resize gives the only part of a reservation other PEs for the same time.
func (s *State) resize(e *Entry, to []berth.Allotment) error {
	if len(to) != 1 || len(e.r.Allotments) != 1 || to[0].Resource != e.r.Allotments[0].Resource || to[0].NPE < 0 {
		return fmt.Errorf("it cannot be resized so")
	}
	if e.vacant {
		return s.stay(e, to)
	}
	was, a := e.r.Allotments[0], to[0]
	from := max(a.Start, s.now)
	s.ledger.count(e, -1)
	if from < a.End {
		if err := s.unbook(&was, from); err != nil {
			return err
		}
	}
	active := e.r.State == berth.Active
	i, _ := s.Index(a.Resource)
	idle := s.pools[i].idle
	e.allot(to)
	if !active {
		s.timers.drop(&e.first)
	}
	if active {
		left := was
		left.Start, left.PEs = from, was.PEs.Minus(a.PEs)
		if err := s.reclaim(&left); err != nil {
			return err
		}
		if idle != nil {
			idle.Add(was.PEs.Minus(s.outNow(a.Resource)))
			idle.Delete(a.PEs)
			gained := a
			gained.PEs = a.PEs.Minus(was.PEs)
			if err := s.yield(&gained); err != nil {
				return err
			}
		}
	}
	if from < a.End {
		if err := s.book(&a, from); err != nil {
			return err
		}
	}
	e.write().Generation++
	s.setMissing(e)
	s.ledger.count(e, 1)
	if !active { // it may have lost the names of its PEs, or all of them
		s.timers.add(s.waitFor(e))
	}
	return nil
}

// stay gives a vacated reservation its own time again, with other PEs.
func (s *State) stay(e *Entry, to []berth.Allotment) error {
	e.allot(to)
	e.vacant = false
	e.write().Generation++
	a := &e.r.Allotments[0]
	if from := max(a.Start, s.now); from < a.End {
		if err := s.book(a, from); err != nil {
			return err
		}
	}
	s.setMissing(e)
	s.ledger.count(e, 1)
	s.timers.add(s.waitFor(e))
	return s.takeBeside(e, s.waiting(e))
}

// stage folds Staged: data are moved at other times.
func (s *State) stage(e *Entry, c *change.Change) error {
	r := e.write()
	if err := s.giveUplink(r.Transfers, every); err != nil {
		return err
	}
	if c.Stocks != nil {
		if err := s.giveStocks(r.Stocks); err != nil {
			return err
		}
		if err := s.takeStocks(c.Stocks); err != nil {
			return err
		}
		r.Stocks = c.Stocks
	}
	r.Transfers = c.Transfers
	if len(c.Transfers) == 1 && c.Transfers[0].Site == "" { // on record without a site
		r.Transfers = slices.Clone(c.Transfers)
		r.Transfers[0].Site = r.Allotments[0].Resource.Site
	}
	return s.takeUplink(r.Transfers, every)
}

// end ends one part, early if its time is not over.
func (s *State) end(e *Entry, part int) error {
	if part < 0 || part >= len(e.r.Allotments) || !e.Holds(part) {
		return fmt.Errorf("it has no running part %d", part)
	}
	if err := s.free(e, part); err != nil {
		return err
	}
	if s.ledger.dropPart(e, part); e.running == 0 {
		s.leavePools(e)
		s.dropNoShow(e)
		delete(s.degraded, e.ID())
		return s.giveBeside(e, every)
	}
	return nil
}

// cancel ends every part.
func (s *State) cancel(e *Entry) error {
	if e.vacant {
		return s.gone(e)
	}
	for part := range e.r.Allotments {
		if e.Holds(part) {
			if err := s.end(e, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone drops a vacated reservation, with the data that are on their way to it.
func (s *State) gone(e *Entry) error {
	if !e.vacant {
		return fmt.Errorf("it has a place")
	}
	delete(s.degraded, e.ID())
	s.ledger.forget(e, nil) // it is vacant
	s.leavePools(e)
	e.running = 0
	return s.giveUplink(e.r.Transfers, s.begun(e))
}

// enterPools notes that a reservation is in its pools.
func (s *State) enterPools(e *Entry) {
	s.countParts(e, 1)
	if e.r.State == berth.Active {
		s.enlistActive(e)
	}
}

// leavePools notes that it leaves them.
func (s *State) leavePools(e *Entry) {
	s.countParts(e, -1)
	if e.active > 0 {
		list := s.activeBeside(e)
		last := len(*list) - 1
		moved := (*list)[last]
		(*list)[e.active-1], moved.active = moved, e.active
		(*list)[last], e.active = nil, 0
		*list = (*list)[:last]
	}
}

// enlistActive enters what has started in the list for its pool.
func (s *State) enlistActive(e *Entry) {
	list := s.activeBeside(e)
	*list = append(*list, e)
	e.active = int32(len(*list))
}

// activeBeside returns the list that has what has started where a reservation is.
func (s *State) activeBeside(e *Entry) *[]*Entry {
	if len(e.r.Allotments) > 1 {
		return &s.several
	}
	at, _ := s.Index(e.r.Allotments[0].Resource)
	return &s.pools[at].active
}

// countParts counts the parts of a reservation in its pools, or with a sign of -1 no longer.
func (s *State) countParts(e *Entry, sign int) {
	for i := range e.r.Allotments {
		at, _ := s.Index(e.r.Allotments[i].Resource)
		s.pools[at].parts += sign
	}
}

// free gives back what is left of a part's time, and its PEs.
func (s *State) free(e *Entry, part int) error {
	a := &e.r.Allotments[part]
	s.timers.drop(e.timer(part))
	active := e.r.State == berth.Active
	if from := max(a.Start, s.now); !s.planned.stop(e, a, from) && from < a.End {
		if err := s.unbook(a, from); err != nil {
			return err
		}
	}
	if !active {
		return nil
	}
	if len(s.outages) > 0 {
		tail := *a
		tail.Start = max(a.Start, s.now)
		if err := s.reclaim(&tail); err != nil {
			return err
		}
	}
	if i, _ := s.Index(a.Resource); s.pools[i].idle != nil {
		s.pools[i].idle.Add(a.PEs.Minus(s.outNow(a.Resource)))
	}
	return nil
}
