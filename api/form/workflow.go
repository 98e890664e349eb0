package form

import "github.com/berth-hpc/berth"

// WorkflowRequest asks for a workflow. Zero fields take their defaults.
type WorkflowRequest struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name,omitempty"`
	User     string `json:"user,omitempty"`
	Account  string `json:"account,omitempty"` // of tasks that name none, as QOS is
	QOS      string `json:"qos,omitempty"`
	Deadline Time   `json:"deadline,omitzero"` // none is as early as possible
	// DeadlineIn is counted from when the service decides, instead of Deadline; 0 is none.
	DeadlineIn berth.Duration `json:"deadline_in,omitempty"`
	Algorithm  string         `json:"algorithm,omitempty"`
	Repair     string         `json:"repair,omitempty"`
	Site       string         `json:"site,omitempty"`
	Pool       string         `json:"pool,omitempty"`
	Spread     bool           `json:"spread,omitempty"`
	Hold       Hold           `json:"hold,omitzero"`
	Tasks      []TaskToRun    `json:"tasks"`
}

// WorkflowRetry asks again for what has not succeeded of a workflow, by another deadline if one is given.
type WorkflowRetry struct {
	Deadline   Time           `json:"deadline,omitzero"`
	DeadlineIn berth.Duration `json:"deadline_in,omitempty"`
}

// TaskToRun is a task of a workflow that is asked for: its time by Amdahl's law from seconds on
// one PE and alpha, within bounds, or as it was measured on some numbers of PEs.
type TaskToRun struct {
	ID           string        `json:"id"`
	Seconds      float64       `json:"seconds"`
	Alpha        float64       `json:"alpha,omitempty"`
	Few          berth.Count   `json:"few,omitempty"`
	Most         berth.Count   `json:"most,omitempty"`
	Measured     []Measurement `json:"measured,omitempty"`
	After        []string      `json:"after,omitempty"`
	ReadBytes    []int64       `json:"read_bytes,omitempty"` // of what each task in After has written; 0 is not known
	Retries      int           `json:"retries,omitempty"`
	Command      []string      `json:"command,omitempty"`
	Script       string        `json:"script,omitempty"`
	Dir          string        `json:"dir,omitempty"`
	Env          []string      `json:"env,omitempty"`
	Output       string        `json:"output,omitempty"`
	Inputs       []string      `json:"inputs,omitempty"`
	Outputs      []string      `json:"outputs,omitempty"`
	Software     string        `json:"software,omitempty"`
	Version      string        `json:"version,omitempty"`
	Licences     berth.Count   `json:"licences,omitempty"`
	MemoryMB     int64         `json:"memory_mb,omitempty"`
	Accelerators int           `json:"accelerators,omitempty"`
	Partition    string        `json:"partition,omitempty"`
	Site         string        `json:"site,omitempty"`
	Account      string        `json:"account,omitempty"`
	QOS          string        `json:"qos,omitempty"`
	Constraint   string        `json:"constraint,omitempty"`
}

// Measurement is the run time of a task, measured on a number of PEs.
type Measurement struct {
	NPE     berth.Count `json:"npe"`
	Seconds float64     `json:"seconds"`
}

// Workflow is all that is known of a workflow.
type Workflow struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	User     string `json:"user,omitempty"`
	Account  string `json:"account,omitempty"` // of tasks that have none of their own, as QOS is
	QOS      string `json:"qos,omitempty"`
	State    string `json:"state"`
	Version  uint64 `json:"version"`
	Deadline Time   `json:"deadline,omitzero"`
	// End is when it ended, or is expected to, PlannedEnd when it was to end at first. Slack is
	// the seconds from its end to its deadline; negative if that is missed.
	End        Time           `json:"end,omitzero"`
	PlannedEnd Time           `json:"planned_end,omitzero"`
	Slack      *int64         `json:"slack,omitempty"`
	Algorithm  string         `json:"algorithm"`
	Planner    string         `json:"planner,omitempty"` // that found the plan
	Repair     string         `json:"repair"`
	Replanned  int            `json:"replanned,omitempty"` // how often tasks were moved
	Cause      string         `json:"cause,omitempty"`     // why last
	Why        string         `json:"why,omitempty"`       // it is over as it is
	Refusal    *Refusal       `json:"refusal,omitempty"`
	Expires    Time           `json:"expires,omitzero"` // of a held one that is looked at: when it is gone unless it is confirmed
	CPUHours   float64        `json:"cpu_hours"`        // of the reservations of its tasks
	Created    Time           `json:"created"`
	Changed    Time           `json:"changed"`
	Tasks      []WorkflowStep `json:"tasks"`
}

// WorkflowStep is how far a task of a workflow is.
type WorkflowStep struct {
	ID          string      `json:"id"`
	After       []string    `json:"after,omitempty"`
	Reservation string      `json:"reservation,omitempty"`
	State       string      `json:"state"` // waiting, running, or its outcome; cancelled or expired with its workflow
	Why         string      `json:"why,omitempty"`
	Tries       int         `json:"tries,omitempty"`
	Retries     int         `json:"retries,omitempty"`
	Site        string      `json:"site,omitempty"`
	Pool        string      `json:"pool,omitempty"`
	Account     string      `json:"account,omitempty"` // its own
	QOS         string      `json:"qos,omitempty"`
	NPE         berth.Count `json:"npe,omitempty"`
	Missing     berth.Count `json:"missing,omitempty"` // PEs promised that are out of use
	Start       Time        `json:"start,omitzero"`
	End         Time        `json:"end,omitzero"`
	// PlannedStart and PlannedEnd are those of the first plan.
	PlannedStart Time `json:"planned_start,omitzero"`
	PlannedEnd   Time `json:"planned_end,omitzero"`
	// Critical says that it is on the critical path: nothing can end earlier unless it does.
	Critical bool `json:"critical,omitempty"`
	// Output is the file with its output at its site; missing while a pattern of it is not expanded.
	Output string `json:"output,omitempty"`
}

// Workflows is a page of workflows, without their tasks.
type Workflows struct {
	Workflows []Workflow `json:"workflows"`
	Next      string     `json:"next,omitempty"`
}

// WorkflowOffer is what a deadline costs. It holds nothing: submit the workflow with this
// deadline and algorithm.
type WorkflowOffer struct {
	Deadline  Time     `json:"deadline"`
	Algorithm string   `json:"algorithm"`
	End       Time     `json:"end"`
	CPUHours  float64  `json:"cpu_hours"`
	Critical  []string `json:"critical"` // path
}

// WorkflowAnswer is the answer to a workflow.
type WorkflowAnswer struct {
	Decision string          `json:"decision"` // promised, held or refused
	Workflow Workflow        `json:"workflow"`
	Offers   []WorkflowOffer `json:"offers,omitempty"` // of one that is refused, the tightest first
}

// WorkflowOffers is a list of offers, the tightest first.
type WorkflowOffers struct {
	Offers []WorkflowOffer `json:"offers"`
}

// WorkflowEvent is what happened to a workflow, or to a task of it.
type WorkflowEvent struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	User     string `json:"user,omitempty"`
	State    string `json:"state"`
	Task     string `json:"task,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Why      string `json:"why,omitempty"`
	Cause    string `json:"cause,omitempty"`
	Moved    int    `json:"moved,omitempty"`
	End      Time   `json:"end,omitzero"`
	Deadline Time   `json:"deadline,omitzero"`
	// Late says that the deadline can no longer be met.
	Late bool `json:"late,omitempty"`
}
