package engine

import "github.com/berth-hpc/berth"

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
	// Finish says that an active reservation ended early.
	Finish EventKind = "finish"
	// Settle says that the world has carried out an effect.
	Settle EventKind = "settle"
)

// Event is one input of the engine. Only the fields of its kind are set.
type Event struct {
	Kind    EventKind      `json:"kind"`
	Request *berth.Request `json:"request,omitempty"` // Submit
	ID      string         `json:"id,omitempty"`      // Cancel, Finish: of the request
	Effect  uint64         `json:"effect,omitempty"`  // Settle
}

// Class orders what happens at one instant: lower classes first.
type Class uint8

// The classes, in the order of design section 5.
const (
	ClassEnd      Class = iota // ends of reservations free their PEs
	ClassExpiry                // offers and holds run out
	ClassCapacity              // sites report
	ClassArrival               // requests arrive, and every other Event
	ClassPeriod                // periodic scheduling points
	ClassStart                 // reservations start
)
