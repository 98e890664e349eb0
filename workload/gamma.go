package workload

import (
	"math"
	"math/rand/v2"
)

// gamma is the gamma distribution of a shape and a scale (mean shape·scale).
// The shape is at least 1.
type gamma struct{ shape, scale float64 }

// draw returns one variate.
//
// G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables",
// ACM TOMS 26(3), 2000. Deviation: the normal variates come from the polar
// method without keeping the second of each pair, so that a draw depends on
// nothing before it. The original Lublin-Feitelson program samples otherwise;
// every exact sampler has the same distribution.
func (g gamma) draw(rng *rand.Rand) float64 {
	d := g.shape - 1.0/3
	c := 1 / math.Sqrt(float64(9*d))
	for {
		x := normal(rng)
		root := 1 + float64(c*x)
		if root <= 0 {
			continue
		}
		v := float64(float64(root*root) * root)
		u := 1 - rng.Float64() // in (0,1], so that its logarithm exists
		square := float64(x * x)
		if u < 1-float64(0.0331*float64(square*square)) {
			return float64(float64(d*v) * g.scale)
		}
		bound := float64(0.5*square) + float64(d*(1-v+log(v)))
		if log(u) < bound {
			return float64(float64(d*v) * g.scale)
		}
	}
}

// normal returns a standard normal variate by the polar method (G. Marsaglia,
// T. A. Bray, "A convenient method for generating normal variables", SIAM
// Review 6(3), 1964).
func normal(rng *rand.Rand) float64 {
	for {
		x := float64(2*rng.Float64()) - 1
		y := float64(2*rng.Float64()) - 1
		s := float64(x*x) + float64(y*y)
		if 0 < s && s < 1 {
			return float64(x * math.Sqrt(float64(-2*log(s))/s))
		}
	}
}

// cumulated returns the distribution function at x > 0 times Γ(shape), which
// is the lower incomplete gamma function of x/scale, by its power series
// (Abramowitz and Stegun, 6.5.29). All terms are positive, so nothing cancels.
func (g gamma) cumulated(x float64) float64 {
	t := x / g.scale
	term := 1 / g.shape
	sum := term
	for n := 1.0; term > float64(sum*0x1p-60); n++ {
		term = float64(term*t) / (g.shape + n)
		sum += term
	}
	return float64(exp(float64(g.shape*log(t))-t) * sum)
}
