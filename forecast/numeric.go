package forecast

import "math"

// ln returns the natural logarithm of a positive number to within some units in
// the last place. The one of the library is computed in different ways on
// different machines; this one is not.
func ln(x float64) float64 {
	const ln2 = 0.693147180559945309417232121458176568
	fraction, exponent := math.Frexp(x) // exact; the fraction is in [½, 1)
	if fraction < math.Sqrt2/2 {
		fraction, exponent = float64(fraction*2), exponent-1
	}
	// ln f = 2·artanh((f-1)/(f+1)), whose argument is at most 0.172 in size.
	s := (fraction - 1) / (fraction + 1)
	square := float64(s * s)
	sum := 0.0
	for k := 12; k >= 0; k-- {
		sum = float64(sum*square) + 1/float64(2*k+1)
	}
	return float64(2*s*sum) + float64(float64(exponent)*ln2)
}

// average returns the mean of the values, 0 if there are none.
func average(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// variance returns the mean square around a centre, 0 if there are no values.
func variance(x []float64, centre float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range x {
		sum += float64((v - centre) * (v - centre))
	}
	return sum / float64(len(x))
}

// tail returns the last n values, or all if there are no more.
func tail(x []float64, n int) []float64 { return x[max(0, len(x)-n):] }

// search finds a minimum of f in a box by trying each direction in turn and
// halving the steps when none gains (compass search: Kolda, Lewis, Torczon,
// "Optimization by direct search", SIAM Review 45(3), 2003). start lies in the
// box and becomes the result. Deterministic; a smaller value must be strictly so.
func search(f func([]float64) float64, start, low, high []float64) float64 {
	best := f(start)
	for step := 0.25; step > 0.002; {
		gained := false
		for i := range start {
			for _, sign := range []float64{1, -1} {
				old := start[i]
				start[i] = min(max(old+float64(sign*step*(high[i]-low[i])), low[i]), high[i])
				value := best
				if start[i] != old {
					value = f(start)
				}
				if value < best {
					best, gained = value, true
					break
				}
				start[i] = old
			}
		}
		if !gained {
			step /= 2
		}
	}
	return best
}

// sqrt is exact to the last place on every machine (IEEE 754).
func sqrt(x float64) float64 { return math.Sqrt(x) }
