package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// EventKind says what happened outside.
type EventKind string

// The kinds of event. Each has a function that makes one.
const (
	EventWake           EventKind = "wake"
	EventSubmit         EventKind = "submit"
	EventCancel         EventKind = "cancel"
	EventConfirm        EventKind = "confirm"
	EventModify         EventKind = "modify"
	EventExtend         EventKind = "extend"
	EventCheckIn        EventKind = "check_in"
	EventRelocate       EventKind = "relocate"
	EventReject         EventKind = "reject"
	EventFinish         EventKind = "finish"
	EventDown           EventKind = "down"
	EventUp             EventKind = "up"
	EventUpdateForecast EventKind = "update_forecast"
	EventSettle         EventKind = "settle"

	EventSubmitWorkflow  EventKind = "submit_workflow"
	EventConfirmWorkflow EventKind = "confirm_workflow"
	EventCancelWorkflow  EventKind = "cancel_workflow"
	EventReport          EventKind = "report"

	EventSubmitSeries EventKind = "submit_series"
	EventCancelSeries EventKind = "cancel_series"
	EventModifySeries EventKind = "modify_series"
)

// EventKinds lists every kind of event.
func EventKinds() []EventKind {
	return []EventKind{
		EventWake, EventSubmit, EventCancel, EventConfirm, EventModify, EventExtend, EventCheckIn, EventRelocate,
		EventReject, EventFinish, EventDown, EventUp, EventUpdateForecast, EventSettle,
		EventSubmitWorkflow, EventConfirmWorkflow, EventCancelWorkflow, EventReport,
		EventSubmitSeries, EventCancelSeries, EventModifySeries,
	}
}

// Event is one input of the engine, in the form in which it is kept on record. Only
// the fields of its kind are set. The engine keeps nothing of what it points to, but
// for SubmitGiven.
type Event struct {
	Kind    EventKind      `json:"kind"`
	Request *berth.Request `json:"request,omitempty"` // Submit, Modify
	ID      string         `json:"id,omitempty"`      // of the request, where there is one already
	Effect  uint64         `json:"effect,omitempty"`  // Settle
	// The pool and its PEs that Down, Up and Relocate are about. Relocate is refused
	// for pools of late binding.
	Resource berth.ResourceID `json:"resource,omitzero"`
	PEs      berth.PESet      `json:"pes,omitzero"`
	Name     string           `json:"name,omitempty"`  // Down, Up: of the outage
	From     berth.Time       `json:"from,omitempty"`  // Down, 0 for now
	Until    berth.Time       `json:"until,omitempty"` // Extend; Down, 0 if the end is not known
	Forecast *berth.Forecast  `json:"forecast,omitempty"`
	Refusal  *berth.Refusal   `json:"refusal,omitempty"` // Reject
	// Role is that of who asks, by which limits are chosen: Extend. Submit and Modify
	// have it in the request.
	Role string `json:"role,omitempty"`
	// Workflow is what SubmitWorkflow asks for, and Plan where its tasks are to be; nil has the
	// engine plan it. Of Report, Outcome is how a task ended, and Why
	// that in words.
	Workflow *berth.Workflow `json:"workflow,omitempty"`
	Plan     *WorkflowPlan   `json:"plan,omitempty"`
	Outcome  berth.Outcome   `json:"outcome,omitempty"`
	Why      string          `json:"why,omitempty"`
	// Series is what SubmitSeries asks for, and what an open series is to ask for after ModifySeries. Of CancelSeries, ID is a series, Of the
	// reservations of it that are given back, and First to Last the numbers of occurrences that are
	// not asked for any more.
	Series *berth.Series `json:"series,omitempty"`
	Of     []string      `json:"of,omitempty"`
	First  int           `json:"first,omitempty"`
	Last   int           `json:"last,omitempty"`
	// Requests are what ModifySeries asks for, by the ids of their reservations.
	Requests []berth.Request `json:"requests,omitempty"`
	// Foreseen is what Submit, Modify, Extend, SubmitWorkflow, SubmitSeries or ModifySeries would cost ordinary jobs, where a limit
	// bounds that; nil has the engine foresee it.
	Foreseen *Foreseen `json:"foreseen,omitempty"`

	given bool // the request is the engine's
}

// Wake brings nothing but the time: everything due by then happens.
func Wake() Event { return Event{Kind: EventWake} }

// Submit brings a request or an ordinary job.
func Submit(r *berth.Request) Event { return Event{Kind: EventSubmit, Request: r} }

// SubmitGiven is Submit of a request that is not changed while it is pending or live, and while what was
// returned about it is read: the engine keeps it instead of a copy, and changes and effects point to it. It saves a
// simulation a tenth of its memory. The engine only reads it, so that several
// engines may be given the same.
func SubmitGiven(r *berth.Request) Event { return Event{Kind: EventSubmit, Request: r, given: true} }

// Cancel withdraws a pending request or ends a reservation; what is left of its time
// is free again.
func Cancel(id string) Event { return Event{Kind: EventCancel, ID: id} }

// Confirm makes a held reservation a confirmed one.
func Confirm(id string) Event { return Event{Kind: EventConfirm, ID: id} }

// Modify asks for another request in place of that of a reservation that has not
// started, and has not held PEs since a start that is over; id, kind and user stay. It
// is atomic: if it is refused, the reservation stays as it is.
func Modify(r *berth.Request) Event {
	event := Event{Kind: EventModify, Request: r}
	if r != nil {
		event.ID = r.ID
	}
	return event
}

// Extend asks that a reservation lasts until a later time.
func Extend(id string, until berth.Time) Event {
	return Event{Kind: EventExtend, ID: id, Until: until}
}

// ExtendFor is Extend asked for by a role.
func ExtendFor(role, id string, until berth.Time) Event {
	return Event{Kind: EventExtend, ID: id, Until: until, Role: role}
}

// CheckIn says that an active reservation is in use.
func CheckIn(id string) Event { return Event{Kind: EventCheckIn, ID: id} }

// Relocate says that a reservation that has not started cannot be had on PEs of a
// pool: it gets the place nearest to its own without them, or else stays as it is.
// A reservation without any of the PEs does not move. A reservation at a managed site
// that has started, but is not in use yet, keeps its time and exchanges these PEs for
// free ones.
func Relocate(id string, pool berth.ResourceID, pes berth.PESet) Event {
	return Event{Kind: EventRelocate, ID: id, Resource: pool, PEs: pes}
}

// Reject says that a site will not have a reservation, wherever in it that would be and
// however often it is asked: the reservation fails for that reason, and what is left of its
// time is free again.
func Reject(id string, why *berth.Refusal) Event {
	return Event{Kind: EventReject, ID: id, Refusal: why}
}

// Finish says that an active reservation ended, early or at its limit.
func Finish(id string) Event { return Event{Kind: EventFinish, ID: id} }

// Down announces an outage: PEs of a pool that cannot be used from now on or from a
// time to come, until they are up again or the outage ends by itself, whichever is first. PEs are out of use while any outage names them. An
// outage with a name replaces the outage of that name of the same pool. The number of
// the outage is ignored; an Until of 0 or berth.Forever is an unknown end.
func Down(o berth.Outage) Event {
	return Event{Kind: EventDown, Resource: o.Resource, PEs: o.PEs, Name: o.Name, From: o.From, Until: o.Until}
}

// Up says that PEs of a pool can be used again: the outages in force now end for
// them. For PEs that no outage holds now, announced outages are called off.
func Up(pool berth.ResourceID, pes berth.PESet) Event {
	return Event{Kind: EventUp, Resource: pool, PEs: pes}
}

// UpNamed ends, or calls off, the outage of a name of a pool.
func UpNamed(pool berth.ResourceID, name string) Event {
	return Event{Kind: EventUp, Resource: pool, Name: name}
}

// UpdateForecast brings a forecast of how fast data can be moved to a site.
func UpdateForecast(f *berth.Forecast) Event { return Event{Kind: EventUpdateForecast, Forecast: f} }

// Settle says that a site is in line with an effect.
func Settle(effect uint64) Event { return Event{Kind: EventSettle, Effect: effect} }

var classNames = [state.Classes]string{"end", "expiry", "capacity", "arrival", "period", "start"}

// EndsFirst is the default order of the classes of what happens at one instant, for
// Config.Instant: ends of reservations; holds that run out; outages; events such as
// requests; scheduling points; starts.
func EndsFirst() []string { return slices.Clone(classNames[:]) }

// ArrivalsFirst is an order of classes for Config.Instant: requests that arrive at
// the instant at which others end do not see them ended, unless they reached their
// limit. Other simulators have it so.
func ArrivalsFirst() []string {
	return []string{"arrival", "end", "expiry", "capacity", "period", "start"}
}

// newRanks reads an order of classes; an empty list is the default order.
func newRanks(names []string) (state.Ranks, error) {
	var r state.Ranks
	if len(names) == 0 {
		names = classNames[:]
	}
	for class, name := range classNames {
		at := slices.Index(names, name)
		if at < 0 || len(names) != state.Classes {
			return r, berth.Errorf(berth.Invalid, "instant", "%q; must name each of %q once", names, classNames)
		}
		r[class] = uint8(at)
	}
	if r[state.ClassStart] < max(r[state.ClassEnd], r[state.ClassCapacity], r[state.ClassPeriod]) {
		return r, berth.Errorf(berth.Invalid, "instant", "%q; start must come after end, capacity and period", names)
	}
	return r, nil
}

// class returns the class of an event. Wake comes last: it lets everything due
// happen.
func (e *Event) class() state.Class {
	switch e.Kind {
	case EventFinish, EventReport:
		return state.ClassEnd
	case EventDown, EventUp, EventUpdateForecast:
		return state.ClassCapacity
	}
	return state.ClassArrival
}
