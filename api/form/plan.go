package form

import "github.com/berth-hpc/berth"

// PlansType is that of plans: a PlanLine in JSON on each line.
const PlansType = "application/x-ndjson"

// PlanLine is a line of the answer about plans of a workflow: first the workflow, then
// each plan as soon as it is made. A problem ends it early; Done ends it otherwise.
type PlanLine struct {
	Workflow *PlannedWorkflow `json:"workflow,omitempty"`
	Plan     *Plan            `json:"plan,omitempty"`
	Problem  *Problem         `json:"problem,omitempty"`
	Done     bool             `json:"done,omitempty"`
}

// PlannedWorkflow is a workflow as it was understood, and what it is planned around.
type PlannedWorkflow struct {
	Name  string         `json:"name"`
	Notes []string       `json:"notes"` // what is odd about it
	Tasks []WorkflowTask `json:"tasks"`
	Site  string         `json:"site"`
	Pool  string         `json:"pool"`
	PEs   berth.Count    `json:"pes"`
	Free  berth.Count    `json:"free"`  // on average in the past
	Now   Time           `json:"now"`   // nothing starts earlier
	Bound Time           `json:"bound"` // no plan ends earlier
	Held  []Holding      `json:"held"`  // by others, from now on
}

// WorkflowTask is a task of a workflow. Parents are indices.
type WorkflowTask struct {
	ID      string         `json:"id"`
	Seconds berth.Duration `json:"seconds"` // on one PE
	Alpha   float64        `json:"alpha"`   // the serial fraction
	Parents []int          `json:"parents"`
}

// Holding is how many PEs are held over some time.
type Holding struct {
	NPE   berth.Count `json:"npe"`
	Start Time        `json:"start,omitzero"`
	End   Time        `json:"end,omitzero"` // missing where the end is not known
}

// Plan is a plan by one planner, or none, if there is a reason.
type Plan struct {
	Planner    string         `json:"planner"`
	About      string         `json:"about"`
	Deadline   Time           `json:"deadline,omitzero"` // that was asked for
	Tightest   Time           `json:"tightest,omitzero"` // that was searched for
	Reason     berth.Reason   `json:"reason,omitempty"`
	End        Time           `json:"end,omitzero"`
	Turnaround berth.Duration `json:"turnaround,omitempty"`
	PESeconds  int64          `json:"pe_seconds,omitempty"`
	Critical   []int          `json:"critical,omitempty"` // path, by index
	Tasks      []PlannedTask  `json:"tasks,omitempty"`    // in the order of the workflow
}

// PlannedTask is the place of a task in a plan.
type PlannedTask struct {
	NPE   berth.Count `json:"npe"`
	Start Time        `json:"start"`
	End   Time        `json:"end"`
}
