package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// PEs 0 and 1 of four go down at 5, until 30 or until they are said to be back. What
// runs there fails, a promise that has room later moves, one that has none is
// lost, and the queue waits.
func TestOutage(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		for _, until := range []berth.Time{30, 0} {
			config := onePool(4, binding)
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("low", 0, 0, 20, 2, 20))
			submit(t, e, 0, berth.Rigid("high", 0, 0, 20, 2, 20))
			submit(t, e, 0, berth.Rigid("moves", 0, 20, 90, 3, 10))
			submit(t, e, 0, berth.Rigid("lost", 0, 30, 40, 4, 10))
			submit(t, e, 0, job("waits", 0, 4, 10))
			if until == 0 {
				submit(t, e, 0, berth.Rigid("gone", 0, 60, 70, 3, 10))
			}
			got := kinds(apply(t, e, 5, engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 2}), Until: until}))
			want := "started:low started:high advanced failed:low vacated:moves went_down moved:moves"
			if until == 0 {
				want = "started:low started:high advanced failed:low vacated:moves vacated:lost vacated:gone went_down lost:moves lost:lost lost:gone"
			}
			if got != want {
				t.Fatalf("%s: %s, want %s", binding, got, want)
			}
			_, _, err := e.Apply(6, engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 1})})
			if err != nil {
				t.Fatal(err)
			}
			if until == 0 {
				apply(t, e, 30, engine.Event{Kind: engine.EventUp, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4})})
			}
			apply(t, e, 100, engine.Wake())
			if at, due := e.Next(); due {
				t.Errorf("%s: something is due at %d", binding, at)
			}
		}
	}
	e := newEngine(t, onePool(4, berth.Late))
	for _, c := range []struct {
		event engine.Event
		code  berth.Code
		field string
	}{
		{engine.Event{Kind: engine.EventDown, Resource: pool}, berth.Invalid, "pes"},
		{engine.Event{Kind: engine.EventUp, Resource: pool, PEs: berth.PEsOf(4)}, berth.Invalid, "pes"},
		{engine.Event{Kind: engine.EventDown, Resource: berth.PoolID("cm6", "pool"), PEs: berth.PEsOf(1)}, berth.NotFound, "resource"},
		{engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.PEsOf(1), Until: -3}, berth.Invalid, "until"},
	} {
		_, _, err := e.Apply(0, c.event)
		wantCode(t, err, c.code, c.field)
	}
}

// PE 0 of two goes down from 50 to 80, told at 5: what runs until 50 goes on, what
// is promised across moves, nothing is placed across. What was told already changes
// nothing. What begins or ends later is one more outage, and Up calls off all that
// are announced.
func TestAnnouncedOutage(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(string(binding), func(t *testing.T) { announcedOutage(t, binding) })
	}
}

func announcedOutage(t *testing.T, binding berth.Binding) {
	pool := berth.PoolID("cm5", "pool")
	e := newEngine(t, onePool(2, binding))
	down := func(from, until berth.Time) engine.Event {
		return engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.PEsOf(0), From: from, Until: until}
	}
	submit(t, e, 0, berth.Rigid("runs", 0, 0, 50, 1, 50))
	submit(t, e, 0, berth.Rigid("across", 0, 60, 70, 2, 10))
	submit(t, e, 0, berth.Rigid("moves", 0, 60, 200, 2, 10))
	apply(t, e, 0, engine.Wake())
	if got, want := kinds(apply(t, e, 5, down(50, 80))), "advanced vacated:across vacated:moves went_down moved:moves lost:across"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	submit(t, e, 5, berth.Rigid("later", 5, 40, 200, 2, 20))
	for id, start := range map[string]berth.Time{"moves": 80, "later": 90} {
		if s, _ := e.Status(id); s.Reservation == nil || s.Reservation.Start() != start {
			t.Errorf("%s is %+v, want it to start at %d", id, s.Reservation, start)
		}
	}
	for _, c := range []struct {
		from, until berth.Time
		want        string
	}{{50, 80, ""}, {50, 70, ""}, {60, 70, "went_down"}, {60, 85, "vacated:moves went_down moved:moves"}, {200, 300, "went_down"}, {120, 200, "went_down"}} {
		if got := kinds(apply(t, e, 5, down(c.from, c.until))); got != c.want {
			t.Errorf("down from %d to %d: %q, want %q", c.from, c.until, got, c.want)
		}
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	if got, want := kinds(apply(t, e, 6, engine.Event{Kind: engine.EventUp, Resource: pool, PEs: berth.PEsOf(0)})), "advanced came_up came_up came_up came_up came_up"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	_, _, err := e.Apply(6, down(80, 80))
	wantCode(t, err, berth.Invalid, "from")
}

// Outages can be looked at until one is found.
func TestOutagesCanBeLeftEarly(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	apply(t, e, 0, takenDown(cm5(), 0, 1, 0, 10))
	apply(t, e, 0, takenDown(cm5(), 2, 3, 0, 20))
	n := 0
	for range e.Outages() {
		n++
		break
	}
	if all := len(slices.Collect(e.Outages())); n != 1 || all != 2 {
		t.Errorf("%d of %d outages were looked at, want 1 of 2", n, all)
	}
}

// Work whose time is over when an outage begins has ended, whatever the order of the
// instant.
func TestWorkThatIsOverDoesNotFailWithItsPEs(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		for _, managed := range []bool{false, true} {
			config := onePool(2, binding)
			config.Instant = []string{"capacity", "end", "expiry", "arrival", "period", "start"}
			config.Sites[0].Managed = managed
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("a", 0, 0, 10, 2, 10))
			submit(t, e, 0, job("j", 0, 2, 10))
			apply(t, e, 5, engine.Wake())
			changes := apply(t, e, 10, engine.Down(berth.Outage{Resource: pool, PEs: berth.PEsOf(0)}))
			changes = append(changes, apply(t, e, 10, engine.Wake())...)
			if got := kinds(changes); !strings.Contains(got, "went_down") || !strings.Contains(got, "ended:a") || strings.Contains(got, "failed") || strings.Contains(got, "resized") {
				t.Errorf("%s, managed: %t: %s", binding, managed, got)
			}
		}
	}
}

// A promise of a pool of late binding stays where it is as long as what gives way to it,
// or fails with the outage, leaves it enough PEs.
func TestOutageMovesNoPromiseThatStaysWhole(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	for _, c := range []struct {
		name    string
		preempt bool
		pes     berth.PESet
		want    string
	}{
		{"a job yields where the promise begins", true, berth.PEsOf(3), "started:runs advanced shortened:runs went_down"},
		{"a job fails, and the rest of its PEs is free", false, berth.PEsOf(1), "started:runs advanced failed:runs went_down"},
		{"no job yields", false, berth.PEsOf(3), "started:runs advanced vacated:promised went_down moved:promised"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := onePool(4, berth.Late)
			config.Preempt = c.preempt
			e := newEngine(t, config)
			submit(t, e, 0, job("runs", 0, 2, 60))
			submit(t, e, 0, berth.Rigid("promised", 0, 30, 200, 2, 10))
			if got := kinds(apply(t, e, 5, engine.Event{Kind: engine.EventDown, Resource: pool, PEs: c.pes})); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			apply(t, e, 300, engine.Wake())
		})
	}
}

// In a pool of late binding work gets PEs that stay in use until it is over, where there are any; one whose PEs go out of use gets others
// then, if it outlives that.
func TestWorkKeepsOffAnnouncedOutages(t *testing.T) {
	config := onePool(2, berth.Late)
	config.Sites[0].Managed = true
	e := newEngine(t, config)
	pool := berth.PoolID("cm5", "pool")
	apply(t, e, 0, engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.PEsOf(0), From: 50, Until: 80})
	for _, r := range []berth.Request{berth.Rigid("across", 0, 10, 60, 1, 50), berth.Rigid("before", 0, 20, 50, 1, 30), berth.Rigid("beside", 0, 55, 70, 1, 10), berth.Rigid("wide", 0, 45, 100, 2, 20)} {
		submit(t, e, 0, r)
	}
	apply(t, e, 45, engine.Wake())
	for id, want := range map[string]berth.PESet{"across": berth.PEsOf(1), "before": berth.PEsOf(0), "beside": {}, "wide": {}} {
		s, _ := e.Status(id)
		if s.Reservation == nil || !s.Reservation.Allotments[0].PEs.Equal(want) {
			t.Errorf("%s is %+v, want it on %v", id, s.Reservation, want)
		}
	}
	for id, start := range map[string]berth.Time{"beside": 60, "wide": 80} {
		if s, _ := e.Status(id); s.Reservation != nil && s.Reservation.Start() != start {
			t.Errorf("%s starts at %d, want %d", id, s.Reservation.Start(), start)
		}
	}
	apply(t, e, 90, engine.Wake())
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
