package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workflow/flowfile"
	"github.com/berth-hpc/berth/workload"
)

// Workflows says which workflows there are among the requests of a simulation.
type Workflows struct {
	// From is a file, or daggen:N for workflows of N tasks that are drawn; empty is none.
	From  string
	Count int
	// Slack is how many times the time that a workflow takes on the empty machine its
	// deadline leaves; 0 is no deadline.
	Slack     float64
	Algorithm string
	Repair    string
	Retries   int
	Miss      string // a part such as 0.25, or HeavyTail
	Fail      float64
}

// NewWorkflows returns the defaults.
func NewWorkflows() Workflows {
	return Workflows{Count: 100, Slack: 2, Algorithm: berth.BestAlgorithm, Repair: string(berth.RepairBoth), Retries: 1, Miss: "0"}
}

// HeavyTail names run times with a heavy tail, as sim.Miss has them.
const HeavyTail = "heavy"

// daggenPrefix begins what names drawn workflows.
const daggenPrefix = "daggen:"

// DrawnWorkflows reports whether workflows are drawn, and not of a file.
func DrawnWorkflows(from string) bool { return strings.HasPrefix(from, daggenPrefix) }

// Draws reports whether anything about the workflows depends on the seed: they
// themselves, how long their tasks take, or which tries fail.
func (w *Workflows) Draws() bool {
	miss, err := ParseMiss(w.Miss)
	return w.From != "" && (DrawnWorkflows(w.From) || w.Fail > 0 || err == nil && !miss.None())
}

// Repairs names the repairs of workflows.
func Repairs() []string {
	var names []string
	for _, r := range berth.Repairs() {
		names = append(names, string(r))
	}
	return names
}

// Algorithms names the planners of workflows.
func Algorithms() []string {
	names := []string{berth.BestAlgorithm}
	for i := range workflow.Planners {
		names = append(names, workflow.Planners[i].Name)
	}
	return names
}

// ParseMiss reads by how much run times miss what was planned.
func ParseMiss(text string) (sim.Miss, error) {
	if text == HeavyTail {
		return sim.Miss{Heavy: true}, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(0 <= x && x < 1) {
		return sim.Miss{}, &OptionError{"workflow-noise", fmt.Sprintf("%q; want a part from 0 to below 1, such as 0.25, or %s", text, HeavyTail)}
	}
	return sim.Miss{Amount: x}, nil
}

// withWorkflows puts workflows among the requests of each replication: over the time from
// the first arrival to the last.
func (o *opener) withWorkflows(pes berth.Count, made func(int) (*sim.Workload, error)) (func(int) (*sim.Workload, error), error) {
	w := &o.Workflows
	if w.From == "" {
		return made, nil
	}
	miss, err := ParseMiss(w.Miss)
	if err != nil {
		return nil, err
	}
	if _, best := berth.Best(w.Algorithm); !best {
		if err := oneOf("algorithm", w.Algorithm, Algorithms()); err != nil {
			return nil, err
		}
	}
	if err := oneOf("repair", w.Repair, Repairs()); err != nil {
		return nil, err
	}
	one, err := w.maker(pes)
	if err != nil {
		return nil, err
	}
	algorithm := w.Algorithm
	if algorithm == berth.BestAlgorithm {
		algorithm = berth.SlackAlgorithm
	}
	return func(replication int) (*sim.Workload, error) {
		work, err := made(replication)
		if err != nil || work.Len() == 0 {
			return work, err
		}
		first, last := work.Arrival(0), work.Arrival(work.Len()-1)
		s := sim.FlowStream{
			Count: w.Count, Span: berth.Interval{Start: first, End: last + 1}, PEs: pes, Slack: w.Slack, Algorithm: algorithm, Repair: berth.Repair(w.Repair),
			Retries: w.Retries, Miss: miss, Fail: w.Fail, Seed: o.seed(replication), Make: one(o.seed(replication)),
		}
		with := *work
		if with.Flows, err = s.Flows(); err != nil {
			return nil, err
		}
		return &with, nil
	}, nil
}

// oneOf complains about a word that is not among names.
func oneOf(what, word string, names []string) error {
	if slices.Contains(names, word) {
		return nil
	}
	return &OptionError{"workflow-" + what, nearest.Unknown(what, word, names)}
}

// maker returns what makes the workflows for a seed.
func (w *Workflows) maker(pes berth.Count) (func(seed uint64) func(i int) (*workflow.Workflow, []berth.WorkflowTask, error), error) {
	if text, drawn := strings.CutPrefix(w.From, daggenPrefix); drawn {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > berth.MaxWorkflowTasks {
			return nil, &OptionError{"workflows", fmt.Sprintf("%q; want %sN with N tasks from 1 to %d", w.From, daggenPrefix, berth.MaxWorkflowTasks)}
		}
		d := workload.NewDaggen()
		d.Tasks = n
		if err := d.Validate(); err != nil {
			return nil, err
		}
		return func(seed uint64) func(int) (*workflow.Workflow, []berth.WorkflowTask, error) {
			return func(i int) (*workflow.Workflow, []berth.WorkflowTask, error) {
				flow, err := d.Generate(seed<<20 + uint64(i))
				return flow, nil, err
			}
		}, nil
	}
	file, err := flowfile.Open(w.From, flowfile.Options{Alpha: defaultAlpha})
	if err == nil {
		err = file.Larger(pes, "the machine")
	}
	if err != nil {
		return nil, err
	}
	if n := file.Flow.Len(); n > berth.MaxWorkflowTasks {
		return nil, berth.Errorf(berth.Invalid, "workflows", "%s: %d tasks; at most %d can be promised", w.From, n, berth.MaxWorkflowTasks)
	}
	tasks := make([]berth.WorkflowTask, file.Flow.Len())
	for i := range tasks {
		// Files are not moved in a simulation; what tasks need room for is where they are.
		tasks[i].Requirements, tasks[i].Retries = file.Tasks[i].Needs, w.Retries
		tasks[i].StorageMB = 0
		if file.Form == flowfile.YAML {
			tasks[i].Retries = file.Tasks[i].Retries
		}
	}
	return func(uint64) func(int) (*workflow.Workflow, []berth.WorkflowTask, error) {
		return func(int) (*workflow.Workflow, []berth.WorkflowTask, error) { return file.Flow, tasks, nil }
	}, nil
}

// defaultAlpha is the serial fraction of tasks that say none, as berth plan takes it.
const defaultAlpha = 0.1
