package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// costly returns four PEs that a uses until 100, and for which b, of 50 s, waits, with limits of every user.
func costly(t *testing.T, values map[policy.LimitName]int64) *engine.Engine {
	t.Helper()
	e := newEngine(t, costlyConfig(values))
	submit(t, e, 0, berth.Job("a", 0, 4, 100))
	submit(t, e, 0, berth.Job("b", 0, 4, 50))
	return e
}

func costlyConfig(values map[policy.LimitName]int64) engine.Config {
	config := onePool(4, berth.Late)
	config.Jobs = "easy"
	config.Limits = policy.EachUser(values)
	return config
}

// of returns a request of a user.
func of(user string, r berth.Request) berth.Request {
	r.User = user
	return r
}

// exceededIn returns which limit a refusal names, what it allows and what was asked for.
func exceededIn(t *testing.T, changes []change.Change, id string) string {
	t.Helper()
	no := refusalIn(changes, id)
	if no == nil || no.Exceeded == nil {
		t.Fatalf("%s: %s, want a refusal that names a limit", id, kinds(changes))
	}
	return fmt.Sprint(no.Exceeded.Limit, " ", no.Exceeded.Allowed, "<", no.Exceeded.Asked)
}

// A promise may cost as much as the limit says and no more; a refusal says by how much it would be more.
func TestCostsUpToTheLimit(t *testing.T) {
	ask := of("u", berth.Rigid("r", 0, 120, 160, 4, 40)) // b is delayed by 60 s, and 80 PE-seconds are idle in front of it
	for _, c := range []struct {
		values map[policy.LimitName]int64
		want   string
	}{
		{map[policy.LimitName]int64{policy.LimitDelay: 60, policy.LimitIdle: 80}, ""},
		{map[policy.LimitName]int64{policy.LimitDelay: 59, policy.LimitIdle: 80}, "delay 59<60"},
		{map[policy.LimitName]int64{policy.LimitDelay: 60, policy.LimitIdle: 79}, "idle 79<80"},
		{map[policy.LimitName]int64{policy.LimitIdle: 0}, "idle 0<80"},
	} {
		changes := submit(t, costly(t, c.values), 0, ask)
		if c.want != "" {
			if got := exceededIn(t, changes, "r"); got != c.want {
				t.Errorf("%v: %s, want %s", c.values, got, c.want)
			}
			continue
		}
		if r := accepted(t, changes); r.Terms.Delay != 60 || r.Terms.Idle != 80 {
			t.Errorf("%v: it is promised at %d s and %d PE-seconds, want 60 and 80", c.values, r.Terms.Delay, r.Terms.Idle)
		}
	}
}

// What a promise leaves idle is charged to a budget where it is foreseen, and a request that exceeds its budget with it is refused; so is a change.
func TestBudgetsCountWhatIsLeftIdle(t *testing.T) {
	ask := of("u", berth.Rigid("r", 0, 120, 160, 4, 40)) // 160 PE-seconds, and 80 are idle in front of it
	for _, name := range []policy.LimitName{policy.LimitBudget, policy.LimitMonthBudget} {
		values := map[policy.LimitName]int64{policy.LimitIdle: 1000, name: 239}
		if got := exceededIn(t, submit(t, costly(t, values), 0, ask), "r"); got != string(name)+" 239<240" {
			t.Errorf("%s: %s", name, got)
		}
		event := engine.Submit(&ask)
		e := costly(t, values)
		foreseen, err := e.Foresee(&event, engine.Foresight{})
		if err != nil {
			t.Fatal(err)
		}
		event.Foreseen = foreseen
		if no := e.Exceeds(&event); no == nil || no.Exceeded.Limit != string(name) {
			t.Errorf("%s: foreseen beside, it exceeds %+v", name, no)
		}

		values[name] = 279
		e = costly(t, values)
		accepted(t, submit(t, e, 0, ask))
		if got := e.Usage("u").Charged; got != (engine.Charges{All: 240, Live: 240}) {
			t.Errorf("%s: charged are %+v, want 240", name, got)
		}
		if got := exceededIn(t, apply(t, e, 0, engine.Extend("r", 170)), "r"); got != string(name)+" 279<280" {
			t.Errorf("%s, extended: %s", name, got)
		}
		longer := of("u", berth.Rigid("r", 0, 120, 170, 4, 50))
		if got := exceededIn(t, apply(t, e, 0, engine.Modify(&longer)), "r"); got != string(name)+" 279<280" {
			t.Errorf("%s, modified: %s", name, got)
		}
		restored, err := engine.Restore(costlyConfig(values), e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		for at, due := e.Next(); due && at <= 140; at, due = e.Next() {
			apply(t, e, at, engine.Wake())
			apply(t, restored, at, engine.Wake())
		}
		apply(t, e, 140, engine.Finish("r"))
		apply(t, restored, 140, engine.Finish("r"))
		if got, same := e.Usage("u").Charged, restored.Usage("u").Charged; got != same || got != (engine.Charges{All: 160}) {
			t.Errorf("%s, ended after 20 s: charged are %+v, after a restart %+v, want 160", name, got, same)
		}
	}
}

// An event that brings what it was foreseen to cost is decided like one that does not, as long as it comes to the same place
// within a minute; else it changes nothing, and has to be foreseen again.
func TestCostsThatAreForeseenBeside(t *testing.T) {
	values := map[policy.LimitName]int64{policy.LimitDelay: 59}
	event := engine.Submit(new(of("u", berth.Rigid("r", 0, 120, 400, 4, 40))))
	e, twin := costly(t, values), costly(t, values)
	foreseen, err := twin.Foresee(&event, engine.Foresight{})
	if err != nil || len(foreseen.Places) != 1 || foreseen.Cost.Largest != 60 {
		t.Fatal(foreseen, err)
	}
	brings := event
	brings.Foreseen = foreseen
	if no := e.Exceeds(&brings); no == nil || no.Exceeded.Asked != 60 {
		t.Errorf("it exceeds %+v, want the limit of 59 by 60", no)
	}
	apply(t, e, 0, event)
	apply(t, twin, 0, brings)
	if e.Hash() != twin.Hash() {
		t.Error("what was foreseen beside is decided otherwise")
	}

	e = costly(t, map[policy.LimitName]int64{policy.LimitDelay: 1000})
	other := of("v", berth.Rigid("o", 0, 100, 260, 1, 160)) // behind which the place of r begins
	apply(t, e, 0, engine.Submit(&other))
	before := e.Hash()
	_, _, err = e.Apply(0, brings)
	if e.Hash() != before {
		t.Error("what has to be foreseen again has changed something")
	}
	if moved := e.Live(); moved != 3 {
		t.Errorf("%d are live, want 3", moved)
	}
	wantCode(t, err, berth.Conflict, "foreseen")
	brings.Foreseen = &engine.Foreseen{Admitted: true, Cost: engine.Cost{Largest: 7}}
	if r := accepted(t, apply(t, e, 0, brings)); r.Terms.Delay != 7 {
		t.Errorf("admitted before at 7 s, it is promised at %d", r.Terms.Delay)
	}
}

// Changes of a reservation count with what it cost before: many small ones come to no more than one.
func TestCostsOfChangesAddUp(t *testing.T) {
	config := costlyConfig(map[policy.LimitName]int64{policy.LimitDelay: 60})
	e := costly(t, map[policy.LimitName]int64{policy.LimitDelay: 60})
	r := accepted(t, submit(t, e, 0, of("u", berth.Rigid("r", 0, 100, 120, 1, 20)))) // b begins at 120
	if r.Terms.Delay != 20 {
		t.Fatalf("it delays b by %d s, want 20", r.Terms.Delay)
	}
	for _, until := range []berth.Time{140, 160} {
		apply(t, e, 0, engine.Extend("r", until))
	}
	if r, _ := e.Reservation("r"); r.Terms.Delay != 60 || r.End() != 160 {
		t.Errorf("extended to %d it costs %d s, want 60 at 160", r.End(), r.Terms.Delay)
	}
	if got := exceededIn(t, apply(t, e, 0, engine.Extend("r", 161)), "r"); got != "delay 60<61" {
		t.Errorf("extended by a second more: %s", got)
	}
	later := of("u", berth.Rigid("r", 0, 110, 171, 1, 61))
	if got := exceededIn(t, apply(t, e, 0, engine.Modify(&later)), "r"); got != "delay 60<71" {
		t.Errorf("modified to end 11 s later: %s", got)
	}
	shorter := of("u", berth.Rigid("r", 0, 100, 110, 1, 10))
	apply(t, e, 0, engine.Modify(&shorter))
	if r, _ := e.Reservation("r"); r.End() != 110 || r.Terms.Delay != 60 {
		t.Errorf("shortened it ends at %d and is counted at %d s, want 110 and 60", r.End(), r.Terms.Delay)
	}
	twin, err := engine.Restore(config, e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if got := exceededIn(t, apply(t, twin, 0, engine.Extend("r", 160)), "r"); got != "delay 60<110" {
		t.Errorf("after a restart: %s", got)
	}
}

// A series and a workflow are bounded as a whole.
func TestCostsOfSeriesAndWorkflows(t *testing.T) {
	values := map[policy.LimitName]int64{policy.LimitDelay: 59}
	s := series("s", 0, 120, 300, 3, 1, 4, 40) // the first delays b by 60 s
	changes := apply(t, costly(t, values), 0, engine.SubmitSeries(s))
	numbers, promised := unfit(t, changes)
	if promised || !slices.Equal(numbers, []int{1, 2, 3}) {
		t.Errorf("of the series %v cannot be, the others are promised: %t", numbers, promised)
	}
	for i := range changes {
		if c := &changes[i]; c.Kind == change.SeriesRefused && (c.Unfit[0].Refusal.Exceeded == nil || c.Unfit[0].Refusal.Exceeded.Asked != 60) {
			t.Errorf("its refusal is %+v", c.Unfit[0].Refusal)
		}
	}
	values[policy.LimitDelay] = 60
	if numbers, promised = unfit(t, apply(t, costly(t, values), 0, engine.SubmitSeries(s))); !promised || len(numbers) > 0 {
		t.Errorf("of the series %v cannot be, the others are promised: %t", numbers, promised)
	}

	w := flow("w", 0, berth.Forever, task("t", 30), task("u", 30, 0)) // from 100 to 160, where b begins behind it
	values[policy.LimitDelay] = 59
	changes = apply(t, costly(t, values), 0, engine.SubmitWorkflow(w))
	if got := kinds(changes); got != "workflow_refused" {
		t.Errorf("the workflow is %s", got)
	} else if over := changes[0].Refusal.Exceeded; over == nil || over.Asked != 60 {
		t.Errorf("its refusal is %+v", changes[0].Refusal)
	}
	values[policy.LimitDelay] = 60
	if changes = apply(t, costly(t, values), 0, engine.SubmitWorkflow(w)); changes[0].Kind != change.WorkflowPromised {
		t.Errorf("the workflow is %s", kinds(changes))
	}
}

// Occurrences that change at once are bounded by what all of them cost together, and keep that as what they cost.
func TestCostsOfASeriesThatChanges(t *testing.T) {
	for limit, want := range map[int64]string{59: "delay 59<60", 60: ""} {
		e := costly(t, map[policy.LimitName]int64{policy.LimitDelay: limit})
		s := series("s", 0, 400, 300, 2, 2, 4, 40) // far behind b
		s.Request.User = "u"
		apply(t, e, 0, engine.SubmitSeries(s))
		var earlier []berth.Request
		for _, id := range []string{"s.1", "s.2"} {
			r, is := e.Reservation(id)
			if !is {
				t.Fatalf("%s is not promised", id)
			}
			own := *r.Request.Clone()
			own.Ready, own.Deadline = own.Ready-280, own.Deadline-280
			earlier = append(earlier, own)
		}
		changes := apply(t, e, 0, engine.ModifySeries("s", earlier, nil)) // the first delays b by 60 s
		if want != "" {
			for _, id := range []string{"s.1", "s.2"} {
				if got := exceededIn(t, changes, id); got != want {
					t.Errorf("%s: %s, want %s", id, got, want)
				}
			}
			continue
		}
		for _, id := range []string{"s.1", "s.2"} {
			if r, _ := e.Reservation(id); r.Request.Ready >= 400 && id == "s.1" || r.Terms.Delay != 60 {
				t.Errorf("%s: %s, it is ready at %d and costs a job %d s", id, kinds(changes), r.Request.Ready, r.Terms.Delay)
			}
		}
	}
}

// What an open series would cost at its turns is not foreseen: where a limit bounds that it is not taken, and a limit that comes later refuses
// what has its turn then.
func TestCostsOfAnOpenSeries(t *testing.T) {
	s := series("s", 0, 120, 300, 3, 1, 4, 40)
	s.Request.User, s.Ahead = "u", 150
	e := costly(t, map[policy.LimitName]int64{policy.LimitDelay: 1000})
	_, _, err := e.Apply(0, engine.SubmitSeries(s))
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Invalid || coded.Field != "ahead" {
		t.Errorf("asked for where a limit bounds its cost: %v", err)
	}

	e = costly(t, nil)
	if _, promised := unfit(t, apply(t, e, 0, engine.SubmitSeries(s))); !promised {
		t.Fatal("without limits it is not promised")
	}
	e, err = engine.Restore(costlyConfig(map[policy.LimitName]int64{policy.LimitDelay: 1000}), e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	changes := apply(t, e, 300, engine.Wake()) // the second occurrence has its turn
	if got := exceededIn(t, changes, "s.2"); got != "delay 1000<0" {
		t.Errorf("at its turn: %s, %s", got, kinds(changes))
	}
}

// What cannot be foreseen for all jobs within the bound on the work is refused, whatever the limit; so says the refusal, by a figure
// within the limit.
func TestCostsForeseenInPart(t *testing.T) {
	e := costly(t, map[policy.LimitName]int64{policy.LimitDelay: 1000})
	event := engine.Submit(new(of("u", berth.Rigid("r", 0, 120, 160, 4, 40))))
	foreseen, err := e.Foresee(&event, engine.Foresight{Looks: 1})
	if err != nil || foreseen.Cost.Complete {
		t.Fatal(foreseen, err)
	}
	event.Foreseen = foreseen
	if got := exceededIn(t, apply(t, e, 0, event), "r"); got != "delay 1000<0" {
		t.Errorf("foreseen in part: %s", got)
	}
	if offers, _, err := e.OffersWithin(event.Request, 5, engine.Foresight{Looks: 1}); err != nil || len(offers) > 0 {
		t.Errorf("foreseen in part it is offered %+v, %v", offers, err)
	}
}

// Offers keep to the limits: where the earliest place would cost too much, a later one is offered, in the window if there is one.
func TestOffersWithinTheLimits(t *testing.T) {
	const hour = 3600
	config := onePool(4, berth.Late)
	config.Jobs = "easy"
	config.Limits = policy.EachUser(map[policy.LimitName]int64{policy.LimitDelay: 60})
	e := newEngine(t, config)
	submit(t, e, 0, berth.Job("a", 0, 4, hour))
	submit(t, e, 0, berth.Job("b", 0, 4, hour))
	for _, c := range []struct {
		deadline berth.Time
		want     engine.Difference
	}{{10 * hour, engine.OfferAsAsked}, {2 * hour, engine.OfferLater}} {
		r := of("u", berth.Rigid("r", 0, 0, c.deadline, 4, hour))
		offers, costs, err := e.OffersWithin(&r, 5, engine.Foresight{})
		if err != nil || len(offers) == 0 || len(costs) != len(offers) || offers[0].Difference != c.want {
			t.Fatalf("until %d it is offered %+v, %v", c.deadline, offers, err)
		}
		for i := range offers {
			if costs[i].Largest > 60 {
				t.Errorf("offer %d costs %+v", i, costs[i])
			}
			twin, err := engine.Restore(config, e.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			accepted(t, submit(t, twin, 0, offers[i].Request))
		}
	}
	_, _, err := e.OffersWithin(new(of("u", berth.Rigid("r", 0, 0, 10*hour, 4, hour))), 5, engine.Foresight{Quit: func() bool { return true }})
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
		t.Errorf("given up: %v, want it unavailable", err)
	}
}
