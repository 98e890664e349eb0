package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
)

// Outage is PEs of a resource that cannot be used for a while.
type Outage struct {
	Number   uint64           `json:"number"` // in the order in which they began
	Resource berth.ResourceID `json:"resource"`
	PEs      berth.PESet      `json:"pes"`
	// From is when it begins if that was still to come when it was told; 0 is at
	// once.
	From berth.Time `json:"from,omitempty"`
	// Until is when the PEs come back by themselves, Forever if nobody knows.
	Until berth.Time `json:"until"`
}

// block returns what an outage books from that time on. Calendars end where
// times do.
func (o *Outage) block(from berth.Time) *berth.Allotment {
	return &berth.Allotment{
		Resource: o.Resource, Start: max(from, o.From), End: min(o.Until, berth.TimeLimit-1), NPE: o.PEs.Count(), PEs: o.PEs,
	}
}

// down takes PEs out of use, those of them that are not out of use at some of
// that time already. What runs on them then fails, now: it is not waited for the
// beginning of an outage to come. Promises in their way are placed anew within their
// windows, in the order of their starts; what finds no place is lost. At a
// managed site both outlive it: see repair. A job that was about to start waits
// again.
func (e *Engine) down(event *Event) error {
	res, err := e.outOf(event)
	if err != nil {
		return err
	}
	until := event.Until
	if until == 0 {
		until = berth.Forever
	}
	if until <= e.state.now || (!until.Valid() && until != berth.Forever) {
		return berth.Errorf(berth.Invalid, "until", "%d is not after now, %d, or beyond 2^42 s", until, e.state.now)
	}
	from := max(event.From, e.state.now)
	if _, late := e.state.idleOf(res.id); until <= from || (late && from > e.state.now) {
		return berth.Errorf(berth.Invalid, "from", "%d; want a time before %d, and none to come at a pool of late binding", event.From, until)
	}
	pes := event.PEs
	for _, o := range e.state.outages {
		if o.Resource == res.id && o.From < until && from < o.Until {
			pes = without(pes, o.PEs)
		}
	}
	if pes.Empty() {
		return nil
	}
	outage := &Outage{Number: e.state.outageNumber + 1, Resource: res.id, PEs: pes, Until: until}
	if from > e.state.now {
		outage.From = from
	}
	block := outage.block(e.state.now)
	for _, entry := range e.state.ledger.inOrder() {
		switch {
		case entry.State != berth.Active || !e.runsOn(entry, block):
		case e.outlives(entry):
			e.shrink(entry, pes)
		default:
			e.emit(Change{Kind: Failed, ID: entry.Request.ID, entry: entry})
			e.effect(EffectRelease, &entry.Reservation)
		}
	}
	var displaced []*entry
	for _, d := range e.inTheWay(res.id, blockOf(block, block.Start), true) {
		if e.outlives(d) {
			e.shrink(d, pes)
			continue
		}
		e.emit(Change{Kind: Moved, ID: d.Request.ID, entry: d})
		displaced = append(displaced, d)
	}
	e.yield([]berth.Allotment{*block})
	e.emit(Change{Kind: WentDown, Outage: outage})
	slices.SortFunc(displaced, byStart)
	for _, d := range displaced {
		if d.Request.IsJob() {
			e.emit(Change{Kind: Requeued, ID: d.Request.ID, Request: d.Request, entry: d})
			continue
		}
		var at []berth.Allotment
		var refusal *berth.Refusal
		e.state.placing.again = d
		e.state.aside(d, func() { at, refusal = e.place(d.Request) })
		if e.state.placing.again = nil; refusal == nil {
			e.yield(at)
			e.relocate(d, at)
		} else {
			e.emit(Change{Kind: Lost, ID: d.Request.ID, Refusal: refusal, entry: d})
			e.effect(EffectRelease, &d.Reservation)
		}
	}
	e.released()
	return nil
}

// byStart orders reservations by their starts, equals by acceptance.
func byStart(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.Start(), b.Start()), cmp.Compare(a.Sequence, b.Sequence))
}

// up brings PEs back, those of them that are out of use or will be.
func (e *Engine) up(event *Event) error {
	res, err := e.outOf(event)
	if err != nil {
		return err
	}
	for _, o := range slices.Clone(e.state.outages) {
		if back := without(o.PEs, without(o.PEs, event.PEs)); o.Resource == res.id && !back.Empty() {
			e.emit(Change{Kind: CameUp, Outage: &Outage{Number: o.Number, Resource: o.Resource, PEs: back, From: o.From, Until: o.Until}})
		}
	}
	e.released()
	return nil
}

// outOf returns the resource that a Down or Up event is about.
func (e *Engine) outOf(event *Event) (*resource, error) {
	for i := range e.state.resources {
		res := &e.state.resources[i]
		if res.id != event.Resource {
			continue
		}
		if event.PEs.Empty() || event.PEs.Max() >= berth.PE(res.pool.PEs) {
			return nil, berth.Errorf(berth.Invalid, "pes", "%q; pool %q has PEs 0 to %d", event.PEs, res.id.Name, res.pool.PEs-1)
		}
		return res, nil
	}
	return nil, berth.Errorf(berth.NotFound, "resource", "no pool %q at site %q", event.Resource.Name, event.Resource.Site)
}

// runsOn reports whether a part of an active reservation that is not over has
// one of the PEs of an outage while it lasts.
func (e *Engine) runsOn(entry *entry, out *berth.Allotment) bool {
	for part := range entry.Allotments {
		a := &entry.Allotments[part]
		if a.Resource == out.Resource && (a.End > out.Start || out.Start <= e.state.now) && common(a.PEs, out.PEs) > 0 && entry.holds(part) {
			return true
		}
	}
	return false
}

// without returns the PEs of a that are not in b.
func without(a, b berth.PESet) berth.PESet {
	var left []berth.Run
	for _, run := range a.Runs() {
		for _, cut := range b.Runs() {
			if cut.Hi <= run.Lo || run.Hi <= cut.Lo {
				continue
			}
			left = append(left, berth.Run{Lo: run.Lo, Hi: cut.Lo})
			run.Lo = cut.Hi
		}
		left = append(left, run)
	}
	return berth.NewPESet(slices.DeleteFunc(left, func(r berth.Run) bool { return r.Lo >= r.Hi })...)
}

// addOutage folds WentDown.
func (s *state) addOutage(o *Outage) error {
	if s.calendarOf(o.Resource) == nil {
		return fmt.Errorf("outage %d: no resource %v", o.Number, o.Resource)
	}
	if b := o.block(s.now); b.Start < b.End {
		if err := s.book(b, b.Start); err != nil {
			return fmt.Errorf("outage %d: %w", o.Number, err)
		}
	}
	if idle, late := s.idleOf(o.Resource); late {
		idle.Delete(o.PEs)
	}
	s.outageNumber = max(s.outageNumber, o.Number)
	s.outages = append(s.outages, o)
	s.timeOutage(o)
	return nil
}

// timeOutage sets the timer of an outage of which the end is known.
func (s *state) timeOutage(o *Outage) {
	if o.Until < berth.Forever {
		t := outageTimer(o)
		s.timers.add(t)
		s.outageTimers[o.Number] = t
	}
}

// endOutage folds CameUp: some or all of the PEs of an outage are back.
func (s *state) endOutage(back *Outage) error {
	i := slices.IndexFunc(s.outages, func(o *Outage) bool { return o.Number == back.Number })
	if i < 0 {
		return fmt.Errorf("no outage %d", back.Number)
	}
	o := s.outages[i]
	if b := back.block(s.now); b.Start < b.End {
		if err := s.unbook(b, b.Start); err != nil {
			return fmt.Errorf("outage %d: %w", o.Number, err)
		}
	}
	if idle, late := s.idleOf(o.Resource); late {
		idle.Add(back.PEs)
	}
	if t, ok := s.outageTimers[o.Number]; ok {
		s.timers.drop(t)
		delete(s.outageTimers, o.Number)
	}
	left := *o
	if left.PEs = without(o.PEs, back.PEs); left.PEs.Empty() {
		s.outages = slices.Delete(s.outages, i, i+1)
		return nil
	}
	s.outages[i] = &left
	s.timeOutage(&left)
	return nil
}
