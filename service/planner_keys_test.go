package service

import (
	"context"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
)

// submitAgain submits a workflow under a key under which it is being planned, and returns where its answer will be,
// once it is waited for.
func submitAgain(t *testing.T, h *Host, ask Ask, w berth.Workflow) <-chan answered {
	t.Helper()
	waiting := func() (n int) {
		if err := look(t.Context(), h, func() error {
			n = len(h.underway[keyName{ask.By.User, ask.Key}].flows)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	got, before := make(chan answered, 1), waiting()
	go func() {
		a, err := h.SubmitWorkflow(context.Background(), ask, w)
		got <- answered{a, err}
	}()
	for waiting() == before { // each question waits for a turn of the loop
		if len(got) > 0 {
			t.Fatalf("it is answered already: %v", (<-got).err)
		}
	}
	return got
}

// The key of a workflow that is being planned is taken: whatever else is asked under it meanwhile is a conflict or
// remembered as nothing, and the same call gets the same answer.
func TestTheKeyOfAWorkflowThatIsPlannedIsTaken(t *testing.T) {
	h, store := plannerHost(t, t.TempDir(), 50)
	defer func() { closeBoth(t, h, store) }()
	holds, gate := make(chan struct{}), make(chan struct{})
	h.planner.line.push("gate", func() { close(holds); <-gate })
	<-holds
	under := func(body byte) Ask {
		ask := as("ann")
		ask.Key, ask.Body = "k", [32]byte{body}
		return ask
	}
	first := submitLarge(t, h, under(1), abreast("", plannedAtOnce+1, berth.Forever))
	if _, err := h.SubmitWorkflow(t.Context(), under(2), abreast("small", 4, berth.Forever)); !isCode(err, berth.Conflict) {
		t.Errorf("another workflow under its key: %v", err)
	}
	if _, err := h.SubmitWorkflow(t.Context(), under(2), abreast("large", plannedAtOnce+1, berth.Forever)); !isCode(err, berth.Conflict) {
		t.Errorf("another large workflow under its key: %v", err)
	}
	if _, err := h.Submit(t.Context(), under(3), berth.Rigid("r", 1000, 1000, 9000, 1, 60)); !isCode(err, berth.Conflict) {
		t.Errorf("a request under its key: %v", err)
	}
	if _, err := h.Recall(t.Context(), under(3), 1); !isCode(err, berth.Conflict) {
		t.Errorf("a request under its key is recalled: %v", err)
	}
	wrong := berth.Errorf(berth.Invalid, "tasks", "wrong")
	for body := range byte(4) {
		if err := h.Refuse(t.Context(), under(body), wrong); err != wrong { //nolint:errorlint // the very one
			t.Errorf("a mistake under its key is answered with %v", err)
		}
	}
	elsewhere := abreast("", plannedAtOnce+1, berth.Forever)
	elsewhere.User = "bob" // whose workflows she may not submit
	again := []<-chan answered{submitAgain(t, h, under(1), abreast("", plannedAtOnce+1, berth.Forever)), submitAgain(t, h, under(1), elsewhere)}
	close(gate)
	was := <-first
	if was.err != nil || was.flow.Workflow.State != FlowPromised {
		t.Fatalf("%+v %v", was.flow.Workflow.State, was.err)
	}
	for _, got := range again {
		if a := <-got; a.err != nil || !reflect.DeepEqual(a.flow, was.flow) {
			t.Errorf("asked again meanwhile it is %+v %v", a.flow.Workflow.Workflow.ID, a.err)
		}
	}
	if a, err := h.SubmitWorkflow(t.Context(), under(1), abreast("", plannedAtOnce+1, berth.Forever)); err != nil || !reflect.DeepEqual(a, was.flow) {
		t.Errorf("asked again later it is %+v %v", a.Workflow.Workflow.ID, err)
	}
	if list, _, err := h.Workflows(t.Context(), as("ann").By, FlowFilter{}); err != nil || len(list) != 1 {
		t.Errorf("%d workflows %v", len(list), err)
	}
	if err := look(t.Context(), h, func() error {
		if n := len(h.underway); n > 0 {
			t.Errorf("%d keys are taken for ever", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
