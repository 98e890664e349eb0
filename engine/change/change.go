// Package change is what the engine does, as data: the changes of its state, each
// a step that can be applied without deciding anything, and the effects that
// sites have to carry out. It does not apply them.
package change

import "github.com/berth-hpc/berth"

// Kind says what a change does to the state.
type Kind string

// The kinds.
const (
	Advanced      Kind = "advanced"       // the time is Now
	Queued        Kind = "queued"         // Request is pending
	Scheduled     Kind = "scheduled"      // the next scheduling point is Pass; there is none if that is Forever
	Planned       Kind = "planned"        // the pending job ID is planned to run at Plan; it has no plan if that is nil
	Accepted      Kind = "accepted"       // the pending request or job ID became Reservation
	Refused       Kind = "refused"        // the pending request or job ID got Refusal
	Withdrawn     Kind = "withdrawn"      // the pending request or job ID was cancelled
	QueuedAsJob   Kind = "queued_as_job"  // the pending request ID found no room and waits as the job Request
	Confirmed     Kind = "confirmed"      // reservation ID, held until now, is confirmed
	Expired       Kind = "expired"        // reservation ID was not confirmed in time and is gone
	Started       Kind = "started"        // reservation ID is active; PEs are those of its parts bound late
	Named         Kind = "named"          // reservation ID, not started, has at its place the PEs of Moved
	WentDown      Kind = "went_down"      // Outage is known; it has begun unless its From is set
	OutageBegan   Kind = "outage_began"   // the announced Outage has begun
	CameUp        Kind = "came_up"        // the PEs of Outage are not part of that outage any more
	Failed        Kind = "failed"         // reservation ID lost its PEs and has ended
	Rejected      Kind = "rejected"       // reservation ID is gone: its site will not have it, for the reason Refusal
	Requeued      Kind = "requeued"       // the vacated job ID is pending again as Request
	Lost          Kind = "lost"           // the vacated reservation ID is gone for the reason Refusal
	Extended      Kind = "extended"       // reservation ID ends at Until, later than before
	Shortened     Kind = "shortened"      // the running job ID ends at Until, earlier than before
	Preempted     Kind = "preempted"      // the running job ID was stopped and is pending again as Request
	Vacated       Kind = "vacated"        // reservation ID, not started, has given up its place and gets another one next
	Moved         Kind = "moved"          // reservation ID, not started, has the place Moved with Stocks and Transfers
	Resized       Kind = "resized"        // reservation ID has the PEs of Moved for the same time
	Modified      Kind = "modified"       // reservation ID is for Request and has the place Moved
	ChangeRefused Kind = "change_refused" // a change of reservation ID got Refusal; it stays as it is
	CheckedIn     Kind = "checked_in"     // reservation ID is in use
	NoShow        Kind = "no_show"        // reservation ID was not used in time and is gone
	Ended         Kind = "ended"          // part Part of reservation ID has ended; with the last part it is finished
	Cancelled     Kind = "cancelled"      // reservation ID is gone; the rest of its time is free
	Forecasted    Kind = "forecasted"     // data are moved to a site as Forecast says
	Staged        Kind = "staged"         // the data of reservation ID are moved as Transfers say
	Emitted       Kind = "emitted"        // Effect is in the outbox
	Settled       Kind = "settled"        // the effect of number EffectID left the outbox

	WorkflowPromised  Kind = "workflow_promised"  // Workflow is promised: its tasks are accepted next
	WorkflowRefused   Kind = "workflow_refused"   // Workflow got Refusal
	TaskOver          Kind = "task_over"          // the task of Flow has come out as it says
	WorkflowReplanned Kind = "workflow_replanned" // tasks of Flow were moved, for its cause
	WorkflowOver      Kind = "workflow_over"      // Flow has come out as it says

	SeriesPromised Kind = "series_promised" // Series is promised but for Unfit: its occurrences are accepted next
	SeriesRefused  Kind = "series_refused"  // Series is refused as a whole, because of Unfit

	SeriesProlonged Kind = "series_prolonged" // an open series has come to Progress, and asks for Series from now on if that is set: what has its turn is queued next
)

// Kinds lists every kind, in the order above.
func Kinds() []Kind {
	return []Kind{
		Advanced, Queued, Scheduled, Planned, Accepted, Refused, Withdrawn, QueuedAsJob, Confirmed, Expired, Started,
		Named, WentDown, OutageBegan, CameUp, Failed, Rejected, Requeued, Lost, Extended, Shortened, Preempted, Vacated, Moved, Resized,
		Modified, ChangeRefused, CheckedIn, NoShow, Ended, Cancelled, Forecasted, Staged, Emitted, Settled,
		WorkflowPromised, WorkflowRefused, TaskOver, WorkflowReplanned, WorkflowOver,
		SeriesPromised, SeriesRefused, SeriesProlonged,
	}
}

// Change is one step of the state. Only the fields of its kind are set. A change
// is immutable: what it points to is shared by all who have it.
type Change struct {
	Kind        Kind               `json:"kind"`
	Now         berth.Time         `json:"now,omitempty"`
	Pass        berth.Time         `json:"pass,omitempty"`
	ID          string             `json:"id,omitempty"`
	Part        int                `json:"part,omitempty"`
	Request     *berth.Request     `json:"request,omitempty"`
	Plan        *berth.Allotment   `json:"plan,omitempty"`
	Reservation *berth.Reservation `json:"reservation,omitempty"`
	Refusal     *berth.Refusal     `json:"refusal,omitempty"`
	Outage      *berth.Outage      `json:"outage,omitempty"`
	Until       berth.Time         `json:"until,omitempty"`
	Moved       []berth.Allotment  `json:"moved,omitempty"`
	Terms       *berth.Terms       `json:"terms,omitempty"`     // Moved, Modified: from now on; Extended: what it was foreseen to cost; nil if they stay
	Stocks      []berth.Allotment  `json:"stocks,omitempty"`    // Moved, Modified, Staged
	Transfers   []berth.Transfer   `json:"transfers,omitempty"` // Moved, Modified, Staged
	PEs         []berth.PESet      `json:"pes,omitempty"`       // by part
	Forecast    *berth.Forecast    `json:"forecast,omitempty"`
	Effect      *Effect            `json:"effect,omitempty"`
	EffectID    uint64             `json:"effect_id,omitempty"`
	Workflow    *berth.Workflow    `json:"workflow,omitempty"`
	Flow        *Flow              `json:"flow,omitempty"`
	Series      *berth.Series      `json:"series,omitempty"`
	// Unfit is the occurrences of Series that cannot be promised, by number.
	Unfit    []berth.RefusedOccurrence `json:"unfit,omitempty"`
	Progress *berth.Progress           `json:"progress,omitempty"`
}

// Flow is what becomes of a live workflow, or of one of its tasks.
type Flow struct {
	Workflow string        `json:"workflow"`       // its id
	Task     int           `json:"task,omitempty"` // TaskOver: its place in the workflow, from 0
	Outcome  berth.Outcome `json:"outcome,omitempty"`
	Why      string        `json:"why,omitempty"` // in words
	// Cause is what a new plan follows from, and Repair the rule by which it was made.
	Cause  Cause        `json:"cause,omitempty"`
	Repair berth.Repair `json:"repair,omitempty"`
	// Moved is how many tasks have another place, End when the workflow is expected to end, and
	// Before when it was until then.
	Moved  int        `json:"moved,omitempty"`
	End    berth.Time `json:"end,omitempty"`
	Before berth.Time `json:"before,omitempty"`
}

// Cause is why a workflow has another plan.
type Cause string

// The causes.
const (
	CauseEarly     Cause = "early"     // a task ended early
	CauseLate      Cause = "late"      // a task is late
	CauseFailed    Cause = "failed"    // a task failed
	CauseDisplaced Cause = "displaced" // others needed the place of a task, or it went out of use
	CauseData      Cause = "data"      // what a task reads takes longer to its site than was forecast
)

// Causes lists the causes.
func Causes() []Cause {
	return []Cause{CauseEarly, CauseLate, CauseFailed, CauseDisplaced, CauseData}
}

// Effect says that a site has to bring a reservation in line with the state: what
// it makes of the reservation belongs to this generation, or the reservation is
// not there any more. It stays in the outbox until a settle event names its
// number, and is there after a restart, so carrying it out twice must do no harm.
type Effect struct {
	Number      uint64 `json:"number"`
	Site        string `json:"site"`
	Reservation string `json:"reservation"`
	Generation  uint64 `json:"generation"`
}
