package engine_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/workload"
)

// A task that has to move behind a late one takes the first place that there is when those behind it
// give way, also where the place of one of them begins after the time that it would take at once.
func TestATaskMovesToWhereThoseBehindItAre(t *testing.T) {
	e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "s", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}}}}})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(now berth.Time, event engine.Event) []change.Change {
		t.Helper()
		changes, _, err := e.Apply(now, event)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	other := berth.Rigid("other", 0, 22, 26, 1, 4)
	apply(0, engine.Submit(&other))
	w := &berth.Workflow{ID: "w", User: "ann", Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairLate}
	for i, id := range []string{"a", "b", "c"} {
		task := berth.WorkflowTask{ID: id, Seconds: 10, Most: 1}
		if i > 0 {
			task.After = []int{i - 1}
		}
		w.Tasks = append(w.Tasks, task)
	}
	apply(0, engine.SubmitWorkflow(w))
	starts := func() (starts [3]berth.Time) {
		for i := range starts {
			r, live := e.Reservation(engine.TaskID("w", i, 1))
			if !live {
				t.Fatalf("task %d has no reservation", i)
			}
			starts[i] = r.Start()
		}
		return starts
	}
	if got, want := starts(), [3]berth.Time{0, 10, 26}; got != want {
		t.Fatalf("the tasks start at %v; want %v", got, want)
	}
	apply(8, engine.Report(engine.TaskID("w", 0, 1), berth.StillRunning, ""))
	if got, want := starts(), [3]berth.Time{0, 26, 36}; got != want {
		t.Errorf("with the first task late until 15 the tasks start at %v; want %v", got, want)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// The best planner's plan is the best of those of its planners, though not all of them are placed: the one that
// ends first, or by a deadline the one of the fewest PE-seconds, and of equals the first.
func TestTheBestPlanIsThatOfItsBestPlanner(t *testing.T) {
	e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 32, Binding: berth.Late}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		ready := berth.Time(i * 1500 % 40_000)
		r := berth.Rigid(fmt.Sprint("r", i), 0, ready, 1<<30, berth.Count(1+i*7%20), berth.Duration(600+i*977%5000))
		if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
			t.Fatal(err)
		}
	}
	type figures struct {
		pes int64
		end berth.Time
	}
	plan := func(w *berth.Workflow) (string, figures, bool) {
		t.Helper()
		p, _, err := e.PlanWorkflow(w, engine.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var f figures
		for i := range p.Places {
			a := &p.Places[i]
			f.pes += berth.Area(a.NPE, a.End.Sub(a.Start))
			f.end = max(f.end, a.End)
		}
		return p.Planner, f, p.Refusal == nil
	}
	won := map[string]int{}
	for seed := range uint64(12) {
		d := workload.NewDaggen()
		d.Tasks = 15
		g, err := d.Generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		w := &berth.Workflow{ID: "w", User: "ann", Deadline: berth.Forever, Repair: berth.RepairBoth}
		for i := range g.Len() {
			task := berth.WorkflowTask{ID: g.Task(i).ID, Seconds: g.Task(i).Sequential, Alpha: g.Task(i).Alpha}
			for _, parent := range g.Parents(i) {
				task.After = append(task.After, int(parent))
			}
			w.Tasks = append(w.Tasks, task)
		}
		for _, names := range [][]string{{"bd-cpar", "bd-thrift"}, {"dl-rc-cpar", "dl-rcbd-cpar-lambda", "dl-thrift-lambda", "bd-cpar", "bd-thrift"}} {
			var best string
			var least figures
			for _, name := range names {
				w.Algorithm = name
				planner, f, ok := plan(w)
				better := cmp.Or(cmp.Compare(f.pes, least.pes), cmp.Compare(f.end, least.end)) < 0
				if w.Deadline == berth.Forever {
					better = cmp.Or(cmp.Compare(f.end, least.end), cmp.Compare(f.pes, least.pes)) < 0
				}
				if ok && (best == "" || better) {
					best, least = planner, f
				}
			}
			w.Algorithm = berth.BestAlgorithm
			planner, f, ok := plan(w)
			if !ok || planner != best || f != least {
				t.Errorf("seed %d, deadline %d: %s plans %+v; the best of its planners is %s with %+v", seed, w.Deadline, planner, f, best, least)
			}
			won[best]++
			w.Deadline = least.end * 2
		}
	}
	if len(won) < 3 {
		t.Errorf("the best planners are %v; want at least three that are best at times", won)
	}
	t.Log(won)
}
