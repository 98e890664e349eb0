package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// PEs 0 and 1 of four go down at 5, until 30 or until somebody says so. What
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
			got := kinds(apply(t, e, 5, engine.Event{Kind: engine.Down, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 2}), Until: until}))
			want := "started:low started:high advanced failed:low moved:moves went_down moved:moves"
			if until == 0 {
				want = "started:low started:high advanced failed:low moved:gone moved:lost moved:moves went_down lost:moves lost:lost lost:gone"
			}
			if got != want {
				t.Fatalf("%s: %s, want %s", binding, got, want)
			}
			_, _, err := e.Apply(6, engine.Event{Kind: engine.Down, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 1})})
			if err != nil {
				t.Fatal(err)
			}
			if until == 0 {
				apply(t, e, 30, engine.Event{Kind: engine.Up, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4})})
			}
			apply(t, e, 100, engine.Event{Kind: engine.Wake})
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
		{engine.Event{Kind: engine.Down, Resource: pool}, berth.Invalid, "pes"},
		{engine.Event{Kind: engine.Up, Resource: pool, PEs: berth.PEsOf(4)}, berth.Invalid, "pes"},
		{engine.Event{Kind: engine.Down, Resource: berth.PoolID("cm6", "pool"), PEs: berth.PEsOf(1)}, berth.NotFound, "resource"},
		{engine.Event{Kind: engine.Down, Resource: pool, PEs: berth.PEsOf(1), Until: -3}, berth.Invalid, "until"},
	} {
		_, _, err := e.Apply(0, c.event)
		wantCode(t, err, c.code, c.field)
	}
}
