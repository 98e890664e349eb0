package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// moldable is a request of one part with several variants.
func moldable(id string, ready, deadline berth.Time, variants ...berth.Variant) berth.Request {
	return berth.Request{ID: id, Ready: ready, Deadline: deadline, Parts: []berth.Part{{Variants: variants}}}
}

// A displaced moldable reservation keeps the variant that it was promised as long
// as that fits in the window, although another variant would end earlier.
func TestDisplacedReservationKeepsItsVariant(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(8, binding))
		e := newEngine(t, config)
		submit(t, e, 0, moldable("m", 10, 100, berth.Variant{NPE: 6, Duration: 10}, berth.Variant{NPE: 1, Duration: 30}))
		wantShape(t, e, "m", "confirmed cm5:6x[10,20)")
		apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 35))
		wantShape(t, e, "m", "confirmed cm5:6x[35,45)")
		settled(t, config, e)
	})
}

// A PE that the site refuses changes the PEs of a moldable reservation, or its
// time, before its variant.
func TestAvoidKeepsTheVariant(t *testing.T) {
	config := onePool(6, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("x", 0, 10, 40, 1, 30))
	submit(t, e, 0, moldable("m", 10, 100, berth.Variant{NPE: 5, Duration: 10}, berth.Variant{NPE: 1, Duration: 30}))
	wantShape(t, e, "m", "confirmed cm5:5x[10,20)")
	apply(t, e, 1, avoiding("m", 5))
	wantShape(t, e, "m", "confirmed cm5:5x[40,50)")
	settled(t, config, e)
}

// Late data move a moldable reservation further rather than change its variant.
func TestLateDataKeepTheVariant(t *testing.T) {
	config := distant(engine.StagingBefore, 0)
	e := newEngine(t, config)
	m := moldable("m", 0, 1000, berth.Variant{NPE: 2, Duration: 100}, berth.Variant{NPE: 1, Duration: 150})
	m.StorageMB = 2000
	submit(t, e, 0, m)
	wantShape(t, e, "m", "confirmed cm5:2x[22,122)")
	submit(t, e, 1, berth.Rigid("x", 1, 122, 400, 3, 278))
	apply(t, e, 11, foreseen(11, 100, 1_000_000))
	wantShape(t, e, "m", "confirmed cm5:2x[400,500)")
	settled(t, config, e)
}

// Where the promised variant fits nowhere in the window, an unmanaged reservation
// gets another of its variants rather than none, unless it was extended.
func TestDisplacedReservationTakesAnotherVariantAtLast(t *testing.T) {
	for _, binding := range bindings() {
		for until, want := range map[berth.Time]string{0: "confirmed cm5:1x[10,40)", 25: "gone"} {
			config := onePool(8, binding)
			e := newEngine(t, config)
			submit(t, e, 0, moldable("m", 10, 100, berth.Variant{NPE: 6, Duration: 10}, berth.Variant{NPE: 1, Duration: 30}))
			if until > 0 {
				apply(t, e, 0, extended("m", until))
			}
			apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 95))
			if got := shape(e, "m"); got != want {
				t.Errorf("%s, extended until %d: m is %q, want %q", binding, until, got, want)
			}
			settled(t, config, e)
		}
	}
}

// The eager filter admits a request once. What it would refuse now is still
// placed anew when it is displaced.
func TestDisplacedReservationIsNotAdmittedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		event engine.Event
		want  string
	}{
		{"outage", takenDown(cm5(), 0, 1, 0, 30), "confirmed cm5:1x[30,40)"},
		{"avoid", avoiding("narrow", 0), "confirmed cm5:1x[90,100)"},
	} {
		for what, config := range map[string]engine.Config{"unmanaged": onePool(4, berth.Early), "managed": managed(onePool(4, berth.Early))} {
			config.Eager = &policy.Eager{K1: 500, K2: 200}
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("narrow", 0, 10, 100, 1, 10))
			submit(t, e, 0, berth.Rigid("wide", 0, 10, 100, 3, 80))
			apply(t, e, 1, c.event)
			if got := shape(e, "narrow"); got != c.want {
				t.Errorf("%s, %s: narrow is %q, want %q", c.name, what, got, c.want)
			}
			wantShape(t, e, "wide", "confirmed cm5:3x[10,90)")
			settled(t, config, e)
		}
	}
}

// Late data move a reservation without asking the eager filter again.
func TestLateDataAreNotAdmittedAgain(t *testing.T) {
	config := distant(engine.StagingBefore, 0)
	config.Eager = &policy.Eager{K1: 500, K2: 200}
	e := newEngine(t, config)
	narrow := heavy("narrow", 0, 500, 2000)
	narrow.Parts[0].Variants[0].NPE = 1
	submit(t, e, 0, narrow)
	submit(t, e, 0, berth.Rigid("wide", 0, 0, 400, 3, 400))
	apply(t, e, 11, foreseen(11, 100, 1_000_000))
	wantShape(t, e, "narrow", "confirmed cm5:1x[113,213)")
	settled(t, config, e)
}

// A displaced reservation counts once for its user's quota, and is not lost to it.
func TestDisplacedReservationKeepsItsQuota(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(4, binding))
		config.Limits = quotas(1, 80)
		e := newEngine(t, config)
		a := berth.Rigid("a", 0, 10, 100, 2, 10)
		a.User = "u"
		submit(t, e, 0, a)
		apply(t, e, 0, extended("a", 50))
		apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 15))
		wantShape(t, e, "a", "confirmed cm5:2x[15,55)")
		b := berth.Rigid("b", 2, 60, 100, 1, 1)
		b.User = "u"
		if got := refused(t, submit(t, e, 2, b)); got.Reason != berth.Quota {
			t.Errorf("a second reservation: %s, want %s", got.Reason, berth.Quota)
		}
		settled(t, config, e)
	})
}

// One PE of four fails for good. Only the reservation that needs all four is
// affected: those that start when enough PEs are free stay as they are.
func TestOutageLeavesDistantReservationsAlone(t *testing.T) {
	for what, want := range map[bool]string{false: "gone", true: "degraded cm5:3x[10,20) missing 1"} {
		config := onePool(4, berth.Late)
		config.Sites[0].Managed = what
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("tight", 0, 10, 20, 4, 10))
		submit(t, e, 0, berth.Rigid("blocker", 0, 20, 500, 4, 480))
		for i := range 3 {
			submit(t, e, 0, berth.Rigid(fmt.Sprint("far", i), 0, 20, 2000, 1, 10))
		}
		apply(t, e, 1, engine.Cancel("blocker"))
		apply(t, e, 2, takenDown(cm5(), 0, 1, 0, 0))
		wantShape(t, e, "tight", want)
		for i := range 3 {
			id := fmt.Sprint("far", i)
			wantShape(t, e, id, "confirmed cm5:1x[500,510)")
			if got := generation(t, e, id); got != 1 {
				t.Errorf("managed %t: %s has generation %d, want 1", what, id, got)
			}
		}
		settled(t, config, e)
	}
}

// A reservation at a managed site that an outage of a late pool degrades has one
// new generation and one more effect, whatever becomes of it.
func TestOutageResizesOnce(t *testing.T) {
	for deadline, want := range map[berth.Time]string{20: "degraded cm5:3x[10,20) missing 1", 90: "confirmed cm5:4x[40,50)"} {
		config := managed(onePool(4, berth.Late))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, deadline, 4, 10))
		apply(t, e, 1, takenDown(cm5(), 0, 1, 0, 40))
		wantShape(t, e, "a", want)
		if got := generation(t, e, "a"); got != 2 {
			t.Errorf("deadline %d: generation %d, want 2", deadline, got)
		}
		if got := effectsOn(e, "cm5", "a"); len(got) != 2 || got[1].Generation != 2 {
			t.Errorf("deadline %d: effects %+v, want one of each generation", deadline, got)
		}
		settled(t, config, e)
	}
}

// Two reservations of two PEs overlap in [15,20), when three PEs are left. Of
// those the one that starts last yields; a third, outside of the shortage, stays.
func TestOutageDisplacesWhereThereIsAShortage(t *testing.T) {
	for _, manage := range []bool{false, true} {
		config := onePool(4, berth.Late)
		config.Sites[0].Managed = manage
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("first", 0, 10, 90, 2, 10))
		submit(t, e, 0, berth.Rigid("second", 0, 15, 90, 2, 10))
		submit(t, e, 0, berth.Rigid("third", 0, 30, 90, 1, 10))
		apply(t, e, 1, takenDown(cm5(), 0, 1, 0, 0))
		wantShape(t, e, "first", "confirmed cm5:2x[10,20)")
		wantShape(t, e, "second", "confirmed cm5:2x[20,30)")
		wantShape(t, e, "third", "confirmed cm5:1x[30,40)")
		for id, want := range map[string]uint64{"first": 1, "second": 2, "third": 1} {
			if got := generation(t, e, id); got != want {
				t.Errorf("managed %t: %s has generation %d, want %d", manage, id, got, want)
			}
		}
		settled(t, config, e)
	}
}

// Three of four PEs fail. A reservation of three has to go, which leaves room
// for the reservation of one that starts later: that stays.
func TestOutageDisplacesNoMoreThanNeeded(t *testing.T) {
	for _, manage := range []bool{false, true} {
		config := onePool(4, berth.Late)
		config.Sites[0].Managed = manage
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("wide", 0, 10, 90, 3, 10))
		submit(t, e, 0, berth.Rigid("narrow", 0, 11, 90, 1, 9))
		apply(t, e, 1, takenDown(cm5(), 0, 3, 0, 30))
		wantShape(t, e, "wide", "confirmed cm5:3x[30,40)")
		wantShape(t, e, "narrow", "confirmed cm5:1x[11,20)")
		if got := generation(t, e, "narrow"); got != 1 {
			t.Errorf("managed %t: narrow has generation %d, want 1", manage, got)
		}
		settled(t, config, e)
	}
}

// What is left to a reservation at its own place is what nothing runs on: a job that yields
// to another one's place does not yield to what is left of this one.
func TestJobsDoNotYieldToWhatIsLeft(t *testing.T) {
	config := managed(onePool(5, berth.Late))
	config.Preempt = true
	e := newEngine(t, config)
	submit(t, e, 0, job("j", 0, 1, 100)) // on PE 0
	submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 2, 10))
	submit(t, e, 0, moldable("b", 10, 100, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 20}))
	apply(t, e, 1, takenDown(cm5(), 1, 5, 0, 0))
	wantShape(t, e, "a", "degraded cm5:0x[10,20) missing 2")
	wantShape(t, e, "b", "confirmed cm5:1x[10,30)")
	settled(t, config, e)
}

// What is left to a reservation whose PEs have no numbers is how many are free at its place: others
// that lose theirs too leave it that.
func TestAsManyAsAreFreeAreLeft(t *testing.T) {
	config := managed(onePool(5, berth.Late))
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 2, 10))
	submit(t, e, 0, moldable("b", 10, 100, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 20}))
	apply(t, e, 1, takenDown(cm5(), 1, 5, 0, 0))
	wantShape(t, e, "a", "degraded cm5:1x[10,20) missing 1")
	wantShape(t, e, "b", "confirmed cm5:1x[20,40)")
	settled(t, config, e)
}
