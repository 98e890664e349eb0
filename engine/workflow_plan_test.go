package engine_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// meshed is a workflow of tasks on several PEs in layers of ten, each after two of the layer before.
func meshed(id string, tasks int, deadline berth.Time) *berth.Workflow {
	w := flow(id, 0, deadline)
	w.Algorithm = berth.SlackAlgorithm
	for i := range tasks {
		one := berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: float64(30 + i*37%90), Alpha: .1, Most: berth.Count(1 + i%5)}
		if i >= 10 {
			one.After = []int{i - 10, i - i%10 - 1}
		}
		w.Tasks = append(w.Tasks, one)
	}
	return w
}

// amongBookings is an engine among bookings of others.
func amongBookings(t *testing.T, binding berth.Binding) *engine.Engine {
	t.Helper()
	e := newEngine(t, onePool(16, binding))
	for i := range 40 {
		submit(t, e, 0, berth.Rigid(fmt.Sprint("r", i), 0, berth.Time(i*29%700), 5000, berth.Count(1+i%9), berth.Duration(20+i*13%80)))
	}
	return e
}

// another returns an engine in the same state.
func another(t *testing.T, e *engine.Engine, binding berth.Binding) *engine.Engine {
	t.Helper()
	other, err := engine.Restore(onePool(16, binding), e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	return other
}

func planned(t *testing.T, e *engine.Engine, w *berth.Workflow, o engine.PlanOptions) *engine.WorkflowPlan {
	t.Helper()
	hash := e.Hash()
	plan, _, err := e.PlanWorkflow(w, o)
	if err != nil || e.Hash() != hash {
		t.Fatalf("%v; the state changed: %t", err, e.Hash() != hash)
	}
	return plan
}

// A plan that was made by another engine in the same state is what this one would have decided.
func TestAPlanMadeBesideIsPromisedAsItIs(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		for _, deadline := range []berth.Time{berth.Forever, 4000, 50} {
			e := amongBookings(t, binding)
			here := apply(t, another(t, e, binding), 0, engine.SubmitWorkflow(meshed("w", 60, deadline)))
			there := apply(t, another(t, e, binding), 0, engine.SubmitPlanned(meshed("w", 60, deadline), planned(t, e, meshed("w", 60, deadline), engine.PlanOptions{})))
			if a, b := toldOf(here), toldOf(there); a != b || (deadline == 50) != (a == "workflow_refused:w") {
				t.Errorf("%s by %d:\n%s, planned beside\n%s", binding, deadline, a, b)
			}
		}
	}
}

// Planning takes time: a plan begins no earlier than it is said to, so it still holds when it is
// decided about.
func TestAPlanBeginsWhenItIsDecided(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		e := amongBookings(t, binding)
		plan := planned(t, e, meshed("w", 60, berth.Forever), engine.PlanOptions{From: 7})
		for _, at := range []berth.Time{6, 7, 9} { // what was to begin before begins now
			changes := apply(t, another(t, e, binding), at, engine.SubmitPlanned(meshed("w", 60, berth.Forever), plan))
			first := berth.Forever
			for i := range changes {
				if c := &changes[i]; c.Kind == change.Accepted {
					first = min(first, c.Reservation.Start())
				}
			}
			if want := max(at, 7); first != want {
				t.Errorf("%s: a plan from 7 on at %d begins at %d, want %d", binding, at, first, want)
			}
		}
	}
}

// What a plan stands on may be promised to others meanwhile: then nothing is promised and it is to
// be planned again, or, the last time, its tasks are as soon after it as they can be.
func TestAPlanThatDoesNotHold(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		for _, c := range []struct {
			deadline berth.Time
			last     bool
			want     string
		}{
			{berth.Forever, false, ""},
			{berth.Forever, true, "workflow_promised:w w.1@100-110 w.2@110-130 w.3@110-140 w.4@140-150"},
			{149, true, "workflow_refused:w"},
			{150, true, "workflow_promised:w w.1@100-110 w.2@110-130 w.3@110-140 w.4@140-150"},
		} {
			e := newEngine(t, onePool(4, binding))
			plan := planned(t, e, diamond("w", 0, c.deadline), engine.PlanOptions{})
			plan.Last = c.last
			submit(t, e, 0, berth.Rigid("all", 0, 0, 100, 4, 100))
			hash := e.Hash()
			changes, _, err := e.Apply(0, engine.SubmitPlanned(diamond("w", 0, c.deadline), plan))
			if coded, is := errors.AsType[*berth.Error](err); !c.last && (!is || coded.Code != berth.Conflict || coded.Field != "plan" || e.Hash() != hash) {
				t.Errorf("%s: %v; the state changed: %t", binding, err, e.Hash() != hash)
			}
			if got := toldOf(changes); got != c.want || c.last && err != nil {
				t.Errorf("%s by %d: %s, %v; want %s", binding, c.deadline, got, err, c.want)
			}
		}
	}
}

// A task that begins with another one, and was placed after it, does not take the PE that the other
// one needs where the plan is followed.
func TestAPlanIsFollowedInTheOrderInWhichItWasMade(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	for i, b := range []struct {
		pe         berth.PE
		start, end berth.Time
	}{{1, 0, 5}, {1, 10, 20}, {2, 5, 10}, {3, 0, 10}, {3, 13, 30}} {
		r := berth.Rigid(fmt.Sprint("r", i), 0, b.start, b.end, 1, b.end.Sub(b.start))
		r.Parts[0].Eligible = berth.PEsOf(b.pe)
		submit(t, e, 0, r)
	}
	// Counts of PEs would have the long task begin at 0, where no two are free for as long as it takes.
	w := flow("w", 0, 20)
	w.Tasks = []berth.WorkflowTask{
		{ID: "short", Seconds: 3, Alpha: 1, Most: 1},
		{ID: "long", Seconds: 20, Few: 2, Most: 2},
	}
	plan := planned(t, e, w, engine.PlanOptions{})
	for _, last := range []bool{false, true} {
		plan.Last = last
		other, err := engine.Restore(config, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		apply(t, other, 0, engine.SubmitPlanned(w, plan))
		for id, want := range map[string]string{"w.1": "3 [10,13)", "w.2": "0,2 [10,20)"} {
			r, is := other.Reservation(id)
			if !is || fmt.Sprint(r.Allotments[0].PEs, " ", berth.Interval{Start: r.Start(), End: r.End()}) != want {
				t.Errorf("the last plan: %t: %s is at %v; want %s", last, id, r.Allotments, want)
			}
		}
	}
}

// A plan of what does not fit is none: what it says is looked at like anything else that comes in.
func TestAWrongPlanPromisesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *engine.WorkflowPlan)
		code  berth.Code
	}{
		"too few places":             {func(p *engine.WorkflowPlan) { p.Places = p.Places[1:] }, berth.Invalid},
		"places in a refusal":        {func(p *engine.WorkflowPlan) { p.Refusal = &berth.Refusal{} }, berth.Invalid},
		"no PEs":                     {func(p *engine.WorkflowPlan) { p.Places[0].NPE = 0 }, berth.Invalid},
		"an end before its start":    {func(p *engine.WorkflowPlan) { p.Places[0].End = p.Places[0].Start }, berth.Invalid},
		"too short an order":         {func(p *engine.WorkflowPlan) { p.Order = []int{0, 1, 2} }, berth.Invalid},
		"a place twice in its order": {func(p *engine.WorkflowPlan) { p.Order = []int{0, 1, 1, 3} }, berth.Invalid},
		"an order beyond its places": {func(p *engine.WorkflowPlan) { p.Order = []int{0, 1, 2, 4} }, berth.Invalid},
		"children before parents":    {func(p *engine.WorkflowPlan) { p.Order = []int{1, 0, 2, 3} }, berth.Invalid},
		"a pool that there is not":   {func(p *engine.WorkflowPlan) { p.Places[0].Resource.Name = "other" }, berth.Conflict},
		"more PEs than a task takes": {func(p *engine.WorkflowPlan) { p.Places[0].NPE = 3 }, berth.Conflict},
		"more PEs than there are":    {func(p *engine.WorkflowPlan) { p.Places[1].NPE = 5 }, berth.Conflict},
	} {
		e := newEngine(t, onePool(4, berth.Late))
		w := diamond("w", 0, berth.Forever)
		w.Tasks[0].Most = 2
		plan := planned(t, e, w, engine.PlanOptions{})
		c.spoil(plan)
		changes, _, err := e.Apply(0, engine.SubmitPlanned(w, plan))
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != c.code || coded.Field != "plan" || len(changes) > 0 {
			t.Errorf("%s: %v, %s; want %s", name, err, toldOf(changes), c.code)
		}
	}
}

// Planning ends when it is told to: with what it has when that is enough, with nothing when it is
// given up.
func TestPlanningEndsWhenItIsTold(t *testing.T) {
	e := amongBookings(t, berth.Late)
	asked := 0
	enough := func() bool { asked++; return true }
	if plan := planned(t, e, meshed("w", 30, 4000), engine.PlanOptions{Enough: enough}); len(plan.Places) != 30 || asked > 4 {
		t.Errorf("%d places after %d questions", len(plan.Places), asked)
	}
	offers, err := e.PlanOffers(meshed("w", 30, 4000), engine.PlanOptions{Offers: 8, Enough: enough})
	if err != nil || len(offers) != 1 {
		t.Errorf("%d offers, %v", len(offers), err)
	}
	quit := func() bool { return true }
	for name, do := range map[string]func() error{
		"a plan": func() error {
			_, _, err := e.PlanWorkflow(meshed("w", 30, 4000), engine.PlanOptions{Quit: quit})
			return err
		},
		"offers": func() error {
			_, err := e.PlanOffers(meshed("w", 30, 4000), engine.PlanOptions{Offers: 8, Quit: quit})
			return err
		},
	} {
		if coded, is := errors.AsType[*berth.Error](do()); !is || coded.Code != berth.Unavailable {
			t.Errorf("%s: %v", name, do())
		}
	}
}

// Whatever limit a workflow was refused for: what is offered instead keeps within all of them and
// is promised when it is asked for.
func TestOffersOfAWorkflowKeepWithinLimits(t *testing.T) {
	for _, c := range []struct {
		limits policy.Limits
		hold   berth.Duration
		offers bool // there are some
	}{
		{policy.Limits{{Name: policy.LimitPESeconds, Value: 2000}}, 0, true},
		{policy.Limits{{Name: policy.LimitLength, Value: 60}}, 0, true},
		{policy.Limits{{Name: policy.LimitLead, Value: 260}}, 0, true},
		{policy.Limits{{Name: policy.LimitShare, Value: 250}}, 0, true},
		{policy.Limits{{Name: policy.LimitShare, Value: 250}, {Name: policy.LimitLength, Value: 60}}, 0, true},
		{policy.Limits{{Name: policy.LimitHold, Value: 60}}, 61, false},
		{policy.Limits{{Name: policy.LimitActive, Value: 19}}, 0, false},
		{policy.Limits{{Name: policy.LimitReservations, Value: 19}}, 0, false},
	} {
		config := onePool(16, berth.Late)
		config.Limits = c.limits
		e := newEngine(t, config)
		w := meshed("w", 20, berth.Forever)
		w.Hold = c.hold
		offers, err := e.WorkflowOffers(w, 8)
		if err != nil || (len(offers) > 0) != c.offers {
			t.Errorf("%s: %d offers, %v; want some: %t", c.limits[0].Name, len(offers), err, c.offers)
		}
		for i := range offers {
			again := newEngine(t, config)
			changes := apply(t, again, 0, engine.SubmitWorkflow(&offers[i].Workflow))
			if last := &changes[len(changes)-1]; last.Refusal != nil {
				t.Errorf("%s: offer %d, by %d with %s, is refused: %+v, %+v", c.limits[0].Name, i+1, offers[i].Workflow.Deadline, offers[i].Workflow.Algorithm, last.Refusal, last.Refusal.Exceeded)
			}
		}
	}
}

// Of planners that do equally well the one that is listed first is named, whichever was asked first.
func TestOffersNameThePlannerThatIsListedFirst(t *testing.T) {
	e := newEngine(t, onePool(16, berth.Late))
	w := flow("w", 0, 1000, task("a", 10), task("b", 20, 0), task("c", 10, 1))
	want, err := e.PlanOffers(w, engine.PlanOptions{Offers: 8})
	if err != nil || len(want) == 0 {
		t.Fatalf("%d offers, %v", len(want), err)
	}
	// Where planning may be ended, planners that are quick are asked first.
	got, err := e.PlanOffers(w, engine.PlanOptions{Offers: 8, Enough: func() bool { return false }})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Planning that may be ended at any time makes the plan that it makes else, although it asks the
// planners in another order; and ended before anything is found it still finds what needs no slack.
func TestPlanningThatMayBeEnded(t *testing.T) {
	e := amongBookings(t, berth.Late)
	never, always := func() bool { return false }, func() bool { return true }
	for _, deadline := range []berth.Time{300, 500, 700, 900, 1200, 2000, 4000} {
		for _, algorithm := range []string{berth.SlackAlgorithm, berth.BestAlgorithm, "dl-rc-cpar", "bd-cpar"} {
			w := meshed("w", 40, deadline)
			w.Algorithm = algorithm
			want := planned(t, e, w, engine.PlanOptions{})
			if got := planned(t, e, w, engine.PlanOptions{Enough: never, Quit: never}); !reflect.DeepEqual(got, want) {
				t.Errorf("%s by %d: the plan of %s, want that of %s", algorithm, deadline, got.Planner, want.Planner)
			}
			if got := planned(t, e, w, engine.PlanOptions{Enough: always}); (got.Refusal == nil) != (want.Refusal == nil) {
				t.Errorf("%s by %d, at once: %+v, want %+v", algorithm, deadline, got.Refusal, want.Refusal)
			}
		}
	}
}

// However far planning has got when it is given up, it says so, and leaves no trace.
func TestPlanningIsGivenUpAnywhere(t *testing.T) {
	e := amongBookings(t, berth.Late)
	hash := e.Hash()
	for _, deadline := range []berth.Time{berth.Forever, 900, 50} {
		for last := 0; ; last = last*3/2 + 1 {
			asked := 0
			quit := func() bool { asked++; return asked > last }
			plan, _, err := e.PlanWorkflow(meshed("w", 30, deadline), engine.PlanOptions{Quit: quit, Offers: 4})
			if asked <= last {
				break // it was done before
			}
			coded, is := errors.AsType[*berth.Error](err)
			if gave := is && coded.Code == berth.Unavailable; gave == (plan != nil) || asked-last > 500 || e.Hash() != hash {
				t.Errorf("by %d, given up at question %d of %d: %+v %v", deadline, last, asked, plan, err)
			}
		}
	}
}
