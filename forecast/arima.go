package forecast

import (
	"fmt"
	"math"
)

const (
	// arimaLength is how many of the last values are fitted, and arimaLeast how
	// many there must be (application-aware paper, section b.5 of its
	// specification: 24 minutes of periods of 5 s).
	arimaLength = 288
	arimaLeast  = 20
)

// arima is ARIMA(p,d,q) with p and q up to 3: d by KPSS, the order by AICc, the
// parameters by the conditional sum of squares (Box, Jenkins, Reinsel, "Time
// Series Analysis", chapters 4 to 7; application-aware paper, section b.5 of its
// specification). A mean is estimated only if d = 0. A past of fewer than 20
// values gets the mean of the last ten, a constant one its value.
//
// Deviation: the sum of squares is minimised by damped Gauss-Newton steps from
// several starts and not by the Nelder-Mead method. It is the same minimum,
// found with more digits and in less time.
type arima struct{ Context }

// Fit chooses and estimates.
func (m arima) Fit(past []float64) Fit {
	past = tail(past, arimaLength)
	if len(past) < arimaLeast {
		return fallback(m.Context, past)
	}
	d := integration(past)
	return m.order(past, d, d == 0)
}

// order chooses p and q for a given d, with a mean or without: the smallest AICc,
// on a tie fewer parameters, then the smaller q.
func (m arima) order(past []float64, d int, mean bool) arimaFit {
	w, shift, scale := standardized(difference(past, d), mean)
	best := arimaFit{Context: m.Context, d: d, arma: arma{mean: mean, mu: shift}, criterion: math.Inf(1)}
	if scale == 0 {
		return best
	}
	fits := newFitter(w, mean)
	for total := 0; total <= 2*maxOrder; total++ {
		for q := max(0, total-maxOrder); q <= min(total, maxOrder); q++ {
			if f := fits.fit(total-q, q); f.criterion < best.criterion {
				best = f
			}
		}
	}
	return fits.polished(&best).unscaled(m.Context, d, shift, scale)
}

// arimaOf is ARIMA of one given order.
type arimaOf struct {
	Context
	p, d, q int
}

// Fit estimates the parameters.
func (m arimaOf) Fit(past []float64) Fit {
	past = tail(past, arimaLength)
	if len(past) < arimaLeast {
		return fallback(m.Context, past)
	}
	w, shift, scale := standardized(difference(past, m.d), m.d == 0)
	if scale == 0 {
		return arimaFit{Context: m.Context, d: m.d, arma: arma{mean: m.d == 0, mu: shift}}
	}
	fits := newFitter(w, m.d == 0)
	var fit arimaFit
	for i := range m.p + 1 {
		for j := range m.q + 1 {
			fit = fits.fit(i, j)
		}
	}
	return fits.polished(&fit).unscaled(m.Context, m.d, shift, scale)
}

// standardized brings a series to mean 0, if it is to have one, and to a mean
// square of 1; scale is 0 if there is nothing to bring there.
func standardized(w []float64, centred bool) (z []float64, shift, scale float64) {
	if centred {
		shift = average(w)
	}
	scale = sqrt(variance(w, shift))
	if scale <= float64(1e-12*math.Abs(shift)) { // nothing but rounding
		return w, shift, 0
	}
	for i := range w {
		w[i] = (w[i] - shift) / scale
	}
	return w, shift, scale
}

// fitter fits all orders to one series, each starting from its smaller
// neighbours.
type fitter struct {
	w    []float64
	mean bool
	room *room
	done [maxOrder + 1][maxOrder + 1]*arimaFit
}

func newFitter(w []float64, mean bool) *fitter {
	return &fitter{w: w, mean: mean, room: newRoom(len(w))}
}

// fit estimates order (p,q); the orders with one parameter less come first.
func (f *fitter) fit(p, q int) arimaFit {
	if f.done[p][q] != nil {
		return *f.done[p][q]
	}
	best, least := arma{}, math.Inf(1)
	try := func(start arma) {
		start.p, start.q, start.mean = p, q, f.mean
		if sum := start.minimize(f.w, f.room, compare); sum < least {
			best, least = start, sum
		}
	}
	try(arma{})
	if p > 0 {
		try(f.done[p-1][q].arma)
	}
	if q > 0 {
		try(f.done[p][q-1].arma)
	}
	fit := f.judged(best)
	f.done[p][q] = &fit
	return fit
}

// polished estimates the parameters of a fit to the last digits.
func (f *fitter) polished(fit *arimaFit) arimaFit {
	m := fit.arma
	m.minimize(f.w, f.room, polish)
	return f.judged(m)
}

// judged returns the fit of given parameters with its criterion.
func (f *fitter) judged(m arma) arimaFit {
	fit := arimaFit{arma: m}
	e := f.room.e
	fit.sum = m.residuals(f.w, e)
	// The first residuals are left out for every order, so that the criteria
	// speak of the same values.
	n := float64(len(f.w) - maxOrder)
	k := float64(m.parameters() + 1)
	fit.sigma2 = variance(e[maxOrder:], 0)
	fit.criterion = math.Inf(1)
	if n > k+1 {
		const floor = 1e-24 // what rounding leaves of a series of size 1
		fit.criterion = float64(n*ln(max(fit.sigma2, floor))) + 2*k*n/(n-k-1)
	}
	return fit
}

// arimaFit is a fitted ARIMA model.
type arimaFit struct {
	Context
	arma
	d                      int
	sum, sigma2, criterion float64 // criterion is AICc up to a constant of the scale
}

// unscaled returns the fit in the units of the series.
func (f arimaFit) unscaled(c Context, d int, shift, scale float64) arimaFit {
	f.Context, f.d = c, d
	f.mu = shift + float64(f.mu*scale)
	f.sum = float64(f.sum * scale * scale)
	f.sigma2 = float64(f.sigma2 * scale * scale)
	return f
}

func (f arimaFit) String() string { return fmt.Sprintf("ARIMA(%d,%d,%d)", f.p, f.d, f.q) }

// From runs the recursion on: innovations to come are 0, and the differences are
// added up again.
func (f arimaFit) From(past []float64) *Path {
	past = tail(past, arimaLength)
	if len(past) < f.d+max(1, f.p) {
		return fallback(f.Context, past).From(past)
	}
	w := difference(past, f.d)
	e := make([]float64, len(w))
	f.residuals(w, e)

	var values, errors, psis [maxOrder]float64 // newest first
	for i := range min(maxOrder, len(w)) {
		values[i], errors[i] = w[len(w)-1-i], e[len(e)-1-i]
	}
	ends := make([]float64, f.d) // the last value of the series and of its differences
	for i := range ends {
		x := difference(past, i)
		ends[i] = x[len(x)-1]
	}
	sums := make([]float64, f.d) // the psi weights, added up likewise
	h := 0
	return &Path{sigma2: f.sigma2, cycle: 1, next: func() (float64, float64) {
		v, psi := f.mu, 0.0
		for j := range f.p {
			v += float64(f.phi[j] * (values[j] - f.mu))
			psi += float64(f.phi[j] * psis[j])
		}
		for j := range f.q {
			v -= float64(f.theta[j] * errors[j])
		}
		switch {
		case h == 0:
			psi = 1
		case h <= f.q:
			psi -= f.theta[h-1]
		}
		values = [maxOrder]float64{v, values[0], values[1]}
		errors = [maxOrder]float64{0, errors[0], errors[1]}
		psis = [maxOrder]float64{psi, psis[0], psis[1]}
		for i := f.d - 1; i >= 0; i-- {
			ends[i] += v
			sums[i] += psi
			v, psi = ends[i], sums[i]
		}
		h++
		return v, psi
	}}
}
