package advise

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/measure"
)

// estimate returns the mean of the values and its interval; values that are NaN do not count.
func estimate(values []float64) measure.Estimate {
	var known []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	return measure.EstimateOf(known)
}

// partOf returns an estimate of parts in %, whose interval lies within what parts can be.
func partOf(values []float64) measure.Estimate {
	e := estimate(values)
	if e.CI95 != nil {
		e.CI95[0], e.CI95[1] = max(0, e.CI95[0]), min(100, e.CI95[1])
	}
	return e
}

// minus returns the differences of pairs.
func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// quantile returns the smallest value that is not below a part q of the sorted values; NaN of
// none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// resamples is how often the segments are drawn anew for an interval.
const resamples = 1000

// between returns the 95 % interval of a figure of values that stand in groups, by drawing
// the groups anew (the percentile bootstrap over clusters): what is in one group depends on one
// another. It is nil with fewer than two groups that have values. The figure gets sorted values.
func between(groups [][]float64, seed uint64, purpose string, figure func(sorted []float64) float64) *[2]float64 {
	var some [][]float64
	for _, g := range groups {
		if len(g) > 0 {
			some = append(some, g)
		}
	}
	if len(some) < 2 {
		return nil
	}
	draws, n := stream.New(seed, purpose), uint64(0)
	figures := make([]float64, resamples)
	var all []float64
	for k := range figures {
		all = all[:0]
		for range some {
			all = append(all, some[int(draws.Float64(n)*float64(len(some)))]...)
			n++
		}
		slices.Sort(all)
		figures[k] = figure(all)
	}
	slices.Sort(figures)
	return &[2]float64{quantile(figures, 0.025), quantile(figures, 0.975)}
}
