package workflow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// sized bounds the PEs of some tasks of a problem, makes some rigid, and has some
// measured. None needs more PEs than there are.
func sized(rng *rand.Rand, p workflow.Problem) workflow.Problem {
	size := int(p.Calendar.Size())
	var tasks []workflow.Task
	var edges []workflow.Edge
	for i := range p.Workflow.Len() {
		t := p.Workflow.Task(i)
		few := 1 + berth.Count(rng.IntN(size))
		switch rng.IntN(5) {
		case 0:
			t.Few = few
		case 1:
			t.Most = 1 + berth.Count(rng.IntN(size+3))
		case 2:
			t.Few, t.Most = few, few+berth.Count(rng.IntN(4))
		case 3:
			m := workflow.Measurement{NPE: few, Seconds: 1 + 300*rng.Float64()}
			for t.Measured = append(t.Measured, m); len(t.Measured) < 5 && rng.IntN(5) > 0; t.Measured = append(t.Measured, m) {
				m.NPE += 1 + berth.Count(rng.IntN(5))
				m.Seconds *= .2 + .7*rng.Float64()
			}
		}
		tasks = append(tasks, t)
		for _, parent := range p.Workflow.Parents(i) {
			edges = append(edges, workflow.Edge{Parent: p.Workflow.Task(int(parent)).ID, Child: t.ID})
		}
	}
	w, err := workflow.New(tasks, edges)
	if err != nil {
		panic(err)
	}
	p.Workflow = w
	return p
}

// Whatever plans, a task gets PEs within its bounds, a measured one PEs it was
// measured on, and all of them as long as it takes there.
func TestTasksKeepTheirSizes(t *testing.T) {
	for seed := range compared(t) {
		rng := rand.New(rand.NewPCG(uint64(seed), 18))
		problem := sized(rng, randomProblem(rng, 12))
		in := prepare(t, problem)
		for _, p := range workflow.Planners {
			deadline := berth.Forever
			if p.Goal == workflow.Deadline {
				deadline = problem.Now + 5000
			}
			plan, ok := in.Try(p, deadline)
			if !ok {
				continue
			}
			for i, at := range plan.Tasks {
				task := problem.Workflow.Task(i)
				measured := len(task.Measured) == 0
				for _, m := range task.Measured {
					measured = measured || m.NPE == at.NPE
				}
				if at.NPE < task.Fewest() || !measured || at.End.Sub(at.Start) != task.Duration(at.NPE) ||
					len(task.Measured) == 0 && task.Most > 0 && at.NPE > task.Most {
					t.Fatalf("seed %d: %s gives %+v to %+v", seed, p.Name, at, task)
				}
			}
		}
	}
}

// A table of run times is taken as it stands: between two of its rows and beyond
// the last more PEs change nothing.
func TestMeasuredTimesAreTaken(t *testing.T) {
	task := workflow.Task{ID: "a", Measured: []workflow.Measurement{{NPE: 2, Seconds: 100}, {NPE: 4, Seconds: 60}}}
	w, err := workflow.New([]workflow.Task{task}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for npe, want := range map[berth.Count]berth.Duration{2: 100, 3: 100, 4: 60, 8: 60} {
		if got := task.Duration(npe); got != want {
			t.Errorf("on %d PEs it takes %d s, want %d", npe, got, want)
		}
	}
	in := prepare(t, workflow.Problem{Workflow: w, Calendar: booked(t, 64)})
	for _, name := range []string{"bd-all", "bd-cpar", "bd-thrift", "icaslb"} {
		p, _ := workflow.PlannerNamed(name)
		if plan, ok := in.Try(p, berth.Forever); !ok || plan.Tasks[0].NPE != 4 || plan.Turnaround != 60 {
			t.Errorf("%s: %+v, want 4 PEs for 60 s", name, plan)
		}
	}
	half, err := w.Scaled(.5)
	if err != nil || half.Task(0).Duration(4) != 30 || w.Task(0).Duration(4) != 60 {
		t.Errorf("scaled by half it takes %d s on 4 PEs: %v", half.Task(0).Duration(4), err)
	}
}

func TestSizesThatContradictThemselves(t *testing.T) {
	for name, task := range map[string]workflow.Task{
		"most below few":   {ID: "a", Few: 4, Most: 2},
		"negative":         {ID: "a", Few: -1},
		"measured on none": {ID: "a", Measured: []workflow.Measurement{{NPE: 0, Seconds: 5}}},
		"PEs fall":         {ID: "a", Measured: []workflow.Measurement{{NPE: 4, Seconds: 50}, {NPE: 2, Seconds: 30}}},
		"times rise":       {ID: "a", Measured: []workflow.Measurement{{NPE: 2, Seconds: 30}, {NPE: 4, Seconds: 50}}},
		"endless":          {ID: "a", Measured: []workflow.Measurement{{NPE: 2, Seconds: 1e300}}},
	} {
		if _, err := workflow.New([]workflow.Task{task}, nil); err == nil {
			t.Errorf("%s: %+v is taken", name, task)
		}
	}
	w, err := workflow.New([]workflow.Task{{ID: "a", Few: 4, Sequential: 10}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = workflow.Prepare(workflow.Problem{Workflow: w, Calendar: booked(t, 3)})
	wantField(t, err, "pes")
	grid := workflow.Grid{Workflow: w, Sites: []workflow.Site{{Calendar: booked(t, 3)}, {Calendar: booked(t, 2)}}}
	_, _, err = grid.Plan(berth.Forever)
	wantField(t, err, "pes")
	grid.Sites[1].Calendar = booked(t, 5)
	if plan, ok, err := grid.Plan(berth.Forever); err != nil || !ok || plan.Tasks[0].Site != 1 {
		t.Errorf("%+v, %v, %v: want the second site, which alone has four PEs", plan, ok, err)
	}
}
