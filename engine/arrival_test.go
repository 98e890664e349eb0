package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// field returns the code and the field of an error, nothing for none.
func field(err error) string {
	if wrong, is := errors.AsType[*berth.Error](err); is {
		return fmt.Sprint(wrong.Code, " ", wrong.Field)
	}
	return fmt.Sprint(err)
}

// What asks what would be promised takes the requests and workflows that would be decided, and no others:
// what arrives later, or says that it is a task, is as wrong in a question as in an event.
func TestQuestionsTakeWhatEventsTake(t *testing.T) {
	const now = 50
	wrong := 0
	for _, arrival := range []berth.Time{now - 10, now, now + 1, now + 10} {
		for _, task := range []bool{false, true} {
			e := newEngine(t, fourPEs(berth.Pool{}))
			kept := berth.Rigid("kept", 0, 80, 400, 1, 10)
			apply(t, e, now, engine.Submit(&kept))
			r := berth.Rigid("r", arrival, now+20, 400, 1, 10)
			if task {
				r.Task = &berth.TaskRef{Workflow: "w", Task: "t"}
			}
			changed := r
			changed.ID = kept.ID
			w := flow("w", arrival, 400, wide("a", 10))
			questions := map[string]error{}
			_, questions["offers"] = e.Offers(&r, 3)
			_, questions["starts"] = e.Starts(&r, engine.Look{Pool: berth.PoolID("s", "p"), Last: 100, Steps: 9})
			modify := engine.Modify(&changed)
			_, _, modified := e.Foretell(&modify)
			flows := map[string]error{}
			_, flows["workflow offers"] = e.WorkflowOffers(w, 3)
			_, flows["offers of a plan"] = e.PlanOffers(w, engine.PlanOptions{Offers: 3})
			_, _, flows["a plan"] = e.PlanWorkflow(w, engine.PlanOptions{})
			_, _, err := e.Apply(now, modify)
			if field(modified) != field(err) {
				t.Errorf("arrival %d, task %t: foretold %v, modified %v", arrival, task, modified, err)
			}
			_, _, err = e.Apply(now, engine.Submit(&r))
			for name, got := range questions {
				if field(got) != field(err) {
					t.Errorf("arrival %d, task %t: %s: %v; submitted it is %v", arrival, task, name, got, err)
				}
			}
			if err != nil {
				wrong++
			}
			_, _, err = e.Apply(now, engine.SubmitWorkflow(w))
			for name, got := range flows {
				if field(got) != field(err) {
					t.Errorf("arrival %d: %s: %v; submitted it is %v", arrival, name, got, err)
				}
			}
		}
	}
	if wrong != 6 {
		t.Errorf("%d of 8 requests cannot be right; want the 4 that arrive later and the other 2 that are tasks", wrong)
	}
}

// A workflow is planned for when it will be decided, so one that arrives by then may be planned.
func TestPlansOfWhatArrivesByThen(t *testing.T) {
	e := newEngine(t, fourPEs(berth.Pool{}))
	w := flow("w", 60, 400, wide("a", 10))
	if _, err := e.PlanOffers(w, engine.PlanOptions{From: 60, Offers: 3}); err != nil {
		t.Error(err)
	}
	if _, _, err := e.PlanWorkflow(w, engine.PlanOptions{From: 59}); field(err) != "invalid arrival" {
		t.Errorf("planned for the second before it arrives: %v", err)
	}
	plan, _, err := e.PlanWorkflow(w, engine.PlanOptions{From: 60})
	if err != nil || len(plan.Places) != 1 || plan.Places[0].Start != 60 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if changes := apply(t, e, 60, engine.SubmitPlanned(w, plan)); changes[len(changes)-2].Kind != change.Accepted {
		t.Errorf("%s", toldOf(changes))
	}
}
