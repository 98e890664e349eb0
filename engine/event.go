package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// EventKind says what happened outside.
type EventKind string

// The kinds of event.
const (
	// Wake brings nothing but the time: everything due by then happens.
	Wake EventKind = "wake"
	// Submit brings a request.
	Submit EventKind = "submit"
	// Cancel withdraws a pending request or a reservation; what is left of
	// its time is free again.
	Cancel EventKind = "cancel"
	// Confirm makes a held reservation a confirmed one.
	Confirm EventKind = "confirm"
	// Modify asks for Request in the place of reservation ID, which has not
	// started. It is atomic: if it is refused, the reservation stays as it is.
	Modify EventKind = "modify"
	// Prolong asks that reservation ID goes on until Until.
	Prolong EventKind = "prolong"
	// Show says that reservation ID, active, is in use.
	Show EventKind = "show"
	// Avoid says that reservation ID, which has not started, cannot be had on PEs
	// of Resource, which need not be the ones that it has: it gets another place in
	// its window, or else stays as it is.
	Avoid EventKind = "avoid"
	// Finish says that an active reservation ended, early or at its limit.
	Finish EventKind = "finish"
	// Down says that PEs of a resource cannot be used from now on, or From a time
	// to come where PEs have numbers, until they are up again or Until, whichever
	// is first.
	Down EventKind = "down"
	// Up says that PEs can be used again.
	Up EventKind = "up"
	// Foresee brings a Forecast of how fast data can be moved to a site.
	Foresee EventKind = "forecast"
	// Settle says that the world has carried out an effect.
	Settle EventKind = "settle"
)

// Event is one input of the engine. Only the fields of its kind are set.
type Event struct {
	Kind    EventKind      `json:"kind"`
	Request *berth.Request `json:"request,omitempty"` // Submit, Modify
	ID      string         `json:"id,omitempty"`      // of the request, where there is one already
	Effect  uint64         `json:"effect,omitempty"`  // Settle
	// Down, Up: which PEs of which resource, under either binding. Avoid: where PEs
	// have numbers.
	Resource berth.ResourceID `json:"resource,omitzero"`
	PEs      berth.PESet      `json:"pes,omitzero"`
	From     berth.Time       `json:"from,omitempty"`  // Down, 0 for now
	Until    berth.Time       `json:"until,omitempty"` // Prolong; Down, 0 if nobody knows
	Forecast *Forecast        `json:"forecast,omitempty"`
}

// Class is what happens at one instant in one go. Config.Instant says in which
// order the classes come.
type Class uint8

// The classes, in the order of design section 5, which is the default.
const (
	ClassEnd      Class = iota // ends of reservations free their PEs
	ClassExpiry                // offers and holds run out
	ClassCapacity              // sites report
	ClassArrival               // requests arrive, and every other Event
	ClassPeriod                // scheduling points: plans of jobs come true
	ClassStart                 // reservations start
	classes       = iota
)

var classNames = [classes]string{"end", "expiry", "capacity", "arrival", "period", "start"}

// EndsFirst is the default order of classes for Config.Instant.
func EndsFirst() []string { return slices.Clone(classNames[:]) }

// ArrivalsFirst is an order of classes for Config.Instant: requests that arrive
// at the instant at which others end do not see them ended, unless they reached
// their limit. Other simulators have it so.
func ArrivalsFirst() []string {
	return []string{"arrival", "end", "expiry", "capacity", "period", "start"}
}

// ranks is the place of each class in the order of an instant.
type ranks [classes]uint8

// newRanks reads an order of classes; none is the default.
func newRanks(names []string) (ranks, error) {
	var r ranks
	if len(names) == 0 {
		names = classNames[:]
	}
	for class, name := range classNames {
		at := slices.Index(names, name)
		if at < 0 || len(names) != classes {
			return r, berth.Errorf(berth.Invalid, "instant", "%q; each of %q must be there once", names, classNames)
		}
		r[class] = uint8(at)
	}
	if r[ClassStart] < max(r[ClassEnd], r[ClassCapacity], r[ClassPeriod]) {
		return r, berth.Errorf(berth.Invalid, "instant", "%q; start cannot come before end, capacity or period", names)
	}
	return r, nil
}

// class returns the class of an event. Wake comes last: it lets everything due
// happen.
func (e *Event) class() Class {
	switch e.Kind {
	case Finish:
		return ClassEnd
	case Down, Up, Foresee:
		return ClassCapacity
	}
	return ClassArrival
}
