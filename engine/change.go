package engine

import "github.com/berth-hpc/berth"

// ChangeKind says what a change does to the state.
type ChangeKind string

// The kinds of change.
const (
	Advanced  ChangeKind = "advanced"  // the time is now Now
	Queued    ChangeKind = "queued"    // Request is pending
	Accepted  ChangeKind = "accepted"  // the pending request ID became Reservation
	Refused   ChangeKind = "refused"   // the pending request ID got Refusal
	Withdrawn ChangeKind = "withdrawn" // the pending request ID was cancelled
	Started   ChangeKind = "started"   // reservation ID is active; PEs of its parts where bound late
	Ended     ChangeKind = "ended"     // part Part of reservation ID has ended; with the last part it is finished
	Cancelled ChangeKind = "cancelled" // reservation ID is gone, the rest of its time is free
	Emitted   ChangeKind = "emitted"   // Effect is in the outbox
	Settled   ChangeKind = "settled"   // effect number EffectID left the outbox
)

// Change is one step of the state. Only the fields of its kind are set. What
// it points to is shared with the engine and must not be written.
type Change struct {
	Kind        ChangeKind         `json:"kind"`
	Now         berth.Time         `json:"now,omitempty"`
	ID          string             `json:"id,omitempty"`
	Part        int                `json:"part,omitempty"`
	Request     *berth.Request     `json:"request,omitempty"`
	Reservation *berth.Reservation `json:"reservation,omitempty"`
	Refusal     *berth.Refusal     `json:"refusal,omitempty"`
	PEs         []berth.PESet      `json:"pes,omitempty"` // by part
	Effect      *Effect            `json:"effect,omitempty"`
	EffectID    uint64             `json:"effect_id,omitempty"`
}

// EffectKind says what the engine wants done at a site.
type EffectKind string

// The kinds of effect.
const (
	EffectReserve EffectKind = "reserve" // make the promise real at the site
	EffectLaunch  EffectKind = "launch"  // the reservation starts
	EffectRelease EffectKind = "release" // take the reservation down at the site
)

// Effect is something the engine wants done. It stays in the outbox until a
// Settle event names its number, and is offered again after a restart, so
// whoever carries it out must be able to do so twice.
type Effect struct {
	Number      uint64     `json:"number"`
	Kind        EffectKind `json:"kind"`
	Site        string     `json:"site"`
	Reservation string     `json:"reservation"`
}
