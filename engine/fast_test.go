package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// faster is onePool with a speed, in thousandths of the standard.
func faster(pes berth.Count, binding berth.Binding, speed berth.Speed) engine.Config {
	config := onePool(pes, binding)
	config.Sites[0].Pools[0].Speed = speed
	return config
}

// 100 s of work take 50 s on a pool of twice the standard speed: a window of that
// length is long enough for a request, its parts, a modification and a job.
func TestFastPoolServesAShortWindow(t *testing.T) {
	hundred := berth.Variant{NPE: 1, Duration: 100}
	limited := berth.Job("a", 0, 1, 100)
	limited.Deadline = 60
	for _, binding := range bindings() {
		for _, c := range []struct {
			name string
			r    berth.Request
			want string
		}{
			{"60 s", berth.Rigid("a", 0, 0, 60, 1, 100), "active cm5:1x[0,50)"},
			{"50 s", berth.Rigid("a", 0, 10, 60, 1, 100), "confirmed cm5:1x[10,60)"},
			{"moldable", moldable("a", 0, 60, hundred, berth.Variant{NPE: 9, Duration: 110}), "active cm5:1x[0,50)"},
			{"parts", parts("a", 60, hundred, hundred), "active cm5:1x[0,50) cm5:1x[0,50)"},
			{"job", limited, "active cm5:1x[0,50)"},
		} {
			config := faster(4, binding, 2000)
			e := newEngine(t, config)
			if _, _, err := e.Apply(0, submission(&c.r)); err != nil {
				t.Errorf("%s, %s: %v", binding, c.name, err)
				continue
			}
			apply(t, e, 1, wake())
			if got := shape(e, "a"); got != c.want {
				t.Errorf("%s, %s: a is %q, want %q", binding, c.name, got, c.want)
			}
			settled(t, config, e)
		}
	}
}

// A modification to a window that only a fast pool serves is granted.
func TestFastPoolServesAModifiedWindow(t *testing.T) {
	for _, binding := range bindings() {
		config := faster(4, binding, 2000)
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 0, 500, 1, 100))
		tight := berth.Rigid("a", 0, 200, 260, 1, 100)
		if _, _, err := e.Apply(0, modification(&tight)); err != nil {
			t.Error(err)
		}
		wantShape(t, e, "a", "confirmed cm5:1x[200,250)")
		settled(t, config, e)
	}
}

// Of a slow and a fast pool the window that is too short for the slow one is
// served by the fast one.
func TestFastPoolIsFoundBesideASlowOne(t *testing.T) {
	for _, binding := range bindings() {
		config := poolsOf(4, binding, "slow", "fast")
		config.Sites[1].Pools[0].Speed = 4000
		e := newEngine(t, config)
		r := berth.Rigid("a", 0, 0, 25, 1, 100)
		if _, _, err := e.Apply(0, submission(&r)); err != nil {
			t.Error(err)
		}
		wantShape(t, e, "a", "confirmed fast:1x[0,25)")
		settled(t, config, e)
	}
}

// takenAsOffered submits the requests of offers, each to an engine of its own, and
// requires exactly the places that were offered.
func takenAsOffered(t *testing.T, config engine.Config, e *engine.Engine, offers []engine.Offer, what string) {
	t.Helper()
	for i := range offers {
		o := &offers[i]
		again, err := engine.Restore(config, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		o.Request.ID = "taken"
		if _, _, err := again.Apply(e.Now(), submission(&o.Request)); err != nil {
			t.Errorf("%s, %s: %v", what, o.Difference, err)
			continue
		}
		r, _ := again.Reservation("taken")
		same := len(r.Allotments) == len(o.Allotments)
		for k := 0; same && k < len(r.Allotments); k++ {
			a, b := &r.Allotments[k], &o.Allotments[k]
			same = a.Resource == b.Resource && a.Interval() == b.Interval() && a.NPE == b.NPE
		}
		if !same {
			t.Errorf("%s, %s: offered %+v, got %s", what, o.Difference, o.Allotments, shape(again, "taken"))
		}
		settled(t, config, again)
	}
}

// An offer, submitted at once as it is, gives exactly the place that was offered,
// whatever the speed of the pool and the placement.
func TestOfferedPlaceIsThePlaceTaken(t *testing.T) {
	for _, speed := range []berth.Speed{300, 500, 0, 1500, 2000, 7000} {
		for _, place := range policy.Placements {
			for _, binding := range bindings() {
				config := faster(4, binding, speed)
				config.Place = place.Name
				e := newEngine(t, config)
				submit(t, e, 0, berth.Rigid("x", 0, 0, 900, 3, 10))
				submit(t, e, 0, berth.Rigid("y", 0, 30, 900, 4, 10))
				for _, r := range []berth.Request{
					berth.Rigid("r", 0, 0, 40, 1, 10), berth.Rigid("r", 0, 20, 40, 2, 15), berth.Rigid("r", 0, 0, 20, 4, 20),
					moldable("r", 0, 100, berth.Variant{NPE: 4, Duration: 11}, berth.Variant{NPE: 1, Duration: 31}),
					parts("r", 200, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 7}),
				} {
					offers, err := e.Offers(&r, 9)
					if err != nil || len(offers) == 0 {
						t.Fatalf("speed %d, %s, %s: offers %+v, %v", speed, place.Name, binding, offers, err)
					}
					takenAsOffered(t, config, e, offers, fmt.Sprintf("speed %d, %s, %s", speed, place.Name, binding))
				}
			}
		}
	}
}

// A request for a window that only a fast pool serves has an offer as asked.
func TestOffersForAShortWindow(t *testing.T) {
	for _, binding := range bindings() {
		config := faster(4, binding, 2000)
		e := newEngine(t, config)
		r := berth.Rigid("r", 0, 0, 60, 1, 100)
		offers, err := e.Offers(&r, 9)
		if err != nil || len(offers) == 0 || offers[0].Difference != engine.AsAsked {
			t.Errorf("%s: offers %+v, %v; want one as asked", binding, offers, err)
		}
		takenAsOffered(t, config, e, offers, string(binding))
	}
}

// Where jobs yield to requests, a request has an offer as asked exactly if it is
// accepted, and every offer can be had.
func TestOffersLookPastJobsThatYield(t *testing.T) {
	for _, binding := range bindings() {
		for _, pass := range engine.JobPasses {
			config := onePool(2, binding)
			config.Preempt, config.Jobs = true, pass.Name
			e := newEngine(t, config)
			submit(t, e, 0, berth.Job("j", 0, 2, 20))
			apply(t, e, 2, wake())
			submit(t, e, 2, berth.Rigid("x", 2, 30, 40, 1, 10))
			for _, r := range []berth.Request{berth.Rigid("r", 2, 5, 15, 2, 10), berth.Rigid("r", 2, 2, 12, 1, 10), berth.Rigid("r", 2, 25, 40, 2, 10)} {
				hash := e.Hash()
				offers, err := e.Offers(&r, 9)
				if err != nil || len(offers) == 0 || e.Hash() != hash {
					t.Fatalf("%s: offers %+v, %v, hash the same: %t", binding, offers, err, e.Hash() == hash)
				}
				again, err := engine.Restore(config, e.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				submit(t, again, 2, r)
				_, taken := again.Reservation("r")
				if asked := offers[0].Difference == engine.AsAsked; asked != taken {
					t.Errorf("%s, %s, ready %d: offered as asked %t, accepted %t", binding, pass.Name, r.Ready, asked, taken)
				}
				takenAsOffered(t, config, e, offers, string(binding)+", "+pass.Name)
			}
			settled(t, config, e)
		}
	}
}
