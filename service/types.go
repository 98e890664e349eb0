package service

import (
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Role says what a principal may do.
type Role string

// The roles. Each may do what the ones before it may.
const (
	Viewer   Role = "viewer"   // look: at sites, and at what holds PEs when, without names
	User     Role = "user"     // ask for reservations, and do everything with his own
	Operator Role = "operator" // everything, with everybody's
)

// Roles lists the roles.
func Roles() []Role { return []Role{Viewer, User, Operator} }

// Principal is who asks.
type Principal struct {
	User string `json:"user"`
	Role Role   `json:"role"`
	// Sites are those that they see and use.
	Sites SiteSet `json:"sites,omitempty"`
}

// Can reports whether the principal has at least that role.
func (p Principal) Can(r Role) bool {
	return slices.Index(Roles(), p.Role) >= slices.Index(Roles(), r)
}

// Owns reports whether the principal may act on what belongs to a user.
func (p Principal) Owns(user string) bool {
	return p.Role == Operator || p.Role == User && p.User == user
}

// only returns the one user whose reservations the principal may see at most; empty if it may see those of all.
func (p Principal) only() string {
	if p.Role == Operator {
		return ""
	}
	return p.User
}

// State is where a reservation is in its life: a state of the engine, or how it
// ended.
type State string

// The states.
const (
	Pending   State = "pending" // not decided yet, or an ordinary job that waits
	Held      State = "held"
	Confirmed State = "confirmed"
	Degraded  State = "degraded"
	Active    State = "active"
	Finished  State = "finished"
	Cancelled State = "cancelled"
	Expired   State = "expired" // it was held and not confirmed in time
	NoShow    State = "no_show" // it was not used
	Failed    State = "failed"  // its PEs went away, or the site did not take it
	Refused   State = "refused"
)

// Over reports whether nothing more can become of it.
func (s State) Over() bool {
	switch s {
	case Finished, Cancelled, Expired, NoShow, Failed, Refused:
		return true
	}
	return false
}

// Reservation is all that is known of a request and what became of it.
type Reservation struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	// Version grows with every change; it is the entity tag.
	Version    uint64            `json:"version"`
	Request    berth.Request     `json:"request"`
	Allotments []berth.Allotment `json:"allotments,omitempty"`
	// Nodes are the names of the PEs of each allotment at its site, empty until
	// they are known.
	Nodes [][]string `json:"nodes,omitempty"`
	// Data says when its data are moved to each of its sites.
	Data      []berth.Transfer `json:"data,omitempty"`
	Missing   berth.Count      `json:"missing,omitempty"` // PEs promised that are out of use
	Extended  berth.Duration   `json:"-"`                 // by how much it is longer than was asked for
	Expires   berth.Time       `json:"expires,omitempty"` // of a held one
	CheckedIn bool             `json:"checked_in,omitempty"`
	Refusal   *berth.Refusal   `json:"refusal,omitempty"` // of a refused or failed one
	// Sites says how far the promise is real at the managed sites.
	Sites   []Materialised `json:"sites,omitempty"`
	Created berth.Time     `json:"created"`
	Changed berth.Time     `json:"changed"`
	// Charge is the PE-seconds that budgets are charged for it as promised, nil where there are no prices and for what is over.
	Charge *int64 `json:"-"`
}

// lacksPEs reports whether a reservation that runs has fewer PEs than promised. It stays
// active, which is when it runs, and is found and counted as degraded.
func (r *Reservation) lacksPEs() bool { return r.State == Active && r.Missing > 0 }

// Materialised is what a managed site has of a promise.
type Materialised struct {
	Site string    `json:"site"`
	Name site.Name `json:"name"`
	// Made says that the site has it as promised now. Until the site's horizon
	// a far promise lives here only.
	Made    bool   `json:"made"`
	Trouble string `json:"trouble,omitempty"` // in the site's words, with what the operator can do
}

// Answer is the answer to a request.
type Answer struct {
	Reservation Reservation `json:"reservation"` // refused, or what was promised
	// Refusal says why what was asked of an existing reservation was not done; it
	// is as it was.
	Refusal *berth.Refusal `json:"refusal,omitempty"`
	// Offers are what could be held instead of what was refused.
	Offers []Offer `json:"offers,omitempty"`
}

// Offer is an engine's offer with a name. Nothing is kept for it: Hold asks for
// it, and another request may have been faster.
type Offer struct {
	ID      string     `json:"id"`
	Expires berth.Time `json:"expires"` // the name means nothing after that
	engine.Offer
	// Charge is the PE-seconds that budgets are charged for it, nil where there are no prices.
	Charge *int64 `json:"charge,omitempty"`
	// Cost is what it would cost the ordinary jobs; nil where that was not foreseen.
	Cost *engine.Cost `json:"cost,omitempty"`
}

// Task is a job in a reservation, at which site, and how far it is.
type Task struct {
	Site string `json:"site"`
	site.Report
}

// Tasks is what runs, waits and has ended in a reservation, by site and job.
type Tasks struct {
	List []Task `json:"list"`
	// Untold names the sites of the reservation that do not tell what runs there.
	Untold []string `json:"untold,omitempty"`
}

// Forecast is how fast data can be moved to a site.
type Forecast = berth.Forecast

// Ask is what a client wants done about a request or a reservation.
type Ask struct {
	By Principal
	// Token, Address and Request say how it came in: by which token, from where and
	// in which call. They are kept on record.
	Token, Address, Request string
	// Scopes are what the token was good for within its role, with commas between them; empty is all. They are kept on record.
	Scopes string
	// Key makes asking twice the same as asking once; empty is no key. Body is a
	// digest of what was asked under it: the same key with another body is a
	// Conflict.
	Key  string
	Body [32]byte
	// IfVersion, if not 0, is the version that the client has seen; if there is
	// another by now, the answer is a Conflict.
	IfVersion uint64
	// FromNow says which times of what is asked for are counted from when it is decided.
	FromNow FromNow
	// Keeps says what of a reservation a modification leaves as it is.
	Keeps Keeps
}

// FromNow says which times of a request, or a workflow, are so far from its arrival as they are, whenever that is: the
// service moves them to when it decides, and those of a workflow that is planned beside the loop to when its plan
// begins. The zero value is none: they are times of the clock.
type FromNow struct{ Ready, Deadline bool }

// arrive has a request arrive at a time.
func (f FromNow) arrive(r *berth.Request, now berth.Time) {
	late := now.Sub(r.Arrival)
	if f.Ready {
		r.Ready = r.Ready.Add(late)
	}
	if f.Deadline {
		r.Deadline = r.Deadline.Add(late)
	}
	r.Arrival, r.Ready = now, max(r.Ready, now)
}

// arriveFlow is arrive for a workflow, which begins as soon as it can.
func (f FromNow) arriveFlow(w *berth.Workflow, now berth.Time) {
	if f.Deadline {
		w.Deadline = w.Deadline.Add(now.Sub(w.Arrival))
	}
	w.Arrival = now
}

// Filter chooses reservations. Empty fields choose all.
type Filter struct {
	User string
	Site string
	Name string
	// States are those to choose. Degraded chooses what is active and lacks PEs too.
	States []State
	// From and To choose those that hold PEs at some time in [From, To); both 0
	// is any time.
	From, To berth.Time
	// After is the ID that the page begins behind, in the order of ids, and
	// Limit the most that it has.
	After string
	Limit int
}

// SiteView is a site as clients see it.
type SiteView struct {
	berth.Site
	Loads   []engine.Load `json:"loads"`
	Adapter string        `json:"adapter"` // "local", "slurm", or "" for a site that is not managed
	// Shadow says that it is only watched: its loads are what Berth would have
	// promised.
	Shadow bool `json:"shadow,omitempty"`
	// Reachable says whether the last look at it succeeded, Trouble what is wrong:
	// that, or what could not be made as promised there. Seen is when it was last
	// looked at.
	Reachable bool `json:"reachable"`
	// Starting says that it is not reachable because the first look at it since
	// the service started is not over.
	Starting bool       `json:"starting,omitempty"`
	Trouble  string     `json:"trouble,omitempty"`
	Seen     berth.Time `json:"seen,omitempty"`
	// Skew is by how much its clock is ahead of this one.
	Skew berth.Duration `json:"skew,omitempty"`
	// Silent are its controllers that do not answer, while another one does.
	Silent []string         `json:"silent,omitempty"`
	Nodes  []site.NodeState `json:"nodes,omitempty"`
	Drift  []site.Drift     `json:"drift,omitempty"`
}

// Notice is one thing that happened to a reservation, or to a task in it, for those who
// listen.
type Notice struct {
	// Number grows from notice to notice; those who listen can go on behind it.
	Number      uint64      `json:"number"`
	At          berth.Time  `json:"at"`
	What        string      `json:"what"` // a kind of change.Change, TaskStarted, TaskEnded or TaskLeft
	Reservation Reservation `json:"reservation"`
	// Later is by how many seconds later its data are expected than before, if
	// What is "staged"; negative is sooner.
	Later berth.Duration `json:"later,omitempty"`
	// Refusal says why what was asked of it was not done, if What is "kept".
	Refusal *berth.Refusal `json:"refusal,omitempty"`
	// Task is the one that has started or ended, as it was then.
	Task *Task `json:"task,omitempty"`
	// Workflow is what happened to a workflow; then there is no reservation, and What is a
	// kind of change of a workflow.
	Workflow *FlowNews `json:"workflow,omitempty"`
	// Trouble says which task could not follow, and what its owner can do, if What is
	// TaskLeft.
	Trouble string `json:"trouble,omitempty"`
}

// TaskLeft is what a Notice is about if a promise has moved, and a task that waits in its
// reservation at a site cannot be moved there with it.
const TaskLeft = "task_left"

// unplaced says what can be done about a configuration in which something that is
// live has no place.
func unplaced(err error) error {
	wrong, is := errors.AsType[*berth.Error](err)
	if !is || wrong.Field != "snapshot" {
		return err // the configuration is wrong by itself
	}
	return berth.Errorf(berth.Invalid, "configuration", "it has no place for all that is promised: %s. Nothing was changed. "+
		"Start with the configuration as it was, let what is promised there end or cancel it (berth list --site NAME), and change it then", wrong.Msg)
}
