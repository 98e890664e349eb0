package engine

import "github.com/berth-hpc/berth"

// ChangeKind says what a change does to the state.
type ChangeKind string

// The kinds of change.
const (
	Advanced   ChangeKind = "advanced"   // the time is now Now
	Queued     ChangeKind = "queued"     // Request is pending
	Scheduled  ChangeKind = "scheduled"  // what is pending is looked at at Pass; no more if that is Forever
	Planned    ChangeKind = "planned"    // the pending job ID is planned to run at Plan; nowhere if nil
	Accepted   ChangeKind = "accepted"   // the pending request ID became Reservation
	Refused    ChangeKind = "refused"    // the pending request ID got Refusal
	Withdrawn  ChangeKind = "withdrawn"  // the pending request ID was cancelled
	Waits      ChangeKind = "waits"      // the pending request ID found no room at once and waits as the job Request
	Confirmed  ChangeKind = "confirmed"  // reservation ID, held until now, is confirmed
	Expired    ChangeKind = "expired"    // reservation ID was not confirmed in time and is gone
	Started    ChangeKind = "started"    // reservation ID is active; PEs of its parts where bound late
	WentDown   ChangeKind = "went_down"  // Outage has begun
	CameUp     ChangeKind = "came_up"    // the PEs of Outage are back; others of that number may not be
	Failed     ChangeKind = "failed"     // reservation ID, active, lost PEs and has ended
	Requeued   ChangeKind = "requeued"   // job ID, without allotments for the moment, is pending again: Request
	Lost       ChangeKind = "lost"       // reservation ID, without allotments for the moment, is gone for the reason Refusal
	Extended   ChangeKind = "extended"   // reservation ID goes on until Until
	Shortened  ChangeKind = "shortened"  // job ID, which runs, has to go at Until
	Preempted  ChangeKind = "preempted"  // job ID was stopped and is pending again, with what is left to do: Request
	Moved      ChangeKind = "moved"      // reservation ID, not started, has the allotments Moved; if nil it has none for the moment
	Resized    ChangeKind = "resized"    // reservation ID has the PEs of Moved for the same time; what that lacks of the promise is missing
	Modified   ChangeKind = "modified"   // reservation ID, without allotments for the moment, is for Request now and has the allotments Moved
	Kept       ChangeKind = "kept"       // what was asked of reservation ID got Refusal; it stays as it is
	Shown      ChangeKind = "shown"      // reservation ID is in use
	NoShow     ChangeKind = "no_show"    // nobody used reservation ID in time; it is gone
	Ended      ChangeKind = "ended"      // part Part of reservation ID has ended; with the last part it is finished
	Cancelled  ChangeKind = "cancelled"  // reservation ID is gone, the rest of its time is free
	Forecasted ChangeKind = "forecasted" // what can be moved to a site is as Forecast says
	Staged     ChangeKind = "staged"     // the data of reservation ID arrive as Staging says
	Emitted    ChangeKind = "emitted"    // Effect is in the outbox
	Settled    ChangeKind = "settled"    // effect number EffectID left the outbox
)

// Change is one step of the state. Only the fields of its kind are set. What
// it points to is shared with the engine and must not be written.
type Change struct {
	Kind        ChangeKind         `json:"kind"`
	Now         berth.Time         `json:"now,omitempty"`
	Pass        berth.Time         `json:"pass,omitempty"`
	ID          string             `json:"id,omitempty"`
	Part        int                `json:"part,omitempty"`
	Request     *berth.Request     `json:"request,omitempty"`
	Plan        *berth.Allotment   `json:"plan,omitempty"`
	Reservation *berth.Reservation `json:"reservation,omitempty"`
	Refusal     *berth.Refusal     `json:"refusal,omitempty"`
	Outage      *Outage            `json:"outage,omitempty"`
	Until       berth.Time         `json:"until,omitempty"`
	Moved       []berth.Allotment  `json:"moved,omitempty"`
	Held        []berth.Allotment  `json:"held,omitempty"`    // Moved, Modified: beside the PEs
	PEs         []berth.PESet      `json:"pes,omitempty"`     // by part
	Staging     *berth.Staging     `json:"staging,omitempty"` // Staged, Moved, Modified
	Forecast    *Forecast          `json:"forecast,omitempty"`
	Effect      *Effect            `json:"effect,omitempty"`
	EffectID    uint64             `json:"effect_id,omitempty"`

	// What the ID names in the engine that made the change, to spare a search.
	// Fold does not trust them.
	entry *entry
	job   *job
}

// EffectKind says what the engine wants done at a site.
type EffectKind string

// The kinds of effect.
const (
	EffectReserve EffectKind = "reserve" // make the promise real at the site, as it is now
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
	// Generation is that of the reservation. A later one takes the place of all
	// earlier ones at the site.
	Generation uint64 `json:"generation"`
}
