package berth

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxWorkflowTasks bounds the tasks of a workflow that is promised. Recorded workflows
// have 10 to 10,000 tasks; each is a reservation with changes of its own, which all are
// in one record.
const MaxWorkflowTasks = 10_000

// Workflow asks for a reservation for each of its tasks, for all of them or for none:
// each starts when its parents have ended. Its planner decides when, and on how many PEs.
type Workflow struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"` // for people
	User  string `json:"user,omitempty"`
	Owner string `json:"owner,omitempty"` // of the service account that User is; its tasks count to the limits of both
	Role  string `json:"role,omitempty"`  // of who asks, by which limits are chosen
	// Account and QOS are those of tasks that name none.
	Account string `json:"account,omitempty"`
	QOS     string `json:"qos,omitempty"`
	Arrival Time   `json:"arrival"`
	// Deadline is by when all must have ended; Forever is as early as possible.
	Deadline Time `json:"deadline"`
	// Algorithm names the planner, or is BestAlgorithm, or that with a slack (see Best).
	Algorithm string `json:"algorithm"`
	// Repair says what is done about tasks that end early or late.
	Repair Repair `json:"repair"`
	// Site and Pool, if given, are the only place that will do; Sites the only sites.
	Site  string   `json:"site,omitempty"`
	Pool  string   `json:"pool,omitempty"`
	Sites []string `json:"sites,omitempty"`
	// Spread allows tasks at several sites: their files are brought there by the tasks, where the
	// service knows how, or else by the owner. Else all tasks are at one site.
	Spread bool `json:"spread,omitempty"`
	// Hold asks for promises that are only held, and expire so long after the decision
	// unless they are confirmed.
	Hold Duration `json:"hold,omitempty"`
	// Free says how many PEs of pools were free on average in the past (q of the planners).
	// Of a pool that is not named all were.
	Free []Average `json:"free,omitempty"`
	// Routes are the pairs of sites between which files are moved when a task reads what another
	// one has written: how long that takes is part of the plan, where the size is known. Sites
	// without a route have their files in common.
	Routes []Route        `json:"routes,omitempty"`
	Tasks  []WorkflowTask `json:"tasks"`
}

// Route is a way that files take from one site to another.
type Route struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// BestAlgorithm is the name of no planner: several are tried, and the best plan is taken, the
// one that ends first or, by a deadline, holds the fewest PE-seconds. With a slack, as in
// "best-40", it leaves 40 percent of the time until the deadline, where it finds a plan so.
const BestAlgorithm = "best"

// SlackAlgorithm is what a service and a simulation take where BestAlgorithm is asked for: run
// times are estimates, and a plan that uses up all the time that there is fails with the first
// task that takes longer (docs/results/deviating-workflows.md, where this slack does best). The
// engine is told it by name, so that it decides alike about what was recorded before.
const SlackAlgorithm = "best-50"

// MaxSlack is the largest slack, in percent, that may be asked for.
const MaxSlack = 90

// Best reports whether an algorithm is BestAlgorithm, with a slack or without, and the slack in
// percent.
func Best(algorithm string) (slack int, ok bool) {
	rest, ok := strings.CutPrefix(algorithm, BestAlgorithm)
	if !ok || rest == "" {
		return 0, ok
	}
	digits, ok := strings.CutPrefix(rest, "-")
	slack, err := strconv.Atoi(digits)
	if !ok || err != nil || slack < 0 || slack > MaxSlack || strconv.Itoa(slack) != digits {
		return 0, false
	}
	return slack, true
}

// Average is how many PEs of a pool were free on average in the past.
type Average struct {
	Resource ResourceID `json:"resource"`
	NPE      Count      `json:"npe"`
}

// WorkflowTask is one moldable task: it takes Seconds·(Alpha + (1−Alpha)/m) on m PEs of
// standard speed (Amdahl's law).
type WorkflowTask struct {
	ID      string  `json:"id"`
	Seconds float64 `json:"seconds"` // on one PE
	Alpha   float64 `json:"alpha"`   // the part of it that does not run in parallel
	// Few and Most are the fewest and the most PEs that it runs on; 0 is no bound.
	Few  Count `json:"few,omitempty"`
	Most Count `json:"most,omitempty"`
	// Measured, if given, is how long it took on some numbers of PEs, which ascend as the times
	// fall, and replaces the fields above: it runs on these numbers only.
	Measured []Measurement `json:"measured,omitempty"`
	// After lists the tasks that must have succeeded, by their places in the workflow.
	After []int `json:"after,omitempty"`
	// Reads is how many bytes it reads of what each task in After has written, in that order; 0 is
	// not known. It is empty if nothing is known.
	Reads []int64 `json:"reads,omitempty"`
	// Retries is how often the task is tried again if it fails.
	Retries int `json:"retries,omitempty"`
	// Site, if given, is the only one that will do. A workflow with such a task may be at
	// several sites.
	Site string `json:"site,omitempty"`
	// Account and QOS, if given, are the task's own, instead of those of the workflow.
	Account string `json:"account,omitempty"`
	QOS     string `json:"qos,omitempty"`
	// Done says that the task has succeeded already, in an earlier life of the workflow, at Site
	// if that is given, and Tries how often it was tried there.
	Done  bool `json:"done,omitempty"`
	Tries int  `json:"tries,omitempty"`
	Work  Work `json:"work,omitzero"`
	Requirements
}

// Measurement is the run time of a task, measured on a number of PEs of standard speed.
type Measurement struct {
	NPE     Count   `json:"npe"`
	Seconds float64 `json:"seconds"`
}

// Work is what a task does. It means nothing to those who plan.
type Work struct {
	Command []string `json:"command,omitempty"` // program and arguments; no shell reads them
	Script  string   `json:"script,omitempty"`  // or a batch script, which begins with #!
	Dir     string   `json:"dir,omitempty"`
	Env     []string `json:"env,omitempty"` // NAME=value
	Output  string   `json:"output,omitempty"`
	// Inputs and Outputs are files, by paths from Dir: it begins only if all inputs are there, and
	// has succeeded only if all outputs are.
	Inputs  []string `json:"inputs,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
}

// Empty reports whether there is nothing to run.
func (r *Work) Empty() bool { return len(r.Command) == 0 && r.Script == "" }

// TaskRef says which workflow a reservation is a task of, and how often that was tried
// with it. It is not written any more.
type TaskRef struct {
	Workflow string `json:"workflow"`
	Task     string `json:"task"`
	Try      int    `json:"try"` // from 1
}

// Repair is what is done about tasks of a workflow that end early or late.
type Repair string

// The repairs. Under each of them a task that has lost its place gets another one.
const (
	RepairHold Repair = "hold" // the plan stands: what is not done when its time is over has failed
	RepairLate Repair = "late" // what is late goes on where that is possible, and what follows is moved
	RepairBoth Repair = "both" // beside that, what follows on a task that ended early is moved forward
)

// Repairs lists the repairs.
func Repairs() []Repair { return []Repair{RepairHold, RepairLate, RepairBoth} }

// Outcome is how a task of a workflow, or all of it, ended.
type Outcome string

// The outcomes.
const (
	Succeeded        Outcome = "succeeded"
	FailedForGood    Outcome = "failed"    // of a workflow: one of its tasks
	TriedAgain       Outcome = "retried"   // of a task that failed and is tried again
	Skipped          Outcome = "skipped"   // a task before it failed
	OutcomeCancelled Outcome = "cancelled" // by its owner
	OutcomeExpired   Outcome = "expired"   // it was held, and not confirmed in time
	StillRunning     Outcome = "running"   // none yet: it will need longer than it has
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome {
	return []Outcome{Succeeded, FailedForGood, TriedAgain, Skipped, OutcomeCancelled, OutcomeExpired, StillRunning}
}

// IsSpread reports whether the tasks may be at several sites.
func (w *Workflow) IsSpread() bool {
	return w.Spread || slices.ContainsFunc(w.Tasks, func(t WorkflowTask) bool { return t.Site != "" })
}

// SharingOf returns the account and the QOS of a task.
func (w *Workflow) SharingOf(task int) Sharing {
	t := &w.Tasks[task]
	return Sharing{Account: cmp.Or(t.Account, w.Account), QOS: cmp.Or(t.QOS, w.QOS)}
}

// SpreadAlgorithms lists the planners that plan over several pools, for the earliest end and by
// a deadline.
func SpreadAlgorithms() []string { return []string{"bd-cpar", "dl-bd-cpar"} }

// Clone returns a copy that shares no memory with the workflow.
func (w *Workflow) Clone() *Workflow {
	c := *w
	c.Sites, c.Free, c.Routes, c.Tasks = slices.Clone(w.Sites), slices.Clone(w.Free), slices.Clone(w.Routes), slices.Clone(w.Tasks)
	for i := range c.Tasks {
		t := &c.Tasks[i]
		t.After, t.Measured, t.Work.Command, t.Work.Env = slices.Clone(t.After), slices.Clone(t.Measured), slices.Clone(t.Work.Command), slices.Clone(t.Work.Env)
		t.Reads = slices.Clone(t.Reads)
		t.Work.Inputs, t.Work.Outputs = slices.Clone(t.Work.Inputs), slices.Clone(t.Work.Outputs)
	}
	return &c
}

// FreeIn returns how many PEs of a pool were free on average, 0 if that is not known.
func (w *Workflow) FreeIn(id ResourceID) Count {
	for _, f := range w.Free {
		if f.Resource == id {
			return f.NPE
		}
	}
	return 0
}

// Validate reports the first field that cannot be right, as an *Error with code Invalid.
// It does not look for cycles, and knows no planners.
func (w *Workflow) Validate() error {
	switch {
	case w.ID == "":
		return Errorf(Invalid, "id", "missing; every workflow needs a name")
	case !w.Arrival.Valid():
		return Errorf(Invalid, "arrival", "%d is beyond ±2^42 s", w.Arrival)
	case w.Deadline != Forever && !w.Deadline.Valid():
		return Errorf(Invalid, "deadline", "%d is beyond ±2^42 s", w.Deadline)
	case w.Deadline <= w.Arrival:
		return Errorf(Invalid, "deadline", "%d is not after the arrival %d", w.Deadline, w.Arrival)
	case w.Owner != "" && w.Owner == w.User:
		return Errorf(Invalid, "owner", "%.80q is the user too; want the owner of a service account, or none", w.Owner)
	case !slices.Contains(Repairs(), w.Repair):
		return Errorf(Invalid, "repair", "%q; it is one of %q", w.Repair, Repairs())
	case w.Hold < 0 || w.Hold >= TimeLimit:
		return Errorf(Invalid, "hold", "%d s; it must lie between 0 and 2^42", w.Hold)
	case len(w.Tasks) == 0:
		return Errorf(Invalid, "tasks", "none; a workflow needs at least one task")
	case len(w.Tasks) > MaxWorkflowTasks:
		return Errorf(Invalid, "tasks", "%d; a workflow has at most %d tasks", len(w.Tasks), MaxWorkflowTasks)
	}
	for _, f := range w.Free {
		if f.NPE < 0 || f.NPE > MaxPEs {
			return Errorf(Invalid, "free", "%d PEs of %s of %s; want 0 to %d", f.NPE, f.Resource.Name, f.Resource.Site, MaxPEs)
		}
	}
	for _, r := range w.Routes {
		if r.From == "" || r.To == "" || r.From == r.To {
			return Errorf(Invalid, "routes", "from %q to %q; want the names of two sites", r.From, r.To)
		}
	}
	for i := range w.Tasks {
		if err := w.Tasks[i].validate(i, len(w.Tasks)); err != nil {
			return err
		}
	}
	return nil
}

func (t *WorkflowTask) validate(at, tasks int) error {
	switch {
	case t.ID == "":
		return Errorf(Invalid, "id", "missing at task %d of the workflow; every task needs one", at+1)
	case math.IsNaN(t.Seconds) || t.Seconds < 0 || t.Seconds >= TimeLimit:
		return Errorf(Invalid, "seconds", "task %q has %v s; want 0 or more, and less than 2^42", t.ID, t.Seconds)
	case math.IsNaN(t.Alpha) || t.Alpha < 0 || t.Alpha > 1:
		return Errorf(Invalid, "alpha", "task %q has %v; want a number from 0 to 1", t.ID, t.Alpha)
	case t.Retries < 0 || t.Retries > MaxRetries:
		return Errorf(Invalid, "retries", "task %q has %d; want 0 to %d", t.ID, t.Retries, MaxRetries)
	case t.Tries < 0:
		return Errorf(Invalid, "tries", "task %q has %d; want 0 or more", t.ID, t.Tries)
	case t.StorageMB > 0:
		return Errorf(Invalid, "storage_mb", "task %q wants %d MB moved; tasks of a workflow share the files of their site, so leave it out", t.ID, t.StorageMB)
	}
	for _, parent := range t.After {
		if parent < 0 || parent >= tasks || parent == at {
			return Errorf(Invalid, "after", "task %q is after task number %d; want another one from 0 to %d", t.ID, parent, tasks-1)
		}
	}
	if len(t.Reads) > 0 && len(t.Reads) != len(t.After) {
		return Errorf(Invalid, "reads", "task %q has %d sizes; want one for each of the %d tasks that it is after, or none", t.ID, len(t.Reads), len(t.After))
	}
	for _, bytes := range t.Reads {
		if bytes < 0 || bytes > MaxReads {
			return Errorf(Invalid, "reads", "task %q reads %d bytes; want 0 to 10^14", t.ID, bytes)
		}
	}
	return t.Requirements.validate()
}

// MaxReads bounds the bytes that a task reads of another one: what it reads of as many as there
// can be is still less than MaxMegabytes.
const MaxReads = 100_000_000_000_000

// MaxRetries bounds how often a task is tried again.
const MaxRetries = 100
