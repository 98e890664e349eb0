package forecast

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

const (
	// blendLeast is the shortest past in which members can be compared.
	blendLeast = 30
	// blendOrigins is from how many points of the past the members are tried.
	blendOrigins = 32
	// blendHorizon is how far, where no day is longer: an hour of periods of 5 min.
	blendHorizon = 12
	// blendBands is in how many horizons weights differ: 1, 2, 3-4, 5-8, …
	blendBands = 8
	// leastPower keeps the weight of a member that was never wrong finite.
	leastPower = 1e-300
)

// blended are the members: models that fail in different ways. Those with a
// season take part where there is one.
var (
	blended         = []string{"last", "recent", "mean", "ses", "theta", "arima"}
	blendedSeasonal = []string{"seasonal", "daily", "weekly"}
)

// blend is the weighted mean of several models, with weights of their own near
// and far. Each member is fitted to the first two thirds of the past, forecasts
// from up to 32 points of the last third, and gets at each distance the weight
// 1/error⁴, where error is its mean absolute error there. Then all are fitted to
// the whole past. Combining after the inverse of past errors is that of Bates
// and Granger ("The combination of forecasts", Operational Research Quarterly
// 20, 1969), with absolute errors, which outliers do not
// rule, and the square of their weights, which leans to the best.
type blend struct{ Context }

// Fit weighs and fits the members.
func (m blend) Fit(past []float64) Fit {
	if len(past) < blendLeast {
		return fallback(m.Context, past)
	}
	known := len(past) * 2 / 3
	names, horizon := blended, blendHorizon
	for _, weekly := range []bool{false, true} {
		if season := (profiled{m.Context, weekly}).season(past[:known]); season > 0 {
			names = append(append([]string(nil), blended...), blendedSeasonal...)
			horizon = max(horizon, season)
		}
	}
	step := max(1, (len(past)-known)/blendOrigins)
	fit := blendFit{Context: m.Context, names: names}
	errors := make([][blendBands]float64, len(names))
	counts := [blendBands]float64{}
	first := make([][]float64, len(names)) // errors of the first period, by origin
	for i, name := range names {
		entry, _ := ModelNamed(name)
		model := entry.New(m.Context)
		trial := model.Fit(past[:known])
		counts = [blendBands]float64{}
		for origin := known; origin < len(past); origin += step {
			path := trial.From(past[:origin])
			for h := 0; h < horizon && origin+h < len(past); h++ {
				mean, _ := path.next()
				e := past[origin+h] - mean
				if h == 0 {
					first[i] = append(first[i], e)
				}
				errors[i][band(h)] += math.Abs(e)
				counts[band(h)]++
			}
		}
		fit.fits = append(fit.fits, model.Fit(past))
	}
	fit.weights = make([][blendBands]float64, len(names))
	for b := range blendBands {
		total := 0.0
		for i := range names {
			if counts[b] == 0 { // beyond what was tried: as the farthest that was
				fit.weights[i][b] = fit.weights[i][b-1]
			} else {
				err := errors[i][b] / counts[b]
				fit.weights[i][b] = 1 / max(float64(err*err*err*err), leastPower)
			}
			total += fit.weights[i][b]
		}
		for i := range names {
			fit.weights[i][b] /= total
		}
	}
	for k := range first[0] {
		e := 0.0
		for i := range names {
			e += float64(fit.weights[i][0] * first[i][k])
		}
		fit.sigma2 += float64(e*e) / float64(len(first[0]))
	}
	return fit
}

// band returns which weights hold for period h, counted from 0.
func band(h int) int { return min(bits.Len(uint(h)), blendBands-1) }

// blendFit is fitted models with their weights by band.
type blendFit struct {
	Context
	names   []string
	fits    []Fit
	weights [][blendBands]float64
	sigma2  float64
}

// String tells the weights of the first period.
func (f blendFit) String() string {
	var parts []string
	for i, name := range f.names {
		if f.weights[i][0] >= 0.005 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", name, float64(100*f.weights[i][0])))
		}
	}
	return strings.Join(parts, ", ")
}

// From blends means and psi weights alike, as if the innovations of all members
// were the same.
func (f blendFit) From(past []float64) *Path {
	paths := make([]*Path, len(f.fits))
	cycle := 1
	for i := range paths {
		paths[i] = f.fits[i].From(past)
		cycle = max(cycle, paths[i].cycle)
	}
	h := 0
	return &Path{sigma2: f.sigma2, cycle: cycle, next: func() (mean, psi float64) {
		b := band(h)
		// Around the first member, so that what all say comes out exactly.
		mean, psi = paths[0].next()
		first, firstPsi := mean, psi
		for i, path := range paths[1:] {
			m, s := path.next()
			mean += float64(f.weights[i+1][b] * (m - first))
			psi += float64(f.weights[i+1][b] * (s - firstPsi))
		}
		h++
		return mean, psi
	}}
}
