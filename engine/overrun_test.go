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
