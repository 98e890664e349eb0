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

// What is to arrive later may be asked about, and is told what it would get if it came now: what is offered
// then can be taken at once. What says that it is a task is as wrong in a question as in an event, and so is a
// modification that is to arrive later.
func TestQuestionsAboutWhatIsToCome(t *testing.T) {
	const now = 50
	taken := 0
	for _, arrival := range []berth.Time{now - 10, now, now + 1, now + 10} {
		config := fourPEs(berth.Pool{})
		begin := func() *engine.Engine {
			e := newEngine(t, config)
			busy := berth.Rigid("busy", 0, 80, 120, 4, 40)
			kept := berth.Rigid("kept", 0, 300, 400, 1, 10)
			apply(t, e, now, engine.Submit(&busy))
			apply(t, e, now, engine.Submit(&kept))
			return e
		}
		e := begin()
		for _, deadline := range []berth.Time{100, 400} {
			r := berth.Rigid("r", arrival, now+20, deadline, 2, 20)
			offers, err := e.Offers(&r, 9)
			if err != nil || len(offers) == 0 {
				t.Fatalf("arrival %d: %+v, %v", arrival, offers, err)
			}
			for i := range offers {
				o := &offers[i]
				of := begin()
				if _, _, err := of.Apply(now, engine.Submit(&o.Request)); err != nil {
					t.Errorf("arrival %d: %s by %d: %v", arrival, o.Difference, deadline, err)
				} else if got, live := of.Reservation("r"); !live || got.Allotments[0].Start != o.Allotments[0].Start || got.Allotments[0].NPE != o.Allotments[0].NPE {
					t.Errorf("arrival %d: offered %+v, got %+v", arrival, o.Allotments, got.Allotments)
				}
				if want := min(arrival, now); o.Request.Arrival != want {
					t.Errorf("arrival %d: the offer arrives at %d, want %d", arrival, o.Request.Arrival, want)
				}
				taken++
			}
			if _, err := e.Starts(&r, engine.Look{Pool: berth.PoolID("s", "p"), Last: 100, Steps: 9}); err != nil {
				t.Errorf("arrival %d: %v", arrival, err)
			}
		}
		w := flow("w", arrival, 400, wide("a", 10))
		flows, err := e.WorkflowOffers(w, 3)
		if err != nil || len(flows) == 0 {
			t.Fatalf("arrival %d: %+v, %v", arrival, flows, err)
		}
		for i := range flows {
			of := begin()
			if _, _, err := of.Apply(now, engine.SubmitWorkflow(&flows[i].Workflow)); err != nil {
				t.Errorf("arrival %d: a workflow by %d: %v", arrival, flows[i].Workflow.Deadline, err)
			} else if s, live := of.WorkflowStatus("w"); !live || s.End != flows[i].End {
				t.Errorf("arrival %d: a workflow by %d: %+v", arrival, flows[i].Workflow.Deadline, s)
			}
			taken++
		}
		if flows, err := e.PlanOffers(w, engine.PlanOptions{From: now + 5, Offers: 3}); err != nil || len(flows) == 0 || flows[0].Workflow.Arrival != min(arrival, now+5) {
			t.Errorf("arrival %d: planned from %d on: %+v, %v", arrival, now+5, flows, err)
		}
		changed := berth.Rigid("kept", arrival, 300, 400, 1, 10)
		modify := engine.Modify(&changed)
		_, _, foretold := e.Foretell(&modify)
		if _, _, err := begin().Apply(now, modify); field(err) != field(foretold) || (err != nil) != (arrival > now) {
			t.Errorf("arrival %d: foretold %v, modified %v", arrival, foretold, err)
		}
		r := berth.Rigid("r", min(arrival, now), now+20, 400, 1, 10)
		r.Task = &berth.TaskRef{Workflow: "w", Task: "t"}
		_, offered := e.Offers(&r, 3)
		_, looked := e.Starts(&r, engine.Look{Pool: berth.PoolID("s", "p"), Last: 100, Steps: 9})
		if _, _, err := e.Apply(now, engine.Submit(&r)); err == nil || field(err) != field(offered) || field(err) != field(looked) {
			t.Errorf("a task: %v, offers %v, starts %v", err, offered, looked)
		}
	}
	if taken < 28 {
		t.Errorf("%d offers were taken", taken)
	}
}

// A workflow is planned for when it will be decided, so one that arrives by then may be planned.
func TestPlansOfWhatArrivesByThen(t *testing.T) {
	e := newEngine(t, fourPEs(berth.Pool{}))
	w := flow("w", 60, 400, wide("a", 10))
	plan, _, err := e.PlanWorkflow(w, engine.PlanOptions{From: 60})
	if err != nil || len(plan.Places) != 1 || plan.Places[0].Start != 60 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if changes := apply(t, e, 60, engine.SubmitPlanned(w, plan)); changes[len(changes)-2].Kind != change.Accepted {
		t.Errorf("%s", toldOf(changes))
	}
}
