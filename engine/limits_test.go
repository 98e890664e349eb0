package engine_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// A reservation cannot be extended beyond the longest duration of its partition,
// neither before its start nor while it runs.
func TestExtensionKeepsThePartitionLimit(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(4, binding))
		config.Sites[0].Partitions = []berth.Partition{{Name: "short", Pool: "pool", MaxDuration: 30}}
		e := newEngine(t, config)
		r := berth.Rigid("a", 0, 10, 1000, 2, 10)
		r.Partition = "short"
		submit(t, e, 0, r)
		for _, c := range []struct {
			now, until, want berth.Time
		}{{0, 1000, 20}, {0, 41, 20}, {0, 25, 25}, {12, 41, 25}, {12, 40, 40}, {13, 41, 40}} {
			changes := apply(t, e, c.now, extended("a", c.until))
			live, _ := e.Reservation("a")
			if live.End() != c.want {
				t.Errorf("at %d until %d: it ends at %d, want %d", c.now, c.until, live.End(), c.want)
			}
			refused := slices.ContainsFunc(changes, func(c engine.Change) bool { return c.Refusal != nil })
			if refused != (c.want != c.until) {
				t.Errorf("at %d until %d: the answer is %s", c.now, c.until, kinds(changes))
			}
			settled(t, config, e)
		}
	})
}

// The answer to an extension that finds no licences or no storage names what is
// missing.
func TestExtensionNamesTheStockThatIsMissing(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Sites[0].StorageMB, config.Sites[0].Software = 10, []berth.Software{{Name: "solver", Licences: 3}}
	licences, storage := berth.LicenceID("cm5", &config.Sites[0].Software[0]), berth.StorageID("cm5")
	for _, c := range []struct {
		name     string
		licences berth.Count // of the reservation that follows
		storage  int64
		want     berth.ResourceID
	}{{"licences", 2, 0, licences}, {"storage", 0, 6, storage}, {"storage beside licences", 1, 6, storage}} {
		for _, active := range []bool{false, true} {
			e := newEngine(t, config)
			submit(t, e, 0, needy("a", 0, 10, 100, 1, 10, 2, 6))
			submit(t, e, 0, needy("b", 0, 20, 30, 1, 10, c.licences, c.storage))
			if active {
				apply(t, e, 11, wake())
			}
			changes := apply(t, e, e.Now(), extended("a", 25))
			last := changes[len(changes)-1]
			if last.Refusal == nil || last.Refusal.Resource != c.want {
				t.Errorf("%s, active %t: the answer is %+v, want it to name %v", c.name, active, last.Refusal, c.want)
			}
			if c.want == storage && last.Refusal != nil && last.Refusal.Reason == berth.NoLicence {
				t.Errorf("%s, active %t: the reason is %s", c.name, active, last.Refusal.Reason)
			}
			settled(t, config, e)
		}
	}
}

// A hold ends at its first end if that comes before its expiry, after a
// modification too.
func TestModifiedHoldEndsWithItsReservation(t *testing.T) {
	two := held("a", 0, 10, 60, 2, 40, 150)
	two.Parts = append(two.Parts, berth.Part{Variants: []berth.Variant{{NPE: 2, Duration: 10}}})
	for _, binding := range bindings() {
		for name, r := range map[string]berth.Request{"one part": held("a", 0, 10, 20, 4, 10, 150), "the first of two parts": two} {
			config := onePool(4, binding)
			e := newEngine(t, config)
			submit(t, e, 0, held("a", 0, 200, 300, 4, 100, 150))
			apply(t, e, 1, modification(&r))
			if a, _ := e.Reservation("a"); a.State != berth.Held || a.Expires != 20 {
				t.Errorf("%s, %s: it is %s until %d, want held until 20", binding, name, a.State, a.Expires)
			}
			settled(t, config, e)
			apply(t, e, 19, wake())
			if _, live := e.Reservation("a"); !live {
				t.Errorf("%s, %s: it is gone before its end", binding, name)
			}
			apply(t, e, 20, wake())
			wantShape(t, e, "a", "gone")
			settled(t, config, e)
		}
	}
}

// A hold that is modified to a later time still ends at its expiry.
func TestModifiedHoldKeepsItsExpiry(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(4, binding)
		e := newEngine(t, config)
		submit(t, e, 0, held("a", 0, 100, 110, 4, 10, 50))
		later := held("a", 0, 200, 300, 4, 10, 50)
		apply(t, e, 0, modification(&later))
		apply(t, e, 49, wake())
		wantShape(t, e, "a", "held cm5:4x[200,210)")
		apply(t, e, 50, wake())
		wantShape(t, e, "a", "gone")
		settled(t, config, e)
	}
}

// A hold that an outage moves to a later place lasts until its expiry or the end
// of the new place, not until the end of the old one.
func TestDisplacedHoldEndsWithItsNewPlace(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		config := manage(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, held("ends", 0, 10, 90, 2, 10, 60))
		submit(t, e, 0, held("expires", 0, 10, 90, 2, 10, 35))
		apply(t, e, 1, takenDown(cm5(), 0, 4, 0, 30))
		apply(t, e, 34, wake())
		wantShape(t, e, "ends", "held cm5:2x[30,40)")
		wantShape(t, e, "expires", "held cm5:2x[30,40)")
		settled(t, config, e)
		apply(t, e, 35, wake())
		wantShape(t, e, "expires", "gone")
		apply(t, e, 39, wake())
		wantShape(t, e, "ends", "held cm5:2x[30,40)")
		apply(t, e, 40, wake())
		wantShape(t, e, "ends", "gone")
		settled(t, config, e)
	})
}

// A held reservation that lacks PEs is degraded from the moment of its
// confirmation, as it is after a restart, and whole again with its PEs.
func TestConfirmedHoldThatLacksPEsIsDegraded(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, held("a", 0, 10, 20, 4, 10, 9))
		apply(t, e, 1, takenDown(cm5(), 0, 2, 0, 0))
		wantShape(t, e, "a", "held cm5:2x[10,20) missing 2")
		settled(t, config, e)
		apply(t, e, 2, engine.Event{Kind: engine.Confirm, ID: "a"})
		wantShape(t, e, "a", "degraded cm5:2x[10,20) missing 2")
		settled(t, config, e)
		again, err := engine.Restore(config, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		wantShape(t, again, "a", "degraded cm5:2x[10,20) missing 2")
		apply(t, e, 3, broughtUp(cm5(), 0, 2))
		wantShape(t, e, "a", "confirmed cm5:4x[10,20)")
		settled(t, config, e)
	}
}

// A job whose length on the only pool is beyond 2^42 s is refused, and those
// behind it start, whatever the pass.
func TestEndlessJobIsRefused(t *testing.T) {
	for _, pass := range engine.JobPasses {
		for _, binding := range bindings() {
			config := faster(2, binding, 1)
			config.Jobs = pass.Name
			e := newEngine(t, config)
			submit(t, e, 0, berth.Job("endless", 0, 2, 1<<41))
			submit(t, e, 0, berth.Job("short", 0, 1, 1))
			apply(t, e, 1, wake())
			if _, live := e.Status("endless"); live {
				t.Errorf("%s, %s: endless waits", pass.Name, binding)
			}
			wantShape(t, e, "short", "active cm5:1x[0,1000)")
			settled(t, config, e)
		}
	}
}

// A job that is too long for a slow pool runs on a faster one, whatever the pass
// and the match.
func TestLongJobRunsWhereItEnds(t *testing.T) {
	for _, pass := range engine.JobPasses {
		for _, match := range policy.Matches {
			config := poolsOf(2, berth.Late, "slow", "standard")
			config.Sites[0].Pools[0].Speed = 1
			config.Jobs, config.Match = pass.Name, match.Name
			e := newEngine(t, config)
			submit(t, e, 0, berth.Job("long", 0, 2, 1<<40))
			apply(t, e, 1, wake())
			if got := shape(e, "long"); got != "active standard:2x[0,1099511627776)" {
				t.Errorf("%s, %s: long is %q", pass.Name, match.Name, got)
			}
			settled(t, config, e)
		}
	}
}

// A request that finds no room at once waits as a job only where it could run as
// one. The large site counts storage and licences, which jobs do not take, and the
// small one has too few PEs.
func TestRequestWaitsOnlyIfItCouldRunAsAJob(t *testing.T) {
	for _, c := range []struct {
		name   string
		demand func(*berth.Request)
		want   bool
	}{
		{"nothing", func(*berth.Request) {}, true},
		{"storage", func(r *berth.Request) { r.StorageMB = 5 }, false},
		{"licences", func(r *berth.Request) { r.Software, r.Licences = "solver", 1 }, false},
		{"software", func(r *berth.Request) { r.Software = "solver" }, true},
		{"storage, few PEs", func(r *berth.Request) { r.StorageMB, r.Parts[0].Variants[0].NPE = 5, 2 }, true},
	} {
		config := poolsOf(2, berth.Late, "small", "large")
		config.Immediate = engine.Enqueue
		config.Sites[1].Pools[0].PEs, config.Sites[1].StorageMB, config.Sites[1].Software = 8, 100, []berth.Software{{Name: "solver", Licences: 3}}
		e := newEngine(t, config)
		for site, npe := range map[string]berth.Count{"small": 2, "large": 8} {
			full := berth.Rigid(site, 0, 0, 10, npe, 10)
			full.Site = site
			submit(t, e, 0, full)
		}
		r := berth.Rigid("r", 0, 0, 10, 8, 10)
		c.demand(&r)
		changes := submit(t, e, 0, r)
		_, waits := e.Status("r")
		if waits != c.want {
			t.Errorf("%s: %s; waits %t, want %t", c.name, kinds(changes), waits, c.want)
		}
		apply(t, e, 11, wake())
		if s, _ := e.Status("r"); c.want && s.Standing != engine.Running {
			t.Errorf("%s: it is %q when there is room", c.name, s.Standing)
		}
		settled(t, config, e)
	}
}

// A job that has to go in the second in which it started is pending again at once,
// with all its work to do.
func TestJobPreemptedAtItsStartIsPending(t *testing.T) {
	for _, speed := range []berth.Speed{500, 0, 2000} {
		for _, binding := range bindings() {
			config := faster(2, binding, speed)
			config.Preempt = true
			e := newEngine(t, config)
			submit(t, e, 2, berth.Job("j", 2, 2, 20))
			apply(t, e, 2, wake())
			submit(t, e, 2, berth.Rigid("r", 2, 2, 100, 2, 4))
			if s, live := e.Status("j"); !live || s.Standing != engine.Pending {
				t.Errorf("speed %d, %s: j is %q, want it pending", speed, binding, s.Standing)
			}
			settled(t, config, e)
			apply(t, e, 3, wake())
			r, _ := e.Reservation("r")
			apply(t, e, r.End(), wake())
			apply(t, e, r.End(), wake())
			j, live := e.Reservation("j")
			if want := config.Sites[0].Pools[0].Speed.Scale(20); !live || j.State != berth.Active || j.Start() != r.End() || j.End() != r.End().Add(want) {
				t.Errorf("speed %d, %s: j is %q, want it to run for %d s from %d", speed, binding, shape(e, "j"), want, r.End())
			}
			settled(t, config, e)
		}
	}
}

// With preemption the state can be stored and restored after every event.
func TestEveryMomentOfPreemptionCanBeRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := onePool(4, rapid.SampledFrom(bindings()).Draw(t, "binding"))
		config.Sites[0].Pools[0].Speed = rapid.SampledFrom([]berth.Speed{0, 500, 3000}).Draw(t, "speed")
		config.Jobs = rapid.SampledFrom(engine.JobPasses).Draw(t, "pass").Name
		config.Preempt, config.Sites[0].Managed = true, rapid.Bool().Draw(t, "managed")
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		now := berth.Time(0)
		for i := range 20 {
			now += berth.Time(rapid.SampledFrom([]int{0, 0, 0, 1, 4}).Draw(t, "pause"))
			npe, d := berth.Count(rapid.IntRange(1, 4).Draw(t, "npe")), berth.Duration(rapid.IntRange(1, 12).Draw(t, "length"))
			id, event := string(rune('a'+i)), wake()
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				event = engine.Event{Kind: engine.Submit, Request: new(berth.Job(id, now, npe, d))}
			case 1:
				ready := now + berth.Time(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "ready"))
				event = engine.Event{Kind: engine.Submit, Request: new(berth.Rigid(id, now, ready, ready+40, npe, d))}
			}
			if _, _, err := e.Apply(now, event); err != nil {
				t.Fatal(err)
			}
			settled(t, config, e)
		}
	})
}
