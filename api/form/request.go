package form

import "github.com/berth-hpc/berth"

// Request asks for PEs within a window. Durations are seconds. Zero fields are
// left out; the service then takes its default, or the present value if an
// existing reservation is modified.
type Request struct {
	Name     string     `json:"name,omitempty"` // one's own, as berth.ValidName has it
	Kind     berth.Kind `json:"kind,omitempty"`
	User     string     `json:"user,omitempty"` // default: who asks
	Ready    Time       `json:"ready,omitzero"` // default: now
	Deadline Time       `json:"deadline,omitzero"`
	// ReadyIn and DeadlineIn are counted from when the service decides, instead of Ready and Deadline; nil and 0 are none.
	ReadyIn    *berth.Duration `json:"ready_in,omitempty"`
	DeadlineIn berth.Duration  `json:"deadline_in,omitempty"`

	NPE      berth.Count    `json:"npe,omitempty"`
	Duration berth.Duration `json:"duration,omitempty"`
	// Variants are alternative shapes, instead of NPE and Duration;
	// Parts are blocks of PEs that start together.
	Variants []berth.Variant `json:"variants,omitempty"`
	Parts    []Part          `json:"parts,omitempty"`
	PEs      berth.PESet     `json:"pes,omitzero"` // only these will do; needs early binding
	Site     string          `json:"site,omitempty"`
	Pool     string          `json:"pool,omitempty"`
	Hold     Hold            `json:"hold,omitempty"`
	NoShow   berth.Duration  `json:"no_show,omitempty"`
	// Array is the number of equal, independent requests;
	// only a new request may.
	Array int `json:"array,omitempty"`
	berth.Requirements
	berth.Sharing
	berth.NodeNames
}

// Part is one block of PEs of a request.
type Part struct {
	NPE      berth.Count     `json:"npe,omitempty"`
	Duration berth.Duration  `json:"duration,omitempty"`
	Variants []berth.Variant `json:"variants,omitempty"`
	PEs      berth.PESet     `json:"pes,omitzero"`
	// Constraint, and the names of nodes, are of this part alone, beside those of the request.
	Constraint string `json:"constraint,omitempty"`
	berth.NodeNames
}

// Place is where and when one part of a reservation or an offer is.
type Place struct {
	Site     string         `json:"site,omitempty"`
	Pool     string         `json:"pool,omitempty"`
	NPE      berth.Count    `json:"npe,omitempty"`
	Duration berth.Duration `json:"duration,omitempty"` // seconds, as reserved
	Start    Time           `json:"start,omitzero"`
	End      Time           `json:"end,omitzero"`
	PEs      berth.PESet    `json:"pes,omitzero"`
	Nodes    []string       `json:"nodes,omitempty"`
}

// Reservation is what became of a request. The fields of Place are those of the
// only part; one of several parts has its places in Parts, and Place has its
// common start and latest end. Where nothing is promised, the fields of Place
// say what was asked for.
type Reservation struct {
	ID      string     `json:"id"`
	Name    string     `json:"name,omitempty"` // its user's own
	State   string     `json:"state"`
	Version uint64     `json:"version,omitempty"`
	Kind    berth.Kind `json:"kind,omitempty"`
	User    string     `json:"user,omitempty"`
	// Series is the series that it is an occurrence of, and Occurrence its number in that, from 1.
	Series     string `json:"series,omitempty"`
	Occurrence int    `json:"occurrence,omitempty"`
	Place
	Arrival  Time            `json:"arrival,omitzero"`
	Ready    Time            `json:"ready,omitzero"`
	Deadline Time            `json:"deadline,omitzero"`
	Variants []berth.Variant `json:"variants,omitempty"` // that were asked for, of a moldable one
	Parts    []Place         `json:"parts,omitempty"`
	berth.Requirements
	berth.Sharing
	berth.NodeNames
	Data      *Transfer      `json:"data,omitempty"` // when its data are moved to the site
	NoShow    berth.Duration `json:"no_show,omitempty"`
	Expires   Time           `json:"expires,omitzero"` // of a held one
	Missing   berth.Count    `json:"missing,omitempty"`
	CheckedIn bool           `json:"checked_in,omitempty"`
	Reason    berth.Reason   `json:"reason,omitempty"` // of a refused or failed one
	Refusal   *Refusal       `json:"refusal,omitempty"`
	Sites     []Materialised `json:"sites,omitempty"`
	Created   Time           `json:"created,omitzero"`
	Changed   Time           `json:"changed,omitzero"`
	// Charge is the PE-seconds that budgets are charged for it as promised; nil where there are no prices, and in events.
	Charge *int64 `json:"charged_pe_seconds,omitempty"`
}

// Transfer is when data are moved, as it is expected.
type Transfer struct {
	Start Time `json:"start"`
	End   Time `json:"end"`
}

// Materialised is what a managed site has of a promise.
type Materialised struct {
	Site    string `json:"site"`
	Name    string `json:"name"` // of the reservation at the site
	Made    bool   `json:"made"` // it is there as promised now
	Trouble string `json:"trouble,omitempty"`
}

// Refusal is a reasoned no.
type Refusal struct {
	Reason   berth.Reason `json:"reason"`
	Site     string       `json:"site,omitempty"` // what the request got furthest with
	Pool     string       `json:"pool,omitempty"`
	Wanted   berth.Count  `json:"wanted"`             // the fewest PEs that would have done
	Limit    berth.Count  `json:"limit,omitempty"`    // size, or number of eligible PEs
	Possible Time         `json:"possible,omitzero"`  // with deadline_missed: the earliest end on an empty site
	Nearest  *Nearest     `json:"nearest,omitempty"`  // with no_capacity: the most that was to be had
	Exceeded *Exceeded    `json:"exceeded,omitempty"` // with quota: the limit
	Task     string       `json:"task,omitempty"`     // of a workflow: which one can be nowhere
	Detail   string       `json:"detail"`             // the same for people
}

// Nearest is how close a request came.
type Nearest struct {
	NPE      berth.Count    `json:"npe"`
	Duration berth.Duration `json:"duration"`
	Start    Time           `json:"start"`
}

// Offer is a place that can be had now, and held under its id until it expires.
type Offer struct {
	ID         string `json:"id"`
	Expires    Time   `json:"expires"`
	Difference string `json:"difference"` // from what was asked for
	Place
	Parts         []Place `json:"parts,omitempty"`
	IdlePESeconds int64   `json:"idle_pe_seconds"` // that it would leave idle around it
	Cost          *Cost   `json:"cost,omitempty"`  // to the ordinary jobs; nil where it was not foreseen
	// Charge is the PE-seconds that budgets are charged for it; nil where there are no prices.
	Charge *int64 `json:"charged_pe_seconds,omitempty"`
}

// Cost is what a promise would cost the ordinary jobs that wait or run now, if no further job
// arrived and each ran until its estimate.
type Cost struct {
	Delayed       int            `json:"delayed_jobs"`    // that would end later
	DelaySum      berth.Duration `json:"delay_sum"`       // seconds, of all of them
	DelayLargest  berth.Duration `json:"delay_largest"`   // seconds
	IdlePESeconds int64          `json:"idle_pe_seconds"` // that they would use in front of it, and that stay idle
	Jobs          int            `json:"jobs"`            // that were compared
	Complete      bool           `json:"complete"`        // else not all were, and it is that much at least
}

// The decisions.
const (
	Accepted = "accepted"
	Refused  = "refused"
	Pending  = "pending" // it is decided at the next scheduling point
	Partly   = "partly"  // of an array: some parts are refused, and others not
)

// Answer is the answer to a request.
type Answer struct {
	ID          string       `json:"id"`
	Decision    string       `json:"decision"`
	Reservation *Reservation `json:"reservation,omitempty"` // if not refused
	Reason      berth.Reason `json:"reason,omitempty"`
	Refusal     *Refusal     `json:"refusal,omitempty"`
	Offers      []Offer      `json:"offers,omitempty"` // what could be held instead
	// Array is the answers to the parts of an array, each a reservation of its
	// own; the reason and the offers beside it are those of the first refused.
	Array []Answer `json:"array,omitempty"`
}

// Page is one page of a list. Next is the cursor of the page behind it.
type Page struct {
	Reservations []Reservation `json:"reservations"`
	Next         string        `json:"next,omitempty"`
}

// Offers is a list of offers, in the order of their differences.
type Offers struct {
	Offers  []Offer  `json:"offers"`
	Chances []Chance `json:"chances,omitempty"` // if they were asked for
}

// Chance is how probable something is.
type Chance struct {
	// Event is what may happen: "accepted", the request if it is made Later; "moved", a promise for
	// it; "started", an ordinary job of its size, within Later.
	Event string         `json:"event"`
	Later berth.Duration `json:"later"`           // seconds from now
	Share *Share         `json:"share,omitempty"` // of past cases that looked as promising; missing if too few are known
}

// Share is in how many of some cases something came true.
type Share struct {
	Percent float64 `json:"percent"`
	// Low and High are the 95 % interval of Percent, if the cases are independent of one another.
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Cases int     `json:"cases"`
}

// Rectangles is when a request would be promised: with each start it would hold its PEs
// from then on, so that the starts of a stretch and what follows them are a rectangle.
type Rectangles struct {
	From  Time     `json:"from"`        // the first start that is told about
	To    Time     `json:"to,omitzero"` // the last one, if it was asked for; else the last with which it ends by its deadline
	Pools []Starts `json:"pools"`       // in the order of the sites, and of the variants
}

// Starts is when one shape can start in a pool.
type Starts struct {
	Site      string         `json:"site"`
	Pool      string         `json:"pool"`
	NPE       berth.Count    `json:"npe"`
	Duration  berth.Duration `json:"duration"`          // in that pool
	Refusal   *Refusal       `json:"refusal,omitempty"` // why it can start there at no time
	Stretches []Stretch      `json:"stretches"`         // one behind the other; fewer than asked about if they are too many
}

// Stretch is starts that are alike.
type Stretch struct {
	First   Time     `json:"first"`
	Last    Time     `json:"last"`
	End     Time     `json:"end,omitzero"`      // after the last start; of possible starts
	Refusal *Refusal `json:"refusal,omitempty"` // what is short at these starts; none of possible ones
}

// Event is one thing that happened to a reservation, or to a task in it.
type Event struct {
	ID          uint64      `json:"id"`
	At          Time        `json:"at"`
	What        string      `json:"what"`
	Reservation Reservation `json:"reservation,omitzero"` // missing in an event of a workflow
	Refusal     *Refusal    `json:"refusal,omitempty"`    // of what was asked of it, if it was kept as it is
	Task        *TaskReport `json:"task,omitempty"`       // the one that has started or ended, if What says so
	// Trouble names the task that could not follow the reservation, or says what was changed by hand at its site.
	Trouble string `json:"trouble,omitempty"`
	// Workflow is what the event is about, or the workflow of the task that it is about.
	Workflow *WorkflowEvent `json:"workflow,omitempty"`
}

// Task is a command or a script to run in a reservation.
type Task struct {
	Key         string         `json:"key,omitempty"` // of two with the same key one is run
	Name        string         `json:"name,omitempty"`
	Command     []string       `json:"command,omitempty"`
	Script      string         `json:"script,omitempty"`
	Args        []string       `json:"args,omitempty"` // of the script
	Dir         string         `json:"dir"`
	Env         []string       `json:"env,omitempty"`
	Output      string         `json:"output,omitempty"`
	ErrorOutput string         `json:"error_output,omitempty"`
	Array       berth.PESet    `json:"array,omitzero"`
	Limit       berth.Duration `json:"limit,omitempty"`
	Nodes       berth.Count    `json:"nodes,omitempty"`
	Cores       berth.Count    `json:"cores,omitempty"`
	MemoryMB    int64          `json:"memory_mb,omitempty"`
}

// Happening is one event in the life of a reservation. By is the user who asked for it;
// it is empty if the event followed from the time or from another event. Place is set
// where the event gave the reservation another place.
type Happening struct {
	At      Time   `json:"at"`
	What    string `json:"what"` // as events name it
	By      string `json:"by,omitempty"`
	Role    string `json:"role,omitempty"`
	Token   string `json:"token,omitempty"`
	Address string `json:"address,omitempty"`
	Call    string `json:"call,omitempty"` // its X-Request-Id
	Place
	Parts   []Place      `json:"parts,omitempty"`
	Reason  berth.Reason `json:"reason,omitempty"`
	Task    *TaskReport  `json:"task,omitempty"`    // the one that has started or ended, if What says so
	Trouble string       `json:"trouble,omitempty"` // why a task could not follow, if What is task_left, or what was changed, if it is site_changed
	Detail  string       `json:"detail,omitempty"`  // in the words of the site, with site_refused
	Outages []Outage     `json:"outages,omitempty"` // of its place, if it follows from them
}

// History is what has happened to a reservation, in order.
type History struct {
	History []Happening `json:"history"`
	// Since is when the journal begins, where earlier records were dropped.
	Since     Time       `json:"since,omitzero"`
	Delivered *Delivered `json:"delivered,omitempty"`
}

// Delivered is what the sites gave of a promise whose time has come: when they had it as
// promised first, from when on it was whole within its time, and what was missing of it.
type Delivered struct {
	Start          Time        `json:"start"`
	End            Time        `json:"end"`
	NPE            berth.Count `json:"npe"`
	Made           Time        `json:"made,omitzero"`
	Whole          Time        `json:"whole,omitzero"`
	ShortPESeconds int64       `json:"short_pe_seconds"`
}

// TaskReport is a task in a reservation and what became of it.
type TaskReport struct {
	Job   string `json:"job"`
	Array string `json:"array,omitempty"` // the job of the array that it is part of
	Key   string `json:"key,omitempty"`
	Name  string `json:"name,omitempty"`
	Site  string `json:"site"`
	// State is waiting, running, or how it ended: completed, failed, cancelled,
	// timeout, node_fail, or unknown if its site forgot it before that was seen.
	State     string `json:"state" enum:"waiting,running,completed,failed,cancelled,timeout,node_fail,unknown"`
	ExitCode  *int   `json:"exit_code,omitempty"` // of one that ended by itself
	Signal    int    `json:"signal,omitempty"`    // the one that ended it
	Reason    string `json:"reason,omitempty"`    // why it waits, or ended so, in the site's words
	Output    string `json:"output,omitempty"`    // path of its standard output at the site
	Submitted Time   `json:"submitted,omitzero"`
	Start     Time   `json:"start,omitzero"`
	End       Time   `json:"end,omitzero"` // of one that ended
}

// Over reports whether the task has ended.
func (t *TaskReport) Over() bool { return t.State != "waiting" && t.State != "running" }

// ExitStatus returns how a task that is over ended, as shells have it: its exit code,
// 128 and the signal that ended it, or 1 if it did not complete and the site tells
// neither.
func (t *TaskReport) ExitStatus() int {
	const bySignal = 128
	switch {
	case t.Signal != 0:
		return bySignal + t.Signal
	case t.ExitCode != nil:
		return *t.ExitCode
	}
	return 1
}

// Tasks is a page of the tasks of a reservation, by site and job. Untold names the
// sites of the reservation that do not tell what runs there, Next the page after this.
type Tasks struct {
	Tasks  []TaskReport `json:"tasks"`
	Untold []string     `json:"untold,omitempty"`
	Next   string       `json:"next,omitempty"`
}

// Job names a task that a site has taken.
type Job struct {
	Job string `json:"job"`
}
