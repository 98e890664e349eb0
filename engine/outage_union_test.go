package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// outageNews is an outage of PE 0 of onePool, and when the engine hears of it.
type outageNews struct{ now, from, until berth.Time }

// startOf submits a request for one PE for a time and returns when it starts; -1
// if it is refused.
func startOf(t *testing.T, e *engine.Engine, now, deadline berth.Time, d berth.Duration) berth.Time {
	t.Helper()
	id := fmt.Sprint("probe", now, "-", deadline)
	submit(t, e, now, berth.Rigid(id, now, now, deadline, 1, d))
	r, live := e.Reservation(id)
	if !live {
		return -1
	}
	apply(t, e, now, engine.Cancel(id))
	return r.Start()
}

// A PE is out of use while any of its outages lasts: those that overlap, lie one
// in another, or were announced before count alike.
func TestOutagesOfAPEAreAUnion(t *testing.T) {
	for _, c := range []struct {
		name   string
		news   []outageNews
		length berth.Duration // of a request at 6
		start  berth.Time     // -1 is never
	}{
		{"a longer one at once", []outageNews{{0, 0, 10}, {5, 0, 30}}, 5, 30},
		{"a shorter one at once", []outageNews{{0, 0, 30}, {5, 0, 10}}, 5, 30},
		{"the same again", []outageNews{{0, 0, 30}, {5, 0, 30}}, 5, 30},
		{"an unknown end after a known one", []outageNews{{0, 0, 10}, {5, 0, 0}}, 5, -1},
		{"a known end after an unknown one", []outageNews{{0, 0, 0}, {5, 0, 10}}, 5, -1},
		{"dead before an announced one, for good", []outageNews{{0, 100, 200}, {5, 0, 0}}, 5, -1},
		{"dead until it is over in part", []outageNews{{0, 100, 200}, {5, 0, 150}}, 5, 200},
		{"dead until before it", []outageNews{{0, 100, 200}, {5, 0, 50}}, 5, 50},
		{"dead until before it, no room between", []outageNews{{0, 100, 200}, {5, 0, 50}}, 51, 200},
		{"dead until after it", []outageNews{{0, 100, 200}, {5, 0, 300}}, 5, 300},
		{"two announced that overlap", []outageNews{{0, 50, 80}, {5, 60, 100}}, 45, 100},
		{"one announced within another", []outageNews{{0, 50, 100}, {5, 60, 70}}, 45, 100},
		{"one announced around another", []outageNews{{0, 60, 70}, {5, 50, 100}}, 45, 100},
		{"announced within one that lasts", []outageNews{{0, 0, 50}, {5, 20, 80}}, 5, 80},
		{"announced after one that lasts for good", []outageNews{{0, 0, 0}, {5, 20, 80}}, 5, -1},
	} {
		for _, binding := range bindings() {
			config := onePool(1, binding)
			e := newEngine(t, config)
			announced := false
			for _, n := range c.news {
				announced = announced || n.from > n.now
			}
			if announced && binding == berth.Late {
				continue // a pool of late binding has no PE numbers to announce
			}
			for _, n := range c.news {
				apply(t, e, n.now, takenDown(cm5(), 0, 1, n.from, n.until))
				settled(t, config, e)
			}
			if got := startOf(t, e, 6, 1000, c.length); got != c.start {
				t.Errorf("%s, %s: a request starts at %d, want %d", c.name, binding, got, c.start)
			}
			settled(t, config, e)
		}
	}
}

// The PE that a promise was made on dies before the maintenance that was announced
// for it: the promise moves to another PE.
func TestDeadPEIsOutBeforeItsMaintenance(t *testing.T) {
	config := onePool(2, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 10, 30, 1, 10))
	apply(t, e, 1, takenDown(cm5(), 0, 1, 100, 200))
	apply(t, e, 5, takenDown(cm5(), 0, 1, 0, 0))
	if got := at(t, e, "a"); got != "confirmed 1x[10,20) 1" {
		t.Errorf("a is %s", got)
	}
	settled(t, config, e)
	apply(t, e, 250, wake()) // the maintenance is over, the PE is still dead
	if got := e.Loads()[0].Free; got != 1 {
		t.Errorf("%d PEs are free after the maintenance, want 1", got)
	}
	settled(t, config, e)
}

// PEs 0-1 are out until 10, PEs 1-2 until 20, all of it told at once: PE 1 comes
// back with the later outage.
func TestPEsComeBackWithTheirLastOutage(t *testing.T) {
	for _, binding := range bindings() {
		for _, reversed := range []bool{false, true} {
			config := onePool(4, binding)
			e := newEngine(t, config)
			events := []engine.Event{takenDown(cm5(), 0, 2, 0, 10), takenDown(cm5(), 1, 3, 0, 20)}
			if reversed {
				events[0], events[1] = events[1], events[0]
			}
			for _, event := range events {
				apply(t, e, 1, event)
			}
			for _, c := range []struct {
				now  berth.Time
				free berth.Count
			}{{1, 1}, {9, 1}, {10, 2}, {19, 2}, {20, 4}} {
				apply(t, e, c.now, wake())
				if got := e.Loads()[0].Free; got != c.free {
					t.Errorf("%s, reversed %t: %d free at %d, want %d", binding, reversed, got, c.now, c.free)
				}
				settled(t, config, e)
			}
			submit(t, e, 20, berth.Rigid("all", 20, 20, 30, 4, 10))
			apply(t, e, 21, wake())
			wantShape(t, e, "all", "active cm5:4x[20,30)")
		}
	}
}

// Dead during the maintenance, with no known end, it is still dead after it.
func TestDeathDuringMaintenanceOutlastsIt(t *testing.T) {
	config := onePool(1, berth.Early)
	e := newEngine(t, config)
	apply(t, e, 0, takenDown(cm5(), 0, 1, 100, 200))
	apply(t, e, 150, takenDown(cm5(), 0, 1, 0, 0))
	apply(t, e, 201, wake())
	settled(t, config, e)
	if got := startOf(t, e, 202, 1000, 10); got != -1 {
		t.Errorf("a request starts at %d on a dead PE", got)
	}
	apply(t, e, 203, broughtUp(cm5(), 0, 1))
	if got := startOf(t, e, 204, 1000, 10); got != 204 {
		t.Errorf("a request starts at %d, want 204", got)
	}
	settled(t, config, e)
}

// Up ends every outage in force of the PEs that it names, and of no other PE.
func TestUpEndsEveryOutageInForce(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(3, binding)
		e := newEngine(t, config)
		apply(t, e, 0, takenDown(cm5(), 0, 2, 0, 100))
		apply(t, e, 1, takenDown(cm5(), 0, 1, 0, 0))
		apply(t, e, 2, takenDown(cm5(), 0, 1, 0, 50))
		apply(t, e, 3, broughtUp(cm5(), 0, 1))
		if got := e.Loads()[0].Free; got != 2 {
			t.Errorf("%s: %d PEs are free, want 2: PE 0 is back, PE 1 is not", binding, got)
		}
		settled(t, config, e)
		apply(t, e, 60, wake())
		if got := e.Loads()[0].Free; got != 2 {
			t.Errorf("%s: %d PEs are free at 60, want 2", binding, got)
		}
		apply(t, e, 100, wake())
		if got := e.Loads()[0].Free; got != 3 {
			t.Errorf("%s: %d PEs are free at 100, want 3", binding, got)
		}
		settled(t, config, e)
	}
}

// Up of PEs that are out of use now leaves their announced outage; without an
// outage in force it calls the announced one off.
func TestUpCallsOffAnAnnouncedOutageOnlyByItself(t *testing.T) {
	config := onePool(1, berth.Early)
	e := newEngine(t, config)
	apply(t, e, 0, takenDown(cm5(), 0, 1, 100, 200))
	apply(t, e, 5, takenDown(cm5(), 0, 1, 0, 0))
	apply(t, e, 6, broughtUp(cm5(), 0, 1))
	settled(t, config, e)
	if got := startOf(t, e, 6, 1000, 10); got != 6 {
		t.Errorf("after the repair a request starts at %d, want 6", got)
	}
	if got := startOf(t, e, 6, 1001, 95); got != 200 {
		t.Errorf("across the maintenance a request starts at %d, want 200", got)
	}
	apply(t, e, 7, broughtUp(cm5(), 0, 1))
	if got := startOf(t, e, 7, 1001, 95); got != 7 {
		t.Errorf("without the maintenance a request starts at %d, want 7", got)
	}
	settled(t, config, e)
}

// Work on a PE for which an outage is announced goes on until the outage begins.
// Then it fails, or at a managed site gets another PE.
func TestWorkGoesOnUntilTheOutageBegins(t *testing.T) {
	for what, then := range map[bool]string{false: "gone", true: "active 1x[0,100) 1"} {
		config := onePool(2, berth.Early)
		config.Sites[0].Managed = what
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("runs", 0, 0, 100, 1, 100))
		apply(t, e, 1, wake())
		apply(t, e, 5, takenDown(cm5(), 0, 1, 50, 80))
		for _, now := range []berth.Time{5, 49} {
			apply(t, e, now, wake())
			if got := at(t, e, "runs"); got != "active 1x[0,100) 0" {
				t.Errorf("managed %t: at %d it is %s", what, now, got)
			}
			settled(t, config, e)
		}
		if due, ok := e.Next(); !ok || due > 50 {
			t.Errorf("managed %t: due at %d %t, want 50", what, due, ok)
		}
		apply(t, e, 50, wake())
		if got := at(t, e, "runs"); got != then {
			t.Errorf("managed %t: at 50 it is %s, want %s", what, got, then)
		}
		settled(t, config, e)
	}
}

// At a managed site work that loses its PE when the outage begins lacks it until
// the outage is over.
func TestManagedWorkIsRepairedAfterTheAnnouncedOutage(t *testing.T) {
	config := managed(onePool(2, berth.Early))
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("runs", 0, 0, 100, 2, 100))
	apply(t, e, 1, wake())
	apply(t, e, 5, takenDown(cm5(), 0, 1, 50, 80))
	for _, c := range []struct {
		now  berth.Time
		want string
	}{{49, "active cm5:2x[0,100)"}, {50, "active cm5:1x[0,100) missing 1"}, {79, "active cm5:1x[0,100) missing 1"}, {80, "active cm5:2x[0,100)"}} {
		apply(t, e, c.now, wake())
		if got := shape(e, "runs"); got != c.want {
			t.Errorf("at %d it is %q, want %q", c.now, got, c.want)
		}
		settled(t, config, e)
	}
}

// Co-allocated work and ordinary jobs go on until the outage begins, and fail then
// unless their site is managed.
func TestPartsAndJobsGoOnUntilTheOutageBegins(t *testing.T) {
	co := parts("runs", 100, berth.Variant{NPE: 1, Duration: 100}, berth.Variant{NPE: 1, Duration: 100})
	for name, r := range map[string]berth.Request{"parts": co, "job": berth.Job("runs", 0, 2, 100)} {
		for what, config := range map[string]engine.Config{"unmanaged": onePool(3, berth.Early), "managed": managed(onePool(3, berth.Early))} {
			e := newEngine(t, config)
			submit(t, e, 0, r)
			apply(t, e, 1, wake())
			apply(t, e, 5, takenDown(cm5(), 0, 1, 50, 80))
			apply(t, e, 49, wake())
			if s, _ := e.Status("runs"); s.Standing != engine.StandingRunning {
				t.Errorf("%s, %s: before the outage it is %q", name, what, s.Standing)
			}
			settled(t, config, e)
			apply(t, e, 50, wake())
			if id, taken := e.Holder(cm5(), 0, 50); taken {
				t.Errorf("%s, %s: %s has a PE that is out of use", name, what, id)
			}
			if s, _ := e.Status("runs"); what == "unmanaged" && s.Standing == engine.StandingRunning {
				t.Errorf("%s, %s: it runs after it lost a PE", name, what)
			}
			settled(t, config, e)
		}
	}
}

// An announced outage does nothing to work that finishes before it begins, or if
// it is called off.
func TestAnnouncedOutageSparesWorkThatIsOver(t *testing.T) {
	for name, event := range map[string]engine.Event{"finished": {Kind: engine.EventFinish, ID: "runs"}, "called off": broughtUp(cm5(), 0, 1)} {
		config := onePool(1, berth.Early)
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("runs", 0, 0, 100, 1, 100))
		apply(t, e, 1, wake())
		apply(t, e, 5, takenDown(cm5(), 0, 1, 50, 80))
		apply(t, e, 20, event)
		want := "gone"
		if name == "called off" {
			want = "active cm5:1x[0,100)"
		}
		apply(t, e, 60, wake())
		if got := shape(e, "runs"); got != want {
			t.Errorf("%s: at 60 it is %q, want %q", name, got, want)
		}
		settled(t, config, e)
	}
}

// A promise that has not started is placed anew when the outage is announced.
func TestAnnouncedOutageMovesPromisesAtOnce(t *testing.T) {
	config := onePool(2, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("aside", 0, 60, 200, 1, 10))
	submit(t, e, 0, berth.Rigid("later", 0, 45, 200, 2, 10))
	apply(t, e, 5, takenDown(cm5(), 0, 1, 50, 80))
	if got := at(t, e, "aside"); got != "confirmed 1x[60,70) 1" {
		t.Errorf("aside is %s", got)
	}
	wantShape(t, e, "later", "confirmed cm5:2x[80,90)")
	settled(t, config, e)
}
