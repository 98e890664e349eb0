package service

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A user whose large workflow held others has the next one planned 99 times as long after it, and after 4 s at
// most. Those who are alone wait for twice that time, and others for nothing.
func TestALargeWorkflowPutsOffTheNextOfItsUser(t *testing.T) {
	owner := func(who string) string { return strings.TrimSuffix(who, "-account") }
	for name, c := range map[string]struct {
		held   time.Duration
		others []string // ask meanwhile
		want   time.Duration
	}{
		"it held no one":                  {0, []string{"bob"}, 0},
		"others ask":                      {30 * time.Millisecond, []string{"bob"}, 2970 * time.Millisecond},
		"it held others for long":         {time.Second, []string{"bob", "carol"}, 4 * time.Second},
		"for longer than it is put off":   {time.Minute, []string{"bob"}, 4 * time.Second},
		"no one else asks":                {30 * time.Millisecond, nil, 60 * time.Millisecond},
		"their account asks, and a clock": {30 * time.Millisecond, []string{"ann-account", "ann", ""}, 60 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &Host{planner: newPlanner(owner), line: newLine(owner)}
				planned := map[string]time.Duration{}
				began := time.Now()
				for _, who := range []string{"bob", "ann", "ann-account"} {
					h.planner.line.push(who, func() { planned[who] = time.Since(began) })
				}
				h.putOff("ann-account", c.held)
				for _, who := range c.others {
					h.line.push(who, func() {})
				}
				for len(planned) < 3 {
					<-h.planner.line.ready
					for do, ok := h.planner.line.pop(); ok; do, ok = h.planner.line.pop() {
						do()
					}
				}
				if planned["ann"] != c.want || planned["ann-account"] != c.want || planned["bob"] != 0 {
					t.Errorf("planned after %v, want %s for ann and her account, and 0 for bob", planned, c.want)
				}
				if len(h.line.heard) > 0 || len(h.planner.line.owed) > 0 {
					t.Errorf("%v are still watched, and %v owe", h.line.heard, h.planner.line.owed)
				}
			})
		})
	}
}
