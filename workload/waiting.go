package workload

import (
	"math"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
)

// SizeLaw is a distribution of request sizes with a name.
type SizeLaw struct {
	Name  string
	About string
	// Shares returns the probabilities of the sizes 1 to m, in this order. K1
	// and K2 are those of the eager filter, in thousandths; a law may ignore
	// them. The arguments must be those of a valid Waiting.
	Shares func(m berth.Count, k1, k2 int64) []float64
}

// SizeLaws lists the laws; the first is the default.
var SizeLaws = []SizeLaw{
	{"uniform", "every size from 1 to the largest site alike", uniformShares},
	{"theorem", "mostly sizes from m·K1 to m·(1−K2), as the theorem on eager admission wants (Sahakyan and Petrosyan, section 7)", theoremShares},
}

// SizeLawNamed returns the law of that name.
func SizeLawNamed(name string) (SizeLaw, bool) {
	for _, law := range SizeLaws {
		if law.Name == name {
			return law, true
		}
	}
	return SizeLaw{}, false
}

func uniformShares(m berth.Count, _, _ int64) []float64 {
	shares := make([]float64, m)
	for i := range shares {
		shares[i] = 1 / float64(m)
	}
	return shares
}

// theoremShares is the law under which Sahakyan and Petrosyan, section 7, claim
// that eager admission utilises more: p(j) in proportion to
//
//	c_j = 1 / (m·K1 − j)         for j < m·K1
//	      1                      for m·K1 ≤ j ≤ m·(1−K2)
//	      1 / (j − m·(1−K2))     for j > m·(1−K2)
//
// Deviations (spec 4, c): the paper takes p from a linear programme in whose
// statement c does not occur. As printed its solution is all mass on j = m,
// which denies the theorem's own precondition; c is evidently meant as the
// weight. And c has m·K2 as the band's upper end where the theorem's set A has
// m·(1−K2), which is taken here.
func theoremShares(m berth.Count, k1, k2 int64) []float64 {
	shares := make([]float64, m)
	lower, upper := int64(m)*k1, int64(m)*(1000-k2) // in thousandths of a PE
	total := 0.0
	for i := range shares {
		size := 1000 * int64(i+1)
		weight := 1.0
		switch {
		case size < lower:
			weight = 1000 / float64(lower-size)
		case size > upper:
			weight = 1000 / float64(size-upper)
		}
		shares[i] = weight
		total += weight
	}
	for i := range shares {
		shares[i] /= total
	}
	return shares
}

// Waiting generates the workload that the waiting-time paper describes: jobs
// (β, θ, ω) of a run time, a number of PEs and a waiting limit, which arrive as
// a Poisson process. The paper prints no experiment, so the distributions are
// ours (spec 4, c). The zero value is not valid.
type Waiting struct {
	Sizes  SizeLaw
	MaxNPE berth.Count // m: sizes are from 1 to this
	K1, K2 int64       // of the size law, in thousandths
	Gap    float64     // mean seconds between arrivals, exponential
	// Duration is the mean run time in seconds, exponential, or everybody's if
	// Fixed.
	Duration float64
	Fixed    bool
	Limit    float64 // mean waiting limit in seconds, exponential; 0 lets no request wait
	Seed     uint64
}

// Validate reports the first parameter that cannot be right, as an
// *berth.Error with code Invalid.
func (w *Waiting) Validate() error {
	if w.Sizes.Shares == nil {
		return berth.Errorf(berth.Invalid, "sizes", "missing; want one of the size laws")
	}
	if w.MaxNPE < 1 || w.MaxNPE > berth.MaxPEs {
		return berth.Errorf(berth.Invalid, "npe", "sizes up to %d; 1 to %d are possible", w.MaxNPE, berth.MaxPEs)
	}
	if w.K1 < 0 || w.K1 > 1000 {
		return berth.Errorf(berth.Invalid, "k1", "%d thousandths; it must lie in [0,1]", w.K1)
	}
	if w.K2 < 0 || w.K2 > 1000 {
		return berth.Errorf(berth.Invalid, "k2", "%d thousandths; it must lie in [0,1]", w.K2)
	}
	for _, f := range []struct {
		field    string
		value    float64
		positive bool
	}{{"gap", w.Gap, true}, {"duration", w.Duration, true}, {"limit", w.Limit, false}} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) || (f.positive && f.value == 0) {
			return berth.Errorf(berth.Invalid, f.field, "mean of %v s; want a finite length of time", f.value)
		}
	}
	return nil
}

// MeanNPE returns the mean size.
func (w *Waiting) MeanNPE() float64 {
	mean := 0.0
	for i, share := range w.Sizes.Shares(w.MaxNPE, w.K1, w.K2) {
		mean += float64(share * float64(i+1))
	}
	return mean
}

// Requests returns n requests in order of arrival, with the ids 1 to n. Each is
// ready when it arrives, and its deadline is arrival + ω + β, the waiting limit
// as a window. Arrivals and limits are rounded down to whole seconds, run times
// up, to at least one.
//
// Arrivals, sizes, run times and limits come from four streams, with one draw
// of each for every request: the first k requests do not depend on n, and a
// change of one distribution leaves the draws of the others. An error is that
// of Validate, or concerns a time beyond berth.TimeLimit. Cost: O(n·m).
func (w *Waiting) Requests(n int) ([]berth.Request, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	shares := w.Sizes.Shares(w.MaxNPE, w.K1, w.K2)
	arrivals, sizes := stream.New(w.Seed, "waiting arrival"), stream.New(w.Seed, "waiting size")
	runs, limits := stream.New(w.Seed, "waiting duration"), stream.New(w.Seed, "waiting limit")
	requests := make([]berth.Request, 0, max(n, 0))
	clock := 0.0
	for i := range uint64(max(n, 0)) {
		clock += exponential(w.Gap, arrivals.Float64(i))
		run := w.Duration
		if !w.Fixed {
			run = exponential(w.Duration, runs.Float64(i))
		}
		arrival := secondsDown(clock)
		duration := max(1, berth.Duration(secondsUp(run)))
		deadline := arrival + secondsDown(exponential(w.Limit, limits.Float64(i))) + berth.Time(duration)
		r := berth.Rigid(strconv.FormatUint(i+1, 10), arrival, arrival, deadline, sizeAt(shares, sizes.Float64(i)), duration)
		if err := r.Validate(); err != nil {
			return nil, err
		}
		requests = append(requests, r)
	}
	return requests, nil
}

// exponential returns the value of the exponential distribution below which
// the part u of it lies; u is in [0,1).
func exponential(mean, u float64) float64 { return float64(-mean * log(1-u)) }

// secondsUp rounds up to whole seconds, and forgives an error of 1e-9.
func secondsUp(seconds float64) berth.Time { return -secondsDown(1e-9 - seconds) }

// sizeAt returns the smallest size such that more than the part u of the shares
// is up to it.
func sizeAt(shares []float64, u float64) berth.Count {
	sum := 0.0
	for i, share := range shares {
		if sum += share; u < sum {
			return berth.Count(i + 1)
		}
	}
	return berth.Count(len(shares)) // the sum was rounded below 1
}
