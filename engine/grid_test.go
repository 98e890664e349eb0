package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// waiting is a job of the waiting-time paper: run time β, processors θ,
// waiting limit ω. As a request its deadline is t + ω + β (spec 4, a).
func waiting(id string, t berth.Time, beta berth.Duration, theta berth.Count, omega berth.Duration) berth.Request {
	return berth.Rigid(id, t, t, t.Add(beta)+berth.Time(omega), theta, beta)
}

func sites(binding berth.Binding, sizes ...berth.Count) []berth.Site {
	var list []berth.Site
	for _, n := range sizes {
		list = append(list, berth.Site{
			Name:  fmt.Sprintf("R%d", n),
			Pools: []berth.Pool{{Name: "pool", PEs: n, Binding: binding}},
		})
	}
	return list
}

// The worked example of spec 4, b: two sites, both algorithms.
func TestWaitingTimeExample(t *testing.T) {
	jobs := []struct {
		t                 berth.Time
		beta              berth.Duration
		theta             berth.Count
		omega             berth.Duration
		sequential, eager string
	}{
		{0, 10, 3, 5, "R4 at 0", "R4 at 0"},
		{0, 10, 2, 0, "R8 at 0", "R8 at 0"},
		{1, 4, 8, 20, "R8 at 10", "R8 at 10"},
		{2, 6, 2, 3, "R8 at 2", "R8 at 2"},
		{2, 5, 9, 9, "too_large", ""},
		{3, 2, 1, 0, "R4 at 3", "R8 at 3"},
		{4, 3, 4, 4, "R8 at 4", "R8 at 5"},
		{4, 3, 4, 8, "R4 at 10", "R4 at 10"},
	}
	for _, eager := range []bool{false, true} {
		// The larger site comes first in the file: the match sorts by size.
		config := engine.Config{Sites: sites(berth.Late, 8, 4), Match: "smallest-fit"}
		if eager {
			config.Eager = &policy.Eager{K1: 500, K2: 600}
		}
		e := newEngine(t, config)
		for i, j := range jobs {
			want := j.sequential
			if eager {
				want = j.eager
			}
			if want == "" {
				continue
			}
			changes := submit(t, e, j.t, waiting(fmt.Sprint(i), j.t, j.beta, j.theta, j.omega))
			got := ""
			for _, c := range changes {
				switch c.Kind {
				case change.Accepted:
					got = fmt.Sprintf("%s at %d", c.Reservation.Allotments[0].Resource.Site, c.Reservation.Start())
				case change.Refused:
					got = string(c.Refusal.Reason)
				}
			}
			if got != want {
				t.Errorf("eager %t, job %d: %s, want %s", eager, i, got, want)
			}
		}
	}
}

// A request that every site's filter denies is refused by policy; if one site
// admits it and has no room, that is the more informative answer. RefuseAll
// stops at the first denial.
func TestEagerRefusals(t *testing.T) {
	config := engine.Config{Sites: sites(berth.Late, 4, 8), Match: "smallest-fit", Eager: &policy.Eager{K1: 500, K2: 0}}
	e := newEngine(t, config)
	submit(t, e, 0, waiting("a", 0, 10, 4, 0)) // fills R4
	submit(t, e, 0, waiting("b", 0, 10, 4, 0)) // half of R8
	if got := refused(t, submit(t, e, 0, waiting("c", 0, 5, 1, 0))); got.Reason != berth.PolicyRefused {
		t.Errorf("a narrow job on busy sites: %+v", got)
	}
	if got := refused(t, submit(t, e, 0, waiting("d", 0, 5, 2, 0))); got.Reason != berth.NoCapacity || got.Resource.Site != "R4" {
		t.Errorf("wide for the full R4, narrow for R8: %+v", got)
	}
	config.Eager.RefuseAll = true
	config.Sites = sites(berth.Late, 4, 8)
	e = newEngine(t, config)
	submit(t, e, 0, waiting("a", 0, 10, 3, 0))
	if got := refused(t, submit(t, e, 0, waiting("b", 0, 5, 1, 0))); got.Reason != berth.PolicyRefused || got.Resource.Site != "R4" {
		t.Errorf("the idle R8 must not be asked: %+v", got)
	}
	config.Eager.RefuseAll = false
	config.Eager.K2 = 200
	config.Eager.Grid = true
	e = newEngine(t, config)
	submit(t, e, 0, waiting("a", 0, 10, 3, 0)) // R4 is busy to 3/4, the grid to 3/12
	if got := refused(t, submit(t, e, 0, waiting("b", 0, 10, 1, 0))); got.Reason != berth.PolicyRefused {
		t.Errorf("the grid is busier than K2: %+v", got)
	}
	config.Eager.K2 = 250
	e = newEngine(t, config)
	submit(t, e, 0, waiting("a", 0, 10, 3, 0))
	if got := accepted(t, submit(t, e, 0, waiting("b", 0, 10, 1, 0))); got.Allotments[0].Resource.Site != "R4" {
		t.Errorf("the grid is as busy as K2: %+v", got)
	}
}

// Equivalence X6: K1 = 0 or K2 = 1 switches the filter off. X1 and X2: a job
// (β, θ, ω) is the request with deadline t+ω+β; ω = 0 starts at once or never.
func TestFilterOffIsSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequential := engine.Config{Sites: sites(berth.Late, 4, 8, 3), Match: "smallest-fit"}
		noK1, noK2 := sequential, sequential
		noK1.Eager = &policy.Eager{K1: 0, K2: policy.Permille(rapid.IntRange(0, 1000).Draw(t, "k2"))}
		noK2.Eager = &policy.Eager{K1: policy.Permille(rapid.IntRange(0, 1000).Draw(t, "k1")), K2: 1000}
		var engines []*engine.Engine
		for _, config := range []engine.Config{sequential, noK1, noK2} {
			e, err := engine.New(config)
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, e)
		}
		var now berth.Time
		for i := range 30 {
			now += berth.Time(rapid.IntRange(0, 3).Draw(t, "pause"))
			omega := berth.Duration(rapid.SampledFrom([]int{0, 0, 1, 5, 20}).Draw(t, "omega"))
			r := waiting(fmt.Sprint(i), now, berth.Duration(rapid.IntRange(1, 9).Draw(t, "beta")),
				berth.Count(rapid.IntRange(1, 9).Draw(t, "theta")), omega)
			var outcomes []string
			for _, e := range engines {
				changes, _, err := e.Apply(now, engine.Submit(&r))
				if err != nil {
					t.Fatal(err)
				}
				decided := changes[slices.IndexFunc(changes, func(c change.Change) bool {
					return c.Kind == change.Accepted || c.Kind == change.Refused
				})]
				if decided.Kind == change.Refused {
					outcomes = append(outcomes, string(decided.Refusal.Reason))
					continue
				}
				wait := decided.Reservation.Start() - now
				if wait > berth.Time(omega) {
					t.Fatalf("waits %d with the limit %d", wait, omega)
				}
				outcomes = append(outcomes, fmt.Sprint(decided.Reservation.Allotments))
			}
			if outcomes[0] != outcomes[1] || outcomes[0] != outcomes[2] {
				t.Fatalf("job %d: %v", i, outcomes)
			}
		}
	})
}

func TestMatches(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{
		{Name: "big", Pools: []berth.Pool{{Name: "p", PEs: 16, Binding: berth.Late, Speed: 500}}},
		{Name: "small", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}},
		{Name: "fast", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late, Speed: 2000}}},
	}}
	for _, c := range []struct{ match, place, want string }{
		{"smallest-fit", "first-fit", "small [0,9)"},
		{"fastest-first", "first-fit", "fast [0,5)"}, // ⌈9/2⌉
		{"earliest-finish", "first-fit", "small [0,9)"},
		{"best-key", "first-fit", "small [0,9)"},
		{"best-key", "pe-worst", "big [0,18)"},
	} {
		t.Run(c.match+" "+c.place, func(t *testing.T) {
			config.Match, config.Place = c.match, c.place
			e := newEngine(t, config)
			if c.match == "earliest-finish" || (c.match == "best-key" && c.place == "first-fit") {
				// The fast pool is full for a while.
				full := berth.Rigid("full", 0, 0, 100, 8, 20)
				full.Parts[0].Variants[0].NPE = 8
				e = newEngine(t, engine.Config{Sites: config.Sites, Match: "fastest-first"})
				submit(t, e, 0, full)
				again, err := engine.Restore(config, e.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				e = again
			}
			a := accepted(t, submit(t, e, 0, berth.Rigid("a", 0, 0, 100, 2, 9))).Allotments[0]
			if got := fmt.Sprintf("%s %s", a.Resource.Site, a.Interval()); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A random match spreads requests over all sites, repeats itself for the same
// seed, and differs for another.
func TestRandomMatch(t *testing.T) {
	spread := func(seed uint64) (counts [3]int, order string) {
		config := engine.Config{Sites: sites(berth.Late, 100, 101, 102), Match: "random", Seed: seed}
		e := newEngine(t, config)
		for i := range 300 {
			a := accepted(t, submit(t, e, 0, berth.Rigid(fmt.Sprint(i), 0, 0, 1, 1, 1))).Allotments[0]
			at := slices.IndexFunc(config.Sites, func(s berth.Site) bool { return s.Name == a.Resource.Site })
			counts[at]++
			order += fmt.Sprint(at)
		}
		return counts, order
	}
	counts, order := spread(0)
	for site, n := range counts {
		// 100 expected; a fair draw is within 50 to about one in 10^9.
		if n < 50 {
			t.Errorf("site %d gets %d of 300", site, n)
		}
	}
	if _, again := spread(0); again != order {
		t.Error("the same seed gave another order")
	}
	if _, other := spread(1); other == order {
		t.Error("another seed gave the same order")
	}
}

func TestQuota(t *testing.T) {
	config := onePool(8, berth.Early)
	config.Limits = quotas(2, 50)
	e := newEngine(t, config)
	of := func(user string, r berth.Request) berth.Request {
		r.User = user
		return r
	}
	submit(t, e, 0, of("ann", berth.Rigid("a", 0, 0, 100, 1, 10)))
	submit(t, e, 0, of("ann", berth.Rigid("b", 0, 0, 100, 1, 20)))
	if got := refused(t, submit(t, e, 0, of("ann", berth.Rigid("c", 0, 0, 100, 1, 1)))); got.Reason != berth.Quota {
		t.Errorf("a third reservation: %+v", got)
	}
	accepted(t, submit(t, e, 0, berth.Rigid("d", 0, 0, 100, 1, 60))) // without an owner
	accepted(t, submit(t, e, 10, of("ann", berth.Rigid("e", 10, 10, 100, 1, 30))))
	apply(t, e, 20, engine.Wake())
	if got := refused(t, submit(t, e, 20, of("ann", berth.Rigid("f", 20, 20, 100, 3, 7)))); got.Reason != berth.Quota {
		t.Errorf("30 + 21 PE-seconds of 50: %+v", got)
	}
	accepted(t, submit(t, e, 20, of("ann", berth.Rigid("g", 20, 20, 100, 4, 5))))
	accepted(t, submit(t, e, 20, of("bob", berth.Rigid("h", 20, 20, 100, 1, 50))))
}
