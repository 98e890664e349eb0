// Package forecast says what a regular series of measurements, such as the
// bandwidth of a link, will be over the next periods, how sure that is, and how
// long it takes to move an amount of data. It fits models to the past, compares
// them by rolling origin, and turns a forecast into whole bytes and seconds. It
// reads no files, knows no clock, and books nothing.
//
// Inside it counts in float64, written so that no two machines can differ: each
// product is converted explicitly, which forbids fused operations, and no
// transcendental function of the machine is used. What leaves it for the engine
// is integers (Volumes).
package forecast

import (
	"fmt"
	"math"

	"github.com/berth-hpc/berth"
)

// Model is a way to forecast, before it has seen a series. It may be used for
// any number of series.
type Model interface {
	// Fit estimates the parameters from a past, oldest value first, and keeps no
	// reference to it. Every value must be finite; the past may be empty.
	Fit(past []float64) Fit
}

// Fit is a model with its parameters.
type Fit interface {
	// From returns what comes after a past, which may be longer than the one the
	// parameters were estimated from: states follow it, parameters stay. It
	// keeps no reference to the past.
	From(past []float64) *Path
	// String says what was chosen, such as "ARIMA(1,0,0)".
	String() string
}

// Path is a forecast without an end, read period by period. Its error is linear
// in the innovations to come: that of period h is the sum over j < h of
// psi(j)·innovation(h-j), which gives the spread of a period and that of the sum
// of all periods alike.
type Path struct {
	sigma2 float64 // variance of one innovation
	base2  float64 // variance of an error that all periods share: that of an estimated mean
	cycle  int     // the mean is periodic in the end, with this many periods; 1 if constant
	next   func() (mean, psi float64)
}

// constant returns a path with the same mean for ever.
func constant(mean, sigma2, base2 float64, psi func(j int) float64) *Path {
	j := -1
	return &Path{sigma2: sigma2, base2: base2, cycle: 1, next: func() (float64, float64) {
		j++
		return mean, psi(j)
	}}
}

// Independent innovations: what is off in one period says nothing of the next.
func independent(j int) float64 {
	if j == 0 {
		return 1
	}
	return 0
}

// Step is the forecast of one period. SD is the standard deviation of its error,
// Sum the expected total of all periods up to and with this one, and SumSD that
// total's standard deviation.
type Step struct{ Mean, SD, Sum, SumSD float64 }

// Steps reads the next n periods of a path, which is used up by it. Cost: O(n)
// for n periods, times the order of the model.
func (p *Path) Steps(n int) []Step {
	steps := make([]Step, n)
	walk := walker{path: p}
	for i := range steps {
		steps[i] = walk.next()
	}
	return steps
}

// walker adds up what a path says.
type walker struct {
	path                   *Path
	h, sum                 float64
	psis, squares, sumSqrs float64 // sums of psi, of its squares, and of the squares of its sums
}

func (w *walker) next() Step {
	mean, psi := w.path.next()
	w.h++
	w.sum += mean
	w.psis += psi
	w.squares += float64(psi * psi)
	w.sumSqrs += float64(w.psis * w.psis)
	return Step{
		Mean:  mean,
		SD:    math.Sqrt(float64(w.path.sigma2*w.squares) + w.path.base2),
		Sum:   w.sum,
		SumSD: math.Sqrt(float64(w.path.sigma2*w.sumSqrs) + float64(w.path.base2*w.h*w.h)),
	}
}

// Levels lists the percentages that intervals may have.
func Levels() []int { return []int{50, 80, 90, 95, 99} }

// quantiles are those of the normal distribution for Levels: half of what is
// left out lies beyond each side.
var quantiles = map[int]float64{50: 0.6744897501960817, 80: 1.2815515655446004, 90: 1.6448536269514722, 95: 1.959963984540054, 99: 2.5758293035489004}

// Quantile returns how many standard deviations an interval of one of Levels
// reaches to either side, by the normal distribution; false for another level.
func Quantile(level int) (z float64, ok bool) {
	z, ok = quantiles[level]
	return z, ok
}

// Context is what a model may know of a series besides its values.
type Context struct {
	// Period is the time from one value to the next. A day and a week are
	// seasons if they are a whole number of periods; 0 means that there are none.
	Period berth.Duration
	// Nominal is forecast while there is no value at all.
	Nominal float64
}

const (
	day  = 24 * 3600
	week = 7 * day
)

// seasons returns the periods of a day and of a week, 0 for those that are not
// whole or of a single period.
func (c Context) seasons() (daily, weekly int) {
	if c.Period <= 0 {
		return 0, 0
	}
	if day%c.Period == 0 && c.Period < day {
		daily = int(day / c.Period)
	}
	if week%c.Period == 0 && c.Period < week {
		weekly = int(week / c.Period)
	}
	return daily, weekly
}

// Entry is a model by name.
type Entry struct {
	Name  string
	About string
	New   func(Context) Model
}

// Models lists every model, plain ones first.
var Models = []Entry{
	{"last", "the last value", func(c Context) Model { return last{c} }},
	{"mean", "the mean of all values", func(c Context) Model { return mean{c, 0} }},
	{"recent", "the mean of the last ten values", func(c Context) Model { return mean{c, recentLength} }},
	{"ses", "simple exponential smoothing", func(c Context) Model { return smoothing{c} }},
	{"damped", "exponential smoothing with a trend that fades", func(c Context) Model { return damped{c} }},
	{"theta", "exponential smoothing with half the slope of the past", func(c Context) Model { return theta{c} }},
	{"seasonal", "the value a day or a week before, whichever was the better guess so far", func(c Context) Model { return seasonal{c} }},
	{"arima", "ARIMA, its order chosen by KPSS and AICc", func(c Context) Model { return arima{c} }},
	{"daily", "ARIMA of what a smoothed profile of the day leaves", func(c Context) Model { return profiled{c, false} }},
	{"weekly", "ARIMA of what a smoothed profile of the week leaves", func(c Context) Model { return profiled{c, true} }},
	{"blend", "several of these, each weighted by how right it was lately", func(c Context) Model { return blend{c} }},
}

// ModelNamed returns the entry of that name, false if there is none. Beside the
// names of Models there is arima:p,d,q, one given order with p and q up to 3 and
// d up to 2.
func ModelNamed(name string) (Entry, bool) {
	for _, e := range Models {
		if e.Name == name {
			return e, true
		}
	}
	var m arimaOf
	if n, err := fmt.Sscanf(name, "arima:%d,%d,%d", &m.p, &m.d, &m.q); n != 3 || err != nil ||
		m.p < 0 || m.p > maxOrder || m.d < 0 || m.d > 2 || m.q < 0 || m.q > maxOrder ||
		name != fmt.Sprintf("arima:%d,%d,%d", m.p, m.d, m.q) {
		return Entry{}, false
	}
	return Entry{name, "ARIMA of this order", func(c Context) Model {
		m.Context = c
		return m
	}}, true
}
