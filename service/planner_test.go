package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// plannerHost is a service with one pool at a time that does not move.
func plannerHost(t *testing.T, dir string, pes berth.Count) (*Host, *sqlite.Store) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: berth.Late}}}}}
	h, err := Open(t.Context(), Options{Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return h, store
}

func closeBoth(t *testing.T, h *Host, store *sqlite.Store) {
	t.Helper()
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}

func as(user string) Ask { return Ask{By: Principal{User: user, Role: User}} }

// abreast is a workflow of tasks of 100 s beside each other, one PE each, too large for the loop.
func abreast(id string, tasks int, deadline berth.Time) berth.Workflow {
	w := berth.Workflow{ID: id, Deadline: deadline, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth}
	for i := range tasks {
		w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: 100, Most: 1})
	}
	return w
}

// What is planned after a plan is planned on what came of that, and not where it will be: two who ask at the same time
// need two plans. It is not waited for where nothing came of it, nor what an offer was planned for.
func TestAPlanRestsOnWhatCameOfTheOneBefore(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	defer closeBoth(t, h, store)
	ended := make(chan struct{})
	seen := map[string]bool{}
	wanted := func() bool { return true }
	nothing := func(*engine.Engine, engine.PlanOptions) error { return nil }
	err := h.do("ann", func() {
		h.planBeside("ann", 1, 0, wanted, nothing, func(error) {
			r := berth.Rigid("first", 0, 2000, 10_000, 50, 100)
			_ = h.step(engine.Submit(&r), asked{id: r.ID}, nil)
		})
		h.planBeside("bob", 1, 0, wanted, func(e *engine.Engine, _ engine.PlanOptions) error {
			_, seen["first"] = e.Reservation("first")
			return errors.New("no plan")
		}, func(error) {})
		h.planBeside("ann", 1, 0, wanted, nothing, func(error) { close(ended) })
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("what came of a plan is waited for without end")
	}
	if !seen["first"] {
		t.Error("the second was planned without what came of the first")
	}
}

// A large workflow is promised or refused with offers as a small one is, under a key once, after a
// restart too; what is offered is promised; and what is on record leads to the same again.
func TestALargeWorkflowIsPlannedBeside(t *testing.T) {
	dir := t.TempDir()
	h, store := plannerHost(t, dir, 50)
	keyed := as("ann")
	keyed.Key, keyed.Body = "large", [32]byte{1}
	first, err := h.SubmitWorkflow(t.Context(), keyed, abreast("w", 200, berth.Forever))
	if err != nil || first.Workflow.State != FlowPromised || len(first.Workflow.Tasks) != 200 {
		t.Fatalf("%+v %v", first.Workflow.State, err)
	}
	for i := range first.Workflow.Tasks {
		if k := &first.Workflow.Tasks[i]; k.Start < 1000 || k.NPE != 1 || k.State != Confirmed {
			t.Fatalf("task %d is %+v", i, k)
		}
	}
	small, err := h.SubmitWorkflow(t.Context(), as("ann"), abreast("small", 4, berth.Forever))
	if err != nil || small.Workflow.State != FlowPromised {
		t.Fatalf("%+v %v", small.Workflow, err)
	}
	refused, err := h.SubmitWorkflow(t.Context(), as("bob"), abreast("v", 200, 1050))
	if err != nil || refused.Workflow.State != FlowRefused || refused.Workflow.Refusal == nil || len(refused.Offers) < 4 {
		t.Fatalf("%+v %+v %v", refused.Workflow.State, refused.Offers, err)
	}
	offers, err := h.WorkflowOffers(t.Context(), as("bob"), abreast("v", 200, berth.Forever))
	if err != nil || len(offers) != len(refused.Offers) {
		t.Fatalf("%d offers, %d came with the refusal; %v", len(offers), len(refused.Offers), err)
	}
	for i := range 3 { // a later start is nothing to a deadline that is further off
		o := &refused.Offers[len(refused.Offers)-1-i]
		again := abreast(fmt.Sprint("again", i), 200, o.Workflow.Deadline)
		again.Algorithm = o.Workflow.Algorithm
		a, err := h.SubmitWorkflow(t.Context(), as("bob"), again)
		if err != nil || a.Workflow.State != FlowPromised {
			t.Errorf("offer %+v: %+v %+v %v", o, a.Workflow.State, a.Workflow.Refusal, err)
		}
		if _, err := h.CancelWorkflow(t.Context(), as("bob"), again.ID); err != nil {
			t.Error(err)
		}
	}
	closeBoth(t, h, store)
	h, store = plannerHost(t, dir, 50)
	defer func() { closeBoth(t, h, store) }()
	if was, err := h.SubmitWorkflow(t.Context(), keyed, abreast("w", 200, berth.Forever)); err != nil || !reflect.DeepEqual(was, first) {
		t.Errorf("under its key it is %+v %v, was %+v", was.Workflow.Version, err, first.Workflow.Version)
	}
	if v, err := Verify(t.Context(), store, nil); err != nil || v.Records == 0 {
		t.Errorf("%+v %v", v, err)
	}
	retried, err := h.RetryWorkflow(t.Context(), as("bob"), "v", berth.Forever)
	if err != nil || retried.Workflow.State != FlowPromised {
		t.Errorf("%+v %v", retried.Workflow.State, err)
	}
}

// answered is what a call came to.
type answered struct {
	flow FlowAnswer
	err  error
}

// submitLarge submits a workflow and returns where its answer will be, once it has reached the planner.
func submitLarge(t *testing.T, h *Host, ask Ask, w berth.Workflow) <-chan answered {
	t.Helper()
	got := make(chan answered, 1)
	before := waitingPlans(h)
	go func() {
		a, err := h.SubmitWorkflow(context.Background(), ask, w)
		got <- answered{a, err}
	}()
	for waitingPlans(h) == before { // each question waits for a turn of the loop
		if err := look(t.Context(), h, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			t.Fatalf("%s is answered without the planner", w.ID)
		}
	}
	return got
}

func waitingPlans(h *Host) (n int) {
	h.planner.mu.Lock()
	defer h.planner.mu.Unlock()
	for _, of := range h.planner.waiting {
		n += of
	}
	return n
}

// While large workflows are planned all others are answered, small workflows too. No user has
// more than a few planned at a time.
func TestNobodyWaitsForALargeWorkflow(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	defer func() { closeBoth(t, h, store) }()
	h.snapshots.turn.Lock() // planning takes until it is given back
	var all []<-chan answered
	for i := range maxPlans {
		all = append(all, submitLarge(t, h, as("ann"), abreast(fmt.Sprint("w", i), plannedAtOnce+1, berth.Forever)))
	}
	if _, err := h.SubmitWorkflow(t.Context(), as("ann"), abreast("more", plannedAtOnce+1, berth.Forever)); !isCode(err, berth.Exhausted) {
		t.Errorf("one more: %v", err)
	}
	if _, err := h.WorkflowOffers(t.Context(), as("ann"), abreast("more", plannedAtOnce+1, berth.Forever)); !isCode(err, berth.Exhausted) {
		t.Errorf("offers of one more: %v", err)
	}
	if a, err := h.SubmitWorkflow(t.Context(), as("ann"), abreast("small", 4, berth.Forever)); err != nil || a.Workflow.State != FlowPromised {
		t.Errorf("%+v %v", a.Workflow.State, err)
	}
	if a, err := h.Submit(t.Context(), as("bob"), berth.Rigid("r", 1000, 1000, 9000, 4, 60)); err != nil || a.Reservation.State != Active && a.Reservation.State != Confirmed {
		t.Errorf("%+v %v", a.Reservation.State, err)
	}
	for i, got := range all {
		if len(got) > 0 {
			t.Errorf("workflow %d is answered before it is planned", i)
		}
	}
	h.snapshots.turn.Unlock()
	for i, got := range all {
		if a := <-got; a.err != nil || a.flow.Workflow.State != FlowPromised {
			t.Errorf("workflow %d: %+v %v", i, a.flow.Workflow.State, a.err)
		}
	}
	if n := waitingPlans(h); n != 0 {
		t.Errorf("%d places are taken for ever", n)
	}
}

// What takes less than half a second is planned for now, as berth plan does; what takes longer, or
// has not held, for when it will be decided.
func TestAPlanBeginsWhenItIsDecided(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	defer func() { closeBoth(t, h, store) }()
	for _, c := range []struct {
		tasks int
		pace  time.Duration
		later berth.Duration
		want  berth.Time
	}{
		{100, 4 * time.Millisecond, 0, 1000}, {100, 6 * time.Millisecond, 0, 1001}, {10_000, 300 * time.Microsecond, 0, 1003}, {100, 0, 2, 1002},
	} {
		from := make(chan berth.Time, 1)
		h.snapshots.turn.Lock()
		h.planner.pace = c.pace
		h.snapshots.turn.Unlock()
		if err := look(t.Context(), h, func() error {
			h.planBeside("ann", c.tasks, c.later, always, func(_ *engine.Engine, o engine.PlanOptions) error {
				from <- o.From
				return nil
			}, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := <-from; got != c.want {
			t.Errorf("%d tasks of %s each, tried again %d times: planned from %d, want %d", c.tasks, c.pace, c.later, got, c.want)
		}
	}
}

// A deadline that is counted from the decision is counted from when the plan begins.
func TestADeadlineFromNowIsThatOfThePlan(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), plannedAtOnce+1)
	defer func() { closeBoth(t, h, store) }()
	ask := as("ann")
	ask.FromNow.Deadline = true
	w := abreast("w", plannedAtOnce+1, 1090) // 100 s after it was asked for
	w.Arrival = 990
	h.snapshots.turn.Lock()
	h.planner.pace = 2 * time.Second / (plannedAtOnce + 1)
	h.snapshots.turn.Unlock()
	a, err := h.SubmitWorkflow(t.Context(), ask, w)
	if err != nil || a.Workflow.State != FlowPromised || a.Workflow.End != 1102 || a.Workflow.Workflow.Deadline != 1102 || a.Workflow.Workflow.Arrival != 1000 {
		t.Errorf("%+v ends at %d by %d; %v", a.Workflow.Refusal, a.Workflow.End, a.Workflow.Workflow.Deadline, err)
	}
	if _, err := Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
}

// A service stops while a plan is being made, however long that would take.
func TestAStopDoesNotWaitForAPlan(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	planning := make(chan struct{})
	if err := look(t.Context(), h, func() error {
		h.planBeside("ann", 1, 0, always, func(_ *engine.Engine, o engine.PlanOptions) error {
			close(planning)
			for !o.Quit() {
				runtime.Gosched()
			}
			return berth.Errorf(berth.Unavailable, "plan", "it was given up")
		}, func(err error) {
			if !isCode(err, berth.Unavailable) || !strings.Contains(err.Error(), "stopping") {
				t.Errorf("it is told %v", err)
			}
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	<-planning
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		closeBoth(t, h, store)
	}()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("it has not stopped after 20 s")
	}
}

func always() bool { return true }

// A workflow whose client has gone is planned no further and is not promised, unless a key lets the
// client ask again.
func TestAPlanThatNobodyWaitsFor(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	defer func() { closeBoth(t, h, store) }()
	keyed := as("ann")
	keyed.Key, keyed.Body = "k", [32]byte{1}
	for name, ask := range map[string]Ask{"plain": as("ann"), "keyed": keyed} {
		h.snapshots.turn.Lock() // planning takes until it is given back
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := h.SubmitWorkflow(ctx, ask, abreast(name, plannedAtOnce+1, berth.Forever))
			done <- err
		}()
		for waitingPlans(h) == 0 {
			runtime.Gosched()
		}
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		h.snapshots.turn.Unlock()
		for waitingPlans(h) > 0 {
			runtime.Gosched()
		}
		_, err := h.Workflow(t.Context(), ask.By, name)
		if promised := err == nil; promised != (ask.Key != "") || !promised && !isCode(err, berth.NotFound) {
			t.Errorf("%s: promised %t, %v", name, promised, err)
		}
	}
	again, err := h.SubmitWorkflow(t.Context(), keyed, abreast("keyed", plannedAtOnce+1, berth.Forever))
	if err != nil || again.Workflow.State != FlowPromised || again.Workflow.Version != 1 {
		t.Errorf("%+v %v", again.Workflow.State, err)
	}
}

// A client that waits is told in time that there is no answer yet, and under its key gets it later;
// what has no key is given up. Who asks for offers is told too.
func TestAnAnswerComesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := plannerHost(t, t.TempDir(), 50)
		keyed := as("ann")
		keyed.Key, keyed.Body = "k", [32]byte{1}
		for name, ask := range map[string]Ask{"plain": as("ann"), "keyed": keyed, "offers": as("bob")} {
			holds, gate := make(chan struct{}), make(chan struct{})
			h.planner.line.push("gate", func() { close(holds); <-gate })
			<-holds
			began := time.Now()
			var err error
			if name == "offers" {
				_, err = h.WorkflowOffers(t.Context(), ask, abreast(name, plannedAtOnce+1, berth.Forever))
			} else {
				_, err = h.SubmitWorkflow(t.Context(), ask, abreast(name, plannedAtOnce+1, berth.Forever))
			}
			if !isCode(err, berth.Unavailable) || time.Since(began) != flowPatience {
				t.Errorf("%s: %v after %s", name, err, time.Since(began))
			}
			close(gate)
			synctest.Wait()
			_, err = h.Workflow(t.Context(), ask.By, name)
			if promised := err == nil; promised != (ask.Key != "") {
				t.Errorf("%s: promised %t, %v", name, promised, err)
			}
		}
		if a, err := h.SubmitWorkflow(t.Context(), keyed, abreast("keyed", plannedAtOnce+1, berth.Forever)); err != nil || a.Workflow.State != FlowPromised {
			t.Errorf("%+v %v", a.Workflow.State, err)
		}
		closeBoth(t, h, store)
	})
}

// What takes too long to plan is told so, with what would do; it is no answer that a key keeps.
func TestAPlanThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := plannerHost(t, t.TempDir(), 50)
		told := make(chan error, 1)
		if err := look(t.Context(), h, func() error {
			h.planBeside("ann", 7, 0, always, func(_ *engine.Engine, o engine.PlanOptions) error {
				for !o.Quit() {
					time.Sleep(time.Second)
				}
				return berth.Errorf(berth.Unavailable, "plan", "it was given up")
			}, func(err error) { told <- err })
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		err := <-told
		if _, kept := outcomeOf(Answer{}, err); kept || !isCode(err, berth.Unavailable) || !strings.Contains(err.Error(), "its 7 tasks within 20s") {
			t.Errorf("%v; a key keeps it: %t", err, kept)
		}
		closeBoth(t, h, store)
	})
}

func isCode(err error, code berth.Code) bool {
	coded, is := errors.AsType[*berth.Error](err)
	return is && coded.Code == code
}

// A plan that others were faster than is made again, and what is on record verifies. The same key
// meanwhile is the same workflow.
func TestAPlanThatOthersWereFasterThan(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	defer func() { closeBoth(t, h, store) }()
	keyed := as("ann")
	keyed.Key, keyed.Body = "k", [32]byte{1}
	h.snapshots.turn.Lock()
	one := submitLarge(t, h, keyed, abreast("w", plannedAtOnce+1, berth.Forever))
	two := submitAgain(t, h, keyed, abreast("w", plannedAtOnce+1, berth.Forever))
	holds, gate := make(chan struct{}), make(chan struct{})
	h.line.push("gate", func() { close(holds); <-gate })
	<-holds // the loop does nothing until the plan is made, and then bob is first
	fast := make(chan error, 1)
	h.line.push("bob", func() {
		r := berth.Rigid("all", 1000, 1000, 1500, 50, 500)
		r.User = "bob"
		fast <- h.submit(asked{by: Origin{User: "bob"}}, &r, waiting{answer: func(*Answer, error) {}})
	})
	h.snapshots.turn.Unlock()
	for planned := false; !planned; { // it waits for the loop
		h.line.mu.Lock()
		planned = h.line.of[""] != nil && len(h.line.of[""].items)-h.line.of[""].head == 1
		h.line.mu.Unlock()
	}
	close(gate)
	if err := <-fast; err != nil {
		t.Fatal(err)
	}
	a, b := <-one, <-two
	if a.err != nil || b.err != nil || !reflect.DeepEqual(a.flow, b.flow) {
		t.Fatalf("%v %v; the answers differ: %t", a.err, b.err, !reflect.DeepEqual(a.flow, b.flow))
	}
	if a.flow.Workflow.State != FlowPromised || slices.ContainsFunc(a.flow.Workflow.Tasks, func(k FlowTask) bool { return k.Start < 1500 }) {
		t.Errorf("%s: %+v", a.flow.Workflow.State, a.flow.Workflow.Tasks[0])
	}
	if _, err := Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
}

// What is told of workflows to those who watch: the live ones by state, those that are over by what
// became of their deadlines, and how far off the estimates of their tasks were.
func TestWorkflowsAreCounted(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 4)
	defer func() { closeBoth(t, h, store) }()
	submit := func(id string, change func(*berth.Workflow)) {
		w := abreast(id, 2, 5000)
		change(&w)
		if _, err := h.SubmitWorkflow(t.Context(), as("ann"), w); err != nil {
			t.Fatal(err)
		}
	}
	submit("runs", func(*berth.Workflow) {})
	submit("waits", func(w *berth.Workflow) { w.Tasks[1].After = []int{0}; w.Tasks[0].Few, w.Tasks[0].Most = 4, 4 })
	submit("held", func(w *berth.Workflow) { w.Hold = 60 })
	submit("refused", func(w *berth.Workflow) { w.Deadline = 1001 })
	submit("cancelled", func(*berth.Workflow) {})
	if _, err := h.CancelWorkflow(t.Context(), as("ann"), "cancelled"); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	if err := h.Register(registry); err != nil {
		t.Fatal(err)
	}
	c := newCounts()
	for _, f := range []FlowNews{
		{Task: "a", Outcome: berth.Succeeded, Took: 50, Estimate: 100},
		{Task: "a", Outcome: berth.Succeeded, Took: 120, Estimate: 100},
		{Task: "a", Outcome: berth.FailedForGood, Took: 1, Estimate: 100},
		{State: FlowSucceeded, Deadline: 10, End: 10},
		{State: FlowSucceeded, Deadline: 10, End: 11},
		{State: FlowFailed, Deadline: 10, End: 5},
		{State: FlowExpired, Deadline: 10, End: 5},
		{State: FlowSucceeded, Deadline: berth.Forever, End: 5},
	} {
		c.addFlows([]news{{what: string(change.TaskOver), flow: &f}})
	}
	other := prometheus.NewPedanticRegistry()
	other.MustRegister(c.workflows, c.estimates)
	got := map[string]float64{}
	for _, r := range []*prometheus.Registry{registry, other} {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				if r == other {
					name += " there"
				}
				got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
			}
		}
	}
	for name, want := range map[string]float64{
		"berth_workflows held": 1, "berth_workflows promised": 1, "berth_workflows running": 1,
		"berth_workflows_total none refused": 1, "berth_workflows_total none cancelled": 1,
		"berth_workflows_total kept succeeded there": 1, "berth_workflows_total missed succeeded there": 1, "berth_workflows_total missed failed there": 1,
		"berth_workflows_total none expired there": 1, "berth_workflows_total none succeeded there": 1, "berth_task_time_ratio there": 1.7,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v: %v", name, got[name], want, got)
		}
	}
}

// Somebody to whom only some sites are open has a large workflow planned at these alone, where it is
// refused too; what spreads over sites keeps to them.
func TestALargeWorkflowKeepsToOpenSites(t *testing.T) {
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := engine.Config{}
	for name, pes := range map[string]berth.Count{"a": 8, "b": 500, "c": 8} {
		config.Sites = append(config.Sites, berth.Site{Name: name, Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: berth.Late}}})
	}
	slices.SortFunc(config.Sites, func(x, y berth.Site) int { return strings.Compare(x.Name, y.Name) })
	h, err := Open(t.Context(), Options{Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closeBoth(t, h, store) }()
	for _, spread := range []bool{false, true} {
		ask := as("ann")
		ask.By.Sites = NewSiteSet([]string{"a", "c"})
		w := abreast(fmt.Sprint("w", spread), 200, berth.Forever)
		w.Spread = spread
		a, err := h.SubmitWorkflow(t.Context(), ask, w)
		if err != nil || a.Workflow.State != FlowPromised {
			t.Fatalf("%+v %+v %v", a.Workflow.State, a.Workflow.Refusal, err)
		}
		at := map[string]int{}
		for i := range a.Workflow.Tasks {
			at[a.Workflow.Tasks[i].Resource.Site]++
		}
		if at["b"] > 0 {
			t.Errorf("spread: %t, tasks are at %v", spread, at)
		}
		w = abreast(fmt.Sprint("tight", spread), 200, 1300) // b could do it
		w.Spread = spread
		if a, err := h.SubmitWorkflow(t.Context(), ask, w); err != nil || a.Workflow.State != FlowRefused || len(a.Offers) == 0 {
			t.Errorf("%+v %v", a.Workflow.State, err)
		} else if o := a.Offers[0]; o.End < 1300 {
			t.Errorf("what is offered ends at %d, which takes site b", o.End)
		}
	}
}

// A service that stops while it plans has promised nothing; asked again under the same key it
// promises the workflow once.
func TestAStopDuringAPlanPromisesNothing(t *testing.T) {
	dir := t.TempDir()
	h, store := plannerHost(t, dir, 50)
	keyed := as("ann")
	keyed.Key, keyed.Body = "k", [32]byte{1}
	h.snapshots.turn.Lock()
	got := submitLarge(t, h, keyed, abreast("w", plannedAtOnce+1, berth.Forever))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		closeBoth(t, h, store)
	}()
	for h.snapshots.ctx.Err() == nil {
		runtime.Gosched()
	}
	h.snapshots.turn.Unlock()
	if a := <-got; !isCode(a.err, berth.Unavailable) {
		t.Errorf("%+v %v", a.flow.Workflow.State, a.err)
	}
	<-closed
	h, store = plannerHost(t, dir, 50)
	defer func() { closeBoth(t, h, store) }()
	if _, err := h.Workflow(t.Context(), keyed.By, "w"); !isCode(err, berth.NotFound) {
		t.Errorf("it is there: %v", err)
	}
	for range 2 {
		if a, err := h.SubmitWorkflow(t.Context(), keyed, abreast("w", plannedAtOnce+1, berth.Forever)); err != nil || a.Workflow.State != FlowPromised || a.Workflow.Version != 1 {
			t.Errorf("%+v %v", a.Workflow.State, err)
		}
	}
}

// What was made ready for a plan counts for the configuration in which it was planned.
func TestAPlanIsReadyForItsConfigurationAlone(t *testing.T) {
	for _, changed := range []bool{false, true} {
		h, store := plannerHost(t, t.TempDir(), 50)
		w := abreast("w", 200, berth.Forever)
		w.User, w.Algorithm = "ann", berth.SlackAlgorithm
		ask := as("ann")
		once := false
		wanted := func() bool { // is asked a last time between the plan and the decision, in the loop
			if !h.snapshots.turn.TryLock() {
				return true
			}
			h.snapshots.turn.Unlock()
			if once || !changed {
				return true
			}
			once = true
			config := h.core.config
			config.Sites = []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 50, Binding: berth.Late, Speed: 2000}}}}
			rec, err := h.core.Configure(h.clock(), config)
			if err != nil {
				t.Error(err)
				return true
			}
			h.persist(rec, consequences{})
			return true
		}
		a, err := call(t.Context(), h, "ann", func(answer func(FlowAnswer, error)) {
			h.decideFlow(ask.asked(), &w, nil, wanted, answer)
		})
		if err != nil || a.Workflow.State != FlowPromised || once != changed {
			t.Errorf("%t: %s %v", changed, a.Workflow.State, err)
		}
		if err := h.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := Verify(t.Context(), store, nil); err != nil {
			t.Errorf("changed %t: %v", changed, err)
		}
		closeBoth(t, h, store)
	}
}
