package policy

import (
	"math/bits"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// LeastPressure takes the start at which the request is least in the way of others:
//
//	m + h + (1 + 4·n/N) · x/(x + 4·d)
//
// for n of N PEs and a duration d, where m is the mean share of the PEs that is booked while
// it would run, h the highest such share, and x how far the start is from now. m and h keep
// room at every time, for requests that come at short notice; the distance uses what is near,
// which is lost if nobody takes it, and the wider a request the more, since what it leaves in
// pieces no other wide one can use.
//
// Source: ours. The two fours and the equal weights of m, h and the distance were tuned on three logs; see
// docs/results/least-pressure.md for what it gains on others.
type LeastPressure struct{}

var _ calendar.Weigher = LeastPressure{}

// The numbers of the formula.
const (
	pressureWidth    = 4
	pressureDistance = 4
	pressureOne      = 1 << 30 // a share of 1
)

// Order declares a criterion of its own.
func (LeastPressure) Order() calendar.Order { return calendar.Order{By: calendar.Custom} }

// Key is the start: of a rectangle alone no pressure is known.
func (LeastPressure) Key(r berth.Rectangle) int64 { return int64(r.Start) }

// Weigh is the pressure in units of 2^-30, each term rounded down.
func (LeastPressure) Weigh(l calendar.Load) int64 {
	mean := shareOf(l.Booked, berth.Area(l.PEs, l.Duration))
	most := shareOf(int64(l.PEs-l.Free), int64(l.PEs))
	away := int64(l.Start.Sub(l.Now))
	distance := shareOf(away, away+pressureDistance*int64(l.Duration))
	return mean + most + distance + pressureWidth*distance*int64(l.NPE)/int64(l.PEs)
}

// shareOf returns part/whole in units of 2^-30, rounded down, for 0 ≤ part ≤ whole > 0.
func shareOf(part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(part), pressureOne)
	quotient, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(quotient)
}
