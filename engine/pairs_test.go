package engine_test

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
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
