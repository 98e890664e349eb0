package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/jobs"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Engine is the deterministic core. It is not safe for concurrent use.
type Engine struct {
	config   Config
	settings settings
	state    *state.State
	finder   *place.Finder
	jobs     *jobs.Runner

	changes []change.Change // of the Apply under way
	effects []change.Effect // likewise
	pes     []berth.PESet   // to which changes point, in pieces

	names   naming            // of the Apply under way
	cost    *Cost             // likewise, of what is promised; nil if no limit bounds it
	atLimit map[string]string // likewise, tasks that may not go on for a limit

	spare struct { // of changes that the caller has given back
		reservations []*berth.Reservation
		plans        []*berth.Allotment
		effects      []change.Effect // empty: room for those that are emitted next
	}

	yielded   bool // jobs have been stopped, and their PEs are not offered yet
	shortened bool // jobs will be stopped, and what they give up is not offered yet
}

// New returns an engine with everything free. The error is of code Invalid and
// names the part of the configuration that cannot be right. The engine keeps a copy
// of the configuration.
func New(config Config) (*Engine, error) {
	config = config.clone()
	settings, err := config.resolve()
	if err != nil {
		return nil, err
	}
	return newEngine(config, settings, state.New(settings.state)), nil
}

func newEngine(config Config, settings settings, s *state.State) *Engine {
	e := &Engine{config: config, settings: settings, state: s, finder: place.NewFinder(settings.rules, s), atLimit: map[string]string{}}
	// An order without keys looks at a part of the queue in each round, so it cannot tell what others have seen.
	plain := config.PlainPasses || settings.state.Order.Key == nil
	e.jobs = jobs.NewRunner(settings.pass, config.Compress, plain, s, e.finder, emitter{e})
	return e
}

// Apply lets time pass to now, with everything that was due before the event, then
// applies the event. It returns the changes it made, already folded into the state,
// and the effects it wants carried out; both are the caller's. Events at one
// instant take their places by class, in the order of Config.Instant: by default
// ends and expiries come before requests that arrive, starts after them. Time must
// not run back.
//
// An error concerns the event alone, which then changed nothing; the changes of the
// time that passed stand and are returned. Its code is Invalid (the event is
// malformed), Conflict (an id is taken, the state does not allow it) or NotFound. A
// refused request is no error: it is a refused change.
func (e *Engine) Apply(now berth.Time, event Event) ([]change.Change, []change.Effect, error) {
	return e.AppendApply(nil, nil, now, &event)
}

// AppendApply is Apply, which appends to slices that may be used again for the next
// call. What the elements beyond their length refer to is used again too. The event is only read.
func (e *Engine) AppendApply(changes []change.Change, effects []change.Effect, now berth.Time, event *Event) ([]change.Change, []change.Effect, error) {
	if !now.Valid() || now < e.state.Now() {
		return changes, effects, berth.Errorf(berth.Invalid, "now", "%d; must be at or after the engine's time, %d, and within ±2^42 s", now, e.state.Now())
	}
	e.changes, e.effects = changes, effects
	rank := uint8(state.Classes)
	if event.Kind != EventWake {
		rank = e.settings.state.Ranks[event.class()]
	}
	if event.Kind == EventDown || event.Kind == EventUp {
		rank++ // what comes back at this moment is back, and may go down again
	}
	e.catchUp(now, rank)
	e.advance(now)
	if e.state.Touched() {
		e.askSites() // for what was due, as if that had been an Apply of its own
	}
	err := e.apply(event)
	e.cost = nil
	e.conclude()
	if e.state.Touched() {
		e.askSites()
	}
	changes, effects = e.changes, e.effects
	e.changes, e.effects = nil, nil
	return changes, effects, err
}

// Next returns the time at which the engine wants to be woken: the earliest thing
// due. ok is false if nothing is.
func (e *Engine) Next() (at berth.Time, ok bool) { return e.state.Due() }

// catchUp runs what is due before now, and at now what ranks before rank.
func (e *Engine) catchUp(now berth.Time, rank uint8) {
	for {
		if at, _ := e.state.Due(); at > now {
			return
		}
		t := e.state.Next()
		if t.At == now && e.settings.state.Ranks[t.Class] >= rank {
			return
		}
		e.advance(max(t.At, e.state.Now()))
		switch t.Class {
		case state.ClassEnd:
			e.endReached(t.Entry, t.Part)
		case state.ClassExpiry:
			switch {
			case t.Job != nil:
				e.expireJob(t.Job)
			case t.Part == state.OfNoShow:
				e.end(t.Entry, change.NoShow)
			default: // GridSim: a reservation that is created and not committed in time expires
				e.end(t.Entry, change.Expired)
			}
		case state.ClassCapacity:
			e.outageDue(t.Outage, t.Part)
		case state.ClassPeriod:
			switch {
			case t.Entry != nil: // its PEs get names with those of all others that are due
				e.names.due = true
			case t.Job == nil:
				e.schedulingPoint()
			default:
				plan, _ := t.Job.Plan()
				e.jobs.Run(t.Job, &plan)
			}
		case state.ClassStart:
			e.start(t.Entry)
		case state.ClassArrival:
			e.prolong(t.Open)
		default:
			panic("engine: no handler for timer class")
		}
		e.conclude()
	}
}

// settle offers the PEs of preempted jobs to all that waits: a promise may take fewer
// PEs than the jobs held. What jobs give up later is only for promises that lack PEs: jobs
// start where they will have to yield. A repair may make more jobs yield, and goes on until
// nothing moves.
func (e *Engine) settle() {
	e.repair(nil)
	if e.yielded {
		e.retry()
	}
	e.yielded, e.shortened = false, false
}

// askSites emits the effects of what has changed. It does so before time moves on, so
// that the effects are the same however often the engine is woken.
func (e *Engine) askSites() {
	list := e.state.Unsettled(e.spare.effects)
	e.spare.effects = nil
	for i := range list {
		effect := &list[i]
		effect.Number = e.state.LastEffect() + 1
		c := e.room(change.Emitted)
		c.Effect = effect
		e.fold(c, state.Ref{})
	}
	e.effects = append(e.effects, list...)
}

// advance moves the time on.
func (e *Engine) advance(now berth.Time) {
	if now > e.state.Now() {
		if e.state.Touched() {
			e.askSites()
		}
		c := e.room(change.Advanced)
		c.Now = now
		e.fold(c, state.Ref{})
	}
}

// emit applies a change and records it.
func (e *Engine) emit(c change.Change) { e.emitAbout(&c, state.Ref{}) }

// emitOf is emit for a change of a reservation that is at hand.
func (e *Engine) emitOf(d *state.Entry, c change.Change) {
	c.ID = d.ID()
	e.emitAbout(&c, state.Ref{Entry: d})
}

func (e *Engine) emitAbout(c *change.Change, about state.Ref) {
	to := e.room(c.Kind)
	*to = *c
	e.fold(to, about)
}

// room returns room for a change of a kind behind all others, for who fills it in and then has it folded, before any
// other: a change is large, and most have one or two fields.
func (e *Engine) room(kind change.Kind) *change.Change {
	n := len(e.changes)
	if n == cap(e.changes) {
		e.changes = append(e.changes, change.Change{Kind: kind})
		return &e.changes[n]
	}
	e.changes = e.changes[:n+1]
	c := &e.changes[n]
	switch {
	case c.Reservation != nil && len(e.spare.reservations) < mostSpare:
		e.spare.reservations = append(e.spare.reservations, c.Reservation)
	case c.Plan != nil && len(e.spare.plans) < mostSpare:
		e.spare.plans = append(e.spare.plans, c.Plan)
	}
	*c = change.Change{}
	c.Kind = kind
	return c
}

// fold folds the last change into the state.
func (e *Engine) fold(c *change.Change, about state.Ref) {
	if e.state.Naming() {
		e.names.note(e.state, c, about.Entry)
	}
	if err := e.state.Fold(c, about); err != nil {
		panic("engine: " + string(c.Kind) + ": " + err.Error())
	}
}

// emitter is how the passes for jobs emit changes.
type emitter struct{ engine *Engine }

func (x emitter) Room(kind change.Kind) *change.Change   { return x.engine.room(kind) }
func (x emitter) Fold(c *change.Change, about state.Ref) { x.engine.fold(c, about) }
func (x emitter) Accepted() *berth.Reservation           { return x.engine.accepted() }
func (x emitter) Planned() *berth.Allotment              { return x.engine.planned() }

// mostSpare is how many reservations, and plans, are kept to be used again; changes of workflows bring theirs with them.
const mostSpare = 4096

// accepted returns room for the reservation of a change.
func (e *Engine) accepted() *berth.Reservation { return taken(&e.spare.reservations) }

// planned returns room for the plan of a change.
func (e *Engine) planned() *berth.Allotment { return taken(&e.spare.plans) }

// taken takes the last of what was given back, or makes one where there is none.
func taken[T any](spare *[]*T) *T {
	last := len(*spare) - 1
	if last < 0 {
		return new(T)
	}
	one := (*spare)[last]
	*spare = (*spare)[:last]
	return one
}

// apply applies an event at its moment.
func (e *Engine) apply(event *Event) error {
	switch event.Kind {
	case EventWake:
		return nil
	case EventSubmit:
		return e.submit(event)
	case EventCancel:
		return e.cancel(event.ID)
	case EventConfirm:
		return e.confirm(event.ID)
	case EventModify:
		return e.modify(event)
	case EventExtend:
		return e.extend(event)
	case EventCheckIn:
		return e.checkIn(event.ID)
	case EventRelocate:
		return e.relocate(event)
	case EventReject:
		return e.reject(event.ID, event.Refusal)
	case EventFinish:
		return e.finish(event.ID)
	case EventDown:
		return e.down(event)
	case EventUp:
		return e.up(event)
	case EventUpdateForecast:
		return e.updateForecast(event.Forecast)
	case EventSubmitWorkflow:
		return e.submitWorkflow(event)
	case EventConfirmWorkflow:
		return e.confirmWorkflow(event.ID)
	case EventCancelWorkflow:
		return e.cancelWorkflow(event.ID)
	case EventReport:
		return e.report(event)
	case EventSubmitSeries:
		return e.submitSeries(event)
	case EventCancelSeries:
		return e.cancelSeries(event)
	case EventModifySeries:
		return e.modifySeries(event)
	case EventSettle:
		if e.state.HasEffect(event.Effect) {
			e.emit(change.Change{Kind: change.Settled, EffectID: event.Effect})
			return nil
		}
		return berth.Errorf(berth.NotFound, "effect", "no effect %d in the outbox", event.Effect)
	}
	return berth.Errorf(berth.Invalid, "kind", "unknown event %q; it is one of %q", event.Kind, EventKinds())
}

// freed repairs reservations and looks at pending requests and jobs again: PEs were
// released, or a limit has ended.
func (e *Engine) freed() {
	e.repair(nil)
	e.retry()
}

// retry looks at pending requests and jobs again.
func (e *Engine) retry() {
	if e.settings.batch != nil && e.state.Queued() > 0 && e.settings.trigger != TriggerOnPeriod {
		e.schedule() // what is deferred may start now
	}
	e.jobs.Freed()
}
