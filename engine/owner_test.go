package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// at says where the only part of a live reservation is.
func at(t *testing.T, e *engine.Engine, id string) string {
	t.Helper()
	r, live := e.Reservation(id)
	if !live {
		return "gone"
	}
	a := r.Allotments[0]
	return fmt.Sprintf("%s %dx[%d,%d) %v", r.State, a.NPE, a.Start, a.End, a.PEs)
}

// A modification is all or nothing: refused, the reservation stays as it is;
// granted, what it held counts as free for itself.
func TestModify(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 3, 10))
	submit(t, e, 0, berth.Rigid("b", 0, 20, 30, 3, 10))
	before := at(t, e, "a")

	more := berth.Rigid("a", 0, 10, 30, 3, 20)
	if got := kinds(apply(t, e, 1, engine.Modify(&more))); got != "advanced change_refused:a" {
		t.Fatalf("a longer one in the way of b: %s", got)
	}
	if got := at(t, e, "a"); got != before {
		t.Fatalf("a refused modification leaves %s, it was %s", got, before)
	}
	wider := berth.Rigid("a", 0, 10, 25, 4, 10)
	if got := kinds(apply(t, e, 2, engine.Modify(&wider))); got != "advanced vacated:a modified:a" {
		t.Fatalf("a wider one: %s", got)
	}
	if got := at(t, e, "a"); got != "confirmed 4x[10,20) 0-3" {
		t.Errorf("after that it is %s", got)
	}
	if r, _ := e.Reservation("a"); r.Generation != 2 {
		t.Errorf("its generation is %d, want 2", r.Generation)
	}
	apply(t, e, 10, engine.Wake())
	for _, c := range []struct {
		id    string
		r     *berth.Request
		code  berth.Code
		field string
	}{
		{"a", &wider, berth.Conflict, "id"},
		{"x", &wider, berth.NotFound, "id"},
		{"b", &wider, berth.Invalid, "request"},
		{"b", nil, berth.Invalid, "request"},
	} {
		_, _, err := e.Apply(10, engine.Event{Kind: engine.EventModify, ID: c.id, Request: c.r})
		wantCode(t, err, c.code, c.field)
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

// What is foretold of a change is what comes of it, and foretelling it changes nothing.
func TestForetell(t *testing.T) {
	late := onePool(4, berth.Late)
	for _, config := range []engine.Config{onePool(4, berth.Early), late, ahead(4, 5), ahead(4, 15), ahead(4, 100)} {
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 100, 3, 10))
		submit(t, e, 0, berth.Rigid("b", 0, 20, 30, 3, 10))
		for id, from := range map[string]berth.Time{"held": 0, "held later": 60} {
			held := berth.Rigid(id, 0, from, from+9, 1, 9)
			held.Hold = 50
			submit(t, e, 0, held)
		}
		apply(t, e, 0, engine.Wake())
		sooner, wider, unlike := berth.Rigid("a", 0, 2, 100, 2, 8), berth.Rigid("a", 0, 18, 25, 4, 10), berth.Rigid("c", 0, 2, 30, 1, 1)
		for _, event := range []engine.Event{
			engine.Modify(&wider), engine.Modify(&sooner), engine.Modify(&unlike), engine.Extend("a", 15), engine.Extend("a", 40), engine.Extend("a", 3), engine.Extend("b", 35),
			engine.Confirm("held"), engine.Confirm("held"), engine.Confirm("a"), engine.Confirm("x"), engine.Confirm("held later"),
		} {
			for foretold, no, err := e.Foretell(&event); err == nil && no == nil; {
				way, some := e.GiveWay(&foretold)
				if !some {
					break
				}
				if got := kinds(apply(t, e, 0, way)); !strings.Contains(got, "named:") {
					t.Fatalf("%s: %s is in its way and %s", event.Kind, way.ID, got)
				}
				foretold, no, err = e.Foretell(&event)
			}
			hash := e.Hash()
			foretold, refusal, err := e.Foretell(&event)
			if again := e.Hash(); again != hash {
				t.Fatalf("%s: the engine has changed", event.Kind)
			}
			changes, _, wrong := e.Apply(0, event)
			no := slices.IndexFunc(changes, func(c change.Change) bool { return c.Kind == change.ChangeRefused })
			is, _ := e.Reservation(event.ID)
			switch {
			case fmt.Sprint(err) != fmt.Sprint(wrong) || (refusal != nil) != (no >= 0):
				t.Errorf("%s: foretold is %v, %v and it was %v, %v", event.Kind, refusal, err, kinds(changes), wrong)
			case refusal != nil && !reflect.DeepEqual(refusal, changes[no].Refusal):
				t.Errorf("%s: foretold is the refusal %v, it was %v", event.Kind, refusal, changes[no].Refusal)
			case err == nil && refusal == nil && (fmt.Sprint(foretold.Allotments) != fmt.Sprint(is.Allotments) || foretold.Generation != is.Generation):
				t.Errorf("%s: foretold is %+v, it is %+v", event.Kind, foretold, is)
			}
		}
	}
	wake := engine.Wake()
	if _, _, err := newEngine(t, onePool(4, berth.Early)).Foretell(&wake); err == nil {
		t.Error("what a wake does is foretold")
	}
}

// What a site refuses on some PEs gets others in its window, at another time if
// need be; where there are none it stays, with a conflict.
func TestRelocate(t *testing.T) {
	avoid := func(pes string) engine.Event {
		set, err := berth.ParsePESet(pes)
		if err != nil {
			t.Fatal(err)
		}
		return engine.Event{Kind: engine.EventRelocate, ID: "a", Resource: berth.PoolID("cm5", "pool"), PEs: set}
	}
	e := newEngine(t, onePool(4, berth.Early))
	submit(t, e, 0, berth.Rigid("a", 0, 10, 30, 2, 10))
	submit(t, e, 0, berth.Rigid("b", 0, 10, 20, 1, 10))
	for _, c := range []struct{ pes, does, at string }{
		{"0", "advanced vacated:a moved:a", "confirmed 2x[10,20) 1,3"},
		{"0-1", "vacated:a moved:a", "confirmed 2x[20,30) 2-3"},
		{"0-2", "change_refused:a", "confirmed 2x[20,30) 2-3"},
		{"0-3", "change_refused:a", "confirmed 2x[20,30) 2-3"},
		{"3", "vacated:a moved:a", "confirmed 2x[20,30) 0,2"},
		{"1", "", "confirmed 2x[20,30) 0,2"},
	} {
		changes := apply(t, e, 1, avoid(c.pes))
		if got := kinds(changes); got != c.does || at(t, e, "a") != c.at {
			t.Errorf("avoiding %s: %s, %s; want %s, %s", c.pes, got, at(t, e, "a"), c.does, c.at)
		}
		if len(changes) == 0 {
			continue
		}
		if r := changes[len(changes)-1].Refusal; c.does == "change_refused:a" && (r == nil || r.Reason != berth.RefusedConflict || r.Wanted != 2) {
			t.Errorf("avoiding %s: the refusal is %+v", c.pes, r)
		}
	}
	if r, _ := e.Reservation("a"); r.Generation != 4 {
		t.Errorf("its generation is %d, want 4", r.Generation)
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	apply(t, e, 20, engine.Wake())
	_, _, err := e.Apply(20, avoid("3"))
	wantCode(t, err, berth.Conflict, "id")
	late := newEngine(t, onePool(4, berth.Late))
	submit(t, late, 0, berth.Rigid("a", 0, 10, 30, 2, 10))
	_, _, err = late.Apply(1, avoid("3"))
	wantCode(t, err, berth.Invalid, "pes")
	_, _, err = late.Apply(1, engine.Event{Kind: engine.EventRelocate, ID: "x"})
	wantCode(t, err, berth.NotFound, "id")
}

// What its site will not have is gone in whatever state it is, with the reason, and what waits
// for its PEs gets them.
func TestReject(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Sites[0].Managed, config.Jobs = true, "easy"
	for _, now := range []berth.Time{5, 15} { // confirmed, active
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 30, 4, 20))
		submit(t, e, 0, berth.Job("waits", 0, 4, 25))
		no := berth.Refusal{Reason: berth.SiteRefused, Wanted: 4, Words: "no such user"}
		changes := apply(t, e, now, engine.Reject("a", &no))
		at := slices.IndexFunc(changes, func(c change.Change) bool { return c.Kind == change.Rejected })
		if at < 0 || changes[at].ID != "a" || *changes[at].Refusal != no || changes[at].Refusal == &no {
			t.Fatalf("at %d: %s", now, kinds(changes))
		}
		if s, live := e.Status("a"); live {
			t.Errorf("at %d a is %+v", now, s)
		}
		if r, runs := e.Reservation("waits"); !runs || r.Start() != now {
			t.Errorf("at %d the job that waits for its PEs does not run: %s", now, kinds(changes))
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		_, _, err := e.Apply(now, engine.Reject("a", &no))
		wantCode(t, err, berth.NotFound, "id")
		_, _, err = e.Apply(now, engine.Reject("waits", nil))
		wantCode(t, err, berth.Invalid, "refusal")
	}
}

// A reservation can be made longer on the PEs that it has, before it starts and
// while it runs; where another promise follows, the answer says how long it can be.
func TestProlong(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		e := newEngine(t, onePool(4, binding))
		submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 3, 10))
		submit(t, e, 0, berth.Rigid("b", 0, 40, 50, 4, 10))
		until := func(now, end berth.Time) []change.Change {
			return apply(t, e, now, engine.Extend("a", end))
		}
		if got := kinds(until(1, 25)); got != "advanced extended:a" {
			t.Fatalf("before its start: %s", got)
		}
		changes := until(12, 45)
		last := changes[len(changes)-1]
		if last.Kind != change.ChangeRefused || last.Refusal.Reason != berth.NoCapacity || last.Refusal.Nearest.Duration != 15 {
			t.Fatalf("into b: %s %+v, want to hear of 15 s", last.Kind, last.Refusal)
		}
		if got := kinds(until(13, 40)); got != "advanced extended:a" {
			t.Fatalf("while it runs: %s", got)
		}
		if r, _ := e.Reservation("a"); r.End() != 40 || r.Generation != 3 {
			t.Errorf("it ends at %d in generation %d", r.End(), r.Generation)
		}
		if got := kinds(apply(t, e, 40, engine.Wake())); got != "advanced ended:a started:b" {
			t.Errorf("at its new end: %s", got)
		}
		_, _, err := e.Apply(40, engine.Extend("b", 45))
		wantCode(t, err, berth.Invalid, "until")
	}
}

// A longer reservation counts for its user's quota.
func TestProlongWithinTheQuota(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Limits = quotas(1, 50)
	e := newEngine(t, config)
	r := berth.Rigid("a", 0, 10, 20, 4, 10)
	r.User = "u"
	submit(t, e, 0, r)
	changes := apply(t, e, 0, engine.Extend("a", 23))
	if last := changes[len(changes)-1]; last.Kind != change.ChangeRefused || last.Refusal.Reason != berth.Quota {
		t.Errorf("52 PE-seconds of 50: %s %+v", last.Kind, last.Refusal)
	}
	if got := kinds(apply(t, e, 0, engine.Extend("a", 22))); got != "extended:a" {
		t.Errorf("48 of 50: %s", got)
	}
}

// Who does not show up loses the rest; who does keeps it.
func TestNoShow(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	for _, id := range []string{"absent", "present"} {
		r := berth.Rigid(id, 0, 0, 100, 2, 100)
		r.NoShow = 30
		submit(t, e, 0, r)
	}
	apply(t, e, 20, engine.CheckIn("present"))
	if got := kinds(apply(t, e, 30, engine.Wake())); got != "advanced no_show:absent" {
		t.Fatalf("after 30 s: %s", got)
	}
	accepted(t, submit(t, e, 31, berth.Rigid("next", 31, 31, 100, 2, 10)))
	if got := kinds(apply(t, e, 100, engine.Wake())); got != "started:next advanced ended:next advanced ended:present" {
		t.Errorf("later: %s", got)
	}
}

// At a managed site only lost PEs are replaced, nothing moves under what runs,
// and what cannot be replaced is missing until it can be.
func TestDegradedAndRepaired(t *testing.T) {
	down := func(t *testing.T, e *engine.Engine, now berth.Time, lo, hi berth.PE) []change.Change {
		pool := berth.PoolID("site", "pool")
		return apply(t, e, now, engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi})})
	}
	up := func(t *testing.T, e *engine.Engine, now berth.Time, lo, hi berth.PE) []change.Change {
		pool := berth.PoolID("site", "pool")
		return apply(t, e, now, engine.Event{Kind: engine.EventUp, Resource: pool, PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi})})
	}
	config := onePool(6, berth.Early)
	config.Sites[0].Name, config.Sites[0].Pools[0].Name, config.Sites[0].Managed = "site", "pool", true

	t.Run("only the lost PE is replaced", func(t *testing.T) {
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 4, 10))
		down(t, e, 1, 1, 2)
		if got := at(t, e, "a"); got != "confirmed 4x[10,20) 0,2-4" {
			t.Errorf("it is %s", got)
		}
		if box := e.Outbox(); len(box) != 2 || box[1].Generation != 2 {
			t.Errorf("the site hears of %+v", box)
		}
	})
	t.Run("under what runs", func(t *testing.T) {
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 0, 20, 4, 20))
		apply(t, e, 5, engine.Wake())
		down(t, e, 6, 0, 2)
		if got := at(t, e, "a"); got != "active 4x[0,20) 2-5" {
			t.Errorf("it is %s", got)
		}
		down(t, e, 7, 2, 3)
		if r, _ := e.Reservation("a"); r.Missing != 1 || r.State != berth.Active {
			t.Errorf("it is %s and lacks %d", r.State, r.Missing)
		}
		up(t, e, 8, 0, 1)
		if got := at(t, e, "a"); got != "active 4x[0,20) 0,3-5" {
			t.Errorf("repaired it is %s", got)
		}
	})
	t.Run("moved within its window, else degraded", func(t *testing.T) {
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("tight", 0, 10, 20, 6, 10))
		submit(t, e, 0, berth.Rigid("loose", 0, 20, 60, 4, 10))
		apply(t, e, 1, engine.Event{Kind: engine.EventDown, Resource: berth.PoolID("site", "pool"), PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 3}), Until: 40})
		if got := at(t, e, "tight"); got != "degraded 3x[10,20) 3-5" {
			t.Errorf("without slack it is %s", got)
		}
		if got := at(t, e, "loose"); got != "confirmed 4x[40,50) 0-3" {
			t.Errorf("with slack it is %s", got)
		}
		up(t, e, 5, 0, 3)
		if got := at(t, e, "tight"); got != "confirmed 6x[10,20) 0-5" {
			t.Errorf("repaired it is %s", got)
		}
	})
	t.Run("with nothing left it fails at its start", func(t *testing.T) {
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 6, 10))
		down(t, e, 1, 0, 6)
		if got := at(t, e, "a"); got != "degraded 0x[10,20) " {
			t.Errorf("it is %s", got)
		}
		if got := kinds(apply(t, e, 11, engine.Wake())); got != "advanced failed:a emitted advanced" {
			t.Errorf("at its start: %s", got)
		}
	})
	t.Run("of promises of counts the one that starts last gives way", func(t *testing.T) {
		late := config
		late.Sites = []berth.Site{config.Sites[0]}
		late.Sites[0].Pools = []berth.Pool{{Name: "pool", PEs: 6, Binding: berth.Late}}
		e := newEngine(t, late)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 3, 10))
		submit(t, e, 0, berth.Rigid("b", 0, 11, 20, 3, 9))
		down(t, e, 1, 0, 2)
		if got := at(t, e, "a") + "; " + at(t, e, "b"); got != "confirmed 3x[10,20) ; degraded 1x[11,20) " {
			t.Errorf("they are %s", got)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	})
}

// An extension voids plans only where it lasts longer than before, from 20 on; the
// plan of j before its start stays.
func TestExtensionLeavesPlansBeforeItAlone(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Jobs = "conservative"
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 2, 10))
	submit(t, e, 0, job("runs", 0, 4, 5))
	submit(t, e, 0, job("j", 0, 4, 5)) // throughout [5,10)
	apply(t, e, 0, engine.Wake())
	if got := kinds(apply(t, e, 1, engine.Extend("a", 30))); got != "advanced extended:a" {
		t.Errorf("changes %q", got)
	}
	if got := kinds(apply(t, e, 5, engine.Wake())); got != "advanced ended:runs accepted:j started:j" {
		t.Errorf("at the start of j: %q", got)
	}
}

// A reservation that has lost its PEs, whose time is just over and is extended, has
// what is free until its new end.
func TestExtendedReservationIsRepaired(t *testing.T) {
	config := onePool(1, berth.Early)
	config.Sites[0].Managed = true
	config.Instant = []string{"arrival", "capacity", "expiry", "end", "period", "start"}
	e := newEngine(t, config)
	pool := berth.PoolID("cm5", "pool")
	r := berth.Rigid("r", 0, 7, 8, 1, 1)
	r.Hold = 20
	submit(t, e, 0, r)
	apply(t, e, 3, engine.Event{Kind: engine.EventDown, Resource: pool, PEs: berth.PEsOf(0), Until: 14})
	apply(t, e, 8, engine.Event{Kind: engine.EventUp, Resource: pool, PEs: berth.PEsOf(0)})
	apply(t, e, 8, engine.Extend("r", 13))
	if r, live := e.Reservation("r"); !live || r.Missing != 0 || r.End() != 13 {
		t.Errorf("it is live: %t, until %d, and lacks %d PEs", live, r.End(), r.Missing)
	}
}

// A reservation without any of the PEs that its site does not give it stays where it
// is, and nothing is refused: a hold whose start has passed does not begin again, and one
// that lacks PEs lacks no more of them.
func TestRelocateLeavesThoseWithoutThePEsAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		hold  berth.Duration
		now   berth.Time
		lost  berth.PESet
		avoid berth.PESet
		want  string
	}{
		{"held beyond its start", 100, 15, berth.PESet{}, berth.PEsOf(3), "held 2x[10,20) 0-1"},
		{"degraded", 0, 5, berth.PEsOf(1, 2, 3), berth.PEsOf(1), "degraded 1x[10,20) 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := onePool(4, berth.Early)
			config.Sites[0].Managed = true
			e := newEngine(t, config)
			r := berth.Rigid("a", 0, 10, 40, 2, 10)
			r.Hold = c.hold
			submit(t, e, 0, r)
			pool := berth.PoolID("cm5", "pool")
			if !c.lost.Empty() {
				apply(t, e, 1, engine.Down(berth.Outage{Resource: pool, PEs: c.lost}))
			}
			if got := at(t, e, "a"); got != c.want {
				t.Fatalf("it is %s, want %s", got, c.want)
			}
			if got := kinds(apply(t, e, c.now, engine.Relocate("a", pool, c.avoid))); got != "advanced" {
				t.Errorf("without PE %v: %s", c.avoid, got)
			}
			if got := at(t, e, "a"); got != c.want {
				t.Errorf("then it is %s, want %s", got, c.want)
			}
		})
	}
}

// What has begun and lacks PEs gets those of work that ends at its limit, though that
// gives nothing back: they are free for the rest of its time only now.
func TestDegradedReservationGetsPEsWhenWorkEndsAtItsLimit(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		config := onePool(3, binding)
		config.Sites[0].Managed = true
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 10, 100, 2, 90))
		submit(t, e, 0, berth.Rigid("x", 0, 10, 50, 1, 40))
		apply(t, e, 20, engine.Wake())
		apply(t, e, 20, engine.Down(berth.Outage{Resource: berth.PoolID("cm5", "pool"), PEs: berth.PEsOf(1)}))
		if got := at(t, e, "a"); got != "active 1x[10,100) 0" {
			t.Fatalf("%s: without PE 1 a is %s", binding, got)
		}
		if got := kinds(apply(t, e, 50, engine.Wake())); !strings.HasPrefix(got, "advanced ended:x resized:a") {
			t.Errorf("%s: at the limit of x: %s", binding, got)
		}
		if got := at(t, e, "a"); got != "active 2x[10,100) 0,2" {
			t.Errorf("%s: then a is %s", binding, got)
		}
	}
}
