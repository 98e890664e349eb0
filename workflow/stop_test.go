package workflow_test

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"pgregory.net/rapid"
)

// Planning ends within a few questions of being told to, without a plan, wherever it is; and the
// instance plans afterwards as a new one does: nothing half done is remembered.
func TestPlanningStopsWhereverItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		planner := rapid.SampledFrom(workflow.Planners).Draw(t, "planner")
		due := deadlineFor(t, problem, planner)
		problem.Anew = rapid.Bool().Draw(t, "anew")
		want, ok := must(t, problem).Try(planner, due)

		asked, last := 0, -1
		problem.Stop = func() bool { asked++; return last >= 0 && asked > last }
		if got, is := must(t, problem).Try(planner, due); is != ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: asked, but not told to stop: %+v %t, want %+v %t", planner.Name, got, is, want, ok)
		}
		if ok && asked < problem.Workflow.Len() {
			t.Fatalf("%s places %d tasks and asks %d times", planner.Name, problem.Workflow.Len(), asked)
		}
		last = rapid.IntRange(0, max(0, asked-1)).Draw(t, "last")
		asked = 0
		in := must(t, problem)
		if got, is := in.Try(planner, due); asked > last && is {
			t.Fatalf("%s: a plan %+v although it was told to stop after %d of %d questions", planner.Name, got, last, asked)
		}
		// What is under way asks for each attempt and each allotment that it has left.
		if more := asked - last; more > 60 {
			t.Fatalf("%s asks %d times after it was told to stop", planner.Name, more)
		}
		last = -1
		if got, is := in.Try(planner, due); is != ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s, stopped before: %+v %t, want %+v %t", planner.Name, got, is, want, ok)
		}
	})
}

// The same over several sites.
func TestPlanningOverSitesStops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		asked, last := 0, -1
		grid := workflow.Grid{Workflow: problem.Workflow, Now: problem.Now, Stop: func() bool { asked++; return last >= 0 && asked > last }}
		for _, name := range []string{"a", "b"} {
			grid.Sites = append(grid.Sites, workflow.Site{Resource: berth.PoolID(name, "p"), Calendar: calendar.NewFast(64, berth.Late)})
		}
		if _, ok, err := grid.Plan(berth.Forever); !ok || err != nil || asked < problem.Workflow.Len() {
			t.Fatalf("%t %v after %d questions", ok, err, asked)
		}
		last = rapid.IntRange(0, asked-1).Draw(t, "last")
		asked = 0
		if _, ok, err := grid.Plan(berth.Forever); ok || err != nil || asked-last > 60 {
			t.Fatalf("%t %v after %d questions, told to stop after %d", ok, err, asked, last)
		}
	})
}
