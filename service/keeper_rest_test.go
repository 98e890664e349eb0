package service

import (
	"testing"
	"time"
)

// A keeper rests for a while that follows from what its rounds cost, and never longer than it always did.
func TestKeeperRestsAsLongAsItsRoundsCost(t *testing.T) {
	for name, c := range map[string]struct{ every, cost, took, want time.Duration }{
		"a quick round at a site that costs nothing":   {time.Second, 0, 2 * time.Millisecond, 8 * time.Millisecond},
		"a slow round":                                 {time.Second, 0, 30 * time.Millisecond, 50 * time.Millisecond},
		"looks that cost something":                    {5 * time.Second, 4 * time.Millisecond, 2 * time.Millisecond, 120 * time.Millisecond},
		"looks that cost much":                         {5 * time.Second, 20 * time.Millisecond, 2 * time.Millisecond, 250 * time.Millisecond},
		"looks that cost so much that they are seldom": {time.Second, time.Second, 2 * time.Second, 1500 * time.Millisecond},
	} {
		k := &keeper{manager: Manager{Every: c.every}}
		k.cost.Store(int64(c.cost))
		if got := k.rest(c.took); got != c.want {
			t.Errorf("%s: it rests %v, want %v", name, got, c.want)
		}
	}
}
