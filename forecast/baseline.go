package forecast

import "fmt"

// recentLength is how many values the fall-back averages
// (application-aware paper, section b.5 of its specification).
const recentLength = 10

// last forecasts the last value: a random walk.
type last struct{ Context }

// Fit has nothing to estimate but the size of a step.
func (m last) Fit(past []float64) Fit {
	return lastFit{m.Context, stepsOver(past, 1)}
}

type lastFit struct {
	Context
	sigma2 float64
}

func (f lastFit) String() string { return "last value" }

func (f lastFit) From(past []float64) *Path {
	if len(past) == 0 {
		return unknown(f.Context)
	}
	return constant(past[len(past)-1], f.sigma2, 0, func(int) float64 { return 1 })
}

// unknown is the path of a series without values.
func unknown(c Context) *Path { return constant(c.Nominal, 0, 0, independent) }

// mean forecasts the mean of the last values, or of all if length is 0.
type mean struct {
	Context
	length int
}

// Fit estimates the spread around the mean.
func (m mean) Fit(past []float64) Fit {
	past = m.window(past)
	return meanFit{m, variance(past, average(past))}
}

func (m mean) window(past []float64) []float64 {
	if m.length == 0 {
		return past
	}
	return tail(past, m.length)
}

type meanFit struct {
	mean
	sigma2 float64
}

func (f meanFit) String() string {
	if f.length == 0 {
		return "mean"
	}
	return fmt.Sprintf("mean of the last %d", f.length)
}

func (f meanFit) From(past []float64) *Path {
	if len(past) == 0 {
		return unknown(f.Context)
	}
	past = f.window(past)
	return constant(average(past), f.sigma2, f.sigma2/float64(len(past)), independent)
}

// fallback is what models do with a past too short for them.
func fallback(c Context, past []float64) Fit { return mean{c, recentLength}.Fit(past) }

// seasonal repeats the last day or the last week, whichever was the better guess
// so far; a season counts if it was seen twice. Without any it is the last value.
type seasonal struct{ Context }

// Fit chooses the season: the least mean square of what changed from season to
// season, on a tie the day.
func (m seasonal) Fit(past []float64) Fit {
	best := seasonalFit{m.Context, 1, stepsOver(past, 1)}
	daily, weekly := m.seasons()
	for _, season := range []int{daily, weekly} {
		if season == 0 || len(past) < 2*season {
			continue
		}
		if sigma2 := stepsOver(past, season); best.season == 1 || sigma2 < best.sigma2 {
			best.season, best.sigma2 = season, sigma2
		}
	}
	return best
}

// stepsOver returns the mean square of what changes over a number of periods, 0 if
// there is no such step.
func stepsOver(past []float64, periods int) float64 {
	sum := 0.0
	for i := periods; i < len(past); i++ {
		sum += float64((past[i] - past[i-periods]) * (past[i] - past[i-periods]))
	}
	return sum / float64(max(1, len(past)-periods))
}

type seasonalFit struct {
	Context
	season int
	sigma2 float64
}

func (f seasonalFit) String() string { return fmt.Sprintf("seasonal, %d periods", f.season) }

func (f seasonalFit) From(past []float64) *Path {
	if len(past) < f.season {
		return fallback(f.Context, past).From(past)
	}
	cycle := append([]float64(nil), tail(past, f.season)...)
	j := -1
	return &Path{sigma2: f.sigma2, cycle: f.season, next: func() (float64, float64) {
		j++
		psi := 0.0
		if j%f.season == 0 {
			psi = 1
		}
		return cycle[j%f.season], psi
	}}
}
