package forecast

import (
	"fmt"
	"math"
)

const (
	// profileMost bounds the periods of a season that gets a profile: with more,
	// each is seen too seldom to be told from noise.
	profileMost = 400
	// profileSeasons is how often a season must have been seen before the rest of
	// the past, which is at least as long as one, can be fitted.
	profileSeasons = 2
)

// profiled takes a profile of the day or the week off the series and forecasts
// what is left over by ARIMA. The profile is smoothed from season to season,
// each phase by itself:
//
//	x(t) = s(t-m) + r(t)    s(t) = s(t-m) + delta·r(t)    r is ARIMA(p,0,q) without a mean
//
// which is seasonal ARIMA with one seasonal difference and one seasonal moving
// average of 1-delta (Box, Jenkins, Reinsel, "Time Series Analysis", chapter 9),
// estimated in two steps: delta by the variance that a first-order
// autoregression leaves of r, then the orders by AICc. r is neither differenced nor
// has it a mean: either would be a trend of the profile. A season that is not a whole
// number of periods, of more than 400, or seen fewer than three times gives plain
// ARIMA.
type profiled struct {
	Context
	weekly bool
}

// season returns the periods of the season, 0 if it cannot be used.
func (m profiled) season(past []float64) int {
	daily, weekly := m.seasons()
	season := daily
	if m.weekly {
		season = weekly
	}
	if season > profileMost || len(past) < (profileSeasons+1)*season || len(past) < profileSeasons*season+arimaLeast {
		return 0
	}
	return season
}

// Fit estimates delta and the ARIMA model.
func (m profiled) Fit(past []float64) Fit {
	season := m.season(past)
	if season == 0 {
		return arima{m.Context}.Fit(past)
	}
	fit := profileFit{season: season}
	least := math.Inf(1)
	for _, delta := range []float64{0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1} {
		trial := profileFit{season: season, delta: delta}
		_, rest := trial.split(past)
		if left := unexplained(tail(rest, arimaLength)); left < least {
			least, fit = left, trial
		}
	}
	_, rest := fit.split(past)
	fit.rest = arima{}.order(tail(rest, arimaLength), 0, false)
	return fit
}

// unexplained returns the variance that a first-order autoregression leaves.
func unexplained(r []float64) float64 {
	centre := average(r)
	spread, product := variance(r, centre), 0.0
	if spread == 0 {
		return 0
	}
	for t := 1; t < len(r); t++ {
		product += float64((r[t] - centre) * (r[t-1] - centre))
	}
	rho := product / float64(len(r)) / spread
	return float64(spread * (1 - float64(rho*rho)))
}

// profileFit is a fitted profile and what forecasts the rest.
type profileFit struct {
	season int
	delta  float64
	rest   arimaFit
}

func (f profileFit) String() string {
	return fmt.Sprintf("profile of %d periods, delta %.2f, and %s", f.season, f.delta, f.rest)
}

// split returns the profile behind the past, oldest phase first, and what is
// left over from the third season on. The first profile is the mean of the first
// two seasons.
func (f profileFit) split(past []float64) (profile, rest []float64) {
	m := f.season
	profile = make([]float64, m)
	for i, x := range past[:profileSeasons*m] {
		profile[i%m] += x / profileSeasons
	}
	rest = make([]float64, 0, len(past))
	for t := profileSeasons * m; t < len(past); t++ {
		r := past[t] - profile[t%m]
		profile[t%m] += float64(f.delta * r)
		rest = append(rest, r)
	}
	turn := len(past) % m
	return append(append(make([]float64, 0, m), profile[turn:]...), profile[:turn]...), rest
}

// From continues the rest and adds the profile, which goes on being smoothed.
func (f profileFit) From(past []float64) *Path {
	if len(past) < profileSeasons*f.season {
		return fallback(Context{}, past).From(past)
	}
	profile, rest := f.split(past)
	path := f.rest.From(rest)
	psis := make([]float64, f.season)
	at := 0
	return &Path{sigma2: path.sigma2, base2: path.base2, cycle: f.season, next: func() (float64, float64) {
		r, psi := path.next()
		mean, sum := profile[at]+r, psis[at]+psi
		profile[at] += float64(f.delta * r)
		psis[at] += float64(f.delta * psi)
		if at++; at == f.season {
			at = 0
		}
		return mean, sum
	}}
}
