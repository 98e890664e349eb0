package sim

import (
	"fmt"
	"math"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workflow"
)

// FlowStream puts workflows among the requests of a workload, at equal distances in a span
// of time, each with a deadline.
type FlowStream struct {
	Count int
	// Span is when they come: workflow i of n in the middle of its n-th part.
	Span berth.Interval
	// Make returns workflow i, and what its tasks need beside PEs and how often they may be
	// tried again, by task; nil is nothing.
	Make func(i int) (*workflow.Workflow, []berth.WorkflowTask, error)
	// PEs is the size of the pool on which the time that a workflow takes alone is found.
	PEs berth.Count
	// Slack is how many times that time a deadline leaves; 0 is no deadline.
	Slack     float64
	Algorithm string
	Repair    berth.Repair
	Retries   int // of tasks where Make does not tell
	Miss      Miss
	// Fail is the part of the tries that fail, drawn for each try.
	Fail float64
	Seed uint64
}

// Miss is how the times that tasks take differ from those that were planned.
type Miss struct {
	// Amount is the largest part by which a task takes longer or shorter, uniformly.
	Amount float64
	// Heavy draws from a heavy tail instead: a Pareto law of shape 3/2 from half of the
	// planned time on, cut at ten times of it. Half of the tasks take less than four fifths of
	// their time, a third takes longer than planned and an eighth more than twice as long.
	Heavy bool
}

// None reports whether tasks take as long as planned.
func (m Miss) None() bool { return m.Amount == 0 && !m.Heavy }

// factor returns how many times its planned time a task takes, for a draw from [0,1).
func (m Miss) factor(u float64) float64 {
	if m.Heavy {
		return min(10, float64(.5/math.Cbrt(float64((1-u)*(1-u)))))
	}
	return max(.001, 1+float64(m.Amount*(float64(2*u)-1)))
}

// Flows returns the workflows of the stream, in order of arrival.
func (s *FlowStream) Flows() ([]Flow, error) {
	miss, fail := stream.New(s.Seed, "flow run time"), stream.New(s.Seed, "flow failure")
	flows := make([]Flow, s.Count)
	draw := uint64(0)
	for i := range flows {
		made, tasks, err := s.Make(i)
		if err != nil {
			return nil, err
		}
		f := &flows[i]
		arrival := s.Span.Start + berth.Time((2*int64(i)+1)*int64(s.Span.Length())/(2*int64(s.Count)))
		f.Workflow = berth.Workflow{
			ID: fmt.Sprintf("workflow-%d", i+1), Arrival: arrival, Deadline: berth.Forever, Algorithm: s.Algorithm, Repair: s.Repair,
			Tasks: s.tasksOf(made, tasks),
		}
		if s.Slack > 0 {
			alone, err := s.alone(made)
			if err != nil {
				return nil, err
			}
			f.Workflow.Deadline = arrival.Add(max(1, berth.Duration(math.Ceil(float64(alone)*s.Slack))))
		}
		for k := range f.Workflow.Tasks {
			if !s.Miss.None() {
				f.Factors = append(f.Factors, s.Miss.factor(miss.Float64(draw)))
			}
			if s.Fail > 0 {
				fails := 0
				// Draws of one task lie side by side, so that one more try shifts no other.
				for fails <= f.Workflow.Tasks[k].Retries && fail.Float64(draw*(berth.MaxRetries+1)+uint64(fails)) < s.Fail {
					fails++
				}
				f.Fails = append(f.Fails, fails)
			}
			draw++
		}
	}
	return flows, nil
}

// tasksOf returns the tasks of a workflow as the engine takes them.
func (s *FlowStream) tasksOf(w *workflow.Workflow, given []berth.WorkflowTask) []berth.WorkflowTask {
	tasks := make([]berth.WorkflowTask, w.Len())
	for i := range tasks {
		t := w.Task(i)
		if given != nil {
			tasks[i] = given[i]
		} else {
			tasks[i].Retries = s.Retries
		}
		to := &tasks[i]
		to.ID, to.Seconds, to.Alpha, to.Few, to.Most = t.ID, t.Sequential, t.Alpha, t.Few, t.Most
		for _, m := range t.Measured {
			to.Measured = append(to.Measured, berth.Measurement{NPE: m.NPE, Seconds: m.Seconds})
		}
		for _, parent := range w.Parents(i) {
			to.After = append(to.After, int(parent))
		}
	}
	return tasks
}

// alone returns how long a workflow takes on the empty pool, planned by bd-cpar.
func (s *FlowStream) alone(w *workflow.Workflow) (berth.Duration, error) {
	in, err := workflow.Prepare(workflow.Problem{Workflow: w, Calendar: calendar.NewFast(s.PEs, berth.Late)})
	if err != nil {
		return 0, err
	}
	planner, _ := workflow.PlannerNamed("bd-cpar")
	plan, _, err := in.Plan(planner, berth.Forever)
	return plan.Turnaround, err
}
