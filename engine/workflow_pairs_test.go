package engine_test

import (
	"cmp"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// What broke where workflows met names, speeds, forecasts and the ids of others.

// fourPEs is a managed site with a pool of 4 PEs.
func fourPEs(p berth.Pool) engine.Config {
	p.Name, p.PEs, p.Binding = "p", 4, cmp.Or(p.Binding, berth.Early)
	return engine.Config{Sites: []berth.Site{{Name: "s", Managed: true, Pools: []berth.Pool{p}}}}
}

// oneTask is a workflow of a task of 1 PE.
func oneTask(seconds float64, retries int) *berth.Workflow {
	return &berth.Workflow{
		ID: "w", Deadline: berth.Forever, Repair: berth.RepairHold, Algorithm: "bd-cpar",
		Tasks: []berth.WorkflowTask{{ID: "t", Seconds: seconds, Alpha: 1, Most: 1, Retries: retries}},
	}
}

func reservation(t *testing.T, e *engine.Engine, id string) berth.Reservation {
	t.Helper()
	r, live := e.Reservation(id)
	if !live {
		t.Fatalf("no live reservation %q", id)
	}
	return r
}

func TestTaskWithRoomBeforeItStaysWhereItsPEsHaveNames(t *testing.T) {
	for _, ahead := range []berth.Duration{0, 1000} {
		e := newEngine(t, fourPEs(berth.Pool{Binding: berth.Late, NameAhead: ahead}))
		w := &berth.Workflow{ID: "w", Deadline: 300, Repair: berth.RepairBoth, Algorithm: "dl-bd-cpar", Tasks: []berth.WorkflowTask{
			{ID: "a", Seconds: 100, Alpha: 1, Most: 1}, {ID: "b", Seconds: 50, Alpha: 1, Most: 1}, {ID: "c", Seconds: 150, Alpha: 1, Most: 1},
		}}
		apply(t, e, 0, engine.SubmitWorkflow(w))
		a, b := reservation(t, e, "w.1"), reservation(t, e, "w.2")
		if a.Start() != 200 || b.Start() != 250 {
			t.Fatalf("planned backwards from 300: %v and %v", a.Allotments, b.Allotments)
		}
		apply(t, e, 155, engine.Wake())
		apply(t, e, 160, engine.Report("w.3", berth.Succeeded, ""))
		if a, b := reservation(t, e, "w.1"), reservation(t, e, "w.2"); a.Start() != 200 || b.Start() != 250 {
			t.Errorf("names %d s ahead: an early end moves what had room before it to %v and %v", ahead, a.Allotments, b.Allotments)
		}
	}
}

func TestTaskWithRoomBeforeItOnOtherPEsStays(t *testing.T) {
	for _, binding := range bindings() {
		e := newEngine(t, fourPEs(berth.Pool{Binding: binding}))
		w := &berth.Workflow{ID: "w", Deadline: 300, Repair: berth.RepairBoth, Algorithm: "dl-bd-cpar", Tasks: []berth.WorkflowTask{
			{ID: "c", Seconds: 50, Alpha: 1, Most: 1}, {ID: "t", Seconds: 100, Alpha: 1, Most: 1}, {ID: "d", Seconds: 100, Alpha: 1, Most: 1, After: []int{0}},
		}}
		apply(t, e, 0, engine.SubmitWorkflow(w))
		apply(t, e, 155, engine.Wake())
		apply(t, e, 160, engine.Report("w.1", berth.Succeeded, ""))
		if r := reservation(t, e, "w.2"); r.Start() != 200 {
			t.Errorf("%s: the end of what was before it on one of its PEs, with three others free, moves it to %v", binding, r.Allotments)
		}
		if r := reservation(t, e, "w.3"); r.Start() != 160 {
			t.Errorf("%s: what follows on it stays at %v", binding, r.Allotments)
		}
	}
}

func TestTaskWithRoomBeforeItStaysWhereAJobYields(t *testing.T) {
	c := fourPEs(berth.Pool{Binding: berth.Late})
	c.Preempt, c.Jobs = true, "easy"
	e := newEngine(t, c)
	w := &berth.Workflow{ID: "w", Deadline: 300, Repair: berth.RepairBoth, Algorithm: "dl-bd-cpar", Tasks: []berth.WorkflowTask{
		{ID: "a", Seconds: 100, Alpha: 1, Most: 1}, {ID: "b", Seconds: 50, Alpha: 1, Most: 1}, {ID: "c", Seconds: 150, Alpha: 1, Most: 1},
	}}
	apply(t, e, 0, engine.SubmitWorkflow(w))
	job := berth.Job("j", 0, 3, 1000)
	apply(t, e, 0, engine.Submit(&job))
	apply(t, e, 155, engine.Wake())
	apply(t, e, 160, engine.Report("w.3", berth.Succeeded, ""))
	if a, b := reservation(t, e, "w.1"), reservation(t, e, "w.2"); a.Start() != 200 || b.Start() != 250 {
		t.Errorf("an early end moves what only a job that yields is in front of to %v and %v", a.Allotments, b.Allotments)
	}
}

func TestTriedAgainForAsLong(t *testing.T) {
	for _, speed := range []berth.Speed{berth.StandardSpeed, 333, 100, 1} {
		e := newEngine(t, fourPEs(berth.Pool{Speed: speed}))
		apply(t, e, 0, engine.SubmitWorkflow(oneTask(3.6, 1)))
		first := reservation(t, e, "w.1")
		apply(t, e, 1, engine.Wake())
		apply(t, e, 2, engine.Report("w.1", berth.FailedForGood, ""))
		second := reservation(t, e, "w.1-2")
		if a, b := first.End().Sub(first.Start()), second.End().Sub(second.Start()); a != b {
			t.Errorf("speed %d: the first try has %d s, the second %d s", speed, a, b)
		}
	}
}

func TestLateTaskHasTwiceItsTimeAtAnySpeed(t *testing.T) {
	for _, speed := range []berth.Speed{berth.StandardSpeed, 1} {
		e := newEngine(t, fourPEs(berth.Pool{Speed: speed}))
		w := oneTask(1900*float64(speed)/float64(berth.StandardSpeed), 0)
		w.Repair = berth.RepairLate
		apply(t, e, 0, engine.SubmitWorkflow(w))
		last := reservation(t, e, "w.1").Allotments[0].End
		if last != 1900 {
			t.Fatalf("speed %d: planned until %d", speed, last)
		}
		for at, due := e.Next(); due; at, due = e.Next() {
			apply(t, e, at, engine.Wake())
			if r, live := e.Reservation("w.1"); live {
				last = r.End()
			}
		}
		if last != 3800 {
			t.Errorf("speed %d: it may go on until %d, want 3800", speed, last)
		}
	}
}

// A task that reads nothing of one that is tried at another site stays as it is.
func TestRetryElsewhereMovesNothingThatReadsNothingOfIt(t *testing.T) {
	link := berth.Link{KilobytesPerSecond: 1000}
	e := newEngine(t, engine.Config{Sites: []berth.Site{
		{Name: "s0", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late, Speed: 2000}}, Link: link},
		{Name: "s1", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 3, Binding: berth.Late}}, Link: link},
	}})
	w := &berth.Workflow{
		ID: "w", Deadline: berth.Forever, Repair: berth.RepairLate, Spread: true, Algorithm: "bd-cpar", Routes: []berth.Route{{From: "s0", To: "s1"}},
		Tasks: []berth.WorkflowTask{
			{ID: "a", Seconds: 10, Alpha: 1, Most: 1, Retries: 1},
			{ID: "c", Site: "s1", Seconds: 10, Alpha: 1, Few: 3, Most: 3, After: []int{0}, Reads: []int64{0}},
		},
	}
	behind, beside := berth.Rigid("behind", 0, 5, 30, 1, 25), berth.Rigid("beside", 0, 5, 905, 1, 900)
	behind.Site, beside.Site = "s1", "s0"
	apply(t, e, 0, engine.Submit(&behind))
	apply(t, e, 0, engine.SubmitWorkflow(w))
	apply(t, e, 0, engine.Submit(&beside)) // so that there is no other try in s0
	apply(t, e, 1, engine.Wake())
	before := reservation(t, e, "w.2")
	apply(t, e, 3, engine.Report("w.1", berth.FailedForGood, ""))
	if r := reservation(t, e, "w.1-2"); r.Allotments[0].Resource.Site != "s1" {
		t.Fatalf("tried again at %v", r.Allotments)
	}
	after := reservation(t, e, "w.2")
	if after.Generation != before.Generation {
		t.Errorf("from %v to %v, generation %d", before.Allotments, after.Allotments, after.Generation)
	}
}

// A task is not tried again where those that read what it writes would have more to bring than their
// site has room for; where they have, they bring it.
func TestRetryElsewhereLeavesRoomForWhatIsRead(t *testing.T) {
	for storage, want := range map[int64]string{15: "s0", 16: "s1"} {
		link := berth.Link{KilobytesPerSecond: 1000}
		e := newEngine(t, engine.Config{Sites: []berth.Site{
			{Name: "s0", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 2, Binding: berth.Late, Speed: 2000}}, Link: link, StorageMB: storage},
			{Name: "s1", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}}, Link: link},
		}})
		w := &berth.Workflow{
			ID: "w", Deadline: berth.Forever, Repair: berth.RepairLate, Spread: true, Algorithm: "bd-cpar", Routes: []berth.Route{{From: "s1", To: "s0"}},
			Tasks: []berth.WorkflowTask{
				{ID: "a", Seconds: 10, Alpha: 1, Most: 1, Retries: 1},
				{ID: "c", Site: "s0", Seconds: 4, Alpha: 1, Most: 1, After: []int{0}, Reads: []int64{16_000_000}},
			},
		}
		beside, later := berth.Rigid("beside", 0, 0, 1000, 1, 1000), berth.Rigid("later", 0, 7, 1000, 1, 993)
		beside.Site, later.Site = "s0", "s0"
		apply(t, e, 0, engine.Submit(&beside))
		apply(t, e, 0, engine.SubmitWorkflow(w))
		apply(t, e, 0, engine.Submit(&later)) // so that there is no other try in s0 for long
		apply(t, e, 1, engine.Wake())
		apply(t, e, 3, engine.Report("w.1", berth.FailedForGood, ""))
		if at := reservation(t, e, "w.1-2").Allotments[0].Resource.Site; at != want {
			t.Errorf("%d MB at the site of c: a is tried again at %s, want %s", storage, at, want)
		}
		if r := reservation(t, e, "w.2"); want == "s1" && r.Request.StorageMB != 16 || want == "s0" && r.Request.StorageMB != 0 {
			t.Errorf("%d MB at the site of c: it brings %d MB", storage, r.Request.StorageMB)
		}
	}
}

// A task that is tried again at the moment at which one behind it was to start gets the uplink that
// this would have used: nothing is on its way to a task that has not started.
func TestRetryTakesTheUplinkOfWhatWasToStart(t *testing.T) {
	for _, binding := range bindings() {
		config := shores(binding)
		config.Uplink, config.Sites[1].Managed, config.Sites[1].StorageMB = 1000, true, 9
		e := newEngine(t, config)
		w := over("w", berth.Forever, 5e6, 5e6)
		w.Repair, w.Tasks[1].Retries = berth.RepairHold, 1
		w.Tasks[2].After, w.Tasks[2].Reads = []int{0, 1}, []int64{5e6, 0}
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-10 w.2@10-35 w.3@35-60")
		apply(t, e, 10, engine.Report("w.1", berth.Succeeded, ""))
		apply(t, e, 35, engine.Wake()) // nothing was told of w.2, whose time is over
		again, behind := reservation(t, e, "w.2-2"), reservation(t, e, "w.3")
		if again.Start() != 35 || again.End() != 60 || behind.Start() != 60 {
			t.Errorf("%s: tried again at %d-%d, and the one behind it at %d; want 35-60 and 60", binding, again.Start(), again.End(), behind.Start())
		}
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", binding, err)
		}
	}
}

// A task that was tried again leaves nothing behind that a state which is restored or followed lacks.
func TestRestartAfterARetryDecidesAlike(t *testing.T) {
	c := fourPEs(berth.Pool{})
	c.Sites[0].Pools[0].PEs = 2
	e, follower := newEngine(t, c), newEngine(t, c)
	do := func(now berth.Time, event engine.Event) {
		if err := follower.Fold(apply(t, e, now, event)); err != nil {
			t.Fatal(err)
		}
	}
	w := &berth.Workflow{ID: "w", Deadline: berth.Forever, Repair: berth.RepairBoth, Algorithm: "bd-cpar", Tasks: []berth.WorkflowTask{
		{ID: "a", Seconds: 10, Alpha: 1, Most: 1, Retries: 1}, {ID: "c", Seconds: 10, Alpha: 1, Most: 1, After: []int{0}}, {ID: "x", Seconds: 100, Alpha: 1, Most: 1},
	}}
	r := berth.Rigid("r", 0, 15, 40, 1, 25)
	do(0, engine.Submit(&r))
	do(0, engine.SubmitWorkflow(w))
	do(1, engine.Wake())
	do(2, engine.Report("w.1", berth.FailedForGood, ""))
	do(5, engine.Cancel("r"))
	restored, err := engine.Restore(c, e.Snapshot())
	if err != nil || restored.Hash() != e.Hash() || follower.Hash() != e.Hash() {
		t.Fatal("the states are not equal", err)
	}
	for _, other := range []*engine.Engine{e, restored, follower} {
		apply(t, other, 7, engine.Report("w.3", berth.Succeeded, ""))
	}
	if restored.Hash() != e.Hash() || follower.Hash() != e.Hash() {
		t.Errorf("w.2 is at %v, restored at %v, followed at %v", reservation(t, e, "w.2").Allotments, reservation(t, restored, "w.2").Allotments, reservation(t, follower, "w.2").Allotments)
	}
}

func TestRetriesAreCountedWhereOthersHaveTheirNames(t *testing.T) {
	e := newEngine(t, fourPEs(berth.Pool{}))
	other := berth.Rigid("w.1-2", 0, 1000, 2000, 1, 10)
	apply(t, e, 0, engine.Submit(&other))
	apply(t, e, 0, engine.SubmitWorkflow(oneTask(10, 2)))
	for try, id := range []string{"w.1", "w.1-2.2", "w.1-3"} {
		apply(t, e, e.Now()+1, engine.Wake())
		if r := reservation(t, e, id); r.State != berth.Active || r.Request.Task.Try != try+1 {
			t.Fatalf("%s: %s, try %d", id, r.State, r.Request.Task.Try)
		}
		apply(t, e, e.Now()+1, engine.Report(id, berth.FailedForGood, ""))
	}
	if _, live := e.WorkflowStatus("w"); live {
		t.Error("the workflow goes on after its last try")
	}
}

func TestOneIDForOneThing(t *testing.T) {
	e := newEngine(t, fourPEs(berth.Pool{}))
	apply(t, e, 0, engine.SubmitWorkflow(oneTask(10, 0)))
	before := e.Hash()
	r := berth.Rigid("w", 0, 1000, 2000, 1, 10)
	if _, _, err := e.Apply(0, engine.Submit(&r)); code(err) != berth.Conflict || e.Hash() != before {
		t.Errorf("a request with the id of a live workflow: %v", err)
	}
	w := oneTask(10, 0)
	w.ID = "w.1"
	if _, _, err := e.Apply(0, engine.SubmitWorkflow(w)); code(err) != berth.Conflict || e.Hash() != before {
		t.Errorf("a workflow with the id of a live task: %v", err)
	}
}

func TestModificationIsNoTaskOfAWorkflow(t *testing.T) {
	c := fourPEs(berth.Pool{})
	e := newEngine(t, c)
	r := berth.Rigid("r", 0, 10, 100, 2, 10)
	apply(t, e, 0, engine.Submit(&r))
	before, other := e.Hash(), r
	other.Ready, other.Task = 20, &berth.TaskRef{Workflow: "w", Task: "t", Try: 1}
	_, _, err := e.Apply(0, engine.Modify(&other))
	if code(err) != berth.Invalid || e.Hash() != before {
		t.Errorf("a modification into a task: %v", err)
	}
	if _, err := engine.Restore(c, e.Snapshot()); err != nil {
		t.Error(err)
	}
}

// code returns the code of an error, nothing of another.
func code(err error) berth.Code {
	if e, is := err.(*berth.Error); is { //nolint:errorlint // the engine wraps none
		return e.Code
	}
	return ""
}

// A link of unknown speed takes no time, until a forecast says otherwise.
func TestForecastOfALinkOfUnknownSpeed(t *testing.T) {
	sites := func() engine.Config {
		pools := []berth.Pool{{Name: "p", PEs: 64, Binding: berth.Late}}
		return engine.Config{Sites: []berth.Site{{Name: "left", Managed: true, Pools: pools}, {Name: "right", Managed: true, Pools: pools}}}
	}
	forecast := engine.UpdateForecast(&berth.Forecast{Site: "right", Period: 10, Kilobytes: []int64{10000}})
	w := meshed("w", 80, berth.Forever)
	w.Algorithm, w.Repair, w.Routes = "bd-cpar", berth.RepairBoth, []berth.Route{{From: "left", To: "right"}}
	for i := range w.Tasks {
		w.Tasks[i].Site = "left"
	}
	last := &w.Tasks[79]
	last.Site, last.Reads = "right", make([]int64, len(last.After))
	last.Reads[0] = 50e6
	holds := func(e *engine.Engine) berth.Duration {
		r := reservation(t, e, "w.80")
		return r.End().Sub(r.Start())
	}

	promised := newEngine(t, sites())
	apply(t, promised, 0, engine.SubmitWorkflow(w))
	without := holds(promised)
	apply(t, promised, 0, forecast)
	if got := holds(promised); got != without+50 {
		t.Errorf("promised before the forecast, it holds its PEs for %d s, want %d", got, without+50)
	}

	ready := newEngine(t, sites())
	plan, _, err := ready.PlanWorkflow(w, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plan.Last = true
	apply(t, ready, 0, forecast)
	apply(t, ready, 0, engine.SubmitPlanned(w, plan))
	if got := holds(ready); got != without+50 {
		t.Errorf("planned before the forecast, it holds its PEs for %d s, want %d", got, without+50)
	}
}

// What is offered is promised, if it is submitted at once.
func TestOffersOfWorkflowsOverPoolsOfASite(t *testing.T) {
	task := func(id string, r berth.Requirements, after ...int) berth.WorkflowTask {
		return berth.WorkflowTask{ID: id, Seconds: 10, Alpha: 1, Most: 1, After: after, Requirements: r}
	}
	for _, c := range []struct {
		name  string
		site  berth.Site
		tasks []berth.WorkflowTask
	}{
		{
			"beside each other",
			berth.Site{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}, {Name: "q", PEs: 1, Binding: berth.Late}}},
			[]berth.WorkflowTask{task("a", berth.Requirements{}), task("b", berth.Requirements{})},
		},
		{
			"each in the only one it can be in",
			berth.Site{
				Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}, {Name: "q", PEs: 4, Binding: berth.Early, Node: berth.Node{Accelerators: 1}}},
				Partitions: []berth.Partition{{Name: "cpu", Pool: "p"}},
			},
			[]berth.WorkflowTask{task("a", berth.Requirements{Partition: "cpu"}), task("b", berth.Requirements{Accelerators: 1}, 0)},
		},
		{
			"with a licence for one at a time",
			berth.Site{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}, Software: []berth.Software{{Name: "cfd", Licences: 1}}},
			[]berth.WorkflowTask{
				{ID: "a", Seconds: 11, Alpha: 1, Most: 1, Requirements: berth.Requirements{Software: "cfd", Licences: 1}},
				{ID: "b", Seconds: 14, Alpha: 1, Most: 1, Requirements: berth.Requirements{Software: "cfd", Licences: 1}},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := engine.Config{Sites: []berth.Site{c.site}}
			w := &berth.Workflow{ID: "w", Deadline: 5, Repair: berth.RepairBoth, Algorithm: berth.BestAlgorithm, Tasks: c.tasks}
			offers, err := newEngine(t, config).WorkflowOffers(w, 4)
			if err != nil || len(offers) < 4 {
				t.Fatal(offers, err)
			}
			for _, o := range offers {
				e := newEngine(t, config)
				for _, x := range apply(t, e, 0, engine.SubmitWorkflow(&o.Workflow)) {
					if x.Kind == change.WorkflowRefused {
						t.Errorf("offered by %d with %s, and refused: %+v", o.Workflow.Deadline, o.Workflow.Algorithm, *x.Refusal)
					}
				}
				if s, _ := e.WorkflowStatus("w"); s.End != o.End {
					t.Errorf("offered by %d with %s, to end at %d: it ends at %d", o.Workflow.Deadline, o.Workflow.Algorithm, o.End, s.End)
				}
			}
		})
	}
}

// What a reservation has of stocks ends with its PEs when it is extended, and so it is foretold.
func TestForetoldExtensionHasItsStocks(t *testing.T) {
	e := newEngine(t, engine.Config{Sites: []berth.Site{{Name: "s", StorageMB: 100, Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}}}}})
	r := berth.Rigid("a", 0, 10, 1000, 2, 50)
	r.StorageMB = 20
	apply(t, e, 0, engine.Submit(&r))
	extend := engine.Extend("a", 200)
	told, refusal, err := e.Foretell(&extend)
	if err != nil || refusal != nil {
		t.Fatal(refusal, err)
	}
	before := reservation(t, e, "a")
	apply(t, e, 0, extend)
	if is := reservation(t, e, "a"); len(is.Stocks) != 1 || !reflect.DeepEqual(told.Stocks, is.Stocks) || before.Stocks[0].End == 200 {
		t.Errorf("foretold %+v, became %+v, was %+v", told.Stocks, is.Stocks, before.Stocks)
	}
}

// Nothing is planned from beyond the end of time on.
func TestPlanFromBeyondTime(t *testing.T) {
	e := newEngine(t, fourPEs(berth.Pool{}))
	for _, from := range []berth.Time{berth.TimeLimit, berth.Forever} {
		if _, _, err := e.PlanWorkflow(oneTask(10, 0), engine.PlanOptions{From: from}); code(err) != berth.Invalid {
			t.Errorf("a plan from %d: %v", from, err)
		}
		if _, err := e.PlanOffers(oneTask(10, 0), engine.PlanOptions{From: from, Offers: 2}); code(err) != berth.Invalid {
			t.Errorf("offers from %d: %v", from, err)
		}
	}
}

// A plan holds in the state that it was made in, also where a task takes less than the shortest time that a
// slow pool has, and brings files.
func TestPlanOfAShortTaskThatBringsFilesHolds(t *testing.T) {
	e := newEngine(t, engine.Config{Sites: []berth.Site{
		{Name: "a", Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Early}}},
		{Name: "b", Pools: []berth.Pool{{Name: "p", PEs: 3, Binding: berth.Late, Speed: 500}}, Link: berth.Link{KilobytesPerSecond: 1000}},
	}})
	w := &berth.Workflow{
		ID: "w", Deadline: berth.Forever, Repair: berth.RepairHold, Algorithm: "bd-cpar", Spread: true, Routes: []berth.Route{{From: "a", To: "b"}},
		Tasks: []berth.WorkflowTask{
			{ID: "x", Site: "a", Seconds: 12, Alpha: 1},
			{ID: "y", Site: "b", Alpha: 1, Seconds: 10, Measured: []berth.Measurement{{NPE: 1, Seconds: 10}, {NPE: 3, Seconds: 0}}, After: []int{0}, Reads: []int64{6_000_000}},
		},
	}
	plan, _, err := e.PlanWorkflow(w, engine.PlanOptions{})
	if err != nil || plan.Refusal != nil {
		t.Fatal(plan, err)
	}
	apply(t, e, 0, engine.SubmitPlanned(w, plan))
	if y := reservation(t, e, "w.2"); y.Start() != plan.Places[1].Start || y.End() != plan.Places[1].End || len(y.Transfers) != 1 {
		t.Errorf("y is at %+v with %+v, planned at %+v", y.Allotments, y.Transfers, plan.Places[1])
	}
}
