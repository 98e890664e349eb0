package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// down takes PEs out of use. PEs are out of use while any outage names them. Promises in
// the way of an outage are placed again at once, even if it begins later. When it
// begins, what runs on its PEs fails, or is repaired at a managed site.
func (e *Engine) down(event *Event) error {
	if _, err := e.poolOf(event); err != nil {
		return err
	}
	now := e.state.Now()
	until, from := event.Until, max(event.From, now)
	if until == 0 {
		until = berth.Forever
	}
	switch {
	case until <= now || (!until.Valid() && until != berth.Forever):
		return berth.Errorf(berth.Invalid, "until", "%d; must be after now, %d, and before 2^42", until, now)
	case until <= from:
		return berth.Errorf(berth.Invalid, "from", "%d; must be before the end, %d", event.From, until)
	}
	outage := &berth.Outage{Number: e.state.LastOutage() + 1, Name: event.Name, Resource: event.Resource, PEs: event.PEs, Until: until}
	if from > now {
		outage.From = from
	}
	lifted, known := e.known(outage)
	if known {
		return nil
	}
	if lifted != nil {
		e.emit(change.Change{Kind: change.CameUp, Outage: lifted})
	}
	if outage.From == 0 {
		e.fail(outage)
	}
	displaced := e.clearFor(outage)
	e.emit(change.Change{Kind: change.WentDown, Outage: outage})
	if outage.From == 0 {
		e.strike(outage, e.outliving(displaced))
	}
	e.replace(displaced, false)
	e.freed()
	return nil
}

// clearFor takes what is in the way of an outage from its place, and returns the promises among
// that, by start. Jobs that yield to an announced one give back PEs that it takes too.
func (e *Engine) clearFor(outage *berth.Outage) (displaced []*state.Entry) {
	same := func(a, b berth.Allotment) bool { return a.Start == b.Start && a.End == b.End && a.PEs.Equal(b.PEs) }
	var cleared []berth.Allotment
	for {
		blocks, inTheWay := e.inTheWay(outage)
		if slices.EqualFunc(blocks, cleared, same) {
			slices.SortFunc(displaced, state.ByStart)
			return displaced
		}
		cleared = blocks
		e.vacate(inTheWay)
		e.preempt(blocks, true)
		e.jobs.MakeWay(blocks)
		displaced = append(displaced, inTheWay...)
	}
}

// inTheWay returns what an outage would take, and what would have to give up its place for that, by start.
func (e *Engine) inTheWay(outage *berth.Outage) (blocks []berth.Allotment, displaced []*state.Entry) {
	blocks = e.state.Uncovered(outage)
	var yielding []*state.Entry
	if e.config.Preempt {
		yielding = e.finder.RunningJobs()
	}
	displaced, ok := e.finder.InTheWay(blocks, true, yielding)
	if !ok {
		panic("engine: more is in the way of an outage than promises")
	}
	return blocks, displaced
}

// Displaced returns the ids of the promises that would give up their places for an outage that begins after now, by start. In a
// pool of late binding these are as few as leave room for the rest. Cost: O(outages + live reservations).
func (e *Engine) Displaced(outage berth.Outage) (ids []string) {
	_, displaced := e.inTheWay(&outage)
	for _, d := range displaced {
		if !d.Request().IsJob() {
			ids = append(ids, d.ID())
		}
	}
	return ids
}

// known reports whether an outage says nothing new. Otherwise lifted is the outage of
// the same name that it replaces, or nil. A PE of an outage without a name is not new if
// another outage without a name has it, begins at the same time and ends no earlier. If
// that one begins earlier, the PE may come back before this one begins.
func (e *Engine) known(o *berth.Outage) (lifted *berth.Outage, known bool) {
	for other := range e.state.Outages() {
		switch {
		case other.Resource != o.Resource || other.Name != o.Name:
		case o.Name == "":
			if other.From == o.From && o.Until <= other.Until {
				o.PEs = o.PEs.Minus(other.PEs)
			}
		default:
			if other.From == o.From && other.Until == o.Until && other.PEs.Equal(o.PEs) {
				return nil, true
			}
			lifted = &other
		}
	}
	return lifted, o.PEs.Empty()
}

// fail ends what runs on the PEs of an outage that begins and does not outlive that.
func (e *Engine) fail(o *berth.Outage) {
	for _, d := range e.running(o) {
		if !e.outlives(d) {
			e.emitOf(d, change.Change{Kind: change.Failed})
		}
	}
}

// strike takes the PEs of an outage that begins from the reservations that run on them
// and outlive that. Each gets as many free PEs instead as there are beside the places of
// vacated reservations.
func (e *Engine) strike(o *berth.Outage, vacated []*state.Entry) {
	for _, d := range e.outliving(e.running(o)) {
		if grown := e.finder.Grown(d, o.PEs, vacated); !grown.PEs.Equal(d.Part(0).PEs) {
			e.resize(d, &grown)
		}
	}
}

// running returns what runs on the PEs of an outage, by sequence.
func (e *Engine) running(o *berth.Outage) []*state.Entry {
	return e.state.ActiveIn(o.Resource, func(d *state.Entry) bool { return e.holdsAny(d, o.Resource, o.PEs) })
}

// holdsAny reports whether a part of a reservation that is not over holds one of some
// PEs of a pool.
func (e *Engine) holdsAny(d *state.Entry, pool berth.ResourceID, pes berth.PESet) bool {
	allotments := d.Look().Allotments
	for part := range allotments {
		if a := &allotments[part]; a.Resource == pool && d.Holds(part) && a.End > e.state.Now() && a.PEs.Overlap(pes) > 0 {
			return true
		}
	}
	return false
}

// outageDue is what happens when an outage begins or ends.
func (e *Engine) outageDue(number uint64, part int) {
	o, ok := e.state.Outage(number)
	if !ok {
		panic("engine: a timer of an outage that is over")
	}
	if part == state.OfBegin {
		e.emit(change.Change{Kind: change.OutageBegan, Outage: &o})
		e.fail(&o)
		e.strike(&o, nil)
	} else {
		e.emit(change.Change{Kind: change.CameUp, Outage: &o})
	}
	e.freed()
}

// up brings PEs back: those of the outage of a name, or those that are named.
func (e *Engine) up(event *Event) error {
	if event.Name == "" {
		if _, err := e.poolOf(event); err != nil {
			return err
		}
	} else if _, ok := e.state.Index(event.Resource); !ok {
		return noPool(event.Resource)
	}
	var ended, announced []berth.Outage
	inForce := event.PEs
	for o := range e.state.Outages() {
		switch {
		case o.Resource != event.Resource || event.Name != "" && o.Name != event.Name:
		case event.Name != "":
			ended = append(ended, o)
		case o.From > e.state.Now():
			announced = append(announced, o)
		default:
			inForce = inForce.Minus(o.PEs)
			if o.PEs = o.PEs.And(event.PEs); !o.PEs.Empty() {
				ended = append(ended, o)
			}
		}
	}
	for _, o := range announced {
		if o.PEs = o.PEs.And(inForce); !o.PEs.Empty() { // none of these is out now
			ended = append(ended, o)
		}
	}
	for i := range ended {
		e.emit(change.Change{Kind: change.CameUp, Outage: &ended[i]})
	}
	e.freed()
	return nil
}

// poolOf returns the binding of the pool that an event is about, and whose PEs it
// names.
func (e *Engine) poolOf(event *Event) (berth.Binding, error) {
	i, ok := e.state.Index(event.Resource)
	if !ok {
		return "", noPool(event.Resource)
	}
	view := e.state.View(i)
	if event.PEs.Empty() || event.PEs.Max() >= berth.PE(view.Size()) {
		return "", berth.Errorf(berth.Invalid, "pes", "%q; pool %q has PEs 0 to %d", event.PEs, event.Resource.Name, view.Size()-1)
	}
	return view.Binding(), nil
}

func noPool(id berth.ResourceID) error {
	return berth.Errorf(berth.NotFound, "resource", "no pool %q at site %q", id.Name, id.Site)
}
