package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// a is given [0,10) and goes on until it is told to be finished at 25; b is
// promised [14,20), c [20,30). Where a may delay others, b yields to it and
// goes behind c, which yields later: no promise moves more than it must.
func TestOverrun(t *testing.T) {
	for _, c := range []struct {
		overrun engine.Overrun
		want    string
	}{
		{"", "a@0 a.@10 b@14 b.@20 c@20 c.@30"},
		{engine.OverrunKill, "a@0 a.@10 b@14 b.@20 c@20 c.@30"},
		{engine.OverrunRunOn, "a@0 a.@13 b@14 b.@20 c@20 c.@30"},
		{engine.OverrunDelay, "a@0 a.@25 b@30 b.@36 c@36 c.@46"},
	} {
		for _, binding := range []berth.Binding{berth.Early, berth.Late} {
			config := onePool(4, binding)
			config.Overrun, config.Extension = c.overrun, 3
			e := newEngine(t, config)
			var now berth.Time
			var words []string
			note := func(changes []change.Change) {
				for _, c := range changes {
					switch c.Kind {
					case change.Advanced:
						now = c.Now
					case change.Started:
						words = append(words, fmt.Sprintf("%s@%d", c.ID, now))
					case change.Ended:
						words = append(words, fmt.Sprintf("%s.@%d", c.ID, now))
					}
				}
			}
			note(submit(t, e, 0, berth.Rigid("a", 0, 0, 10, 3, 10)))
			note(submit(t, e, 0, berth.Rigid("b", 0, 14, 20, 2, 6)))
			note(submit(t, e, 0, berth.Rigid("c", 0, 20, 30, 4, 10)))
			for _, end := range []struct {
				id string
				at berth.Time
			}{{"b", 20}, {"a", 25}, {"c", 30}, {"b", 36}, {"c", 46}} {
				// An error says that it has ended already, or not yet begun.
				changes, _, _ := e.Apply(end.at, engine.Finish(end.id))
				note(changes)
				note(apply(t, e, end.at, engine.Wake()))
			}
			if got := strings.Join(words, " "); got != c.want {
				t.Errorf("%q %s: %s, want %s", c.overrun, binding, got, c.want)
			}
		}
	}
	for field, change := range map[string]func(*engine.Config){
		"overrun":   func(c *engine.Config) { c.Overrun = "pardon" },
		"extension": func(c *engine.Config) { c.Extension = -1 },
		"jobs":      func(c *engine.Config) { c.Jobs = "magic" },
	} {
		config := onePool(4, berth.Late)
		change(&config)
		_, err := engine.New(config)
		wantCode(t, err, berth.Invalid, field)
	}
}

// A promise that a longer run delays never begins before it was promised, although
// its window began earlier and PEs are free then.
//
//	PE 1  y y y y y y y y y y                            c c ... until 30
//	PE 0  a a a a a a a a a a (a goes on until 20) b b b b b b
//	                          10                   14    16
func TestDelayedPromiseDoesNotBeginBeforeItsTime(t *testing.T) {
	config := onePool(2, berth.Early)
	config.Overrun, config.Extension = engine.OverrunDelay, 10
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 0, 10, 1, 10))
	submit(t, e, 0, berth.Rigid("y", 0, 0, 10, 1, 10))
	submit(t, e, 0, berth.Rigid("x", 0, 10, 14, 2, 4))
	submit(t, e, 0, berth.Rigid("b", 0, 10, 100, 1, 6))
	submit(t, e, 0, berth.Rigid("c", 0, 16, 30, 1, 14))
	wantPlace := func(when, id string, start berth.Time, pes string) {
		t.Helper()
		r, _ := e.Reservation(id)
		if r.Allotments[0].Start != start || r.Allotments[0].PEs.String() != pes {
			t.Fatalf("%s: %s has %+v, want PEs %s at %d", when, id, r.Allotments, pes, start)
		}
	}
	wantPlace("promised", "b", 14, "0")
	wantPlace("promised", "c", 16, "1")
	apply(t, e, 5, engine.Cancel("x"))
	apply(t, e, 9, engine.Finish("y"))
	apply(t, e, 10, engine.Wake())
	wantPlace("a goes on", "b", 20, "0")
	wantPlace("a goes on", "c", 16, "1")
}

// What goes on takes the place of those who are in its way when PEs are short: at 29 that is y,
// which starts last of them, then at 12 it is w, for the parts of two stay. c is in the way at
// neither, and stays where it is though y could have come back instead of it.
//
//	PE 3             y y y y y y y y y y y y y y y y y
//	PE 2       u u   y y y y y y y y y y y y y y y y y
//	PE 1       u u       c c c c c
//	PE 0       w w w w w w w w w w w w w w w w w w w w until 30
//	          11    13  15        20
func TestOverrunDisplacesWhereItIsShort(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Overrun, config.Extension = engine.OverrunDelay, 20
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 0, 10, 2, 10))
	two := parts("two", 13, berth.Variant{NPE: 1, Duration: 2}, berth.Variant{NPE: 1, Duration: 2})
	two.Ready = 11
	submit(t, e, 0, two)
	submit(t, e, 0, berth.Rigid("w", 0, 11, 30, 1, 19))
	submit(t, e, 0, berth.Rigid("y", 0, 13, 30, 2, 17))
	submit(t, e, 0, berth.Rigid("c", 0, 15, 20, 1, 5))
	apply(t, e, 10, engine.Wake())
	for id, want := range map[string]bool{"two": true, "w": false, "y": false, "c": true} {
		r, _ := e.Reservation(id)
		asked := map[string]berth.Time{"two": 11, "w": 11, "y": 13, "c": 15}[id]
		if stayed := r.Start() == asked; stayed != want {
			t.Errorf("%s was promised %d and has %d", id, asked, r.Start())
		}
	}
}
