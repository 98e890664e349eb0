package forecast

import "math"

// kpssCritical is the 5 % value of the KPSS statistic for level stationarity
// (Kwiatkowski, Phillips, Schmidt, Shin, Journal of Econometrics 54, 1992, table 1).
const kpssCritical = 0.463

// kpss returns the KPSS statistic for stationarity around a level, with Bartlett
// weights up to lag ⌊4(n/100)^¼⌋. A constant series has 0. Cost: O(n·lag).
func kpss(x []float64) float64 {
	n := float64(len(x))
	centre := average(x)
	spread := variance(x, centre)
	if spread <= float64(1e-24*centre*centre) { // nothing but rounding
		return 0
	}
	lag := int(float64(4 * math.Sqrt(math.Sqrt(n/100))))
	longRun, sums, partial := spread, 0.0, 0.0
	for j := 1; j <= lag; j++ {
		product := 0.0
		for t := j; t < len(x); t++ {
			product += float64((x[t] - centre) * (x[t-j] - centre))
		}
		longRun += float64(2 * (1 - float64(j)/float64(lag+1)) * (product / n))
	}
	for _, v := range x {
		partial += v - centre
		sums += float64(partial * partial)
	}
	return sums / float64(n*n) / longRun
}

// difference returns the series of steps between neighbours, d times.
func difference(x []float64, d int) []float64 {
	w := append([]float64(nil), x...)
	for ; d > 0; d-- {
		for i := 0; i+1 < len(w); i++ {
			w[i] = w[i+1] - w[i]
		}
		w = w[:max(0, len(w)-1)]
	}
	return w
}

// integration returns how often a series must be differenced until KPSS no
// longer rejects stationarity: 0, 1 or 2, and 2 if it still does then.
func integration(x []float64) int {
	for d := range 2 {
		if kpss(difference(x, d)) < kpssCritical {
			return d
		}
	}
	return 2
}
