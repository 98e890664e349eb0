package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// What one instance remembers of attempts gives the plans of the plain form, whatever planners ask in
// whatever order, more often than it remembers, and whatever is done to the plans.
func TestTriesEqualPlain(t *testing.T) {
	var planners []workflow.Planner
	for _, p := range workflow.Planners {
		if p.Goal == workflow.Deadline {
			planners = append(planners, p, p.From(2))
		}
	}
	found, none := 0, 0
	for seed := range max(3, compared(t)/40) {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		problem := randomProblem(rng, 8)
		if seed%3 == 1 {
			problem = sized(rng, problem)
		}
		fast, plain := prepare(t, problem), prepare(t, plainOf(problem))
		bd, _ := workflow.PlannerNamed("bd-cpar")
		base, _, err := plain.Plan(bd, berth.Forever)
		if err != nil {
			t.Fatal(err)
		}
		var deadlines []berth.Time
		for range 20 {
			deadlines = append(deadlines, problem.Now+1+berth.Time((.5+2*rng.Float64())*float64(base.Turnaround)))
		}
		for range 150 {
			p, deadline := planners[rng.IntN(len(planners))], deadlines[rng.IntN(len(deadlines))]
			same(t, fmt.Sprintf("seed %d, %s by %d", seed, p.Name, deadline), fast, plain, p, deadline)
			if plan, ok := fast.Try(p, deadline); ok {
				found++
				clear(plan.Tasks)
			} else {
				none++
			}
		}
		if t.Failed() {
			return
		}
	}
	if found == 0 || none == 0 {
		t.Errorf("%d plans and %d times none; want both", found, none)
	}
}
