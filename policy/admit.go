package policy

import (
	"math/bits"

	"github.com/berth-hpc/berth"
)

// Permille is a share in thousandths.
type Permille int64

// Eager is the admission filter C of Sahakyan and Petrosyan, section 6: a
// request that is narrow for a site is refused there while the site is busy,
// which keeps room for wide ones. The zero value admits everything.
//
//	C(j) = θ/R_j ≥ K1  or  D_j(0, ω+β) ≤ K2
//
// D, which the paper does not define, is the share of the PE-seconds from now
// to the request's deadline that is booked (spec 4, b).
type Eager struct {
	K1 Permille `json:"k1"` // 0 admits everything
	K2 Permille `json:"k2"` // 1000 admits everything
	// Grid takes D over all pools instead of the one asked.
	Grid bool `json:"grid,omitempty"`
	// RefuseAll refuses a request at the first pool that C denies it,
	// instead of asking the next.
	RefuseAll bool `json:"refuse_all,omitempty"`
}

// Validate reports a share outside [0,1].
func (c *Eager) Validate() error {
	if c.K1 < 0 || c.K1 > 1000 {
		return berth.Errorf(berth.Invalid, "k1", "%d thousandths; it must lie in [0,1]", c.K1)
	}
	if c.K2 < 0 || c.K2 > 1000 {
		return berth.Errorf(berth.Invalid, "k2", "%d thousandths; it must lie in [0,1]", c.K2)
	}
	return nil
}

// Wide reports whether npe PEs are enough of size to pass whatever is booked.
func (c *Eager) Wide(npe, size berth.Count) bool {
	return int64(npe)*1000 >= int64(c.K1)*int64(size)
}

// Idle reports whether at most the share K2 of the total PE-seconds is booked.
func (c *Eager) Idle(booked, total int64) bool {
	hi, lo := bits.Mul64(uint64(booked), 1000)
	limitHi, limitLo := bits.Mul64(uint64(total), uint64(c.K2))
	return hi < limitHi || (hi == limitHi && lo <= limitLo)
}
