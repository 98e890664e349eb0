package engine_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// Until a promise starts, only the count of its PEs is promised in a pool that names them ahead.
func TestExtensionWhereANamedPEGoesOutOfUse(t *testing.T) {
	for _, ahead := range []berth.Duration{5, 1000} {
		c := fourPEs(berth.Pool{Binding: berth.Late, NameAhead: ahead})
		e := newEngine(t, c)
		r := berth.Rigid("r", 0, 10, 20, 3, 10)
		apply(t, e, 0, engine.Submit(&r))
		pool := berth.PoolID("s", "p")
		apply(t, e, 1, engine.Down(berth.Outage{Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 1}), From: 25, Until: 50}))
		for _, x := range apply(t, e, 2, engine.Extend("r", 30)) {
			if x.Kind == change.ChangeRefused {
				t.Errorf("names %d s ahead: 3 of 4 PEs are free until 30, and it is refused: %+v", ahead, *x.Refusal)
			}
		}
		apply(t, e, 10, engine.Wake())
		if got := reservation(t, e, "r"); got.End() != 30 || got.Allotments[0].PEs.String() != "1-3" {
			t.Errorf("names %d s ahead: %v", ahead, got.Allotments)
		}
	}
}

// What lacks PEs when it is extended may have them again.
func TestExtensionOfWhatLacksPEsKeepsWithinLimits(t *testing.T) {
	for _, limit := range []policy.Limit{{Name: policy.LimitPESeconds, Value: 100}, {Name: policy.LimitShare, Value: 500}} {
		c := fourPEs(berth.Pool{})
		c.Limits = policy.Limits{limit}
		e := newEngine(t, c)
		r, s := berth.Rigid("r", 0, 10, 20, 2, 10), berth.Rigid("s", 0, 20, 40, 2, 20)
		r.User, s.User = "ada", "ada"
		apply(t, e, 0, engine.Submit(&r))
		apply(t, e, 0, engine.Submit(&s))
		apply(t, e, 12, engine.Down(berth.Outage{Resource: berth.PoolID("s", "p"), PEs: berth.NewPESet(berth.Run{Hi: 4}), Until: 15}))
		if r := reservation(t, e, "r"); r.Missing != 2 {
			t.Fatalf("%+v", r)
		}
		changes := apply(t, e, 13, engine.Extend("r", 110))
		if no := changes[len(changes)-1].Refusal; no == nil || no.Reason != berth.Quota || no.Exceeded.Limit != string(limit.Name) {
			t.Errorf("%s: extended beyond it: %s", limit.Name, kinds(changes))
		}
	}
}

// Jobs have plans again at once when an extension was in their way, and keep those in whose way it is not.
func TestJobsArePlannedAroundAnExtension(t *testing.T) {
	for _, plain := range []bool{false, true} {
		c := fourPEs(berth.Pool{Binding: berth.Late})
		c.Jobs, c.PlainPasses = "conservative", plain
		plan := func(e *engine.Engine) berth.Time {
			s, known := e.Status("j")
			if !known || s.Plan == nil {
				t.Fatalf("plain %t: the job has no plan: %+v", plain, s)
			}
			return s.Plan.Start
		}
		e := newEngine(t, c)
		r, j := berth.Rigid("r", 0, 0, 10, 4, 10), berth.Job("j", 1, 4, 20)
		apply(t, e, 0, engine.Submit(&r))
		apply(t, e, 1, engine.Submit(&j))
		if at := plan(e); at != 10 {
			t.Fatalf("plain %t: planned at %d", plain, at)
		}
		apply(t, e, 2, engine.Extend("r", 15))
		if at := plan(e); at != 15 {
			t.Errorf("plain %t: planned at %d behind what lasts until 15", plain, at)
		}

		e = newEngine(t, c)
		later := berth.Rigid("later", 0, 50, 60, 4, 10)
		apply(t, e, 0, engine.Submit(&later))
		down := berth.Outage{Resource: berth.PoolID("s", "p"), PEs: berth.NewPESet(berth.Run{Hi: 4}), Until: 60}
		apply(t, e, 1, engine.Down(down))
		if r := reservation(t, e, "later"); r.Missing != 4 {
			t.Fatalf("%+v", r)
		}
		j.Arrival, j.Ready = 2, 2
		apply(t, e, 2, engine.Submit(&j))
		was := plan(e)
		changes := apply(t, e, 3, engine.Extend("later", 90))
		if at := plan(e); at != was || strings.Contains(kinds(changes), "planned") {
			t.Errorf("plain %t: an extension of no PEs moves the plan from %d to %d: %s", plain, was, at, kinds(changes))
		}
	}
}

func TestLeadOfNothingAtTimeNought(t *testing.T) {
	for _, now := range []berth.Time{0, 1} {
		c := fourPEs(berth.Pool{})
		c.Limits = policy.Limits{{Name: policy.LimitLead, Value: 0}}
		e := newEngine(t, c)
		other, r := berth.Rigid("other", now, now, now+50, 4, 50), berth.Rigid("r", now, now, now+100, 1, 10)
		r.User = "ada"
		apply(t, e, now, engine.Submit(&other))
		apply(t, e, now, engine.Submit(&r))
		if got, promised := e.Reservation("r"); promised {
			t.Errorf("at %d: promised from %d on, with no lead", now, got.Start())
		}
	}
}

func TestForetoldAsItBecomes(t *testing.T) {
	held := berth.Rigid("r", 0, 10, 200, 4, 10)
	held.Hold = 50
	longer, fewer := held, held
	longer.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: 4, Duration: 30}}}}
	fewer.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: 2, Duration: 10}}}}
	firm := berth.Rigid("r", 0, 10, 20, 4, 10)
	less := firm
	less.Parts = fewer.Parts
	down := engine.Down(berth.Outage{Resource: berth.PoolID("s", "p"), PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 1})})
	for _, c := range []struct {
		name  string
		first []engine.Event
		then  engine.Event
	}{
		{"a hold that is modified to last longer", []engine.Event{engine.Submit(&held)}, engine.Modify(&longer)},
		{"a hold that is extended", []engine.Event{engine.Submit(&held)}, engine.Extend("r", 45)},
		{"a hold that is confirmed", []engine.Event{engine.Submit(&held)}, engine.Confirm("r")},
		{"a hold that lacks a PE and is confirmed", []engine.Event{engine.Submit(&held), down}, engine.Confirm("r")},
		{"a hold that lacks a PE and is modified", []engine.Event{engine.Submit(&held), down}, engine.Modify(&fewer)},
		{"one that lacks a PE and is modified", []engine.Event{engine.Submit(&firm), down}, engine.Modify(&less)},
		{"one that lacks a PE and is extended", []engine.Event{engine.Submit(&firm), down}, engine.Extend("r", 45)},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, fourPEs(berth.Pool{}))
			for _, event := range c.first {
				apply(t, e, 0, event)
			}
			before := e.Hash()
			told, refusal, err := e.Foretell(&c.then)
			if err != nil || refusal != nil || e.Hash() != before {
				t.Fatal(refusal, err)
			}
			apply(t, e, 0, c.then)
			is := reservation(t, e, "r")
			told.Generation, told.Terms.Extended, told.Terms.Deadline = is.Generation, is.Terms.Extended, is.Terms.Deadline // which are left out
			if !reflect.DeepEqual(told, is) {
				t.Errorf("foretold\n%+v\nit becomes\n%+v", told, is)
			}
		})
	}
}

func TestLateConfirmationIsForetoldAsCheckIn(t *testing.T) {
	for _, at := range []berth.Time{10, 12} {
		e := newEngine(t, fourPEs(berth.Pool{}))
		r := berth.Rigid("r", 0, 10, 200, 4, 50)
		r.Hold = 40
		apply(t, e, 0, engine.Submit(&r))
		apply(t, e, at, engine.Wake())
		confirm := engine.Confirm("r")
		told, refusal, err := e.Foretell(&confirm)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		apply(t, e, at, confirm)
		if is := reservation(t, e, "r"); told.CheckedIn != is.CheckedIn || is.CheckedIn != (at > 10) {
			t.Errorf("confirmed at %d, 10 being its start: foretold %t, is %t", at, told.CheckedIn, is.CheckedIn)
		}
	}
}

func TestTasksOfRequestsAreTheirOwn(t *testing.T) {
	e := newEngine(t, fourPEs(berth.Pool{}))
	apply(t, e, 0, engine.SubmitWorkflow(oneTask(10, 0)))
	before := e.Hash()
	r := reservation(t, e, "w.1")
	r.Request.Task.Task = "other"
	if e.Hash() != before {
		t.Error("what the caller writes into a reservation that it was given changes the engine's")
	}
}
