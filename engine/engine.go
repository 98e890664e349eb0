package engine

import (
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// Engine is the deterministic core. It is not safe for concurrent use.
type Engine struct {
	config   Config
	settings settings
	state    *state

	changes    []Change // of the Apply under way
	effects    []Effect
	quick      quick              // of the passes for jobs
	plans      []berth.Allotment  // to which changes point
	pes        []berth.PESet      // likewise
	candidates []policy.Candidate // scratch space of ranked
}

// New returns an engine with everything free. The error is of code Invalid and
// names the part of the configuration that cannot be right.
func New(config Config) (*Engine, error) {
	settings, err := config.resolve()
	if err != nil {
		return nil, err
	}
	return &Engine{config: config, settings: settings, state: newState(&config, &settings)}, nil
}

// Apply lets time pass to now, with everything that was due before the event,
// then applies the event. It returns the changes it made, already folded into
// the state, and the effects it wants carried out; both slices are valid until
// the next call, and so are Plan and PEs of the changes. Events at one instant
// take their places by Class, in the order of Config.Instant: by default ends
// and expiries come before requests that arrive, starts after them. Time must
// not run back.
//
// An error concerns the event alone, which then changed nothing; the changes
// of the time that passed stand and are returned. Its code is Invalid (the
// event is malformed), Conflict (an id is taken, the state does not allow it)
// or NotFound. A refused request is no error: it is a Refused change.
func (e *Engine) Apply(now berth.Time, event Event) ([]Change, []Effect, error) {
	e.changes, e.effects, e.plans, e.pes = e.changes[:0], e.effects[:0], e.plans[:0], e.pes[:0]
	if !now.Valid() || now < e.state.now {
		return nil, nil, berth.Errorf(berth.Invalid, "now", "%d is before the engine's time %d, or beyond ±2^42 s", now, e.state.now)
	}
	rank := uint8(classes)
	if event.Kind != Wake {
		rank = e.settings.ranks[event.class()]
	}
	if event.Kind == Down || event.Kind == Up {
		rank++ // what comes back at this moment is back, and may go down again
	}
	e.catchUp(now, rank)
	e.advance(now)
	err := e.apply(event)
	return e.changes, e.effects, err
}

// Next returns the time at which the engine wants to be woken: the earliest
// thing due. ok is false if nothing is.
func (e *Engine) Next() (at berth.Time, ok bool) {
	return e.state.due()
}

// catchUp runs what is due before now, and at now what ranks before rank.
func (e *Engine) catchUp(now berth.Time, rank uint8) {
	for {
		if at, _ := e.state.due(); at > now {
			return
		}
		t := e.state.next()
		if t.At == now && e.settings.ranks[t.Class] >= rank {
			return
		}
		e.advance(max(t.At, e.state.now))
		switch t.Class {
		case ClassEnd:
			e.limit(t.entry, t.Part)
		case ClassExpiry:
			switch {
			case t.job != nil:
				e.expire(t.job)
			case t.Part == ofNoShow:
				e.noShow(t.entry)
			default:
				e.expireHeld(t.entry)
			}
		case ClassCapacity:
			e.emit(Change{Kind: CameUp, Outage: t.outage})
			e.released()
		case ClassPeriod:
			if t.job == nil {
				e.pass()
				break
			}
			e.run(t.job, *t.job.plan)
		case ClassStart:
			e.start(t.entry)
		default:
			panic("engine: a timer of a class that has none")
		}
	}
}

// advance moves the time on.
func (e *Engine) advance(now berth.Time) {
	if now > e.state.now {
		e.emit(Change{Kind: Advanced, Now: now})
	}
}

// emit records a change and folds it.
func (e *Engine) emit(c Change) {
	if err := e.state.fold(&c); err != nil {
		panic("engine: " + err.Error())
	}
	e.changes = append(e.changes, c)
}

// effect puts an effect into the outbox if somebody carries it out there.
func (e *Engine) effect(kind EffectKind, r *berth.Reservation) {
	var done []string
	for i := range r.Allotments {
		site := r.Allotments[i].Resource.Site
		if !e.state.managed[site] || slices.Contains(done, site) {
			continue
		}
		done = append(done, site)
		effect := Effect{Number: e.state.effects + 1, Kind: kind, Site: site, Reservation: r.Request.ID, Generation: r.Generation}
		e.emit(Change{Kind: Emitted, Effect: &effect})
		e.effects = append(e.effects, effect)
	}
}

func (e *Engine) apply(event Event) error {
	switch event.Kind {
	case Wake:
		return nil
	case Submit:
		return e.submit(event.Request)
	case Cancel:
		return e.cancel(event.ID)
	case Confirm:
		return e.confirm(event.ID)
	case Modify:
		return e.modify(event.ID, event.Request)
	case Prolong:
		return e.prolong(event.ID, event.Until)
	case Show:
		return e.show(event.ID)
	case Avoid:
		return e.avoid(&event)
	case Finish:
		return e.finish(event.ID)
	case Down:
		return e.down(&event)
	case Up:
		return e.up(&event)
	case Foresee:
		return e.foresee(event.Forecast)
	case Settle:
		if !slices.ContainsFunc(e.state.outbox, func(x Effect) bool { return x.Number == event.Effect }) {
			return berth.Errorf(berth.NotFound, "effect", "no effect %d in the outbox", event.Effect)
		}
		e.emit(Change{Kind: Settled, EffectID: event.Effect})
		return nil
	}
	return berth.Errorf(berth.Invalid, "kind", "unknown event %q", event.Kind)
}

func (e *Engine) submit(r *berth.Request) error {
	switch {
	case r == nil:
		return berth.Errorf(berth.Invalid, "request", "missing")
	case r.Arrival > e.state.now:
		return berth.Errorf(berth.Invalid, "arrival", "%d is after now, %d", r.Arrival, e.state.now)
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if _, live := e.state.ledger.live[r.ID]; live || e.isPending(r.ID) {
		return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already", r.ID)
	}
	if err := e.counted(r); err != nil {
		return err
	}
	e.emit(Change{Kind: Queued, ID: r.ID, Request: r})
	e.arrived(r)
	return nil
}

func (e *Engine) isPending(id string) bool {
	_, job := e.state.jobs.byID[id]
	_, request := e.state.queue.byID[id]
	return job || request
}

func (e *Engine) cancel(id string) error {
	if e.isPending(id) {
		e.emit(Change{Kind: Withdrawn, ID: id})
		e.released()
		return nil
	}
	entry, live := e.state.ledger.live[id]
	if !live {
		return berth.Errorf(berth.NotFound, "id", "no pending request or live reservation %q", id)
	}
	e.emit(Change{Kind: Cancelled, ID: id})
	e.effect(EffectRelease, &entry.Reservation)
	e.released()
	return nil
}

// confirm makes a held reservation a confirmed one; one whose start has passed
// starts then.
func (e *Engine) confirm(id string) error {
	entry, live := e.state.ledger.live[id]
	switch {
	case !live:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q; if it was held, it has expired", id)
	case entry.State != berth.Held:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not held", id, entry.State)
	case firstEnd(entry.Allotments) <= e.state.now: // where arrivals come before expiries
		return berth.Errorf(berth.Conflict, "id", "reservation %q is over at this moment", id)
	}
	e.emit(Change{Kind: Confirmed, ID: id, entry: entry})
	return nil
}

// expireHeld drops a held reservation that nobody confirmed (GridSim: a
// reservation that is created and not committed in time expires).
func (e *Engine) expireHeld(entry *entry) {
	e.emit(Change{Kind: Expired, ID: entry.Request.ID, entry: entry})
	e.effect(EffectRelease, &entry.Reservation)
	e.released()
}

func (e *Engine) finish(id string) error {
	entry, live := e.state.ledger.live[id]
	switch {
	case !live:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", id)
	case entry.State != berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not active; only what runs can finish", id, entry.State)
	}
	for part := range entry.Allotments {
		if entry.holds(part) {
			e.end(entry, part)
		}
	}
	e.released()
	return nil
}

// start makes a reservation active; parts bound late get the lowest-numbered
// idle PEs of their pools.
func (e *Engine) start(entry *entry) {
	if entry.Missing > 0 && entry.Allotments[0].NPE == 0 { // none of its PEs came back
		e.emit(Change{Kind: Failed, ID: entry.Request.ID, entry: entry})
		e.effect(EffectRelease, &entry.Reservation)
		return
	}
	change := Change{Kind: Started, ID: entry.Request.ID, entry: entry}
	for part := range entry.Allotments {
		a := &entry.Allotments[part]
		idle, late := e.state.idleOf(a.Resource)
		if !late {
			continue
		}
		if change.PEs == nil {
			n := len(e.pes)
			e.pes = append(e.pes, make([]berth.PESet, len(entry.Allotments))...)
			change.PEs = e.pes[n:len(e.pes):len(e.pes)]
		}
		// Parts of one reservation in one pool must not share PEs.
		free := idle
		if part > 0 {
			free = slices.Clone(idle)
			for earlier := range part {
				if entry.Allotments[earlier].Resource == a.Resource {
					free.Delete(change.PEs[earlier])
				}
			}
		}
		change.PEs[part] = free.Lowest(a.NPE)
	}
	e.emit(change)
	e.effect(EffectLaunch, &entry.Reservation)
}

// end ends a part, and with the last one the reservation.
func (e *Engine) end(entry *entry, part int) {
	e.emit(Change{Kind: Ended, ID: entry.Request.ID, Part: part, entry: entry})
	if entry.running == 0 {
		e.effect(EffectRelease, &entry.Reservation)
	}
}

// Now returns the time to which the engine has advanced.
func (e *Engine) Now() berth.Time { return e.state.now }

// Reservation returns a live reservation.
func (e *Engine) Reservation(id string) (berth.Reservation, bool) {
	entry, ok := e.state.ledger.live[id]
	if !ok {
		return berth.Reservation{}, false
	}
	return entry.Reservation, true
}

// Reservations yields the live reservations in the order of acceptance.
// Cost: O(n log n).
func (e *Engine) Reservations() iter.Seq[berth.Reservation] {
	return func(yield func(berth.Reservation) bool) {
		for _, entry := range e.state.ledger.inOrder() {
			if !yield(entry.Reservation) {
				return
			}
		}
	}
}

// Holder returns the id of the reservation that holds a PE at t, from now on.
// ok is false if none does, or none that has its numbers yet.
func (e *Engine) Holder(resource berth.ResourceID, pe berth.PE, t berth.Time) (id string, ok bool) {
	e.state.ledger.at(resource, t, func(entry *entry, part int) bool {
		if entry.Allotments[part].PEs.Contains(pe) {
			id, ok = entry.Request.ID, true
		}
		return !ok
	})
	return id, ok
}

// Outbox returns the effects not yet settled, in order. The slice is the
// caller's.
func (e *Engine) Outbox() []Effect { return slices.Clone(e.state.outbox) }
