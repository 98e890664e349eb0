package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// A task that waits for PEs alone comes forward when a task of its workflow gives them back, though it does
// not depend on that, and with it those that waited for its own place, or for its end.
func TestTasksComeForwardThatWaitForPEs(t *testing.T) {
	wide := func(id string, seconds float64, after ...int) berth.WorkflowTask {
		return berth.WorkflowTask{ID: id, Seconds: seconds, Alpha: 1, Few: 4, Most: 4, After: after}
	}
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		e := newEngine(t, managedPool(4, binding))
		w := flow("w", 0, berth.Forever, wide("a", 100), wide("b", 90), wide("c", 80), wide("d", 10, 1))
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-100 w.2@100-190 w.3@190-270 w.4@270-280")
		apply(t, e, 10, engine.Wake())
		wantFlow(t, apply(t, e, 40, engine.Report("w.1", berth.Succeeded, "")),
			"succeeded:1 ended:w.1 w.2@40-130 w.3@130-210 w.4@210-220 early:280→220")
	}
}

// What comes forward keeps within the share of its user, though the pool has room for more; a task that
// waits for the share alone comes forward when it is given back.
func TestTasksComeForwardWithinTheShare(t *testing.T) {
	two := func(id string, seconds float64, after ...int) berth.WorkflowTask {
		return berth.WorkflowTask{ID: id, Seconds: seconds, Alpha: 1, Few: 2, Most: 2, After: after}
	}
	for _, binding := range bindings() {
		config := managedPool(8, binding)
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 500}}
		e := newEngine(t, config)
		own := berth.Rigid("own", 0, 0, 100, 2, 100)
		own.User = "ada"
		accepted(t, submit(t, e, 0, own))
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, berth.Forever, two("a", 50), two("b", 60, 0), two("c", 70)))), "workflow_promised:w w.1@0-50 w.3@50-120 w.2@100-160")
		apply(t, e, 0, engine.Wake())
		// b, which depends on a, would have PEs from 10 on, but c has the share from 50 on: c comes first.
		wantFlow(t, apply(t, e, 10, engine.Report("w.1", berth.Succeeded, "")), "succeeded:1 ended:w.1 w.3@10-80 w.2@80-140 early:160→140")
	}
}

// A task that has more PEs than the share of its user, which is less since a restart, does not come
// forward beside what else the user has.
func TestTasksBeyondTheShareDoNotComeForward(t *testing.T) {
	for share, want := range map[int64]string{
		375: "succeeded:1 ended:w.1 w.2@10-60 early:110→60", 125: "succeeded:1 ended:w.1",
	} {
		config := managedPool(8, berth.Late)
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 375}}
		e := newEngine(t, config)
		own := berth.Rigid("own", 0, 0, 200, 1, 200)
		own.User = "ada"
		accepted(t, submit(t, e, 0, own))
		a, b := task("a", 60), task("b", 50)
		a.Few, a.Most, b.Few, b.Most = 2, 2, 2, 2
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, berth.Forever, a, b))), "workflow_promised:w w.1@0-60 w.2@60-110")
		apply(t, e, 0, engine.Wake())
		config.Limits[0].Value = share
		again, err := engine.Restore(config, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		wantFlow(t, apply(t, again, 10, engine.Report("w.1", berth.Succeeded, "")), want)
	}
}

// A licence or the storage that a task waits for is given back early like PEs.
func TestTasksComeForwardThatWaitForLicences(t *testing.T) {
	config := managedPool(8, berth.Late)
	config.Sites[0].Software = []berth.Software{{Name: "cfd", Licences: 1}}
	licensed := func(id string, seconds float64) berth.WorkflowTask {
		k := task(id, seconds)
		k.Software, k.Licences = "cfd", 1
		return k
	}
	e := newEngine(t, config)
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, berth.Forever, licensed("a", 100), licensed("b", 90), task("c", 200)))), "workflow_promised:w w.1@0-100 w.2@100-190 w.3@0-200")
	apply(t, e, 0, engine.Wake())
	wantFlow(t, apply(t, e, 30, engine.Report("w.1", berth.Succeeded, "")), "succeeded:1 ended:w.1 w.2@30-120 early:200→200")
}

// What has room in front of it stays where its planner wanted it, and so does all of a workflow whose
// repair brings nothing forward.
func TestTasksStayWhereTheyWaitForNothing(t *testing.T) {
	wide := func(id string, seconds float64) berth.WorkflowTask {
		return berth.WorkflowTask{ID: id, Seconds: seconds, Alpha: 1, Few: 4, Most: 4}
	}
	for _, c := range []struct {
		name   string
		other  bool // PEs of others are in front of it
		repair berth.Repair
		want   string
	}{
		{"room in front", false, berth.RepairBoth, "succeeded:1 ended:w.1"},
		{"others in front", true, berth.RepairBoth, "succeeded:1 ended:w.1 w.2@40-130 early:400→130"},
		{"others in front, late alone is repaired", true, berth.RepairLate, "succeeded:1 ended:w.1"},
	} {
		e := newEngine(t, managedPool(4, berth.Late))
		if c.other {
			submit(t, e, 0, berth.Rigid("x", 0, 200, 310, 1, 110))
		}
		w := flow("w", 0, berth.Forever, wide("a", 100), wide("b", 90))
		w.Repair = c.repair
		pool := berth.PoolID("cm5", "pool")
		plan := &engine.WorkflowPlan{Planner: "bd-cpar", Places: []berth.Allotment{{Resource: pool, NPE: 4, Start: 0, End: 100}, {Resource: pool, NPE: 4, Start: 310, End: 400}}}
		wantFlow(t, apply(t, e, 0, engine.SubmitPlanned(w, plan)), "workflow_promised:w w.1@0-100 w.2@310-400")
		apply(t, e, 0, engine.Wake())
		if got := toldOf(apply(t, e, 40, engine.Report("w.1", berth.Succeeded, ""))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
