package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// form names the fast or the plain form.
func form(plain bool) string {
	if plain {
		return "plain"
	}
	return "fast"
}

// BenchmarkPlan makes one plan from nothing, for workflows by daggen with the
// defaults of the paper's Table 1 among made-up bookings. Planners for a deadline
// get the tightest one they meet, at which those with λ try most steps. With
// -short only the fast form is measured. On real logs, and with the published
// times beside: internal/workflowbench.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []berth.Count{64, 1024} {
		for _, name := range []string{
			"bd-all", "bd-cpa", "bd-cpar", "bd-thrift", "dl-bd-all", "dl-bd-cpar", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda",
		} {
			p, _ := workflow.PlannerNamed(name)
			for _, tasks := range []int{10, 100, 1000} {
				d := workload.NewDaggen()
				d.Tasks = tasks
				w, err := d.Generate(1)
				if err != nil {
					b.Fatal(err)
				}
				problem := workflow.Problem{Workflow: w, Calendar: decaying(rand.New(rand.NewPCG(1, 6)), size, 60), Free: size * 4 / 5}
				deadline := berth.Forever
				if p.Goal == workflow.Deadline {
					deadline, _, _ = prepare(b, problem).Tightest(p)
				}
				for _, plain := range []bool{false, true} {
					if plain && (testing.Short() || tasks > 100) { // the plain form takes minutes
						continue
					}
					problem.Plain = plain
					b.Run(fmt.Sprintf("pes=%d/planner=%s/tasks=%d/form=%s", size, name, tasks, form(plain)), func(b *testing.B) {
						b.ReportAllocs()
						for b.Loop() {
							if _, ok := prepare(b, problem).Try(p, deadline); !ok {
								b.Fatal("no plan")
							}
						}
					})
				}
			}
		}
	}
}

// BenchmarkGrow allots PEs to 1,000 tasks.
func BenchmarkGrow(b *testing.B) {
	for _, ours := range []bool{false, true} {
		b.Run(fmt.Sprintf("ours=%t", ours), func(b *testing.B) {
			d := workload.NewDaggen()
			d.Tasks = 1000
			var all []*workflow.Instance
			for seed := range 4 {
				w, err := d.Generate(uint64(seed))
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, prepare(b, workflow.Problem{Workflow: w, Calendar: decaying(rand.New(rand.NewPCG(1, 6)), 1152, 60), Free: 350}))
			}
			steps := 0
			for n := 0; b.Loop(); n++ {
				_, k := workflow.Grow(all[n%4], 350, ours)
				steps += k
			}
			b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
		})
	}
}
