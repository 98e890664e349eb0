package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Charge returns the PE-seconds that budgets are charged for what a request holds at some places until a time, at the prices of the
// configuration: as promised with berth.Forever, and without what was foreseen to stay idle. It is less than berth.Endless.
// Cost: O(places, times sites and prices).
func (c *Config) Charge(r *berth.Request, at []berth.Allotment, until berth.Time) (n int64) {
	for i := range at {
		a := &at[i]
		if end := min(a.End, until); end > a.Start {
			n = state.AddCharges(n, state.RateOf(c.Sites, c.Prices, r, a.Resource).Charge(berth.Area(a.NPE, end.Sub(a.Start))))
		}
	}
	return n
}
