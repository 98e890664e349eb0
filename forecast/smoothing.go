package forecast

import "fmt"

// smoothLength is how much of the past the smoothing models look at: what is
// older has no weight left in the level.
const smoothLength = 288

// leastSmoothed is the shortest past that smoothing parameters are estimated
// from; below it stands the fall-back.
const leastSmoothed = 10

// startLevel is the level before the first value: the mean of the first ten.
func startLevel(past []float64) float64 { return average(past[:min(len(past), recentLength)]) }

// smoothing is simple exponential smoothing: level += alpha·error. alpha
// minimises the sum of squared one-step errors.
type smoothing struct{ Context }

// Fit estimates alpha.
func (m smoothing) Fit(past []float64) Fit {
	past = tail(past, smoothLength)
	if len(past) < leastSmoothed {
		return fallback(m.Context, past)
	}
	at := []float64{0.3}
	sum := search(func(v []float64) float64 {
		_, sum := smooth(past, v[0])
		return sum
	}, at, []float64{0.01}, []float64{1})
	return smoothingFit{m.Context, at[0], sum / float64(len(past))}
}

// smooth returns the last level and the sum of squared one-step errors.
func smooth(past []float64, alpha float64) (level, sum float64) {
	level = startLevel(past)
	for _, x := range past {
		e := x - level
		sum += float64(e * e)
		level += float64(alpha * e)
	}
	return level, sum
}

type smoothingFit struct {
	Context
	alpha, sigma2 float64
}

func (f smoothingFit) String() string { return fmt.Sprintf("smoothing, alpha %.2f", f.alpha) }

func (f smoothingFit) From(past []float64) *Path {
	if len(past) == 0 {
		return unknown(f.Context)
	}
	level, _ := smooth(tail(past, smoothLength), f.alpha)
	return constant(level, f.sigma2, 0, func(j int) float64 {
		if j == 0 {
			return 1
		}
		return f.alpha
	})
}

// theta is the theta method in the form of Hyndman and Billah ("Unmasking the
// Theta method", International Journal of Forecasting 19(2), 2003): simple
// exponential smoothing with half the slope of a straight line through the past.
type theta struct{ Context }

// Fit estimates alpha and the slope.
func (m theta) Fit(past []float64) Fit {
	past = tail(past, smoothLength)
	level, smoothed := smoothing(m).Fit(past).(smoothingFit)
	if !smoothed {
		return fallback(m.Context, past)
	}
	n := float64(len(past))
	centre, middle := average(past), (n-1)/2
	above, below := 0.0, 0.0
	for i, x := range past {
		t := float64(i) - middle
		above += float64(t * (x - centre))
		below += float64(t * t)
	}
	return thetaFit{level, above / below / 2}
}

type thetaFit struct {
	smoothingFit
	drift float64
}

func (f thetaFit) String() string { return fmt.Sprintf("theta, alpha %.2f", f.alpha) }

func (f thetaFit) From(past []float64) *Path {
	path := f.smoothingFit.From(past)
	flat := path.next
	// Smoothing lags behind a line, by (1-(1-alpha)^n)/alpha - 1 periods.
	forgotten := 1.0
	for range tail(past, smoothLength) {
		forgotten = float64(forgotten * (1 - f.alpha))
	}
	h := (1-forgotten)/f.alpha - 1
	path.next = func() (float64, float64) {
		h++
		mean, psi := flat()
		return mean + float64(f.drift*h), psi
	}
	return path
}

// damped is exponential smoothing with a damped trend (Gardner and McKenzie,
// "Forecasting trends in time series", Management Science 31(10), 1985). Its
// parameters minimise the sum of squared one-step errors.
type damped struct{ Context }

// Fit estimates alpha, beta and the damping.
func (m damped) Fit(past []float64) Fit {
	past = tail(past, smoothLength)
	if len(past) < leastSmoothed {
		return fallback(m.Context, past)
	}
	at := []float64{0.3, 0.05, 0.9}
	sum := search(func(v []float64) float64 {
		_, _, sum := dampedFit{alpha: v[0], beta: v[1], phi: v[2]}.run(past)
		return sum
	}, at, []float64{0.01, 0, 0.8}, []float64{1, 1, 0.98})
	return dampedFit{m.Context, at[0], at[1], at[2], sum / float64(len(past))}
}

type dampedFit struct {
	Context
	alpha, beta, phi float64
	sigma2           float64
}

func (f dampedFit) String() string {
	return fmt.Sprintf("damped trend, alpha %.2f, beta %.2f, phi %.2f", f.alpha, f.beta, f.phi)
}

// run follows a past and returns the last level and trend, and the sum of
// squared one-step errors. beta is a part of alpha, which keeps the trend stable.
func (f dampedFit) run(past []float64) (level, trend, sum float64) {
	level = startLevel(past)
	for _, x := range past {
		trend = float64(f.phi * trend)
		e := x - level - trend
		sum += float64(e * e)
		level += trend + float64(f.alpha*e)
		trend += float64(f.alpha * f.beta * e)
	}
	return level, trend, sum
}

func (f dampedFit) From(past []float64) *Path {
	if len(past) == 0 {
		return unknown(f.Context)
	}
	level, trend, _ := f.run(tail(past, smoothLength))
	fade, faded, first := 1.0, 0.0, true
	return &Path{sigma2: f.sigma2, cycle: 1, next: func() (float64, float64) {
		// An innovation moves the level by alpha and the trend by alpha·beta.
		psi := f.alpha + float64(f.alpha*f.beta*faded)
		if first {
			psi, first = 1, false
		}
		fade = float64(fade * f.phi)
		faded += fade
		return level + float64(trend*faded), psi
	}}
}
