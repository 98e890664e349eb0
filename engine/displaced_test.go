package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// A reservation of [10,20) is extended to [10,50). All PEs fail until 15: it gets
// another place of 40 s, not of the 10 s that were requested.
func TestExtensionSurvivesAnOutage(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 100, 2, 10))
		apply(t, e, 0, extended("a", 50))
		apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 15))
		wantShape(t, e, "a", "confirmed cm5:2x[15,55)")
		settled(t, config, e)
		apply(t, e, 15, wake())
		apply(t, e, 54, wake())
		wantShape(t, e, "a", "active cm5:2x[15,55)")
		settled(t, config, e)
	})
}

// An extension beyond the deadline moves the deadline to the new end: the
// reservation keeps its start and its length on other PEs of the pool.
func TestExtensionMovesTheDeadline(t *testing.T) {
	for name, event := range map[string]engine.Event{
		"outage": takenDown(cm5(), 0, 1, 0, 0),
		"avoid":  avoiding("a", 0),
	} {
		for what, config := range map[string]engine.Config{"unmanaged": onePool(4, berth.Early), "managed": managed(onePool(4, berth.Early))} {
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 2, 10))
			apply(t, e, 0, extended("a", 50))
			apply(t, e, 1, event)
			if got := shape(e, "a"); got != "confirmed cm5:2x[10,50)" {
				t.Errorf("%s, %s: a is %q", name, what, got)
			}
			if r, live := e.Reservation("a"); live && r.Allotments[0].PEs.Contains(0) {
				t.Errorf("%s, %s: a has PE 0", name, what)
			}
			settled(t, config, e)
		}
	}
}

// Where the extended length fits nowhere in the window, an unmanaged reservation
// is lost; it is not cut to the length of its request.
func TestExtendedReservationIsNotCut(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(4, binding)
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 30, 2, 10))
		apply(t, e, 0, extended("a", 50))
		apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 15))
		wantShape(t, e, "a", "gone")
		settled(t, config, e)
	}
}

// A promise that yields to an overrun keeps its extended length, and so does one
// that is displaced again after that.
func TestExtensionSurvivesADelay(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(2, binding))
		config.Overrun = engine.OverrunDelay
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("runs", 0, 0, 10, 2, 10))
		submit(t, e, 0, berth.Rigid("a", 0, 10, 300, 2, 10))
		apply(t, e, 1, extended("a", 50))
		apply(t, e, 10, wake())
		wantShape(t, e, "a", "confirmed cm5:2x[70,110)")
		apply(t, e, 11, engine.Finish("runs"))
		apply(t, e, 12, takenDown(cm5(), 0, 2, 0, 75))
		wantShape(t, e, "a", "confirmed cm5:2x[75,115)")
		settled(t, config, e)
	})
}

// A degraded reservation that finds a whole place later gets it for its extended
// length.
func TestExtensionSurvivesARepair(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 100, 4, 10))
		apply(t, e, 0, extended("a", 50))
		submit(t, e, 0, berth.Rigid("b", 0, 60, 300, 4, 240))
		apply(t, e, 1, takenDown(cm5(), 0, 2, 0, 60))
		wantShape(t, e, "a", "degraded cm5:2x[10,50) missing 2")
		apply(t, e, 2, engine.Cancel("b"))
		wantShape(t, e, "a", "confirmed cm5:4x[60,100)")
		settled(t, config, e)
	}
}

// A degraded reservation that is extended is still owed all its PEs.
func TestExtensionKeepsWhatIsOwed(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 4, 10))
		apply(t, e, 1, takenDown(cm5(), 0, 3, 0, 0))
		apply(t, e, 2, extended("a", 50))
		wantShape(t, e, "a", "degraded cm5:1x[10,50) missing 3")
		settled(t, config, e)
		apply(t, e, 3, broughtUp(cm5(), 0, 3))
		wantShape(t, e, "a", "confirmed cm5:4x[10,50)")
		settled(t, config, e)
	}
}

// Data that come later move an extended reservation as a whole.
func TestExtensionSurvivesLateData(t *testing.T) {
	config := distant(engine.StagingBefore, 0)
	e := newEngine(t, config)
	submit(t, e, 0, heavy("a", 0, 500, 2000)) // data until 22
	apply(t, e, 0, extended("a", 160))
	apply(t, e, 11, foreseen(11, 100, 1_000_000)) // data until 113
	wantShape(t, e, "a", "confirmed cm5:2x[113,251)")
	settled(t, config, e)
}

// A degraded reservation that gets the PEs of another one, at its own time, leaves
// the plans of jobs before that time as they are.
func TestGrowingReservationVoidsNoEarlierPlan(t *testing.T) {
	for _, c := range []struct {
		binding      berth.Binding
		lacks, other string
	}{{berth.Early, "a", "b"}, {berth.Late, "b", "a"}} {
		config := managed(onePool(4, c.binding))
		config.Jobs = "conservative"
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 50, 60, 2, 10))
		submit(t, e, 0, berth.Rigid("b", 0, 50, 60, 2, 10))
		apply(t, e, 1, takenDown(cm5(), 0, 2, 0, 0))
		wantShape(t, e, c.lacks, "degraded cm5:0x[50,60) missing 2")
		submit(t, e, 2, job("runs", 2, 2, 20))
		submit(t, e, 2, job("planned", 2, 2, 10))
		apply(t, e, 3, wake())
		for _, made := range apply(t, e, 4, engine.Cancel(c.other)) {
			if made.Kind == change.Planned {
				t.Errorf("%s: the plan of %s becomes %+v", c.binding, made.ID, made.Plan)
			}
		}
		wantShape(t, e, c.lacks, "confirmed cm5:2x[50,60)")
		settled(t, config, e)
	}
}

// A degraded reservation that yields to an overrun is still owed all its PEs,
// and gets them when they are back.
func TestDelayedReservationIsOwedAllItsPEs(t *testing.T) {
	for _, binding := range bindings() {
		t.Run(string(binding), func(t *testing.T) {
			config := managed(onePool(6, binding))
			config.Overrun = engine.OverrunDelay
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("runs", 0, 0, 10, 6, 10))
			submit(t, e, 0, berth.Rigid("next", 0, 10, 20, 6, 10))
			apply(t, e, 1, wake())
			apply(t, e, 2, takenDown(cm5(), 0, 3, 0, 0))
			wantShape(t, e, "next", "degraded cm5:3x[10,20) missing 3")
			apply(t, e, 10, wake())
			wantShape(t, e, "next", "degraded cm5:3x[70,80) missing 3")
			settled(t, config, e)
			apply(t, e, 12, broughtUp(cm5(), 0, 6))
			wantShape(t, e, "next", "confirmed cm5:6x[70,80)")
			settled(t, config, e)
		})
	}
}

// A promise that has lost all its PEs holds none that an overrun could want: it
// stays where it is, and is whole again when the PEs are back.
func TestReservationWithoutPEsIsNotDelayed(t *testing.T) {
	for _, binding := range bindings() {
		t.Run(string(binding), func(t *testing.T) {
			config := managed(onePool(4, binding))
			config.Overrun = engine.OverrunDelay
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("runs", 0, 0, 10, 1, 10))
			submit(t, e, 0, berth.Rigid("yields", 0, 10, 20, 1, 10))
			submit(t, e, 0, berth.Rigid("empty", 0, 11, 20, 3, 9))
			apply(t, e, 1, wake())
			apply(t, e, 2, takenDown(cm5(), 1, 4, 0, 0))
			wantShape(t, e, "empty", "degraded cm5:0x[11,20) missing 3")
			before := generation(t, e, "empty")
			apply(t, e, 10, wake())
			wantShape(t, e, "yields", "confirmed cm5:1x[70,80)")
			wantShape(t, e, "empty", "degraded cm5:0x[11,20) missing 3")
			if got := generation(t, e, "empty"); got != before {
				t.Errorf("generation %d, want %d: it has not moved", got, before)
			}
			settled(t, config, e)
			apply(t, e, 11, broughtUp(cm5(), 1, 4))
			wantShape(t, e, "empty", "confirmed cm5:3x[11,20)")
			settled(t, config, e)
		})
	}
}

// A promise that was delayed beyond its deadline keeps its start when it loses
// a PE and others are free.
func TestDelayedReservationSurvivesAnOutage(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(4, binding))
		config.Overrun = engine.OverrunDelay
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("runs", 0, 0, 10, 4, 10))
		submit(t, e, 0, berth.Rigid("next", 0, 10, 20, 2, 10))
		apply(t, e, 10, wake())
		wantShape(t, e, "next", "confirmed cm5:2x[70,80)")
		apply(t, e, 11, engine.Finish("runs"))
		apply(t, e, 12, takenDown(cm5(), 0, 1, 0, 0))
		wantShape(t, e, "next", "confirmed cm5:2x[70,80)")
		settled(t, config, e)
	})
}

// A held reservation that is displaced is still held, and can be confirmed.
func TestDisplacedHoldIsStillHeld(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, held("a", 0, 10, 90, 2, 10, 60))
		apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 15))
		wantShape(t, e, "a", "held cm5:2x[15,25)")
		settled(t, config, e)
		apply(t, e, 2, engine.Confirm("a"))
		wantShape(t, e, "a", "confirmed cm5:2x[15,25)")
		settled(t, config, e)
	})
}

// Whatever the placement rule of the admission, a reservation whose PE the site
// refuses, or that loses the PE, keeps its start on other PEs.
func TestDisplacedReservationKeepsItsStart(t *testing.T) {
	for _, place := range policy.Placements {
		for name, event := range map[string]engine.Event{"avoid": avoiding("a", 4), "outage": takenDown(cm5(), 4, 5, 0, 0)} {
			for what, config := range map[string]engine.Config{"unmanaged": onePool(8, berth.Early), "managed": managed(onePool(8, berth.Early))} {
				config.Place = place.Name
				e := newEngine(t, config)
				submit(t, e, 0, berth.Rigid("x", 0, 0, 100, 4, 100))
				submit(t, e, 0, berth.Rigid("y", 0, 100, 1000, 8, 900))
				submit(t, e, 0, berth.Rigid("a", 0, 10, 900, 2, 10)) // on two of PEs 4 to 7
				before, _ := e.Reservation("a")
				if !before.Allotments[0].PEs.Contains(4) {
					t.Fatalf("%s: a begins as %s, without PE 4", place.Name, at(t, e, "a"))
				}
				apply(t, e, 1, engine.Cancel("y"))
				apply(t, e, 1, event)
				after, live := e.Reservation("a")
				if !live || after.State != berth.Confirmed || after.Start() != before.Start() || after.End() != before.End() || after.Allotments[0].PEs.Contains(4) {
					t.Errorf("%s, %s, %s: a is %s", place.Name, name, what, at(t, e, "a"))
				}
				settled(t, config, e)
			}
		}
	}
}

// Where the same start is not to be had, the earliest start in the window is the
// nearest, whatever the placement rule.
func TestDisplacedReservationStartsAsEarlyAsItCan(t *testing.T) {
	for _, place := range policy.Placements {
		byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
			config := manage(onePool(8, binding))
			config.Place = place.Name
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("y", 0, 20, 900, 8, 880))
			submit(t, e, 0, berth.Rigid("a", 0, 10, 900, 2, 10))
			apply(t, e, 1, engine.Cancel("y"))
			submit(t, e, 1, berth.Rigid("x", 1, 15, 100, 4, 85))
			apply(t, e, 2, takenDown(cm5(), 0, 8, 0, 15))
			if got := shape(e, "a"); got != "confirmed cm5:2x[15,25)" {
				t.Errorf("%s: a is %q", place.Name, got)
			}
			settled(t, config, e)
		})
	}
}

// A site where the same start is free is nearer than a later start at the same
// site, whatever the match of the admission.
func TestDisplacedReservationPrefersItsStartToItsSite(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		for _, match := range policy.Matches {
			config := manage(poolsOf(2, binding, "near", "far"))
			config.Match = match.Name
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("a", 0, 10, 100, 2, 10))
			was, _ := e.Reservation("a")
			resource := was.Allotments[0].Resource
			apply(t, e, 1, takenDown(resource, 0, 2, 0, 15))
			if r, live := e.Reservation("a"); !live || r.Start() != 10 || r.Allotments[0].Resource == resource {
				t.Errorf("%s: a was at %s and is %q, want it at the other site at 10", match.Name, resource.Site, shape(e, "a"))
			}
			settled(t, config, e)
		}
	})
}

// Data that arrive later move a reservation to the time at which they are there,
// whatever the placement rule.
func TestLateDataMoveAReservationNoFurtherThanNeeded(t *testing.T) {
	for _, place := range policy.Placements {
		config := distant(engine.StagingBefore, 0)
		config.Place = place.Name
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("y", 0, 122, 1000, 4, 878))
		submit(t, e, 0, heavy("a", 0, 1000, 2000))
		apply(t, e, 1, engine.Cancel("y"))
		submit(t, e, 1, berth.Rigid("x", 1, 113, 400, 2, 287))
		apply(t, e, 11, foreseen(11, 100, 1_000_000))
		if got := shape(e, "a"); got != "confirmed cm5:2x[113,213)" {
			t.Errorf("%s: a is %q", place.Name, got)
		}
		settled(t, config, e)
	}
}

// A site that refuses PEs which a reservation does not have takes nothing from
// it: it keeps its PEs and its start.
func TestAvoidedPEsOfOthersChangeNoPlace(t *testing.T) {
	config := onePool(8, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("x", 0, 10, 20, 4, 10))
	submit(t, e, 0, berth.Rigid("a", 0, 10, 100, 2, 10))
	before := at(t, e, "a")
	apply(t, e, 1, engine.Cancel("x"))
	apply(t, e, 1, avoiding("a", 7))
	if got := at(t, e, "a"); got != before {
		t.Errorf("a was %s and is %s", before, got)
	}
	settled(t, config, e)
}
