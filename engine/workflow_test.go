package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/workflow"
)

// task is a task that gains nothing from a second PE.
func task(id string, seconds float64, after ...int) berth.WorkflowTask {
	return berth.WorkflowTask{ID: id, Seconds: seconds, Alpha: 1, After: after}
}

func flow(id string, arrival, deadline berth.Time, tasks ...berth.WorkflowTask) *berth.Workflow {
	return &berth.Workflow{ID: id, User: "ada", Arrival: arrival, Deadline: deadline, Algorithm: "bd-cpar", Repair: berth.RepairBoth, Tasks: tasks}
}

// diamond is a before b and c, which are before d.
func diamond(id string, arrival, deadline berth.Time) *berth.Workflow {
	return flow(id, arrival, deadline, task("a", 10), task("b", 20, 0), task("c", 30, 0), task("d", 10, 1, 2))
}

func managedPool(pes berth.Count, binding berth.Binding) engine.Config {
	config := onePool(pes, binding)
	config.Sites[0].Managed = true
	return config
}

// told lists changes that are about workflows in words, and where tasks are.
func toldOf(changes []change.Change) string {
	var words []string
	for i := range changes {
		switch c := &changes[i]; c.Kind {
		case change.WorkflowPromised, change.WorkflowRefused:
			words = append(words, string(c.Kind)+":"+c.Workflow.ID)
		case change.TaskOver:
			words = append(words, fmt.Sprintf("%s:%d", c.Flow.Outcome, c.Flow.Task+1))
		case change.WorkflowReplanned:
			words = append(words, fmt.Sprintf("%s:%d→%d", c.Flow.Cause, c.Flow.Before, c.Flow.End))
		case change.WorkflowOver:
			words = append(words, "over:"+string(c.Flow.Outcome))
		case change.Accepted:
			words = append(words, fmt.Sprintf("%s@%d-%d", c.ID, c.Reservation.Start(), c.Reservation.End()))
		case change.Modified, change.Moved:
			words = append(words, fmt.Sprintf("%s@%d-%d", c.ID, c.Moved[0].Start, c.Moved[0].End))
		case change.Extended:
			words = append(words, fmt.Sprintf("%s-%d", c.ID, c.Until))
		case change.Started, change.Ended, change.Cancelled, change.Expired, change.Failed, change.Confirmed:
			words = append(words, string(c.Kind)+":"+c.ID)
		}
	}
	return strings.Join(words, " ")
}

func wantFlow(t *testing.T, changes []change.Change, want string) {
	t.Helper()
	if got := toldOf(changes); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// A workflow is promised as a whole, its tasks run when their parents have ended, and where
// nothing tells how they end they have succeeded when their time is over.
func TestWorkflowRunsThrough(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	wantFlow(t, apply(t, e, 5, engine.SubmitWorkflow(diamond("w", 5, berth.Forever))), "workflow_promised:w w.1@5-15 w.2@15-35 w.3@15-45 w.4@45-55")
	r, _ := e.Reservation("w.3")
	if r.Request.Task == nil || *r.Request.Task != (berth.TaskRef{Workflow: "w", Task: "c", Try: 1}) || r.Request.User != "ada" {
		t.Fatalf("%+v is not known as task c", r.Request)
	}
	wantFlow(t, apply(t, e, 40, engine.Wake()), "started:w.1 ended:w.1 succeeded:1 started:w.2 started:w.3 ended:w.2 succeeded:2")
	if s, _ := e.WorkflowStatus("w"); s.End != 55 || s.Tasks[1].Outcome != berth.Succeeded || s.Tasks[1].Ended != 35 || s.Tasks[3].Reservation != "w.4" {
		t.Fatalf("%+v", s)
	}
	wantFlow(t, apply(t, e, 60, engine.Wake()), "ended:w.3 succeeded:3 started:w.4 ended:w.4 succeeded:4 over:succeeded")
	if ids := e.Workflows(); len(ids) > 0 || e.Live() > 0 {
		t.Fatalf("%v are live", ids)
	}
}

// A task with a constraint runs on PEs that have the features, on no more than there are of
// these, though others could take more.
func TestTasksKeepToTheirConstraints(t *testing.T) {
	config := managedPool(6, berth.Early)
	config.Sites[0].Pools[0].Classes = []berth.Class{
		{Name: "plain", PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4})},
		{Name: "ib", PEs: berth.NewPESet(berth.Run{Lo: 4, Hi: 6})},
	}
	e := newEngine(t, config)
	wide := berth.WorkflowTask{ID: "b", Seconds: 60, Most: 6, After: []int{0}, Requirements: berth.Requirements{Constraint: "ib"}}
	measured := berth.WorkflowTask{ID: "c", Measured: []berth.Measurement{{NPE: 1, Seconds: 60}, {NPE: 2, Seconds: 30}, {NPE: 3, Seconds: 20}}, After: []int{1}, Requirements: berth.Requirements{Constraint: "[ib|none]"}}
	f := flow("w", 0, 1000, task("a", 10), wide, measured)
	f.Algorithm, f.Deadline = berth.BestAlgorithm, berth.Forever
	apply(t, e, 0, engine.SubmitWorkflow(f))
	for id, want := range map[string]string{"w.2": "4-5", "w.3": "4-5"} {
		if r, _ := e.Reservation(id); len(r.Allotments) != 1 || r.Allotments[0].PEs.String() != want {
			t.Errorf("%s is %+v, want PEs %s", id, r.Allotments, want)
		}
	}
	few := flow("v", 0, berth.Forever, berth.WorkflowTask{ID: "a", Seconds: 60, Few: 3, Most: 6, Requirements: berth.Requirements{Constraint: "ib"}})
	changes := apply(t, e, 0, engine.SubmitWorkflow(few))
	if got := toldOf(changes); got != "workflow_refused:v" {
		t.Errorf("three of two PEs: %s", got)
	}
}

// All tasks are promised or none.
func TestWorkflowsAreRefusedWhole(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	submit(t, e, 0, berth.Rigid("x", 0, 20, 100, 4, 60))
	for deadline, reason := range map[berth.Time]berth.Reason{49: berth.DeadlineMissed, 90: berth.NoCapacity} {
		hash := e.Hash()
		changes := apply(t, e, 0, engine.SubmitWorkflow(diamond("w", 0, deadline)))
		wantFlow(t, changes, "workflow_refused:w")
		if no := changes[len(changes)-1].Refusal; no.Reason != reason || no.Possible != 50 || e.Hash() != hash {
			t.Fatalf("by %d: %+v, and the state changed: %t; want %s", deadline, no, e.Hash() != hash, reason)
		}
	}
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(diamond("w", 0, 120))), "workflow_promised:w w.1@0-10 w.2@80-100 w.3@80-110 w.4@110-120")
	offers, err := e.WorkflowOffers(diamond("v", 0, 90), 6)
	if err != nil || len(offers) < 5 || offers[0].End != 120 || offers[0].Workflow.Deadline != 120 || len(offers[0].Critical) == 0 {
		t.Fatalf("%+v %v", offers, err)
	}
	for i, o := range offers {
		again, err := engine.Restore(onePool(4, berth.Late), e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		changes := apply(t, again, 0, engine.SubmitWorkflow(&o.Workflow))
		end := berth.Time(0)
		for _, c := range changes {
			if c.Kind == change.Accepted {
				end = max(end, c.Reservation.End())
			}
		}
		if end != o.End || i > 0 && o.Workflow.Deadline <= offers[i-1].Workflow.Deadline {
			t.Errorf("offer %d is %+v, taken it ends at %d", i, o, end)
		}
	}
}

// A task that can be nowhere, whatever is free, is named where a workflow is refused; where others could have it, or all
// of them together are too much, none is.
func TestTasksThatCanBeNowhereAreNamed(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Sites = append(config.Sites, berth.Site{Name: "other", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}})
	for want, change := range map[string]func(w *berth.Workflow){
		"b":  func(w *berth.Workflow) { w.Tasks[1].Few = 9 },
		"c":  func(w *berth.Workflow) { w.Tasks[2].Software = "cfd" },
		"":   func(w *berth.Workflow) { w.Deadline = 20 },
		"d":  func(w *berth.Workflow) { w.Tasks[3].Site = "nowhere" },
		"b ": func(w *berth.Workflow) { w.Spread, w.Tasks[1].Few = true, 9 },
		"  ": func(w *berth.Workflow) { w.Tasks[1].Site, w.Deadline = "other", 20 },
	} {
		w := diamond("w", 0, berth.Forever)
		change(w)
		changes := apply(t, newEngine(t, config), 0, engine.SubmitWorkflow(w))
		if no := changes[len(changes)-1].Refusal; no == nil || no.Task != strings.TrimSpace(want) {
			t.Errorf("%q is named, want %q: %+v", no.Task, want, no)
		}
	}
}

// Slack is left where there is a plan that leaves it, all of it or half; where there is none, a
// plan by the deadline itself is as good as ever.
func TestBestLeavesSlack(t *testing.T) {
	for algorithm, ends := range map[string][2]berth.Time{ // at the latest, and not before
		"best": {200, 161}, "best-0": {200, 161}, "best-20": {160, 81}, "best-60": {80, 50}, // of 200
		"best-90": {110, 81}, // a tenth is too little for 50 s, so half of the slack is left
	} {
		e := newEngine(t, onePool(4, berth.Late))
		w := diamond("w", 0, 200)
		for i := range w.Tasks { // few PEs for long are cheaper than many
			w.Tasks[i].Alpha = .1
		}
		w.Algorithm = algorithm
		apply(t, e, 0, engine.SubmitWorkflow(w))
		if s, _ := e.WorkflowStatus("w"); s.End > ends[0] || s.End < ends[1] {
			t.Errorf("%s ends at %d, want %d to %d", algorithm, s.End, ends[1], ends[0])
		}
		e = newEngine(t, onePool(4, berth.Late))
		w = diamond("w", 0, 52)
		w.Algorithm = algorithm
		apply(t, e, 0, engine.SubmitWorkflow(w))
		if s, ok := e.WorkflowStatus("w"); !ok || s.End > 52 {
			t.Errorf("%s by 52: promised %t, ends at %d", algorithm, ok, s.End)
		}
	}
}

// What cannot be right is an error that names it, and changes nothing.
func TestMistakenWorkflows(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	submit(t, e, 0, berth.Rigid("taken", 0, 0, 100, 1, 60))
	submit(t, e, 0, berth.Rigid("u.2", 0, 0, 100, 1, 60))
	change := func(f func(*berth.Workflow)) *berth.Workflow {
		w := diamond("w", 0, berth.Forever)
		f(w)
		return w
	}
	for want, w := range map[string]*berth.Workflow{
		"missing":                     nil,
		"form a cycle":                change(func(w *berth.Workflow) { w.Tasks[0].After = []int{3} }),
		"belongs to two tasks":        change(func(w *berth.Workflow) { w.Tasks[1].ID = "a" }),
		"none; a workflow needs":      change(func(w *berth.Workflow) { w.Tasks = nil }),
		"unknown planner \"bd-cpat\"": change(func(w *berth.Workflow) { w.Algorithm = "bd-cpat" }),
		"it is one of":                change(func(w *berth.Workflow) { w.Repair = "never" }),
		"is after task number 9":      change(func(w *berth.Workflow) { w.Tasks[0].After = []int{9} }),
		"is not after the arrival":    change(func(w *berth.Workflow) { w.Deadline = 0 }),
		"all 4 are done": change(func(w *berth.Workflow) {
			for i := range w.Tasks {
				w.Tasks[i].Done = true
			}
		}),
		"\"taken\" is pending or reserved":    change(func(w *berth.Workflow) { w.ID = "taken" }),
		"it would be the reservation of task": change(func(w *berth.Workflow) { w.ID = "u" }),
		"-1 s; want 0 or more":                change(func(w *berth.Workflow) { w.Tasks[2].Seconds = -1 }),
		"want 0 to 100":                       change(func(w *berth.Workflow) { w.Tasks[2].Retries = 101 }),
		"2 to 1 PEs":                          change(func(w *berth.Workflow) { w.Tasks[2].Few, w.Tasks[2].Most = 2, 1 }),
		"wants 5 MB moved":                    change(func(w *berth.Workflow) { w.Tasks[2].StorageMB = 5 }),
		"at most 10000 tasks":                 change(func(w *berth.Workflow) { w.Tasks = make([]berth.WorkflowTask, 10_001) }),
	} {
		hash := e.Hash()
		changes, _, err := e.Apply(0, engine.SubmitWorkflow(w))
		if err == nil || !strings.Contains(err.Error(), want) || len(changes) > 0 || e.Hash() != hash {
			t.Errorf("%v; want %q, and %d changes", err, want, len(changes))
		}
	}
	apply(t, e, 0, engine.SubmitWorkflow(diamond("w", 0, berth.Forever)))
	own := berth.Rigid("x", 0, 0, 50, 1, 10)
	own.Task = &berth.TaskRef{Workflow: "w", Task: "a", Try: 2}
	other, _ := e.Reservation("w.4")
	for want, event := range map[string]engine.Event{
		"tasks are promised with their workflow":         engine.Submit(&own),
		"which moves it":                                 engine.Modify(other.Request),
		"no live workflow \"v\"":                         engine.CancelWorkflow("v"),
		"is not held":                                    engine.ConfirmWorkflow("w"),
		"is pending or reserved already":                 engine.SubmitWorkflow(diamond("w", 0, berth.Forever)),
		"is confirmed, not active":                       engine.Report("w.4", berth.Succeeded, ""),
		"is no task of a workflow":                       engine.Report("taken", berth.Succeeded, ""),
		"it is \"succeeded\", \"failed\" or \"running\"": engine.Report("w.1", berth.Skipped, ""),
		"no live reservation \"w.9\"":                    engine.Report("w.9", berth.Succeeded, ""),
	} {
		if _, _, err := e.Apply(0, event); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A task that ends early lets what follows come forward, and one that is late goes on while its
// own workflow can give way; what follows is moved, and its owner is told what it does to the end.
func TestTasksEarlyAndLate(t *testing.T) {
	e := newEngine(t, managedPool(2, berth.Late))
	apply(t, e, 0, engine.SubmitWorkflow(diamond("w", 0, 100)))
	apply(t, e, 1, engine.Wake())
	wantFlow(t, apply(t, e, 4, engine.Report("w.1", berth.Succeeded, "exit code 0")), "succeeded:1 ended:w.1 w.2@4-24 w.3@4-34 w.4@34-44 early:50→44")
	wantFlow(t, apply(t, e, 24, engine.Wake()), "started:w.2 started:w.3 w.2-29")
	wantFlow(t, apply(t, e, 26, engine.Report("w.2", berth.Succeeded, "")), "succeeded:2 ended:w.2")
	wantFlow(t, apply(t, e, 34, engine.Wake()), "w.3-39 w.4@39-49 late:44→49")
	wantFlow(t, apply(t, e, 39, engine.Report("w.3", berth.Succeeded, "")), "succeeded:3 ended:w.3")
	apply(t, e, 39, engine.Wake())
	wantFlow(t, apply(t, e, 40, engine.Report("w.4", berth.Succeeded, "")), "succeeded:4 ended:w.4 over:succeeded")

	// What is known to need longer goes on before its time is over.
	e = newEngine(t, managedPool(1, berth.Late))
	apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 100, task("a", 50), task("b", 10, 0))))
	apply(t, e, 0, engine.Wake())
	wantFlow(t, apply(t, e, 48, engine.Report("w.1", berth.StillRunning, "")), "w.1-55 w.2@55-65 late:60→65")

	// A job begins where what follows has gone out of its way.
	e = newEngine(t, managedPool(2, berth.Late))
	apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 100, task("a", 50), task("b", 10, 0), task("c", 10, 0))))
	apply(t, e, 0, engine.Wake())
	wantFlow(t, submit(t, e, 47, berth.Job("j", 47, 1, 6)), "")
	wantFlow(t, apply(t, e, 48, engine.Report("w.1", berth.StillRunning, "")), "w.1-55 w.2@55-65 w.3@55-65 j@48-54 late:60→65")

	// A job begins when a task has ended before its time, also where nothing that follows moves.
	e = newEngine(t, managedPool(1, berth.Late))
	still := flow("w", 0, 100, task("a", 50), task("b", 10, 0))
	still.Repair = berth.RepairLate
	apply(t, e, 0, engine.SubmitWorkflow(still))
	apply(t, e, 0, engine.Wake())
	wantFlow(t, submit(t, e, 10, berth.Job("j", 10, 1, 6)), "")
	wantFlow(t, apply(t, e, 20, engine.Report("w.1", berth.Succeeded, "")), "succeeded:1 ended:w.1 j@20-26")

	// Under the repair "late" nothing comes forward; under "hold" what is late has failed.
	for repair, want := range map[berth.Repair]string{
		berth.RepairLate: "w.2@15-35 w.3@15-45 w.4@45-55 late:50→55 w.1-15",
		berth.RepairHold: "failed:1 skipped:2 cancelled:w.2 skipped:3 cancelled:w.3 skipped:4 cancelled:w.4 over:failed ended:w.1",
	} {
		e := newEngine(t, managedPool(4, berth.Late))
		w := diamond("w", 0, 100)
		w.Repair = repair
		apply(t, e, 0, engine.SubmitWorkflow(w))
		got := strings.Fields(toldOf(apply(t, e, 10, engine.Wake())))
		slices.Sort(got)
		wanted := strings.Fields(want + " started:w.1")
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: %v\nwant %v", repair, got, wanted)
		}
	}
}

// A task that overruns takes nothing from others: where they hold the PEs it has failed, and
// is tried again behind them if it may be.
func TestLateTasksTakeNothingFromOthers(t *testing.T) {
	e := newEngine(t, managedPool(1, berth.Late))
	w := flow("w", 0, berth.Forever, task("a", 10), task("b", 10, 0))
	w.Tasks[0].Retries = 1
	apply(t, e, 0, engine.SubmitWorkflow(w))
	submit(t, e, 0, berth.Rigid("x", 0, 20, 60, 1, 30))
	wantFlow(t, apply(t, e, 10, engine.Wake()), "started:w.1 w.1-15 w.2@50-60 late:20→60")
	wantFlow(t, apply(t, e, 20, engine.Wake()), "w.1-20 ended:w.1 retried:1 w.1-2@50-60 w.2@60-70 failed:60→70 started:x")
	changes := apply(t, e, 65, engine.Report("w.1-2", berth.Succeeded, ""))
	wantFlow(t, changes, "ended:x started:w.1-2 w.1-2-65 w.2@65-75 late:70→75 succeeded:1 ended:w.1-2")
}

// A task that fails is tried again as often as it may be. One that fails for good takes along
// what depends on it, and nothing else.
func TestTasksFail(t *testing.T) {
	e := newEngine(t, managedPool(4, berth.Late))
	w := flow("w", 0, berth.Forever, task("a", 10), task("b", 20, 0), task("c", 10, 1), task("d", 50), task("e", 10, 3))
	w.Tasks[1].Retries = 1
	apply(t, e, 0, engine.SubmitWorkflow(w))
	apply(t, e, 0, engine.Wake())
	apply(t, e, 10, engine.Report("w.1", berth.Succeeded, ""))
	apply(t, e, 10, engine.Wake())
	wantFlow(t, apply(t, e, 15, engine.Report("w.2", berth.FailedForGood, "exit code 1")), "retried:2 ended:w.2 w.2-2@15-35 w.3@35-45 failed:60→60")
	apply(t, e, 15, engine.Wake())
	if s, _ := e.WorkflowStatus("w"); s.Tasks[1].Tries != 2 || s.Tasks[1].Reservation != "w.2-2" {
		t.Fatalf("%+v", s.Tasks[1])
	}
	wantFlow(t, apply(t, e, 20, engine.Report("w.2-2", berth.FailedForGood, "exit code 1")), "failed:2 skipped:3 cancelled:w.3 ended:w.2-2")
	apply(t, e, 50, engine.Report("w.4", berth.Succeeded, ""))
	apply(t, e, 50, engine.Wake())
	changes := apply(t, e, 55, engine.Report("w.5", berth.Succeeded, ""))
	wantFlow(t, changes, "succeeded:5 ended:w.5 over:failed")
	for _, c := range changes {
		if c.Kind == change.WorkflowOver && c.Flow.Why != "task b failed" {
			t.Errorf("it failed because %q", c.Flow.Why)
		}
	}

	// What had succeeded is not run again when the workflow is.
	w.Tasks[0].Done, w.Tasks[3].Done, w.Tasks[4].Done, w.Tasks[1].Tries = true, true, true, 2
	w.Arrival = 60
	wantFlow(t, apply(t, e, 60, engine.SubmitWorkflow(w)), "workflow_promised:w w.2-3@60-80 w.3@80-90")
}

// What a site refuses before any task has begun takes the whole workflow down, retries or not;
// later it is a task that has failed.
func TestSitesRefuseWorkflowsWholeOrATask(t *testing.T) {
	no := &berth.Refusal{Reason: berth.SiteRefused, Words: "no such user"}
	parts := func() *berth.Workflow {
		w := flow("w", 0, berth.Forever, task("a", 10), task("b", 20, 0), task("c", 30), task("d", 10))
		w.Tasks[0].Retries, w.Tasks[3].Retries = 1, 1
		return w
	}
	e := newEngine(t, managedPool(4, berth.Early))
	apply(t, e, 0, engine.Submit(new(berth.Rigid("taken", 0, 0, 100, 4, 100))))
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(parts())), "workflow_promised:w w.1@100-110 w.3@100-130 w.4@100-110 w.2@110-130")
	wantFlow(t, apply(t, e, 5, engine.Reject("w.1", no)), "started:taken failed:1 skipped:2 cancelled:w.2 failed:3 cancelled:w.3 failed:4 cancelled:w.4 over:failed")
	if live := e.Workflows(); len(live) > 0 {
		t.Errorf("%q live", live)
	}

	e = newEngine(t, managedPool(4, berth.Early))
	apply(t, e, 0, engine.Submit(new(berth.Rigid("taken", 0, 0, 100, 2, 100))))
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(parts())), "workflow_promised:w w.1@0-10 w.3@0-30 w.2@10-30 w.4@30-40")
	wantFlow(t, apply(t, e, 5, engine.Reject("w.4", no)), "started:taken started:w.1 started:w.3 retried:4 w.4-2@30-40 failed:40→40")

	// What a task has done is not thrown away either while no other task is running.
	e = newEngine(t, managedPool(4, berth.Early))
	apply(t, e, 0, engine.Submit(new(berth.Rigid("taken", 0, 10, 100, 4, 90))))
	after := flow("w", 0, berth.Forever, task("a", 10), task("b", 20, 0))
	after.Tasks[1].Retries = 1
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(after)), "workflow_promised:w w.1@0-10 w.2@100-120")
	apply(t, e, 8, engine.Report("w.1", berth.Succeeded, ""))
	wantFlow(t, apply(t, e, 20, engine.Reject("w.2", no)), "started:taken retried:2 w.2-2@100-120 failed:120→120")
}

// A held workflow is confirmed whole, expires whole, and is cancelled whole.
func TestWorkflowsHeldConfirmedCancelled(t *testing.T) {
	e := newEngine(t, onePool(2, berth.Late))
	w := diamond("w", 0, berth.Forever)
	w.Hold = 30
	apply(t, e, 0, engine.SubmitWorkflow(w))
	if r, _ := e.Reservation("w.4"); r.State != berth.Held || r.Expires != 30 {
		t.Fatalf("%+v is not held until 30", r)
	}
	if _, _, err := e.Apply(1, engine.Confirm("w.1")); err == nil || !strings.Contains(err.Error(), "confirm the workflow") {
		t.Fatalf("%v; a task cannot be confirmed by itself, since it would expire with the others", err)
	}
	wantFlow(t, apply(t, e, 6, engine.ConfirmWorkflow("w")), "w.1@6-16 w.2@16-36 w.3@16-46 w.4@46-56 confirmed:w.1 confirmed:w.2 confirmed:w.3 confirmed:w.4 displaced:50→56")
	_, _, err := e.Apply(6, engine.ConfirmWorkflow("w"))
	wantCode(t, err, berth.Conflict, "id")
	wantFlow(t, apply(t, e, 20, engine.CancelWorkflow("w")), "started:w.1 ended:w.1 succeeded:1 started:w.2 started:w.3 over:cancelled cancelled:w.2 cancelled:w.3 cancelled:w.4")
	if e.Live() > 0 {
		t.Fatalf("%d are live", e.Live())
	}

	w.ID, w.Arrival = "v", 100
	apply(t, e, 100, engine.SubmitWorkflow(w))
	wantFlow(t, apply(t, e, 200, engine.Wake()), "expired:v.1 over:expired expired:v.2 expired:v.3 expired:v.4")
	_, _, err = e.Apply(200, engine.ConfirmWorkflow("v"))
	wantCode(t, err, berth.NotFound, "id")

	w.ID, w.Arrival, w.Hold = "u", 300, 0
	apply(t, e, 300, engine.SubmitWorkflow(w))
	wantFlow(t, apply(t, e, 300, engine.Cancel("u.2")), "cancelled:u.2 failed:2 skipped:4 cancelled:u.4 displaced:350→340")
}

// An outage moves tasks, and those behind them with them, also beyond the deadline: better late
// than not at all, and the owner is told.
func TestOutagesMoveTasksAndWhatFollows(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		e := newEngine(t, onePool(2, binding))
		w := diamond("w", 0, 60)
		w.Tasks[1].Retries, w.Tasks[2].Retries = 1, 1
		apply(t, e, 0, engine.SubmitWorkflow(w))
		apply(t, e, 10, engine.Wake())
		changes := apply(t, e, 10, engine.Down(berth.Outage{Resource: berth.PoolID("cm5", "pool"), PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 2}), Until: 40}))
		told := toldOf(changes)
		if !strings.HasSuffix(told, "displaced:50→80") && !strings.HasSuffix(told, "late:50→80") && !strings.HasSuffix(told, "failed:50→80") {
			t.Errorf("%s: %s", binding, told)
		}
	}
}

// The plan is, bit for bit, that of the planners of package workflow on what others hold.
func TestWorkflowsArePromisedAsPlanned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pes := berth.Count(rapid.IntRange(1, 16).Draw(t, "pes"))
		e, err := engine.New(onePool(pes, berth.Late))
		if err != nil {
			t.Fatal(err)
		}
		c := calendar.NewFast(pes, berth.Late)
		for i := range rapid.IntRange(0, 8).Draw(t, "bookings") {
			start := berth.Time(rapid.IntRange(0, 80).Draw(t, "start"))
			npe, d := berth.Count(rapid.IntRange(1, int(pes)).Draw(t, "npe")), berth.Duration(rapid.IntRange(1, 40).Draw(t, "length"))
			r := berth.Rigid(fmt.Sprint("x", i), 0, start, start.Add(d), npe, d)
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
		w := drawFlow(t, "w", 0)
		free := berth.Count(rapid.IntRange(0, int(pes)).Draw(t, "free"))
		w.Free = []berth.Average{{Resource: berth.PoolID("cm5", "pool"), NPE: free}}
		planner := rapid.SampledFrom(workflow.Planners).Draw(t, "planner")
		w.Algorithm = planner.Name
		g := graphOf(t, w)
		var plan workflow.Plan
		ok := false
		in, err := workflow.Prepare(workflow.Problem{Workflow: g, Calendar: c, Free: free})
		if err != nil {
			// a task needs more PEs than there are
		} else if w.Deadline == berth.Forever && planner.Goal == workflow.Deadline {
			_, plan, ok = in.Tightest(planner)
		} else {
			plan, ok = in.Try(planner, w.Deadline)
		}
		changes, _, err := e.Apply(0, engine.SubmitWorkflow(w))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]berth.Allotment{}
		for _, x := range changes {
			if x.Kind == change.Accepted {
				got[x.ID] = x.Reservation.Allotments[0]
			}
		}
		if !ok {
			if len(got) > 0 || changes[len(changes)-1].Kind != change.WorkflowRefused {
				t.Fatalf("%s, which found no plan, is %s", planner.Name, kinds(changes))
			}
			return
		}
		for _, p := range plan.Tasks {
			if a := got[engine.TaskID("w", p.Task, 1)]; a.Start != p.Start || a.End != p.End || a.NPE != p.NPE {
				t.Fatalf("%s: task %d is at %+v, planned %+v", planner.Name, p.Task, a, p)
			}
		}
		if len(got) != len(plan.Tasks) {
			t.Fatalf("%d tasks are promised, %d are planned", len(got), len(plan.Tasks))
		}
	})
}

func drawFlow(t *rapid.T, id string, now berth.Time) *berth.Workflow {
	w := &berth.Workflow{ID: id, Arrival: now, Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: rapid.SampledFrom(berth.Repairs()).Draw(t, "repair")}
	for i := range rapid.IntRange(1, 7).Draw(t, "tasks") {
		x := berth.WorkflowTask{
			ID: fmt.Sprint("t", i), Seconds: float64(rapid.IntRange(0, 600).Draw(t, "tenths")) / 10,
			Alpha: float64(rapid.IntRange(0, 4).Draw(t, "alpha")) / 4, Retries: rapid.IntRange(0, 2).Draw(t, "retries"),
		}
		switch rapid.IntRange(0, 5).Draw(t, "sizes") {
		case 0:
			x.Few = berth.Count(rapid.IntRange(1, 3).Draw(t, "few"))
			x.Most = x.Few + berth.Count(rapid.IntRange(0, 2).Draw(t, "more"))
		case 1:
			x.Measured = []berth.Measurement{{NPE: 1, Seconds: 30.5}, {NPE: 2, Seconds: 17.25}}
		}
		for parent := range i {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				x.After = append(x.After, parent)
			}
		}
		w.Tasks = append(w.Tasks, x)
	}
	if rapid.Bool().Draw(t, "due") {
		w.Deadline = now + berth.Time(rapid.IntRange(1, 400).Draw(t, "deadline"))
	}
	return w
}

// A workflow that must take more PEs at once than its user may have, to be in time, is refused, and
// names that limit.
func TestWorkflowsAreRefusedByTheShare(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 250}}
	e := newEngine(t, config)
	changes := apply(t, e, 0, engine.SubmitWorkflow(diamond("w", 0, 60)))
	wantFlow(t, changes, "workflow_refused:w")
	want := berth.Exceeded{Limit: string(policy.LimitShare), Allowed: 1, Asked: 2}
	if no := changes[len(changes)-1].Refusal; no.Reason != berth.Quota || no.Exceeded == nil || *no.Exceeded != want {
		t.Fatalf("%+v, exceeded %+v; want %+v", no, no.Exceeded, want)
	}
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(flow("v", 0, 200, task("a", 10), task("b", 10, 0)))), "workflow_promised:v v.1@0-10 v.2@10-20")
}

// Every waiting job has a plan under the conservative pass, and one that a workflow stands in the way of
// has another at once.
func TestJobsArePlannedAnewBesideAWorkflow(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Jobs = "conservative"
	e := newEngine(t, config)
	for _, id := range []string{"running", "waiting"} {
		r := job(id, 0, 4, 10)
		apply(t, e, 0, engine.Submit(&r))
	}
	planned := func() berth.Time {
		t.Helper()
		s, ok := e.Status("waiting")
		if !ok || s.Plan == nil {
			t.Fatalf("the waiting job has no plan: %+v, %v", s, ok)
		}
		return s.Plan.Start
	}
	if got := planned(); got != 10 {
		t.Fatalf("planned for %d, want 10", got)
	}
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(diamond("w", 0, 60))), "workflow_promised:w w.1@10-20 w.2@20-40 w.3@20-50 w.4@50-60")
	if got := planned(); got != 60 {
		t.Fatalf("planned for %d beside the workflow, want 60", got)
	}
}

// The first offer ends soonest, and those with more time cost less the more they have.
func TestWorkflowOffersGiveTimeForWork(t *testing.T) {
	e := newEngine(t, onePool(64, berth.Late))
	w := flow("w", 0, 100, task("a", 4000), task("b", 2000, 0), task("c", 7000, 0), task("d", 900, 1, 2), task("e", 3000, 0))
	for i := range w.Tasks {
		w.Tasks[i].Alpha = 0.05 + 0.05*float64(i)
	}
	offers, err := e.WorkflowOffers(w, 6)
	if err != nil || len(offers) < 5 {
		t.Fatalf("%+v %v", offers, err)
	}
	if none, err := e.WorkflowOffers(w, 0); err != nil || len(none) != 0 {
		t.Errorf("%d offers of none, %v", len(none), err)
	}
	if one, err := e.WorkflowOffers(w, 1); err != nil || len(one) != 1 || one[0].End != offers[0].End {
		t.Errorf("at most one: %+v, %v; want the first of %d", one, err, len(offers))
	}
	for i := 1; i < len(offers); i++ {
		if offers[i].End <= offers[0].End || offers[i].PESeconds >= offers[i-1].PESeconds {
			t.Errorf("offer %d ends at %d and costs %d, the one before at %d and %d, the first at %d", i, offers[i].End, offers[i].PESeconds, offers[i-1].End, offers[i-1].PESeconds, offers[0].End)
		}
	}
}
