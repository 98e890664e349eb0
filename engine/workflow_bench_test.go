package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/workload"
)

// daggenFlow is a workflow by daggen with the defaults of Aida and Casanova's Table 1.
func daggenFlow(b *testing.B, id string, tasks int, seed uint64) *berth.Workflow {
	b.Helper()
	d := workload.NewDaggen()
	d.Tasks = tasks
	g, err := d.Generate(seed)
	if err != nil {
		b.Fatal(err)
	}
	w := &berth.Workflow{ID: id, User: "ann", Deadline: berth.Forever, Algorithm: berth.SlackAlgorithm, Repair: berth.RepairBoth}
	for i := range g.Len() {
		t := berth.WorkflowTask{ID: g.Task(i).ID, Seconds: g.Task(i).Sequential, Alpha: g.Task(i).Alpha}
		for _, parent := range g.Parents(i) {
			t.After = append(t.After, int(parent))
		}
		w.Tasks = append(w.Tasks, t)
	}
	return w
}

// busy is an engine of one pool of 1,152 PEs of late binding, with seven tenths promised
// in a number of reservations of 1 to 128 PEs for a minute to four hours.
func busy(b *testing.B, live int, managed bool) *engine.Engine {
	b.Helper()
	const pes = 1152
	e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "s", Managed: managed, Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: berth.Late}}}}})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	span := int64(live)*7230*32*10/7/pes + 1
	for i := range live {
		ready := berth.Time(3600 + rng.Int64N(span))
		length := berth.Duration(60 + rng.Int64N(14_341))
		r := berth.Rigid(fmt.Sprint("r", i), 0, ready, ready.Add(8*length), berth.Count(1)<<rng.IntN(8), length)
		if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
			b.Fatal(err)
		}
	}
	return e
}

// apply has an event decided and returns the changes.
func applied(b *testing.B, e *engine.Engine, now berth.Time, event engine.Event) []change.Change {
	b.Helper()
	changes, _, err := e.Apply(now, event)
	if err != nil {
		b.Fatal(err)
	}
	return changes
}

// BenchmarkWorkflow measures the promise of a workflow among 10,000 live reservations, as early
// as possible and by a deadline of three times that.
func BenchmarkWorkflow(b *testing.B) {
	for _, tasks := range []int{100, 1000, 10_000} {
		for _, kind := range []string{"soon", "deadline"} {
			b.Run(fmt.Sprintf("tasks=%d/live=10000/%s", tasks, kind), func(b *testing.B) {
				e := busy(b, 10_000, false)
				flows := make([]*berth.Workflow, max(1, 1000/tasks))
				for i := range flows {
					flows[i] = daggenFlow(b, fmt.Sprint("w", i), tasks, uint64(i))
					if kind == "soon" {
						continue
					}
					promised := applied(b, e, 0, engine.SubmitWorkflow(flows[i]))
					flows[i].Deadline = 3 * promised[0].Flow.End
					applied(b, e, 0, engine.CancelWorkflow(flows[i].ID))
				}
				for i := 0; b.Loop(); i++ {
					w := flows[i%len(flows)]
					if changes := applied(b, e, 0, engine.SubmitWorkflow(w)); changes[0].Kind != change.WorkflowPromised {
						b.Fatalf("%+v", changes[0])
					}
					b.StopTimer()
					applied(b, e, 0, engine.CancelWorkflow(w.ID))
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkWorkflowDeviates measures what is decided when a task of a workflow of 1,000, among
// 10,000 live reservations, ends early, fails, or needs longer than it has.
func BenchmarkWorkflowDeviates(b *testing.B) {
	for _, kind := range []string{"early", "failed", "late"} {
		b.Run("tasks=1000/live=10000/"+kind, func(b *testing.B) {
			var e *engine.Engine
			var w *berth.Workflow
			var running []string // that have not deviated yet
			next, changed := 0, 0
			for b.Loop() {
				if len(running) == 0 {
					b.StopTimer()
					e = busy(b, 10_000, true)
					w = daggenFlow(b, fmt.Sprint("w", next), 1000, uint64(next))
					for i := range w.Tasks {
						w.Tasks[i].Retries = 1
					}
					next++
					applied(b, e, 0, engine.SubmitWorkflow(w))
					applied(b, e, 0, engine.Wake())
					running = running[:0]
					for _, c := range applied(b, e, 10, engine.Wake()) {
						_ = c
					}
					status, _ := e.WorkflowStatus(w.ID)
					for i := range status.Tasks {
						if state, _ := e.State(status.Tasks[i].Reservation); state == berth.Active {
							running = append(running, status.Tasks[i].Reservation)
						}
					}
					if len(running) == 0 {
						b.Fatal("nothing runs")
					}
					b.StartTimer()
				}
				id := running[0]
				running = running[1:]
				outcome := map[string]berth.Outcome{"early": berth.Succeeded, "failed": berth.FailedForGood, "late": berth.StillRunning}[kind]
				changes := applied(b, e, 20, engine.Report(id, outcome, ""))
				if changed += len(changes); changed == 0 { // of those that are late, some have all that they may have
					b.Fatal("nothing changed")
				}
			}
		})
	}
}
