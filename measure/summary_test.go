package measure_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
)

// TestIntervalAgainstTable uses the printed table of Student's t, two-sided
// 95 %. For values with mean 0 and s = √n the half width is t itself.
func TestIntervalAgainstTable(t *testing.T) {
	for n, quantile := range map[int]float64{
		2: 12.7062047, 3: 4.3026527, 4: 3.1824463, 5: 2.7764451, 6: 2.5705818, 10: 2.2621572, 20: 2.0930241,
		30: 2.0452296, 31: 2.0422725, 101: 1.9839715, 1001: 1.9623391,
	} {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i) - float64(n-1)/2
		}
		var squares float64
		for _, v := range values {
			squares += v * v
		}
		scale := math.Sqrt(float64(n)) / math.Sqrt(squares/float64(n-1))
		for i := range values {
			values[i] = 7 + values[i]*scale
		}
		e := measure.EstimateOf(values)
		if math.Abs(*e.Mean-7) > 1e-12 || math.Abs(e.CI95[0]-(7-quantile)) > 1e-7 || math.Abs(e.CI95[1]-(7+quantile)) > 1e-7 {
			t.Errorf("n=%d: got %v, [%v, %v]; want 7 ± %v", n, *e.Mean, e.CI95[0], e.CI95[1], quantile)
		}
	}
}

// TestIntervalByHand: 2, 4, 4, 4, 5, 5, 7, 9 has mean 5 and squares 32, so
// s = √(32/7) = 2.1380899, and the half width is 2.3646243 · s / √8 = 1.7874880.
func TestIntervalByHand(t *testing.T) {
	e := measure.EstimateOf([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if *e.Mean != 5 || math.Abs(e.CI95[0]-3.2125120) > 1e-6 || math.Abs(e.CI95[1]-6.7874880) > 1e-6 {
		t.Errorf("got %v, %v", *e.Mean, *e.CI95)
	}
}

func TestEstimateInJSON(t *testing.T) {
	for want, values := range map[string][]float64{
		`{"mean":null,"ci95":null}`:     nil,
		`{"mean":0.5,"ci95":null}`:      {0.5},
		`{"mean":0.5,"ci95":[0.5,0.5]}`: {0.5, 0.5, 0.5},
	} {
		if got, err := json.Marshal(measure.EstimateOf(values)); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

func TestSummary(t *testing.T) {
	replications := []measure.Metrics{
		measure.Of(worked, 10),
		measure.Of([]berth.Line{refused("d", 5, 5, 1, 30, berth.Quota)}, 10),
		measure.Of(nil, 10),
	}
	s := measure.Summarize(replications)
	if s.Replications != 3 {
		t.Error(s.Replications)
	}
	for _, tt := range []struct {
		name string
		got  measure.Estimate
		mean float64
		ci   bool
	}{
		{"jobs", s.Jobs, 8.0 / 3, true},
		{"accepted", s.Accepted, 4.0 / 3, true},
		{"acceptance rate", s.AcceptanceRate, 2.0 / 7, true},
		{"slowdown", s.MeanSlowdown, 2.25, false},
		{"wait", s.MeanWait, 31.25, false},
		{"wait from arrival", s.MeanWaitFromArrival, 41.25, false},
		{"utilization", s.Utilization, 640.0 / 1350, false},
		{"requested", s.RequestedPESeconds, 940.0 / 3, true},
		{"accepted PE-seconds", s.AcceptedPESeconds, 640.0 / 3, true},
	} {
		if tt.got.Mean == nil || math.Abs(*tt.got.Mean-tt.mean) > 1e-12 || (tt.got.CI95 != nil) != tt.ci {
			t.Errorf("%s: got %v %v, want %v", tt.name, tt.got.Mean, tt.got.CI95, tt.mean)
		}
	}
	if s := measure.Summarize(nil); s.Jobs.Mean != nil {
		t.Error("a mean over no replications")
	}
}

func TestColumns(t *testing.T) {
	digits := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
	for want, e := range map[string]measure.Estimate{
		",,":        {},
		"1.5,,":     {Mean: new(1.5)},
		"1.5,1,2.5": {Mean: new(1.5), CI95: &[2]float64{1, 2.5}},
	} {
		if got := strings.Join(e.Columns(digits), ","); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
