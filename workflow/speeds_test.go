package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
)

// apartBy is a chain of tasks over two sites of 4 PEs. The ratio is that of their speeds.
func apartBy(t testing.TB, tasks int, ratio float64) *workflow.GridInstance {
	t.Helper()
	var list []workflow.Task
	var edges []workflow.Edge
	for i := range tasks {
		list = append(list, workflow.Task{ID: fmt.Sprint(i), Sequential: float64(1000 + i), Alpha: .01})
		if i > 0 {
			edges = append(edges, workflow.Edge{Parent: list[i-1].ID, Child: list[i].ID})
		}
	}
	w, err := workflow.New(list, edges)
	if err != nil {
		t.Fatal(err)
	}
	grid := workflow.Grid{Workflow: w}
	for k, speed := range []float64{1, ratio} {
		grid.Sites = append(grid.Sites, workflow.Site{Resource: berth.PoolID(fmt.Sprint(k), "p"), Calendar: calendar.NewFast(4, berth.Late), Speed: speed})
	}
	in, err := grid.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// How much faster one site is than another does not decide how many steps it takes to allot PEs.
func TestStepsDoNotGrowWithTheRatioOfSpeeds(t *testing.T) {
	const tasks = 100
	for _, ratio := range []float64{1, 1e3, 1e6, 1e9} {
		in := apartBy(t, tasks, ratio)
		if _, ok, err := in.Plan(berth.Forever); !ok || err != nil {
			t.Fatalf("ratio %g: %t, %v", ratio, ok, err)
		}
		if steps, _ := workflow.StepsOf(in); steps > tasks*500 {
			t.Errorf("ratio %g: %d steps for %d tasks; want at most 500 for each", ratio, steps, tasks)
		}
	}
}

// drawGrid draws sites of up to 30 PEs. The first may be much faster than the others.
func drawGrid(t *rapid.T) *workflow.Grid {
	problem := drawProblem(t, 12)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "sites"), 0))
	grid := &workflow.Grid{Workflow: problem.Workflow, Now: problem.Now, Epsilon: problem.Epsilon}
	for k := range 1 + rng.IntN(3) {
		c := calendar.NewPlain(berth.Count(1+rng.IntN(30)), berth.Late)
		randomBookings(rng, c, problem.Now, 4)
		speed := 1.0
		if k == 0 {
			speed = []float64{1, 2, 30, 1e3}[rng.IntN(4)]
		}
		grid.Sites = append(grid.Sites, workflow.Site{Resource: berth.PoolID(fmt.Sprint(k), "p"), Calendar: c, Speed: speed})
	}
	return grid
}

// A grid whose tasks all grow by one PE at a time has the plans of PEs that are allotted one by one. Any other grid
// has a plan exactly if those PEs give one.
func TestPlansAreAsWithPEsAllottedOneByOne(t *testing.T) {
	coarse := 0
	rapid.Check(t, func(t *rapid.T) {
		grid := drawGrid(t)
		in, err := grid.Prepare()
		if err != nil {
			return // a task is too wide for all sites
		}
		slow, err := grid.Prepare()
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := in.Plan(berth.Forever)
		if err != nil {
			t.Fatal(err)
		}
		want, wantOK, err := workflow.OneByOne(slow).Plan(berth.Forever)
		if err != nil || ok != wantOK {
			t.Fatalf("%t, one by one %t, %v", ok, wantOK, err)
		}
		if _, is := workflow.StepsOf(in); is {
			coarse++
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, one by one %+v", got, want)
		}
	})
	if coarse == 0 {
		t.Error("no task grew by more than one PE")
	}
}

// A plan of a grid that was prepared does not depend on the plans made before.
func TestGridInstanceForgetsPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := drawGrid(t)
		if rapid.Bool().Draw(t, "lag") {
			grid.Lag = func(task, site int, at func(task int) int) (wait berth.Duration) {
				for _, parent := range grid.Workflow.Parents(task) {
					if other := at(int(parent)); other >= 0 && other != site {
						wait = max(wait, berth.Duration(10*parent+7))
					}
				}
				return wait
			}
		}
		in, err := grid.Prepare()
		if err != nil {
			return
		}
		for range 3 {
			deadline := berth.Forever
			if rapid.Bool().Draw(t, "by") {
				deadline = grid.Now + berth.Time(rapid.IntRange(-1, 3000).Draw(t, "window"))
			}
			got, ok, err := in.Plan(deadline)
			want, wantOK, wantErr := grid.Plan(deadline)
			if ok != wantOK || fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
				t.Fatalf("by %d: %+v %t %v, at first %+v %t %v", deadline, got, ok, err, want, wantOK, wantErr)
			}
		}
	})
}

// BenchmarkGrid prepares two sites of 4 PEs and different speeds, and plans a chain.
func BenchmarkGrid(b *testing.B) {
	for _, tasks := range []int{10, 100} {
		for _, ratio := range []float64{1, 1e3, 1e6, 1e9} {
			b.Run(fmt.Sprintf("tasks=%d/ratio=%g", tasks, ratio), func(b *testing.B) {
				for b.Loop() {
					if _, ok, err := apartBy(b, tasks, ratio).Plan(berth.Forever); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			})
		}
	}
}
