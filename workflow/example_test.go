package workflow_test

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
)

// A workflow of three tasks on four PEs, three of them held by others from 20
// to 60: planned for the earliest end, and by a deadline that cannot be met.
func ExampleInstance_Plan() {
	w, err := workflow.New(
		[]workflow.Task{
			{ID: "split", Sequential: 40, Alpha: .1},
			{ID: "solve", Sequential: 200, Alpha: .05},
			{ID: "merge", Sequential: 30, Alpha: .5},
		},
		[]workflow.Edge{{Parent: "split", Child: "solve"}, {Parent: "solve", Child: "merge"}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := calendar.NewFast(4, berth.Late)
	if err := pool.Add(calendar.Block{Start: 20, End: 60, NPE: 3}); err != nil {
		fmt.Println(err)
		return
	}
	in, err := workflow.Prepare(workflow.Problem{Workflow: w, Calendar: pool})
	if err != nil {
		fmt.Println(err)
		return
	}
	planner, _ := workflow.PlannerNamed("bd-cpar")
	plan, _, err := in.Plan(planner, berth.Forever)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range plan.Tasks {
		fmt.Printf("%s: %d PEs %s\n", w.Task(t.Task).ID, t.NPE, t.Interval())
	}
	fmt.Println("turn-around", plan.Turnaround, "CPU-seconds", plan.CPUSeconds)

	planner, _ = workflow.PlannerNamed("dl-rcbd-cpar-lambda")
	_, refusal, err := in.Plan(planner, 90)
	fmt.Println(refusal, err)
	// Output:
	// split: 3 PEs [0,16)
	// solve: 4 PEs [60,118)
	// merge: 3 PEs [118,138)
	// turn-around 138 CPU-seconds 340
	// dl-rcbd-cpar-lambda: deadline 90: found no plan; the tightest deadline found is 137, by bd-all <nil>
}
