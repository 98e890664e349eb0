package service_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

func twoTasks(id string) berth.Workflow {
	return berth.Workflow{
		ID: id, Deadline: berth.Forever, Algorithm: "bd-cpar", Repair: berth.RepairBoth,
		Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 100, Alpha: 1}, {ID: "b", Seconds: 50, Alpha: 1, After: []int{0}}},
	}
}

// A workflow that looks otherwise has another version, whatever has changed of it, so that what
// is done under a condition is done to what was seen.
func TestVersionsOfWorkflowsGrowWithWhatTheyShow(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h := start(t, dir, onePool(4), c)
	w := twoTasks("w")
	w.Hold = 60
	if _, err := h.SubmitWorkflow(t.Context(), ann, w); err != nil {
		t.Fatal(err)
	}
	seen := func() service.Workflow {
		t.Helper()
		v, err := h.Workflow(t.Context(), ann.By, "w")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	held := seen()
	if _, err := h.ConfirmWorkflow(t.Context(), ann, "w"); err != nil {
		t.Fatal(err)
	}
	confirmed := seen()
	if held.State != service.FlowHeld || confirmed.State == service.FlowHeld || confirmed.Version <= held.Version {
		t.Errorf("held with version %d, and %s with version %d", held.Version, confirmed.State, confirmed.Version)
	}
	if held.Expires != 1060 || confirmed.Expires != 0 {
		t.Errorf("held until %d, and when confirmed until %d; want 1060, and 0", held.Expires, confirmed.Expires)
	}
	stale := ann
	stale.IfVersion = held.Version
	_, err := h.CancelWorkflow(t.Context(), stale, "w")
	wantCode(t, err, berth.Conflict)
	c.seconds.Store(1001)
	if _, err := h.Extend(t.Context(), ann, "w.1", 1200); err != nil {
		t.Fatal(err)
	}
	if longer := seen(); longer.Tasks[0].End != 1200 || longer.Version <= confirmed.Version {
		t.Errorf("task a ends at %d with version %d; it was %d", longer.Tasks[0].End, longer.Version, confirmed.Version)
	}
}

// A held workflow is held until it is confirmed, whatever its owner has given back of it.
func TestAHeldWorkflowIsHeldWithoutATaskThatWasGivenBack(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h := start(t, dir, onePool(4), c)
	w := twoTasks("w")
	w.Hold = 60
	if _, err := h.SubmitWorkflow(t.Context(), ann, w); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Release(t.Context(), ann, "w.2"); err != nil {
		t.Fatal(err)
	}
	seen := func() service.Workflow {
		t.Helper()
		v, err := h.Workflow(t.Context(), ann.By, "w")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := seen(); v.State != service.FlowHeld || v.Expires != 1060 {
		t.Errorf("it is %s, until %d; want it held until 1060", v.State, v.Expires)
	}
	if _, err := h.ConfirmWorkflow(t.Context(), ann, "w"); err != nil {
		t.Fatal(err)
	}
	if v := seen(); v.State != service.FlowRunning {
		t.Errorf("it is %s when it is confirmed; want it running", v.State)
	}
}

// What was given back before its time, or was never used, is no part of what a workflow took.
func TestTasksOfACancelledWorkflowEndWithIt(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h := start(t, dir, onePool(4), c)
	if _, err := h.SubmitWorkflow(t.Context(), ann, twoTasks("w")); err != nil {
		t.Fatal(err)
	}
	c.seconds.Store(1030)
	if _, err := h.CancelWorkflow(t.Context(), ann, "w"); err != nil {
		t.Fatal(err)
	}
	v, err := h.Workflow(t.Context(), ann.By, "w")
	if err != nil {
		t.Fatal(err)
	}
	a, b := v.Tasks[0], v.Tasks[1]
	if a.Start != 1000 || a.End != 1030 || a.State != service.Cancelled {
		t.Errorf("task a, which ran for 30 s, is %s from %d to %d", a.State, a.Start, a.End)
	}
	if b.End != b.Start || b.PlannedEnd != 1150 {
		t.Errorf("task b, which never ran, is from %d to %d, and was planned to end at %d", b.Start, b.End, b.PlannedEnd)
	}
}

// halfDone returns a service with a workflow w of two tasks. The first has succeeded; the second was cancelled at 1120.
func halfDone(t *testing.T, dir string, c *clock) (*service.Host, *sqlite.Store) {
	t.Helper()
	c.seconds.Store(1000)
	h, store := startOn(t, dir, onePool(4), c)
	if _, err := h.SubmitWorkflow(t.Context(), ann, twoTasks("w")); err != nil {
		t.Fatal(err)
	}
	c.seconds.Store(1120)
	if _, err := h.CancelWorkflow(t.Context(), ann, "w"); err != nil {
		t.Fatal(err)
	}
	return h, store
}

// What has succeeded stays what it was when the rest of its workflow is tried again, also after a
// restart, and what is over cannot be confirmed.
func TestRetryLeavesWhatSucceededAsItWas(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	h, store := halfDone(t, dir, c)
	seen := func() service.FlowTask {
		t.Helper()
		v, err := h.Workflow(t.Context(), ann.By, "w")
		if err != nil {
			t.Fatal(err)
		}
		return v.Tasks[0]
	}
	before := seen()
	if before.Outcome != berth.Succeeded || before.Start != 1000 || before.End != 1100 || before.PlannedEnd != 1100 {
		t.Fatalf("task a is %s from %d to %d, planned until %d", before.State, before.Start, before.End, before.PlannedEnd)
	}
	_, err := h.ConfirmWorkflow(t.Context(), ann, "w")
	wantCode(t, err, berth.Conflict)
	c.seconds.Store(1200)
	if _, err := h.RetryWorkflow(t.Context(), ann, "w", berth.Forever); err != nil {
		t.Fatal(err)
	}
	if after := seen(); !reflect.DeepEqual(after, before) {
		t.Errorf("it was %+v, and is after the retry %+v", before, after)
	}
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	h = start(t, dir, onePool(4), c)
	if after := seen(); !reflect.DeepEqual(after, before) {
		t.Errorf("it was %+v, and is after a restart %+v", before, after)
	}
}

// What was refused to be tried again can be asked for again, also after a restart: it is known what has
// succeeded, and how often the rest was tried.
func TestARefusedRetryCanBeAskedForAgain(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	h, store := halfDone(t, dir, c)
	seen := func() service.Workflow {
		t.Helper()
		v, err := h.Workflow(t.Context(), ann.By, "w")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := seen()
	before.Tasks[1].Ended = 1120 // that of the workflow
	if a, err := h.RetryWorkflow(t.Context(), ann, "w", 1130); err != nil || a.Workflow.State != service.FlowRefused {
		t.Fatalf("by a deadline too tight it is %s, %v", a.Workflow.State, err)
	}
	if after := seen(); after.State != service.FlowRefused || !reflect.DeepEqual(after.Tasks, before.Tasks) {
		t.Errorf("its tasks were %+v, and are after what was refused %+v", before.Tasks, after.Tasks)
	}
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	h = start(t, dir, onePool(4), c)
	a, err := h.RetryWorkflow(t.Context(), ann, "w", berth.Forever)
	if err != nil || a.Workflow.State != service.FlowPromised {
		t.Fatalf("asked for again it is %s, %v", a.Workflow.State, err)
	}
	if first, second := a.Workflow.Tasks[0], a.Workflow.Tasks[1]; first.Outcome != berth.Succeeded || second.Tries != 2 || second.Reservation != "w.2-2" {
		t.Errorf("its tasks are %+v and %+v; want the first done, and a second try of the other", first, second)
	}
}
