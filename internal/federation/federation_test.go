package federation

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// engineOf has one site of one pool, named after its number.
func engineOf(i int, pes berth.Count, binding berth.Binding) engine.Config {
	return engine.Config{Match: "earliest-finish", Sites: []berth.Site{siteOf(i, pes, binding)}}
}

func siteOf(i int, pes berth.Count, binding berth.Binding) berth.Site {
	return berth.Site{Name: fmt.Sprintf("e%03d", i), Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: binding}}}
}

// drawRequests draws requests of up to four parts, in the order of their arrival.
func drawRequests(t *rapid.T, n, homes int, widest berth.Count) []Request {
	list, at := make([]Request, n), berth.Time(0)
	for i := range list {
		at += berth.Time(rapid.IntRange(0, 8).Draw(t, "gap"))
		d := berth.Duration(rapid.IntRange(1, 40).Draw(t, "duration"))
		ready := at + berth.Time(rapid.IntRange(0, 40).Draw(t, "ready"))
		deadline := ready.Add(d) + berth.Time(rapid.IntRange(0, 60).Draw(t, "slack"))
		r := berth.Rigid(fmt.Sprint("r", i), at, ready, deadline, berth.Count(rapid.IntRange(1, int(widest)).Draw(t, "npe")), d)
		for range rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "further parts") {
			r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: berth.Count(rapid.IntRange(1, int(widest)).Draw(t, "npe")), Duration: d}}})
		}
		list[i] = Request{Request: &r, Home: rapid.IntRange(0, homes-1).Draw(t, "home"), Local: rapid.IntRange(0, 5).Draw(t, "local") == 0, Apart: len(r.Parts) > 1 && rapid.Bool().Draw(t, "apart")}
	}
	return list
}

// played plays requests and returns the outcomes in their order.
func played(t *rapid.T, config *Config, requests []Request) ([]Outcome, *play) {
	outcomes, told := make([]Outcome, len(requests)), make([]bool, len(requests))
	p, err := newPlay(config, func(o *Outcome) {
		if told[o.Number] {
			t.Fatalf("%s was told twice", o.Request.ID)
		}
		told[o.Number], outcomes[o.Number] = true, *o
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.run(slices.Values(requests)); err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(told, false); i >= 0 {
		t.Fatalf("%s was never told", requests[i].ID)
	}
	return outcomes, p
}

// One engine decides as it does without a federation: as a simulation has it.
func TestOneEngineDecidesAsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		binding := rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(t, "binding")
		config := engine.Config{Match: "earliest-finish", Sites: []berth.Site{siteOf(0, 8, binding), siteOf(1, 5, binding)}}
		requests := drawRequests(t, rapid.IntRange(1, 40).Draw(t, "requests"), 1, 6)
		plain := make([]berth.Request, len(requests))
		for i := range requests {
			plain[i] = *requests[i].Clone()
		}
		lines, err := sim.Run(context.Background(), config, plain, nil)
		if err != nil {
			t.Fatal(err)
		}
		type place struct {
			ID         string
			Accepted   bool
			Site       string
			Start, End berth.Time
			NPE        berth.Count
		}
		var want, got []place
		for i := range lines {
			if l := &lines[i]; l.Accepted {
				want = append(want, place{l.ID, true, l.Site, *l.Start, *l.End, l.NPE})
			} else {
				want = append(want, place{ID: l.ID})
			}
		}
		outcomes, _ := played(t, &Config{
			Engines: []engine.Config{config}, Tries: rapid.IntRange(0, 3).Draw(t, "tries"), Trip: berth.Duration(rapid.IntRange(0, 3).Draw(t, "trip")), Hold: 10, Rounds: 3,
		}, requests)
		for i := range outcomes {
			o := &outcomes[i]
			for j := range o.Places {
				a := &o.Places[j]
				got = append(got, place{o.Request.ID, true, a.Resource.Site, a.Start, a.End, a.NPE})
			}
			for range len(o.Request.Parts) - len(o.Places) {
				got = append(got, place{ID: o.Request.ID})
			}
			if o.Trips != 0 || o.Decided != o.Request.Arrival {
				t.Fatalf("%s was decided at %d after %d trips", o.Request.ID, o.Decided, o.Trips)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// reached counts what the random runs came to.
type reached struct{ released, expired, bounded, broken, silent, apart, elsewhere, late int }

// Whatever happens on the way, each request is told once; what is promised is within its window and in no one's way; parts that
// are to be apart are, and begin together; no hold is left; and the index knows what is promised.
func TestFederationKeepsItsRules(t *testing.T) {
	var all reached
	for range 20 { // with few cases at a time some reach less
		if rapid.Check(t, func(t *rapid.T) { keepsItsRules(t, &all) }); all.everything() {
			break
		}
	}
	t.Logf("%+v", all)
	if !all.everything() {
		t.Errorf("not everything was reached: %+v", all)
	}
}

// everything reports whether the runs came to all of it but broken promises.
func (x *reached) everything() bool {
	return !slices.Contains([]int{x.released, x.expired, x.bounded, x.silent, x.apart, x.elsewhere, x.late}, 0)
}

func keepsItsRules(t *rapid.T, all *reached) {
	size := berth.Count(rapid.IntRange(4, 12).Draw(t, "pes"))
	config := &Config{
		Refresh: berth.Duration(rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "refresh")), Tries: rapid.IntRange(1, 4).Draw(t, "tries"),
		Trip: berth.Duration(rapid.IntRange(0, 6).Draw(t, "trip")), Hold: berth.Duration(rapid.IntRange(1, 25).Draw(t, "hold")),
		Held: berth.Count(rapid.SampledFrom([]int{0, 300, 600}).Draw(t, "held")), Wide: rapid.Bool().Draw(t, "wide"), Rounds: rapid.IntRange(1, 6).Draw(t, "rounds"),
	}
	binding := rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(t, "binding")
	for i := range rapid.IntRange(2, 5).Draw(t, "engines") {
		config.Engines = append(config.Engines, engineOf(i, size, binding))
		for from := 0; rapid.IntRange(0, 2).Draw(t, "fails") == 0; {
			from += rapid.IntRange(0, 80).Draw(t, "from")
			until := from + rapid.IntRange(1, 40).Draw(t, "down")
			config.Failures = append(config.Failures, Failure{i, berth.Time(from), berth.Time(until)})
			from = until
		}
	}
	requests := drawRequests(t, rapid.IntRange(1, 40).Draw(t, "requests"), len(config.Engines), size)
	outcomes, p := played(t, config, requests)
	again, _ := played(t, config, requests)
	if diff := cmp.Diff(outcomes, again); diff != "" {
		t.Fatalf("played twice: %s", diff)
	}
	promised := make([]hours, len(config.Engines))
	for i := range outcomes {
		checkOutcome(t, &outcomes[i])
		for _, a := range outcomes[i].Places {
			promised[a.Engine].add(&a.Allotment, 1)
		}
		all.note(&outcomes[i])
	}
	inNoOnesWay(t, outcomes, size)
	for i, m := range p.members {
		if got, want := trimmed(m.promised), trimmed(promised[i]); !slices.Equal(got, want) {
			t.Fatalf("engine %d: the index has %v, promised is %v", i, got, want)
		}
		if m.held != 0 {
			t.Fatalf("engine %d: %d PEs are held in the end", i, m.held)
		}
	}
	noneLeft(t, p, outcomes)
	if p.totals.Unreleased != 0 || config.Held > 0 && !config.Wide && p.totals.MostHeld > config.Held {
		t.Fatalf("%+v with a bound of %d", p.totals, config.Held)
	}
	all.released += p.totals.Released
	all.expired += p.totals.Expired
	all.bounded += p.totals.Bounded
	all.broken += p.totals.Broken
	all.silent += p.totals.Silent
}

func (x *reached) note(o *Outcome) {
	if !o.Accepted {
		return
	}
	if o.Request.Apart {
		x.apart++
	} else if o.Places[0].Engine != o.Request.Home {
		x.elsewhere++
	}
	if o.Decided > o.Request.Arrival {
		x.late++
	}
}

// trimmed is hours without those at the end in which nothing is promised.
func trimmed(h hours) hours {
	for len(h) > 0 && h[len(h)-1] == 0 {
		h = h[:len(h)-1]
	}
	return h
}

// checkOutcome checks one outcome by itself.
func checkOutcome(t *rapid.T, o *Outcome) {
	r := &o.Request
	if o.Decided < r.Arrival || (o.Accepted != (len(o.Places) > 0)) {
		t.Fatalf("%+v", o)
	}
	if !o.Accepted {
		return
	}
	if len(o.Places) != len(r.Parts) {
		t.Fatalf("%s has %d places for %d parts", r.ID, len(o.Places), len(r.Parts))
	}
	engines := map[int]bool{}
	for i, a := range o.Places {
		v := r.Parts[i].Variants[0]
		if a.NPE != v.NPE || a.End.Sub(a.Start) != v.Duration || a.Start < r.Ready || a.End > r.Deadline || a.Start < o.Decided {
			t.Fatalf("%s asked for %+v in [%d, %d), and got %+v, told at %d", r.ID, v, r.Ready, r.Deadline, a, o.Decided)
		}
		if a.Start != o.Places[0].Start {
			t.Fatalf("%s: parts begin at %d and %d", r.ID, o.Places[0].Start, a.Start)
		}
		if r.Local && a.Engine != r.Home && !r.Apart {
			t.Fatalf("%s is for its home %d alone, and is at %d", r.ID, r.Home, a.Engine)
		}
		engines[a.Engine] = true
	}
	if r.Apart && len(engines) != len(r.Parts) {
		t.Fatalf("%s: %d parts at %d engines", r.ID, len(r.Parts), len(engines))
	}
}

// inNoOnesWay checks that no engine promised more PEs than it has.
func inNoOnesWay(t *rapid.T, outcomes []Outcome, size berth.Count) {
	type at struct {
		engine int
		time   berth.Time
	}
	used := map[at]berth.Count{}
	for i := range outcomes {
		for _, a := range outcomes[i].Places {
			for s := a.Start; s < a.End; s++ {
				if used[at{a.Engine, s}] += a.NPE; used[at{a.Engine, s}] > size {
					t.Fatalf("%d PEs of %d are promised at %d by engine %d", used[at{a.Engine, s}], size, s, a.Engine)
				}
			}
		}
	}
}

// noneLeft checks that engines have nothing but what was told to be promised.
func noneLeft(t *rapid.T, p *play, outcomes []Outcome) {
	for i := range outcomes {
		o := &outcomes[i]
		for k := range 64 {
			for _, m := range p.members {
				r, live := m.engine.Reservation(fmt.Sprintf("%s/%d", o.Request.ID, k))
				if live && (!o.Accepted || r.State == berth.Held || !slices.ContainsFunc(o.Places, func(a Place) bool { return a.Engine == m.number })) {
					t.Fatalf("engine %d still has %s, %s, of %+v", m.number, r.Request.ID, r.State, o)
				}
			}
		}
	}
}

// apart is a request of parts at several engines.
func apart(id string, at, ready, deadline berth.Time, npe berth.Count, d berth.Duration, parts int) Request {
	r := berth.Rigid(id, at, ready, deadline, npe, d)
	for range parts - 1 {
		r.Parts = append(r.Parts, berth.Part{Variants: r.Parts[0].Variants})
	}
	return Request{Request: &r, Apart: true}
}

// one is a request of one part.
func one(id string, home int, at, ready, deadline berth.Time, npe berth.Count, d berth.Duration) Request {
	return Request{Request: new(berth.Rigid(id, at, ready, deadline, npe, d)), Home: home}
}

// tellAll plays requests and says in words what became of each, in the order of the answers.
func tellAll(t *testing.T, config *Config, requests ...Request) ([]string, *Totals) {
	t.Helper()
	var told []string
	totals, err := Play(config, slices.Values(requests), func(o *Outcome) {
		text := fmt.Sprintf("%s at %d", o.Request.ID, o.Decided)
		for _, a := range o.Places {
			text += fmt.Sprintf(" e%d@%d", a.Engine, a.Start)
		}
		told = append(told, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return told, totals
}

func configOf(engines int, failures ...Failure) *Config {
	c := &Config{Tries: engines, Trip: 2, Hold: 30, Rounds: 8, Failures: failures}
	for i := range engines {
		c.Engines = append(c.Engines, engineOf(i, 10, berth.Late))
	}
	return c
}

func TestPartsAtSeveralEngines(t *testing.T) {
	busy := one("busy", 1, 0, 100, 160, 10, 60)
	for _, c := range []struct {
		name     string
		config   *Config
		requests []Request
		want     []string
		totals   Totals
	}{
		{
			"a common start is found in rounds",
			configOf(2),
			[]Request{busy, apart("a", 1, 100, 400, 5, 50, 2)},
			[]string{"busy at 0 e1@100", "a at 5 e0@160 e1@160"},
			Totals{Holds: 3, Released: 1, Blocked: 10, MostHeld: 500},
		},
		{
			"an engine that is down is passed over, and the emptier one is asked first",
			configOf(4, Failure{2, 0, 100}),
			[]Request{busy, apart("a", 1, 100, 400, 5, 50, 2)},
			[]string{"busy at 0 e1@100", "a at 5 e0@100 e3@100"},
			Totals{Holds: 2, Silent: 1, MostHeld: 500},
		},
		{
			"a confirmation waits for an engine that is back in time",
			configOf(2, Failure{1, 2, 20}),
			[]Request{apart("a", 1, 100, 400, 5, 50, 2)},
			[]string{"a at 20 e0@100 e1@100"},
			Totals{Holds: 2, Silent: 1, MostHeld: 500},
		},
		{
			"one that is back too late breaks the promise, and all is given back",
			configOf(2, Failure{1, 2, 60}),
			[]Request{apart("a", 1, 100, 400, 5, 50, 2), one("all", 0, 70, 100, 150, 10, 50)},
			[]string{"a at 31", "all at 70 e0@100"},
			Totals{Holds: 2, Expired: 1, Broken: 1, Silent: 2, Blocked: 150, MostHeld: 500},
		},
		{
			"a leader that is back when the start has passed gives all back",
			configOf(2, Failure{0, 2, 20}),
			[]Request{apart("a", 1, 8, 400, 5, 50, 2)},
			[]string{"a at 20"},
			Totals{Holds: 2, Released: 2, Blocked: 190, MostHeld: 500},
		},
		{
			"holds of a leader that fails expire",
			configOf(2, Failure{0, 2, 60}),
			[]Request{apart("a", 1, 100, 400, 5, 50, 2), one("all", 1, 70, 100, 150, 10, 50)},
			[]string{"a at 60", "all at 70 e1@100"},
			Totals{Holds: 2, Expired: 2, Blocked: 300, MostHeld: 500},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			told, totals := tellAll(t, c.config, c.requests...)
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.totals, *totals); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The PEs held at once are bounded: beyond the bound, parts are refused until holds are confirmed.
func TestHoldsAreBounded(t *testing.T) {
	config := configOf(2)
	config.Held = 600
	told, totals := tellAll(t, config, apart("a", 0, 100, 400, 5, 50, 2), apart("b", 1, 100, 400, 5, 50, 2), apart("c", 9, 100, 400, 5, 50, 2))
	want := []string{"b at 1", "a at 2 e0@100 e1@100", "c at 11 e0@100 e1@100"}
	if diff := cmp.Diff(want, told); diff != "" || totals.Bounded != 1 || totals.MostHeld != 500 {
		t.Errorf("%s, %+v", diff, totals)
	}
	// A part that is wider than the bound is held only where that is allowed, and nothing else is held.
	config.Held = 300
	told, totals = tellAll(t, config, apart("a", 0, 100, 400, 5, 50, 2))
	if want := []string{"a at 0"}; !slices.Equal(told, want) || totals.Holds != 0 {
		t.Errorf("%q, %+v", told, totals)
	}
	config.Wide = true
	told, totals = tellAll(t, config, apart("a", 0, 100, 400, 5, 50, 2), apart("b", 1, 100, 400, 1, 50, 2))
	if want := []string{"b at 1", "a at 2 e0@100 e1@100"}; !slices.Equal(told, want) || totals.MostHeld != 500 {
		t.Errorf("%q, %+v", told, totals)
	}
}

// An index that is old sends requests where there is no room any more, which costs trips.
func TestIndexIsAsOldAsItMayBe(t *testing.T) {
	for _, c := range []struct {
		refresh berth.Duration
		last    string
	}{
		{0, "z at 14 e2@3600"},
		{5, "z at 14 e2@3600"},
		{3600, "z at 16 e2@3600"},
	} {
		// While two engines are down a request finds no room, and the index is looked at.
		config := configOf(3, Failure{1, 0, 10}, Failure{2, 0, 10})
		config.Refresh = c.refresh
		told, _ := tellAll(t, config,
			one("x", 0, 0, 3600, 7200, 10, 3600), one("w", 0, 0, 3600, 7200, 10, 3600), one("y", 1, 11, 3600, 7200, 10, 3600), one("z", 0, 12, 3600, 7200, 10, 3600))
		want := []string{"x at 0 e0@3600", "w at 4", "y at 11 e1@3600", c.last}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("refreshed every %d s: %s", c.refresh, diff)
		}
	}
}
