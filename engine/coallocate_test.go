package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// parts is a request whose parts are of these widths and lengths.
func parts(id string, deadline berth.Time, variants ...berth.Variant) berth.Request {
	r := berth.Rigid(id, 0, 0, deadline, variants[0].NPE, variants[0].Duration)
	for _, v := range variants[1:] {
		r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{v}})
	}
	return r
}

// Parts that are only in each other's way until far in the future get their
// place, and the answer, without a step for every second until then: one by one
// this takes hours.
func TestPartsInEachOthersWayForLong(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		const from, until = 1_000_000_000_000, 1_000_000_000_007
		e := newEngine(t, engine.Config{Sites: []berth.Site{{Name: "a", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: binding}}}}})
		submit(t, e, 0, berth.Rigid("booked", 0, 0, until, 30, until))
		submit(t, e, 0, berth.Rigid("later", 0, from, until+1000, 1, until+1000-from))
		changes := submit(t, e, 0, parts("fit", berth.TimeLimit-1, berth.Variant{NPE: 30, Duration: 7}, berth.Variant{NPE: 31, Duration: 9}))
		if got := told(changes); got != "fit@a 1000000000007-1000000000014" {
			t.Errorf("%s: %s", binding, got)
		}
		if got := told(submit(t, e, 0, parts("never", berth.TimeLimit-1, berth.Variant{NPE: 40, Duration: 1}, berth.Variant{NPE: 40, Duration: 1}))); got != "never no_capacity" {
			t.Errorf("%s: %s", binding, got)
		}
	}
}

// Leaps lead where single steps do: to the earliest common start there is.
func TestCommonStartIsTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const horizon, size = 400, 6
		e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "a", Pools: []berth.Pool{{Name: "p", PEs: size, Binding: berth.Late}}}}})
		if err != nil {
			t.Fatal(err)
		}
		var taken [2 * horizon]berth.Count
		for i := range rapid.IntRange(0, 8).Draw(t, "booked") {
			start, npe := rapid.IntRange(0, horizon-1).Draw(t, "start"), berth.Count(rapid.IntRange(1, 4).Draw(t, "npe"))
			d := berth.Duration(rapid.IntRange(1, horizon).Draw(t, "length"))
			changes, _, err := e.Apply(0, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid(string(rune('a'+i)), 0, berth.Time(start), berth.Time(start).Add(d), npe, d))})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				if c.Kind == change.Accepted {
					for s := c.Reservation.Start(); s < min(c.Reservation.End(), 2*horizon); s++ {
						taken[s] += npe
					}
				}
			}
		}
		var wanted []berth.Variant
		for range rapid.IntRange(2, 3).Draw(t, "parts") {
			wanted = append(wanted, berth.Variant{NPE: berth.Count(rapid.IntRange(1, 4).Draw(t, "width")), Duration: berth.Duration(rapid.IntRange(1, 5).Draw(t, "run"))})
		}
		want, fits := berth.Time(0), false
		for ; want < horizon && !fits; want++ {
			fits = true
			for s := want; s < want+5; s++ {
				n := taken[s]
				for _, v := range wanted {
					if s < want.Add(v.Duration) {
						n += v.NPE
					}
				}
				fits = fits && n <= size
			}
		}
		want--
		changes, _, err := e.Apply(0, engine.Event{Kind: engine.EventSubmit, Request: new(parts("x", horizon+5, wanted...))})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			switch c.Kind {
			case change.Accepted:
				if got := c.Reservation.Start(); fits && got != want {
					t.Fatalf("starts at %d, want %d", got, want)
				}
			case change.Refused:
				if fits {
					t.Fatalf("is refused, could start at %d", want)
				}
			}
		}
	})
}

// Starts at which fewer PEs are free than the parts want together are no use: they
// are not searched, so that the bound of the search is not used up before the start
// at which everything is free.
func TestCoallocationBehindManyPromises(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{{Name: "s"}}}
	for i := range 6 {
		pool := berth.Pool{Name: fmt.Sprintf("p%d", i), PEs: 64, Binding: berth.Late}
		config.Sites[0].Pools = append(config.Sites[0].Pools, pool)
	}
	e := newEngine(t, config)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 600 {
		ready := berth.Time(rng.IntN(30_000))
		r := berth.Rigid(fmt.Sprintf("r%d", i), 0, ready, ready+20_000, berth.Count(1+rng.IntN(24)), berth.Duration(50+rng.IntN(500)))
		r.Pool = config.Sites[0].Pools[rng.IntN(6)].Name
		if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
			t.Fatal(err)
		}
	}
	wide := berth.Rigid("wide", 0, 0, 60_000, 1, 1)
	wide.Parts = nil
	for i := range 12 { // two in each pool, in one way and a few others
		v := berth.Variant{NPE: berth.Count(30 + i%5), Duration: berth.Duration(600 + i)}
		wide.Parts = append(wide.Parts, berth.Part{Variants: []berth.Variant{v}})
	}
	accepted(t, submit(t, e, 0, wide))
}
