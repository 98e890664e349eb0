package workload

import (
	"math"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
)

// Noise makes run times differ from what was foreseen, by up to the same part
// either way (the offset experiment of Ahuja et al. needs such run times): run
// i becomes
//
//	max(1, ⌊run · (1+e) + ½⌋),  e = Amount · (2U − 1),
//
// with U draw i of a stream, uniform on [0,1). The zero value changes nothing.
type Noise struct {
	Amount float64 // from 0 to 1
	Seed   uint64  // of the draws; 0 is a seed
}

// Validate reports an amount that cannot be right, as an *berth.Error with
// code Invalid.
func (n *Noise) Validate() error {
	if !(n.Amount >= 0 && n.Amount <= 1) {
		return berth.Errorf(berth.Invalid, "noise", "%v; it must be a number from 0 to 1", n.Amount)
	}
	return nil
}

// Apply changes the run times in place. The noise must be valid. No result is
// beyond berth.TimeLimit.
func (n *Noise) Apply(runs []berth.Duration) {
	if n.Amount == 0 {
		return
	}
	draws := stream.New(n.Seed, "noise")
	for i, run := range runs {
		e := float64(n.Amount * (float64(2*draws.Float64(uint64(i))) - 1))
		// The conversion has the product rounded before a half is added.
		noisy := math.Floor(float64(float64(run)*(1+e)) + 0.5)
		runs[i] = berth.Duration(min(max(1, noisy), berth.TimeLimit-1))
	}
}
