package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// The setting of the measurements: workflows by daggen with the defaults of the
// paper's Table 1, bookings tagged in a real log with φ = .2 and thinned
// exponentially, as they stand a third through it.
type setting struct {
	calendar calendar.Calendar
	now      berth.Time
	free     berth.Count
}

// logs are the logs by name and the PEs that the paper gives their machines.
var logs = map[string]struct {
	file string
	pes  berth.Count
}{"blue": {"SDSC-BLUE-2000-4.2-cln.swf.gz", 1152}, "osc": {"OSC-Clust-2000-3.1-cln.swf.gz", 57}}

func realSetting(b *testing.B, name string) setting {
	b.Helper()
	log, err := workload.Open(realdata.File(b, "swf", logs[name].file), workload.Options{})
	if err != nil {
		b.Fatal(err)
	}
	records := log.Records
	tagging := workload.Tagging{Share: .2, Thinning: "expo", Now: records[len(records)/3].Submit, PEs: logs[name].pes, Seed: 1}
	tagged, err := tagging.Bookings(records)
	if err != nil {
		b.Fatal(err)
	}
	s := setting{calendar.NewFast(tagging.PEs, berth.Late), tagging.Now, tagged.Free}
	for _, booking := range tagged.Bookings {
		if err := s.calendar.Add(calendar.Block{Start: booking.Start, End: booking.End, NPE: booking.NPE}); err != nil {
			b.Fatal(err)
		}
	}
	s.calendar.Prune(s.now)
	b.Logf("%s: %d PEs, q = %d", name, tagging.PEs, s.free)
	return s
}

func (s setting) problem(b *testing.B, tasks int) workflow.Problem {
	b.Helper()
	d := workload.NewDaggen()
	d.Tasks = tasks
	w, err := d.Generate(1)
	if err != nil {
		b.Fatal(err)
	}
	return workflow.Problem{Workflow: w, Calendar: s.calendar, Now: s.now, Free: s.free}
}

// form names the fast or the plain form.
func form(plain bool) string {
	if plain {
		return "plain"
	}
	return "fast"
}

// BenchmarkPlan makes one plan from nothing. Planners for a deadline get the
// tightest one they meet, at which those with λ try most steps. With -short only
// the fast form is measured.
func BenchmarkPlan(b *testing.B) {
	for _, log := range []string{"osc", "blue"} {
		s := realSetting(b, log)
		for _, name := range []string{
			"bd-all", "bd-cpa", "bd-cpar", "bd-thrift", "dl-bd-all", "dl-bd-cpar", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda",
		} {
			p, _ := workflow.PlannerNamed(name)
			for _, tasks := range []int{10, 50, 100} {
				problem := s.problem(b, tasks)
				deadline := berth.Time(berth.Forever)
				if p.Goal == workflow.Deadline {
					deadline, _, _ = prepare(b, problem).Tightest(p)
				}
				for _, plain := range []bool{false, true} {
					if plain && testing.Short() {
						continue
					}
					problem.Plain = plain
					b.Run(fmt.Sprintf("log=%s/planner=%s/tasks=%d/form=%s", log, name, tasks, form(plain)), func(b *testing.B) {
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

// BenchmarkTightest searches the tightest deadlines of the five planners of the
// paper's Table 6 for one workflow.
func BenchmarkTightest(b *testing.B) {
	problem := realSetting(b, "blue").problem(b, 50)
	for _, plain := range []bool{false, true} {
		if plain && testing.Short() {
			continue
		}
		problem.Plain = plain
		b.Run("planners=5/tasks=50/form="+form(plain), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in := prepare(b, problem)
				for _, name := range []string{"dl-bd-all", "dl-bd-cpa", "dl-bd-cpar", "dl-rc-cpa", "dl-rc-cpar"} {
					p, _ := workflow.PlannerNamed(name)
					if _, _, ok := in.Tightest(p); !ok {
						b.Fatal("no deadline can be met")
					}
				}
			}
		})
	}
}

// BenchmarkLarge plans workflows of thousands of tasks: one of the shape of
// BLAST and BWA on the machine of the other measurements, and layers of tasks
// with three parents each on a machine of 10,000 PEs with many bookings.
func BenchmarkLarge(b *testing.B) {
	p, _ := workflow.PlannerNamed("bd-cpar")
	wide := realSetting(b, "blue").problem(b, 1)
	wide.Workflow = fanned(rand.New(rand.NewPCG(3, 1)), 1000)
	rng := rand.New(rand.NewPCG(3, 3))
	problems := []workflow.Problem{wide}
	if !testing.Short() {
		problems = append(problems, workflow.Problem{
			Workflow: layered(rng, 10_000), Calendar: packed(rng, 10_000, 100_000, 30*86400), Free: 5_000,
		})
	}
	for _, problem := range problems {
		w := problem.Workflow
		b.Run(fmt.Sprintf("tasks=%d/edges=%d/pes=%d", w.Len(), w.Edges(), problem.Calendar.Size()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := prepare(b, problem).Try(p, berth.Forever); !ok {
					b.Fatal("no plan")
				}
			}
		})
	}
}

// drawTask draws a task as the paper does.
func drawTask(rng *rand.Rand, i int) workflow.Task {
	return workflow.Task{ID: strconv.Itoa(i), Sequential: 60 + 35940*rng.Float64(), Alpha: .2 * rng.Float64()}
}

// fanned draws two tasks that feed all others, and two that all others feed.
func fanned(rng *rand.Rand, n int) *workflow.Workflow {
	tasks := make([]workflow.Task, n)
	var edges []workflow.Edge
	for i := range tasks {
		tasks[i] = drawTask(rng, i)
		if i < 2 || i >= n-2 {
			continue
		}
		for _, from := range []int{0, 1} {
			edges = append(edges, workflow.Edge{Parent: strconv.Itoa(from), Child: strconv.Itoa(i)})
		}
		for _, to := range []int{n - 2, n - 1} {
			edges = append(edges, workflow.Edge{Parent: strconv.Itoa(i), Child: strconv.Itoa(to)})
		}
	}
	return must2(workflow.New(tasks, edges))
}

// layered draws levels of a hundred tasks with three parents each, from the
// level above.
func layered(rng *rand.Rand, n int) *workflow.Workflow {
	const width = 100
	tasks := make([]workflow.Task, n)
	var edges []workflow.Edge
	for i := range tasks {
		tasks[i] = drawTask(rng, i)
		if i < width {
			continue
		}
		for _, k := range rng.Perm(width)[:3] {
			edges = append(edges, workflow.Edge{Parent: strconv.Itoa(i - i%width - width + k), Child: strconv.Itoa(i)})
		}
	}
	return must2(workflow.New(tasks, edges))
}

func must2(w *workflow.Workflow, err error) *workflow.Workflow {
	if err != nil {
		panic(err)
	}
	return w
}

// packed fills a machine with n bookings at random places of a span, as many
// as fit, so that about half of its time is free.
func packed(rng *rand.Rand, size berth.Count, n, span int) calendar.Calendar {
	c := calendar.NewFast(size, berth.Late)
	mean := int(.5 * float64(size) * float64(span) / float64(n) / 64)
	for range n {
		b := calendar.Block{Start: berth.Time(rng.IntN(span)), NPE: 1 + berth.Count(rng.IntN(127))}
		b.End = b.Start + 1 + berth.Time(rng.IntN(2*mean))
		_ = c.Add(b) // one that does not fit is left out
	}
	return c
}
