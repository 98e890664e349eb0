package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/workflow"
)

// slowAndFast is a site of 4 PEs and one of 4 that are twice as fast and have a program.
func slowAndFast(binding berth.Binding) engine.Config {
	return engine.Config{Sites: []berth.Site{
		{Name: "north", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: binding}}},
		{Name: "south", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: binding, Speed: 2 * berth.StandardSpeed}}, Software: []berth.Software{{Name: "solver", Version: "2.0"}}},
	}}
}

// wide is a task that takes four PEs for some seconds.
func wide(id string, seconds float64, after ...int) berth.WorkflowTask {
	return berth.WorkflowTask{ID: id, Measured: []berth.Measurement{{NPE: 4, Seconds: seconds}}, After: after}
}

// places lists where the tasks of a workflow are.
func places(changes []change.Change) map[string]berth.Allotment {
	where := map[string]berth.Allotment{}
	for i := range changes {
		if c := &changes[i]; c.Kind == change.Accepted {
			where[c.ID] = c.Reservation.Allotments[0]
		}
	}
	return where
}

// A workflow that may be spread uses both sites, each at its speed; one that may not is at
// one of them.
func TestWorkflowsSpreadOverSites(t *testing.T) {
	for _, binding := range bindings() {
		for name, w := range map[string]*berth.Workflow{
			"best":  flow("w", 0, berth.Forever, wide("a", 100), wide("b", 100), wide("c", 100)),
			"named": flow("w", 0, berth.Forever, wide("a", 100), wide("b", 100), wide("c", 100)),
		} {
			if name == "best" {
				w.Algorithm = berth.BestAlgorithm
			}
			e := newEngine(t, slowAndFast(binding))
			wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-50 w.2@50-100 w.3@100-150")
			w.Spread = true
			e = newEngine(t, slowAndFast(binding))
			changes := apply(t, e, 0, engine.SubmitWorkflow(w))
			at, sites := places(changes), map[string]int{}
			for _, a := range at {
				sites[a.Resource.Site]++
				if a.End > 100 {
					t.Errorf("%s %s: %+v; all can end by 100", binding, name, a)
				}
			}
			if sites["north"] != 1 || sites["south"] != 2 {
				t.Errorf("%s %s: tasks at %v: %s", binding, name, sites, toldOf(changes))
			}
		}
	}
}

// A task that names its site, or needs what one site alone has, is there; the tasks before and
// after it may be elsewhere. Where no site will do the workflow is refused with the reason.
func TestTasksAreWhereTheyCanBe(t *testing.T) {
	for _, binding := range bindings() {
		e := newEngine(t, slowAndFast(binding))
		solve := wide("b", 100, 0)
		solve.Software = "solver"
		w := flow("w", 0, 400, wide("a", 100), solve, wide("c", 100, 1))
		w.Tasks[0].Site, w.Tasks[2].Site = "north", "north"
		at := places(apply(t, e, 0, engine.SubmitWorkflow(w)))
		for id, want := range map[string]string{"w.1": "north", "w.2": "south", "w.3": "north"} {
			if at[id].Resource.Site != want {
				t.Errorf("%s: %s is at %+v, want %s", binding, id, at[id], want)
			}
		}
		if at["w.2"].Start < at["w.1"].End || at["w.3"].Start < at["w.2"].End || at["w.3"].End > 400 {
			t.Errorf("%s: %+v", binding, at)
		}
		v := flow("v", 0, 900, wide("a", 100), wide("b", 100, 0))
		v.Tasks[0].Site, v.Tasks[1].Software = "north", "other"
		changes := apply(t, e, 0, engine.SubmitWorkflow(v))
		if no := changes[len(changes)-1].Refusal; no == nil || no.Reason != berth.NoSoftware {
			t.Errorf("%s: software that no site has: %+v", binding, no)
		}
		v.Tasks[1].Software, v.Tasks[1].Site = "", "east"
		changes = apply(t, e, 0, engine.SubmitWorkflow(v))
		if no := changes[len(changes)-1].Refusal; no == nil || no.Reason != berth.NoSuitableSite {
			t.Errorf("%s: a site that is not there: %+v", binding, no)
		}
	}
}

// A workflow that may not be spread may yet be over the pools of one site.
func TestWorkflowsOverThePoolsOfASite(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}, {Name: "q", PEs: 4, Binding: berth.Late}}}}}
	w := flow("w", 0, 100, wide("a", 100), wide("b", 100))
	w.Algorithm = "bd-thrift"
	if no := apply(t, newEngine(t, config), 0, engine.SubmitWorkflow(w))[0].Refusal; no == nil {
		t.Error("bd-thrift plans on one pool, where there is no time")
	}
	for _, w.Algorithm = range []string{"bd-cpar", berth.BestAlgorithm} {
		at := places(apply(t, newEngine(t, config), 0, engine.SubmitWorkflow(w)))
		if len(at) != 2 || at["w.1"].Resource == at["w.2"].Resource || at["w.1"].Start != 0 || at["w.2"].Start != 0 {
			t.Errorf("%s: %+v; want one in each pool", w.Algorithm, at)
		}
	}
}

// What gives way to a task that is late is what is in its pool: tasks in another one stay.
func TestLateTasksTakeNothingInOtherPools(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{{
		Name: "s", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}, {Name: "q", PEs: 1, Binding: berth.Late, Node: berth.Node{Accelerators: 1}}},
		Partitions: []berth.Partition{{Name: "cpu", Pool: "p"}},
	}}}
	e := newEngine(t, config)
	other := berth.Rigid("other", 0, 0, 50, 1, 50)
	other.Pool = "q"
	accepted(t, submit(t, e, 0, other))
	w := flow("w", 0, 100, task("a", 50), task("b", 10), task("c", 10, 0))
	w.Algorithm = "bd-cpar"
	w.Tasks[0].Partition, w.Tasks[1].Accelerators, w.Tasks[2].Partition = "cpu", 1, "cpu"
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-50 w.2@50-60 w.3@50-60")
	apply(t, e, 0, engine.Wake())
	changes := apply(t, e, 48, engine.Report("w.1", berth.StillRunning, ""))
	wantFlow(t, changes, "w.1-55 w.3@55-65 late:60→65")
	for _, c := range changes {
		if c.ID == "w.2" {
			t.Errorf("w.2 is %s", c.Kind)
		}
	}
}

// A share counts in each pool by itself, and the refusal names the pool.
func TestSpreadWorkflowsKeepTheShareOfEachPool(t *testing.T) {
	config := slowAndFast(berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 500}}
	narrow := func(id, site string) berth.WorkflowTask {
		return berth.WorkflowTask{ID: id, Measured: []berth.Measurement{{NPE: 2, Seconds: 100}}, Site: site}
	}
	e := newEngine(t, config)
	at := places(apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 150, narrow("a", "north"), narrow("b", "south")))))
	if len(at) != 2 {
		t.Errorf("two PEs at each site: %+v", at)
	}
	changes := apply(t, e, 0, engine.SubmitWorkflow(flow("v", 0, 100, narrow("a", "south"), narrow("b", ""))))
	if no := changes[len(changes)-1].Refusal; no == nil || no.Exceeded == nil || no.Exceeded.Limit != string(policy.LimitShare) || no.Exceeded.Asked != 4 {
		t.Errorf("more than half of a site: %+v", no)
	}
	if at := places(apply(t, e, 0, engine.SubmitWorkflow(flow("v", 0, 150, narrow("a", "south"), narrow("b", ""))))); len(at) != 2 || at["v.1"].Start < 50 {
		t.Errorf("when there is time for it within the share: %+v", at)
	}
}

// A task of a workflow that is not spread is tried again at its own site, where the files of the
// others are; a task of a workflow that is spread where it ends soonest.
func TestTasksAreTriedAgainWhereTheirFilesAre(t *testing.T) {
	for _, spread := range []bool{false, true} {
		config := slowAndFast(berth.Late)
		config.Sites[0].Managed, config.Sites[1].Managed = true, true
		e := newEngine(t, config)
		w := flow("w", 0, 1000, wide("a", 100))
		w.Tasks[0].Retries, w.Spread = 1, spread
		if at := places(apply(t, e, 0, engine.SubmitWorkflow(w))); at["w.1"].Resource.Site != "south" {
			t.Fatalf("%+v; it ends soonest in the south", at)
		}
		apply(t, e, 0, engine.Wake())
		apply(t, e, 1, engine.Down(berth.Outage{Resource: berth.PoolID("south", "p"), PEs: berth.PEsOf(0, 1, 2, 3), Until: 700}))
		at := places(apply(t, e, 2, engine.Report("w.1", berth.FailedForGood, "its nodes died")))
		want := berth.Allotment{Resource: berth.PoolID("south", "p"), Start: 700, End: 750}
		if spread {
			want = berth.Allotment{Resource: berth.PoolID("north", "p"), Start: 2, End: 102}
		}
		if a := at["w.1-2"]; a.Resource != want.Resource || a.Start != want.Start || a.End != want.End {
			t.Errorf("spread %t: tried again at %+v, want %+v", spread, a, want)
		}
	}
}

// The engine promises what workflow.Grid plans on calendars of the same bookings.
func TestSpreadWorkflowsArePromisedAsPlanned(t *testing.T) {
	promised := 0
	rapid.Check(t, func(t *rapid.T) {
		e, err := engine.New(slowAndFast(berth.Late))
		if err != nil {
			t.Fatal(err)
		}
		w := drawFlow(t, "w", 0)
		w.Algorithm = rapid.SampledFrom(berth.SpreadAlgorithms()).Draw(t, "planner")
		names := []string{"north", "south"}
		unfit := [2][]bool{make([]bool, len(w.Tasks)), make([]bool, len(w.Tasks))}
		seen := map[string]bool{}
		for i := range w.Tasks {
			w.Tasks[i].Site = rapid.SampledFrom([]string{"", "north", "south"}).Draw(t, "site")
			seen[w.Tasks[i].Site] = true
			for k, name := range names {
				unfit[k][i] = w.Tasks[i].Site != "" && w.Tasks[i].Site != name
			}
		}
		if !seen["north"] || !seen["south"] {
			return // it could be in one pool
		}
		grid := workflow.Grid{Workflow: graphOf(t, w)}
		for k, name := range names {
			c := calendar.NewFast(4, berth.Late)
			for i := range rapid.IntRange(0, 4).Draw(t, "bookings") {
				start, npe := berth.Time(rapid.IntRange(0, 80).Draw(t, "start")), berth.Count(rapid.IntRange(1, 4).Draw(t, "npe"))
				d := berth.Duration(2 * rapid.IntRange(1, 20).Draw(t, "length"))
				r := berth.Rigid(fmt.Sprint(name, i), 0, start, start.Add(d), npe, d*berth.Duration(1+k))
				r.Site = name
				changes, _, err := e.Apply(0, engine.Submit(&r))
				if err != nil {
					t.Fatal(err)
				}
				if last := changes[len(changes)-1]; last.Kind == change.Accepted {
					if err := c.Add(calendar.Block{Start: start, End: start.Add(d), NPE: npe}); err != nil {
						t.Fatal(err)
					}
				}
			}
			grid.Sites = append(grid.Sites, workflow.Site{Resource: berth.PoolID(name, "p"), Calendar: c, Speed: float64(1 + k), Unfit: unfit[k]})
		}
		deadline := w.Deadline
		if w.Algorithm == "bd-cpar" {
			deadline = berth.Forever
		}
		plan, ok, err := grid.Plan(deadline)
		ok = ok && err == nil && plan.End(0) <= w.Deadline
		changes, _, err := e.Apply(0, engine.SubmitWorkflow(w))
		if err != nil {
			t.Fatal(err)
		}
		at := places(changes)
		if !ok {
			if len(at) > 0 {
				t.Fatalf("promised without a plan: %s", toldOf(changes))
			}
			return
		}
		promised++
		for i, p := range plan.Tasks {
			a := at[engine.TaskID("w", i, 1)]
			if a.Resource.Site != names[p.Site] || a.Start != p.Start || a.End != p.End || a.NPE != p.NPE {
				t.Fatalf("task %d is at %+v, planned %s %+v", i+1, a, names[p.Site], p)
			}
		}
	})
	t.Logf("%d promised", promised)
}

func graphOf(t *rapid.T, w *berth.Workflow) *workflow.Workflow {
	var tasks []workflow.Task
	var edges []workflow.Edge
	for _, x := range w.Tasks {
		k := workflow.Task{ID: x.ID, Sequential: x.Seconds, Alpha: x.Alpha, Few: x.Few, Most: x.Most}
		for _, m := range x.Measured {
			k.Measured = append(k.Measured, workflow.Measurement{NPE: m.NPE, Seconds: m.Seconds})
		}
		tasks = append(tasks, k)
		for _, parent := range x.After {
			edges = append(edges, workflow.Edge{Parent: w.Tasks[parent].ID, Child: x.ID})
		}
	}
	g, err := workflow.New(tasks, edges)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
