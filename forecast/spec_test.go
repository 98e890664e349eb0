package forecast

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth"
)

// The figures of section b.5 of the specification of the application-aware
// paper (Tang and Liao), and what of b.6 concerns forecasts.

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %v, want %v within %v", what, got, want, within)
	}
}

func TestSpecARIMA110(t *testing.T) {
	fit := arimaFit{arma: arma{p: 1, phi: [maxOrder]float64{0.5}}, d: 1}
	past := []float64{100, 110}
	steps := fit.From(past).Steps(4)
	for i, want := range []float64{115, 117.5, 118.75, 119.375} {
		near(t, "forecast", steps[i].Mean, want, 1e-9)
	}
	link := Link{Period: 5, BytesPerUnit: 5e6, LeastBytes: 500_000} // MB/s; at least 0.1 MB/s
	volumes := link.Volumes(fit.From(past))
	for i, want := range []int64{575_000_000, 1_162_500_000, 1_756_250_000} {
		if volumes.Bytes[i] != want {
			t.Errorf("after %d s %d bytes, want %d", 5*(i+1), volumes.Bytes[i], want)
		}
	}
	took, ok := volumes.Time(2_000_000_000)
	if !ok || took.Periods != 3 || took.Seconds() != 18 || took.WholePeriods() != 20 {
		t.Errorf("2000 MB take %+v, %v; want 3 periods and a part, 18 s, or 20 s of whole periods", took, ok)
	}
	near(t, "DPT", took.Float(), 17.0419, 5e-5)
}

func TestSpecAR1IsLeastSquares(t *testing.T) {
	past := []float64{10, 12, 11, 13, 12, 14}
	w, shift, scale := standardized(append([]float64(nil), past...), true)
	fits := newFitter(w, true)
	m := arma{p: 1, mean: true}
	m.minimize(w, fits.room, polish)
	near(t, "phi", m.phi[0], -0.03846, 5e-6)
	fit := arimaFit{arma: m, sum: m.residuals(w, fits.room.e)}.unscaled(Context{}, 0, shift, scale)
	near(t, "c", fit.mu*(1-fit.phi[0]), 12.84615, 5e-6)
	near(t, "S", fit.sum, 5.19231, 5e-6)
	near(t, "next", fit.From(past).Steps(1)[0].Mean, 12.30769, 5e-6)
}

func TestSpecARIMA011(t *testing.T) {
	fit := arimaFit{arma: arma{q: 1, theta: [maxOrder]float64{0.4}}, d: 1}
	past := []float64{100, 104, 103, 107}
	e := make([]float64, 3)
	fit.residuals(difference(past, 1), e)
	for i, want := range []float64{4, 0.6, 4.24} {
		near(t, "innovation", e[i], want, 1e-12)
	}
	near(t, "forecast", fit.From(past).Steps(1)[0].Mean, 105.304, 1e-9)
}

// Section b.6: data that take 10 s to S1 and 30 s to S2 give these finishing
// times at 240 s, with run times of 100, 60 and 200 standard seconds.
func TestSpecFinishingTimes(t *testing.T) {
	const bytes, now = 3_000_000_000, 240
	transfer := func(rate float64) berth.Duration {
		volumes := Link{Period: 5, BytesPerUnit: 5e6}.Volumes(Models[0].New(Context{}).Fit([]float64{rate}).From([]float64{rate}))
		took, _ := volumes.Time(bytes)
		return took.Seconds()
	}
	s1, s2 := transfer(300), transfer(100)
	for i, got := range []berth.Duration{now + s1 + 100, now + s2 + 50, now + s1 + 60, now + s2 + 100} {
		if want := []berth.Duration{350, 320, 310, 370}[i]; got != want {
			t.Errorf("finishing time %d is %d, want %d", i, got, want)
		}
	}
}

// Fewer than 20 values: the mean of the last ten; none at all: the nominal rate.
// A constant series: no difference is taken, and its value is forecast (A8).
func TestSpecFallbacks(t *testing.T) {
	rising := make([]float64, 19)
	for i := range rising {
		rising[i] = float64(i)
	}
	context := Context{Nominal: 12.5}
	for _, c := range []struct {
		past []float64
		want float64
	}{
		{rising, 13.5},
		{rising[:4], 1.5},
		{nil, 12.5},
		{constantSeries(20, 7), 7},
		{constantSeries(300, 0), 0},
		{constantSeries(50, 0.1), 0.1}, // whose mean is not exact
	} {
		fit := arima{context}.Fit(c.past)
		for _, step := range fit.From(c.past).Steps(3) {
			near(t, fit.String(), step.Mean, c.want, 1e-12)
		}
		if f, is := fit.(arimaFit); is && f.d != 0 {
			t.Errorf("a constant series is differenced %d times", f.d)
		}
	}
}

func constantSeries(n int, v float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = v
	}
	return x
}
