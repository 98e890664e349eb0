package service

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// What was asked about a workflow under a key by a version that put no answer on record is
// answered as it is now; of a workflow that is no longer remembered nothing can be said.
func TestAKeyWithoutAnAnswerTellsOfTheWorkflowAsItIs(t *testing.T) {
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h, err := Open(t.Context(), Options{Config: engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}, Journal: store, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ask := Ask{By: Principal{User: "ann", Role: User}}
	w := berth.Workflow{ID: "w", Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 9}}}
	if _, err := h.SubmitWorkflow(t.Context(), ask, w); err != nil {
		t.Fatal(err)
	}
	if err := look(t.Context(), h, func() error {
		for _, id := range []string{"w", "forgotten"} {
			h.core.keys.add(h.clock(), Key{User: "ann", Name: id}, id)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ask.Key = "w"
	if a, err := h.CancelWorkflow(t.Context(), ask, "w"); err != nil || a.Workflow.Workflow.ID != "w" || a.Workflow.State.Over() {
		t.Errorf("%+v %v, want the workflow as it is", a.Workflow, err)
	}
	ask.Key = "forgotten"
	if a, err := h.CancelWorkflow(t.Context(), ask, "w"); err == nil || err.(*berth.Error).Code != berth.NotFound { //nolint:errorlint,forcetypeassert // of the module
		t.Errorf("%+v %v, want that it is not remembered", a.Workflow, err)
	}
}
