package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// wantTold requires that the last effect about a reservation at each of the sites
// is of its present generation, and that this is later than an earlier one.
func wantTold(t *testing.T, e *engine.Engine, id string, before uint64, sites ...string) {
	t.Helper()
	now := generation(t, e, id)
	if now <= before {
		t.Errorf("%s has generation %d, want one after %d", id, now, before)
	}
	for _, site := range sites {
		effects := effectsOn(e, site, id)
		if len(effects) == 0 || effects[len(effects)-1].Generation != now {
			t.Errorf("site %s has effects %+v about %s, want one of generation %d", site, effects, id, now)
		}
	}
}

// wantLeft requires that a site has an effect about a reservation after the first
// n effects.
func wantLeft(t *testing.T, e *engine.Engine, site, id string, n int) {
	t.Helper()
	if got := len(effectsOn(e, site, id)); got <= n {
		t.Errorf("site %s, which %s has left, has %d effects, want more than %d", site, id, got, n)
	}
}

// Whatever gives a reservation another place, size or end, its managed site gets
// an effect of the new generation.
func TestEffectsFollowEveryChange(t *testing.T) {
	later, wider := berth.Rigid("a", 0, 20, 200, 2, 10), berth.Rigid("a", 0, 10, 200, 3, 10)
	for _, c := range []struct {
		name  string
		event engine.Event
	}{
		{"outage", takenDown(cm5(), 0, 4, 0, 15)},
		{"outage of one PE", takenDown(cm5(), 0, 1, 0, 0)},
		{"outage that degrades", takenDown(cm5(), 0, 3, 0, 0)},
		{"announced outage", takenDown(cm5(), 0, 4, 5, 15)},
		{"avoid", avoiding("a", 0)},
		{"extension", extended("a", 40)},
		{"another time", engine.Modify(&later)},
		{"another size", engine.Modify(&wider)},
	} {
		config := managed(onePool(4, berth.Early))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 200, 2, 10))
		wantTold(t, e, "a", 0, "cm5")
		t.Run(c.name, func(t *testing.T) {
			apply(t, e, 1, c.event)
			wantTold(t, e, "a", 1, "cm5")
			settled(t, config, e)
		})
	}
}

// A site hears of every delay of a promise.
func TestEffectsFollowADelay(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(2, binding))
		config.Overrun = engine.OverrunDelay
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("runs", 0, 0, 10, 2, 10))
		submit(t, e, 0, berth.Rigid("next", 0, 10, 20, 2, 10))
		apply(t, e, 1, wake())
		apply(t, e, 10, wake())
		wantShape(t, e, "next", "confirmed cm5:2x[70,80)")
		wantTold(t, e, "next", 1, "cm5")
		settled(t, config, e)
		apply(t, e, 70, wake())
		wantTold(t, e, "next", 2, "cm5")
	}
}

// A site hears of what goes on beyond its limit.
func TestEffectsFollowAnOverrun(t *testing.T) {
	for _, overrun := range []engine.Overrun{engine.OverrunRunOn, engine.OverrunDelay} {
		config := managed(onePool(2, berth.Early))
		config.Overrun = overrun
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("runs", 0, 0, 10, 2, 10))
		apply(t, e, 10, wake())
		wantShape(t, e, "runs", "active cm5:2x[0,70)")
		wantTold(t, e, "runs", 1, "cm5")
		settled(t, config, e)
	}
}

// Late data move a promise; its site hears of it.
func TestEffectsFollowLateData(t *testing.T) {
	config := managed(distant(engine.StagingBefore, 0))
	e := newEngine(t, config)
	submit(t, e, 0, heavy("a", 0, 500, 2000))
	apply(t, e, 11, foreseen(11, 100, 1_000_000))
	wantShape(t, e, "a", "confirmed cm5:2x[113,213)")
	wantTold(t, e, "a", 1, "cm5")
	settled(t, config, e)
}

// A degraded reservation that gets its PEs back, or another place, is told to its
// site.
func TestEffectsFollowARepair(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 4, 10))
		apply(t, e, 1, takenDown(cm5(), 0, 2, 0, 0))
		degraded := generation(t, e, "a")
		apply(t, e, 2, broughtUp(cm5(), 0, 2))
		wantShape(t, e, "a", "confirmed cm5:4x[10,20)")
		wantTold(t, e, "a", degraded, "cm5")
		settled(t, config, e)
	}
}

// twoParts is a request for all of two sites of two PEs.
func twoParts(ready, deadline berth.Time) berth.Request {
	r := parts("co", deadline, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 2, Duration: 10})
	r.Ready = ready
	return r
}

// An outage at one site moves co-allocated parts at both: both sites hear of it.
func TestEffectsFollowMovedParts(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(poolsOf(2, binding, "a", "b"))
		e := newEngine(t, config)
		submit(t, e, 0, twoParts(10, 100))
		apply(t, e, 1, takenDown(berth.PoolID("a", "pool"), 0, 1, 0, 30))
		wantShape(t, e, "co", "confirmed a:2x[30,40) b:2x[30,40)")
		wantTold(t, e, "co", 1, "a", "b")
		settled(t, config, e)
	}
}

// Parts that an outage sends to another site: the site that they leave hears of
// it as well as the site that they come to.
func TestEffectsReachTheSiteThatPartsLeave(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(poolsOf(2, binding, "a", "b", "c"))
		e := newEngine(t, config)
		submit(t, e, 0, twoParts(10, 100))
		wantShape(t, e, "co", "confirmed a:2x[10,20) b:2x[10,20)")
		n := len(effectsOn(e, "a", "co"))
		apply(t, e, 1, takenDown(berth.PoolID("a", "pool"), 0, 2, 0, 0))
		if r, live := e.Reservation("co"); !live || r.Start() != 10 || r.State != berth.Confirmed {
			t.Errorf("%s: co is %q, want it at 10 at b and c", binding, shape(e, "co"))
		}
		wantTold(t, e, "co", 1, "b", "c")
		wantLeft(t, e, "a", "co", n)
		settled(t, config, e)
	}
}

// Parts that find no place are lost, and both sites hear of it.
func TestEffectsFollowLostParts(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(poolsOf(2, binding, "a", "b"))
		e := newEngine(t, config)
		submit(t, e, 0, twoParts(10, 20))
		apply(t, e, 1, takenDown(berth.PoolID("a", "pool"), 0, 1, 0, 30))
		wantShape(t, e, "co", "gone")
		wantLeft(t, e, "a", "co", 1)
		wantLeft(t, e, "b", "co", 1)
		settled(t, config, e)
	}
}

// A modification that moves a reservation to another site is told to both, and one
// that adds or removes a part at a site is told to that site.
func TestEffectsReachTheSiteThatAModificationLeaves(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(poolsOf(2, binding, "a", "b"))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("co", 0, 10, 100, 2, 10))
		elsewhere := berth.Rigid("co", 0, 10, 100, 2, 10)
		elsewhere.Site = "b"
		n := len(effectsOn(e, "a", "co"))
		apply(t, e, 1, engine.Modify(&elsewhere))
		wantShape(t, e, "co", "confirmed b:2x[10,20)")
		wantTold(t, e, "co", 1, "b")
		wantLeft(t, e, "a", "co", n)

		both := twoParts(10, 100)
		apply(t, e, 2, engine.Modify(&both))
		wantTold(t, e, "co", 2, "a", "b")
		n = len(effectsOn(e, "a", "co"))
		apply(t, e, 3, engine.Modify(&elsewhere))
		wantTold(t, e, "co", 3, "b")
		wantLeft(t, e, "a", "co", n)
		settled(t, config, e)
	}
}

// A site that is not managed gets no effects, also when a reservation leaves a
// managed one for it.
func TestUnmanagedSitesGetNoEffects(t *testing.T) {
	config := poolsOf(2, berth.Early, "a", "b")
	config.Sites[0].Managed = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("r", 0, 10, 100, 2, 10))
	elsewhere := berth.Rigid("r", 0, 10, 100, 2, 10)
	elsewhere.Site = "b"
	n := len(effectsOn(e, "a", "r"))
	apply(t, e, 1, engine.Modify(&elsewhere))
	wantLeft(t, e, "a", "r", n)
	if got := effectsOn(e, "b", "r"); len(got) != 0 {
		t.Errorf("effects at b: %+v", got)
	}
	settled(t, config, e)
}

// Each launch of a job that was preempted has a generation of its own, and the
// site hears of every launch and every stop.
func TestEveryLaunchOfAJobHasItsGeneration(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(2, binding))
		config.Preempt = true
		e := newEngine(t, config)
		submit(t, e, 0, berth.Job("j", 0, 2, 20))
		apply(t, e, 1, wake())
		var launches []uint64
		for _, c := range []struct {
			id       string
			from, to berth.Time
		}{{"r", 5, 10}, {"s", 12, 17}} {
			launches = append(launches, generation(t, e, "j"))
			effects := effectsOn(e, "cm5", "j")
			n := len(effects)
			if n == 0 || effects[n-1].Generation != launches[len(launches)-1] {
				t.Errorf("%s: effects %+v after launch %d, want the last of its generation", binding, effects, launches)
			}
			submit(t, e, c.from-1, berth.Rigid(c.id, c.from-1, c.from, c.to, 2, c.to.Sub(c.from)))
			apply(t, e, c.from, wake())
			wantLeft(t, e, "cm5", "j", n)
			settled(t, config, e)
			apply(t, e, c.to, wake())
			settled(t, config, e)
		}
		launches = append(launches, generation(t, e, "j"))
		if launches[1] <= launches[0] || launches[2] <= launches[1] {
			t.Errorf("%s: the launches have generations %d, want them to grow", binding, launches)
		}
	}
}

// A managed site is not told about a confirmation or a check-in, which change
// nothing there.
func TestConfirmationHasNoEffect(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Sites[0].Managed = true
	e := newEngine(t, config)
	submit(t, e, 0, held("a", 0, 10, 20, 2, 10, 5))
	if got := kinds(apply(t, e, 1, engine.Confirm("a"))); got != "advanced confirmed:a" {
		t.Errorf("changes %q", got)
	}
}
