package engine_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// ahead is a pool of late binding, managed, whose promises get their PEs so long before they
// start.
func ahead(pes berth.Count, by berth.Duration) engine.Config {
	config := onePool(pes, berth.Late)
	config.Sites[0].Managed, config.Sites[0].Pools[0].NameAhead = true, by
	return config
}

// pesOf returns the PEs of a promise, empty while they have no names.
func pesOf(t *testing.T, e *engine.Engine, id string) string {
	t.Helper()
	r, live := e.Reservation(id)
	if !live {
		t.Fatalf("%s is not live", id)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	return r.Allotments[0].PEs.String()
}

// A promise of 3 of 6 PEs far ahead is a count: PEs that go out of use before the horizon cost
// it nothing and are not announced. At the horizon it gets names, of what is there, in one
// change and with one effect, and starts on them.
func TestPEsAreNamedAtTheHorizon(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	e := newEngine(t, ahead(6, 100))
	submit(t, e, 0, berth.Rigid("p", 0, 1000, 1100, 3, 100))
	apply(t, e, 1, engine.Wake())
	if got := kinds(apply(t, e, 10, engine.Down(berth.Outage{Name: "dead", Resource: pool, PEs: berth.PEsOf(0)}))); got != "advanced went_down" {
		t.Errorf("a PE dies before the horizon: %s", got)
	}
	if got := kinds(apply(t, e, 20, engine.Down(berth.Outage{Name: "drained", Resource: pool, PEs: berth.PEsOf(2, 3)}))); got != "advanced went_down" {
		t.Errorf("two are drained: %s", got)
	}
	if at, _ := e.Next(); at != 900 || pesOf(t, e, "p") != "" {
		t.Errorf("p has PEs %q, and the next thing is due at %d; want none until 900", pesOf(t, e, "p"), at)
	}
	changes, effects, err := e.Apply(900, engine.Wake())
	if err != nil || kinds(changes) != "advanced named:p emitted" || len(effects) != 1 || pesOf(t, e, "p") != "1,4-5" {
		t.Errorf("at the horizon: %s, effects %v, PEs %s, %v", kinds(changes), effects, pesOf(t, e, "p"), err)
	}
	apply(t, e, 910, engine.UpNamed(pool, "drained"))
	if got := kinds(apply(t, e, 920, engine.Down(berth.Outage{Name: "late", Resource: pool, PEs: berth.PEsOf(4)}))); got != "advanced went_down named:p emitted" {
		t.Errorf("a PE dies after the horizon: %s", got)
	}
	if got := pesOf(t, e, "p"); got != "1-2,5" {
		t.Errorf("p has PEs %s, want another one for 4 and the rest as before", got)
	}
	if got := kinds(apply(t, e, 1000, engine.Wake())); got != "advanced started:p emitted" || pesOf(t, e, "p") != "1-2,5" {
		t.Errorf("at the start: %s on %s", got, pesOf(t, e, "p"))
	}
}

// What is promised later and begins earlier may need a PE for longer than any is free beside
// the names that are given: then others get other names, and no promise loses anything.
func TestNamesGiveWay(t *testing.T) {
	e := newEngine(t, ahead(2, 1000))
	submit(t, e, 0, berth.Rigid("short", 0, 0, 90, 1, 90))
	submit(t, e, 0, berth.Rigid("later", 0, 100, 200, 1, 100))
	apply(t, e, 10, engine.Wake())
	if pesOf(t, e, "short") != "0" || pesOf(t, e, "later") != "0" {
		t.Fatalf("short has %s and later %s, want the lowest of both", pesOf(t, e, "short"), pesOf(t, e, "later"))
	}
	apply(t, e, 10, engine.Submit(new(berth.Rigid("long", 10, 50, 300, 1, 250))))
	got := kinds(apply(t, e, 10, engine.Wake()))
	if pesOf(t, e, "long") != "1" || pesOf(t, e, "later") != "0" {
		t.Errorf("%s: long has %s and later %s", got, pesOf(t, e, "long"), pesOf(t, e, "later"))
	}
	e = newEngine(t, ahead(2, 1000))
	submit(t, e, 0, berth.Rigid("zero", 0, 0, 20, 1, 20))
	submit(t, e, 0, berth.Rigid("one", 0, 0, 90, 1, 90))
	apply(t, e, 1, engine.Wake())
	submit(t, e, 1, berth.Rigid("later", 1, 100, 200, 1, 100))
	apply(t, e, 1, engine.Wake())
	if pesOf(t, e, "one") != "1" || pesOf(t, e, "later") != "0" {
		t.Fatalf("one has %s and later %s", pesOf(t, e, "one"), pesOf(t, e, "later"))
	}
	apply(t, e, 1, engine.Submit(new(berth.Rigid("long", 1, 50, 300, 1, 250))))
	changes := apply(t, e, 1, engine.Wake())
	if pesOf(t, e, "long") != "0" || pesOf(t, e, "later") != "1" {
		t.Errorf("%s: long has %s and later %s, want later to have given way", kinds(changes), pesOf(t, e, "long"), pesOf(t, e, "later"))
	}
	if !slices.ContainsFunc(changes, func(c change.Change) bool { return c.Kind == change.Named && c.ID == "later" }) {
		t.Errorf("%s does not tell that later has other PEs", kinds(changes))
	}
}

// An announced outage of a pool that names ahead is counted from then on, and promises beside
// it get PEs that it does not take.
func TestAnnouncedOutageBeforeNames(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	e := newEngine(t, ahead(3, 100))
	submit(t, e, 0, berth.Rigid("two", 0, 1000, 1100, 2, 100))
	submit(t, e, 0, berth.Rigid("all", 0, 1000, 2000, 1, 100))
	apply(t, e, 1, engine.Wake())
	got := kinds(apply(t, e, 1, engine.Down(berth.Outage{Name: "maint", Resource: pool, PEs: berth.PEsOf(1), From: 1050, Until: 1500})))
	if got != "vacated:all went_down moved:all emitted" {
		t.Errorf("the announcement: %s", got)
	}
	apply(t, e, 900, engine.Wake())
	if pesOf(t, e, "two") != "0,2" {
		t.Errorf("two has %s, want what stays", pesOf(t, e, "two"))
	}
	apply(t, e, 1600, engine.Wake())
	if _, live := e.Reservation("all"); live {
		t.Error("all is not over at 1600")
	}
}

// A PE that an announced outage takes and a promise runs on is counted once from its start on: at
// that moment a promise that lacks a PE gets it.
func TestStartOnPEsOfAnAnnouncedOutage(t *testing.T) {
	config := ahead(3, 1)
	e := newEngine(t, config)
	for _, r := range []berth.Request{
		berth.Rigid("q", 0, 0, 40, 2, 40), berth.Rigid("p", 0, 10, 100, 1, 90), berth.Rigid("d", 0, 60, 100, 2, 40),
	} {
		submit(t, e, 0, r)
	}
	apply(t, e, 1, engine.Down(berth.Outage{Resource: cm5(), PEs: berth.PEsOf(2), From: 50, Until: 500}))
	wantShape(t, e, "d", "degraded cm5:1x[60,100) missing 1")
	apply(t, e, 9, wake())
	wantShape(t, e, "d", "degraded cm5:1x[60,100) missing 1")
	apply(t, e, 10, wake())
	if got := pesOf(t, e, "p"); got != "2" {
		t.Errorf("p runs on %s, want the PE that is left", got)
	}
	wantShape(t, e, "d", "confirmed cm5:2x[60,100)")
	settled(t, config, e)
}

// A site that does not give a promise a PE makes it get another one, at no cost; if there is
// none, it stays as it is, and the refusal says so.
func TestRelocateGivesOtherNames(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	e := newEngine(t, ahead(3, 100))
	submit(t, e, 0, berth.Rigid("p", 0, 50, 150, 2, 100))
	apply(t, e, 1, engine.Wake())
	if got := kinds(apply(t, e, 2, engine.Relocate("p", pool, berth.PEsOf(0)))); got != "advanced named:p emitted" || pesOf(t, e, "p") != "1-2" {
		t.Errorf("%s: p has %s", got, pesOf(t, e, "p"))
	}
	if got := kinds(apply(t, e, 3, engine.Relocate("p", pool, berth.PEsOf(1, 2)))); got != "advanced change_refused:p" || pesOf(t, e, "p") != "1-2" {
		t.Errorf("%s: p has %s", got, pesOf(t, e, "p"))
	}
}

// A promise keeps the PEs that it has while they are free, whatever of it is changed, although
// lower ones are free too by then.
func TestAModifiedPromiseKeepsItsPEs(t *testing.T) {
	for name, changed := range map[string]berth.Request{
		"longer": berth.Rigid("p", 0, 100, 300, 1, 200), "later": berth.Rigid("p", 0, 400, 500, 1, 100), "wider": berth.Rigid("p", 0, 100, 200, 2, 100),
	} {
		e := newEngine(t, ahead(4, 1000))
		submit(t, e, 0, berth.Rigid("first", 0, 50, 150, 2, 100))
		submit(t, e, 0, berth.Rigid("p", 0, 100, 200, 1, 100))
		apply(t, e, 0, engine.Wake())
		apply(t, e, 1, engine.Cancel("first"))
		if got := pesOf(t, e, "p"); got != "2" {
			t.Fatalf("p has %s, want 2", got)
		}
		apply(t, e, 2, engine.Modify(&changed))
		apply(t, e, 2, engine.Wake())
		want := "2"
		if name == "wider" {
			want = "0,2"
		}
		if got := pesOf(t, e, "p"); got != want {
			t.Errorf("%s: p has %s, want %s", name, got, want)
		}
	}
}

// A promise that has names goes on having names where it is moved to, however far ahead that
// is, since jobs may wait for it at its site. One that has none gets none.
func TestWhatHasNamesKeepsHavingThem(t *testing.T) {
	e := newEngine(t, ahead(3, 100))
	submit(t, e, 0, berth.Rigid("named", 0, 50, 150, 2, 100))
	submit(t, e, 0, berth.Rigid("far", 0, 500, 600, 1, 100))
	apply(t, e, 0, engine.Wake())
	for id, at := range map[string]berth.Time{"named": 5000, "far": 6000} {
		apply(t, e, 1, engine.Modify(new(berth.Rigid(id, 0, at, at+100, 2, 100))))
		apply(t, e, 1, engine.Wake())
	}
	if pesOf(t, e, "named") != "0-1" || pesOf(t, e, "far") != "" {
		t.Errorf("named has %q and far %q", pesOf(t, e, "named"), pesOf(t, e, "far"))
	}
}
