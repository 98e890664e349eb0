package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// flowOf is a workflow of two tasks, one after the other.
func flowOf(id string) berth.Workflow {
	return berth.Workflow{
		ID: id, Deadline: berth.Forever, Algorithm: "bd-cpar", Repair: berth.RepairBoth,
		Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 100, Alpha: 1}, {ID: "b", Seconds: 200, Alpha: 1, After: []int{0}}},
	}
}

// Those who only look at workflows do not wait for the loop, whatever that is doing.
func TestWorkflowsAreShownBesideTheLoop(t *testing.T) {
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}
	h, err := Open(t.Context(), Options{Config: config, Journal: store, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ann := Principal{User: "ann", Role: User}
	for i := range 3 {
		if _, err := h.SubmitWorkflow(t.Context(), Ask{By: ann}, flowOf(fmt.Sprint("w", i))); err != nil {
			t.Fatal(err)
		}
	}
	busy, over := make(chan struct{}), make(chan struct{})
	h.line.push("", func() {
		close(busy)
		<-over
	})
	<-busy
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a read that waits for the loop fails
	defer cancel()
	w, err := h.Workflow(ctx, ann, "w1")
	if err != nil || w.State != FlowRunning || len(w.Tasks) != 2 || w.Tasks[0].State != Active || w.Tasks[1].Start != w.Tasks[0].End || w.Version == 0 {
		t.Errorf("%+v %v", w, err)
	}
	page, looked, err := h.Workflows(ctx, ann, FlowFilter{After: "w0", States: []FlowState{FlowRunning}, Limit: 1})
	if err != nil || len(page) != 1 || page[0].Workflow.ID != "w1" || looked < 3 {
		t.Errorf("%d looked at, %v: %+v", looked, err, page)
	}
	if _, err := h.Workflow(ctx, Principal{User: "bob", Role: User}, "w1"); err == nil {
		t.Error("others see it")
	}
	if page, _, err := h.Workflows(ctx, Principal{User: "bob", Role: User}, FlowFilter{}); err != nil || len(page) > 0 {
		t.Errorf("others see %+v, %v", page, err)
	}
	close(over)
	if _, err := h.CancelWorkflow(t.Context(), Ask{By: ann}, "w1"); err != nil {
		t.Fatal(err)
	}
	if again, err := h.Workflow(t.Context(), ann, "w1"); err != nil || again.State != FlowCancelled || again.Version <= w.Version {
		t.Errorf("%+v %v", again, err)
	}
	if w.State != FlowRunning || w.Tasks[1].Outcome != "" {
		t.Errorf("what was shown before is written: %+v", w)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// What is shown of workflows is at each record what the loop has, and what was given out
// before stays as it was.
func TestShownWorkflowsFollowTheCore(t *testing.T) {
	core, err := newCore(engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 2, Binding: berth.Late}}}}}, "test", 1000)
	if err != nil {
		t.Fatal(err)
	}
	w := &theatre{t: t, core: core}
	core.diarist.read = &w.drawings.readers
	w.display.begin(core)
	w.occupancy.guard = func(_ string, f func()) { f() }
	defer w.occupancy.close()
	type was struct {
		model *model
		text  string
	}
	told := func(m *model) (text string) {
		m.flows.Scan(func(f *flowCard) bool {
			text += fmt.Sprintf("%+v\n", f.view(m.card))
			return true
		})
		return text
	}
	var before []was
	look := func() {
		t.Helper()
		m := w.display.look()
		before = append(before, was{m, told(m)})
		if n := m.flows.Len(); n != len(core.flows.byID) {
			t.Fatalf("%d workflows are shown, there are %d", n, len(core.flows.byID))
		}
		for id, f := range core.flows.byID {
			shown, _ := m.flows.Get(&flowCard{id: id})
			if shown == nil || fmt.Sprintf("%+v", shown.view(m.card)) != fmt.Sprintf("%+v", f.view(core.card)) {
				t.Fatalf("%s is shown as %+v", id, shown)
			}
		}
	}
	now := berth.Time(1000)
	for i := range 12 {
		flow := flowOf(fmt.Sprint("w", i))
		flow.Arrival = now
		flow.Tasks[0].Seconds = float64(40 + 30*i)
		if i%4 == 3 {
			flow.Deadline = now + 10 // which nothing meets
		}
		w.step(now, engine.SubmitWorkflow(&flow))
		look()
		if i%5 == 4 {
			w.step(now, engine.CancelWorkflow(fmt.Sprint("w", i)))
			look()
		}
		now = now.Add(90)
		w.step(now, engine.Wake())
		look()
	}
	for i, b := range before {
		if got := told(b.model); got != b.text {
			t.Errorf("look %d has become\n%s, was\n%s", i, got, b.text)
		}
	}
}
