package service_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// What deadlines cost is told as of now, also where nothing has happened for hours and the engine was not
// woken meanwhile: each offer is promised as it is.
func TestWorkflowOffersAreForNow(t *testing.T) {
	for name, tasks := range map[string]int{"planned in the loop": 3, "planned beside it": 300} {
		c := &clock{}
		c.seconds.Store(1000)
		h := start(t, t.TempDir(), onePool(4), c)
		w := berth.Workflow{Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth}
		for i := range tasks {
			w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: 100, Most: 1})
		}
		c.seconds.Store(9000)
		offers, err := h.WorkflowOffers(t.Context(), bob, w)
		if err != nil || len(offers) == 0 {
			t.Fatalf("%s: %d offers, %v", name, len(offers), err)
		}
		for i := range offers {
			if o := &offers[i]; o.End < 9100 || o.Workflow.Deadline < o.End || o.Workflow.Arrival != 9000 {
				t.Errorf("%s: offer %d, of %d, ends at %d by %d", name, i+1, o.Workflow.Arrival, o.End, o.Workflow.Deadline)
			}
		}
		if tasks > 100 {
			continue
		}
		again := w
		again.ID, again.Deadline, again.Algorithm = "w", offers[0].Workflow.Deadline, offers[0].Workflow.Algorithm
		if got, err := h.SubmitWorkflow(t.Context(), bob, again); err != nil || got.Workflow.State != service.FlowPromised {
			t.Errorf("%s: %s %+v, %v", name, got.Workflow.State, got.Workflow.Refusal, err)
		}
	}
}
