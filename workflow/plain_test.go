package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// prepare fails the test on an error.
func prepare(tb testing.TB, p workflow.Problem) *workflow.Instance {
	tb.Helper()
	in, err := workflow.Prepare(p)
	if err != nil {
		tb.Fatal(err)
	}
	return in
}

func plainOf(p workflow.Problem) workflow.Problem {
	p.Plain = true
	return p
}

// Every planner gives the schedule of its plain form, or none where that gives
// none, on random problems. Deadlines run from hopeless to loose.
func TestFastEqualsPlain(t *testing.T) {
	for seed := range compared(t) {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		problem := randomProblem(rng, 12)
		if seed%3 == 1 {
			problem = sized(rng, problem)
		}
		fast, plain := prepare(t, problem), prepare(t, plainOf(problem))
		bd, _ := workflow.PlannerNamed("bd-cpar")
		base, _, err := plain.Plan(bd, berth.Forever)
		if err != nil {
			t.Fatal(err)
		}
		spread := []float64{.3 + rng.Float64(), 1 + rng.Float64(), 1 + 3*rng.Float64()}
		for _, p := range workflow.Planners {
			if p.Goal == workflow.Finish {
				same(t, fmt.Sprintf("seed %d, %s", seed, p.Name), fast, plain, p, berth.Forever)
				continue
			}
			for _, x := range spread {
				deadline := problem.Now + 1 + berth.Time(x*float64(base.Turnaround))
				same(t, fmt.Sprintf("seed %d, %s by %d", seed, p.Name, deadline), fast, plain, p, deadline)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// same compares the answers of two instances.
func same(t *testing.T, what string, fast, plain *workflow.Instance, p workflow.Planner, deadline berth.Time) {
	t.Helper()
	got, gotOK := fast.Try(p, deadline)
	want, wantOK := plain.Try(p, deadline)
	if gotOK != wantOK || !slices.Equal(got.Tasks, want.Tasks) || got.Lambda != want.Lambda ||
		got.Turnaround != want.Turnaround || got.CPUSeconds != want.CPUSeconds {
		t.Errorf("%s:\n got %v %+v\nwant %v %+v", what, gotOK, got, wantOK, want)
	}
}

// The tightest deadline and the schedule there are those of the plain form.
func TestTightestEqualsPlain(t *testing.T) {
	for seed := range max(1, compared(t)/20) {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		problem := randomProblem(rng, 6)
		if seed%3 == 1 {
			problem = sized(rng, problem)
		}
		fast, plain := prepare(t, problem), prepare(t, plainOf(problem))
		for _, p := range workflow.Planners {
			gotAt, got, gotOK := fast.Tightest(p)
			wantAt, want, wantOK := plain.Tightest(p)
			if gotAt != wantAt || gotOK != wantOK || !slices.Equal(got.Tasks, want.Tasks) {
				t.Fatalf("seed %d, %s:\n got %v %d %+v\nwant %v %d %+v", seed, p.Name, gotOK, gotAt, got, wantOK, wantAt, want)
			}
		}
	}
}

// Allocations and CPA's own schedules are those of the plain form, on fewer and
// on more PEs than the site has.
func TestAllocationsEqualPlain(t *testing.T) {
	for seed := range compared(t) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		problem := randomProblem(rng, 12)
		least := berth.Count(1)
		if seed%3 == 1 {
			problem = sized(rng, problem)
			least = widest(problem.Workflow)
		}
		fast, plain := prepare(t, problem), prepare(t, plainOf(problem))
		for _, a := range []workflow.Allocation{workflow.CPA, workflow.MCPA, workflow.Thrift} {
			q := least + berth.Count(rng.IntN(2*int(fast.Size())))
			got, err := fast.Map(a, q)
			want, wantErr := plain.Map(a, q)
			if err != nil || wantErr != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s on %d PEs:\n got %+v, %v\nwant %+v, %v", seed, a, q, got, err, want, wantErr)
			}
		}
	}
	in := prepare(t, diamond(t, workflow.Half))
	_, err := in.Allocate(workflow.CPA, 0)
	wantField(t, err, "q")
	_, err = in.Map("cpu", 4)
	wantField(t, err, "allocation")
}

// So are those of workflows of daggen, in which many ways are about as long as the critical path.
func TestAllocationsOfManyTasksEqualPlain(t *testing.T) {
	for seed := range max(2, compared(t)/50) {
		d := workload.NewDaggen()
		d.Tasks, d.Jump = 120, 1+seed%3
		w, err := d.Generate(uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		problem := workflow.Problem{Workflow: w, Calendar: booked(t, 128)}
		fast, plain := prepare(t, problem), prepare(t, plainOf(problem))
		for _, a := range []workflow.Allocation{workflow.CPA, workflow.MCPA, workflow.Thrift} {
			got, err := fast.Allocate(a, 128)
			want, wantErr := plain.Allocate(a, 128)
			if err != nil || wantErr != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s:\n got %v, %v\nwant %v, %v", seed, a, got, err, want, wantErr)
			}
		}
	}
}

// So are those of tasks with many children each. Some children are alike: the first of equals is on the critical path.
func TestAllocationsOfManyChildrenEqualPlain(t *testing.T) {
	for seed := range max(6, compared(t)/100) {
		rng := rand.New(rand.NewPCG(uint64(seed), 4))
		var tasks []workflow.Task
		var edges []workflow.Edge
		const levels, wide = 4, 40
		kinds := []int{1, 3, 40, 1000}[seed%4] // of times
		for i := range levels * wide {
			tasks = append(tasks, workflow.Task{ID: fmt.Sprint(i), Sequential: float64(1000 + 10*rng.IntN(kinds)), Alpha: .05 * float64(rng.IntN(3))})
			for k := range wide {
				if above := i - i%wide - wide + k; above >= 0 && rng.IntN(4) > 0 {
					edges = append(edges, workflow.Edge{Parent: fmt.Sprint(above), Child: fmt.Sprint(i)})
				}
			}
		}
		w, err := workflow.New(tasks, edges)
		if err != nil {
			t.Fatal(err)
		}
		problem := workflow.Problem{Workflow: w, Calendar: booked(t, 256)}
		fast, plain := prepare(t, problem), prepare(t, plainOf(problem))
		for _, a := range []workflow.Allocation{workflow.CPA, workflow.MCPA, workflow.Thrift} {
			got, err := fast.Allocate(a, 256)
			want, wantErr := plain.Allocate(a, 256)
			if err != nil || wantErr != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s:\n got %v, %v\nwant %v, %v", seed, a, got, err, want, wantErr)
			}
		}
	}
}

// widest returns the most PEs that a task must have.
func widest(w *workflow.Workflow) berth.Count {
	most := berth.Count(1)
	for i := range w.Len() {
		most = max(most, w.Task(i).Fewest())
	}
	return most
}

// A task of no time gains nothing from PEs, whatever the rule.
func TestTasksOfNoTimeStaySmall(t *testing.T) {
	w, err := workflow.New([]workflow.Task{{ID: "a"}, {ID: "b", Sequential: 100}}, []workflow.Edge{{Parent: "a", Child: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	in := prepare(t, workflow.Problem{Workflow: w, Calendar: booked(t, 64)})
	for _, a := range []workflow.Allocation{workflow.CPA, workflow.MCPA, workflow.Thrift} {
		if npe, err := in.Allocate(a, 64); err != nil || npe[0] != 1 || npe[1] < 2 {
			t.Errorf("%s allots %v, %v", a, npe, err)
		}
	}
}
