package forecast_test

import (
	"math"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/forecast"
)

func lastModel(t *testing.T) forecast.Model {
	t.Helper()
	entry, ok := forecast.ModelNamed("last")
	if !ok {
		t.Fatal("no model last")
	}
	return entry.New(forecast.Context{Period: 60})
}

// The scores of the last value on five values, worked out by hand.
func TestScoresByHand(t *testing.T) {
	trials := forecast.Trials{First: 2, Step: 1, Horizons: []int{1, 2}, Level: 90}
	got := trials.Evaluate(lastModel(t), &forecast.Series{Period: 60, Values: []float64{10, 12, 11, 15, 15}})
	// Known 10,12: 12 against 11 and 15. Known 10,12,11: 11 against 15 and 15.
	// Known 10,12,11,15: 15 against 15.
	for i, want := range []map[string]float64{
		{
			"N": 3, "MAE": 5. / 3, "RMSE": math.Sqrt(17. / 3), "SMAPE": (2./23 + 8./26) / 3, "MASE": (1/2. + 4/1.5) / 3, "SumMAE": 5. / 3,
			"Transfers": 3, "TransferError": (1./12 + 4./11) / 3,
		},
		{
			"N": 2, "MAE": 3.5, "RMSE": math.Sqrt(25. / 2), "SMAPE": (6./27 + 8./26) / 2, "MASE": (3/2. + 4/1.5) / 2, "SumMAE": 5,
			"Transfers": 2, "TransferError": ((22./12)/(1+11./15) - 1 + 2/(22./15) - 1) / 2,
		},
	} {
		s := got[i]
		for name, x := range map[string]float64{
			"N": float64(s.N), "MAE": s.MAE, "RMSE": s.RMSE, "SMAPE": s.SMAPE, "MASE": s.MASE, "SumMAE": s.SumMAE,
			"Transfers": float64(s.Transfers), "TransferError": s.TransferError,
		} {
			if math.Abs(x-want[name]) > 1e-3*want[name] {
				t.Errorf("%d ahead: %s is %g, want %g", s.Horizon, name, x, want[name])
			}
		}
	}
}

// An error is not measured by the steps of a past that had none.
func TestMASENeedsSteps(t *testing.T) {
	trials := forecast.Trials{First: 2, Step: 1, Horizons: []int{1}, Level: 90}
	flat := trials.Evaluate(lastModel(t), &forecast.Series{Period: 60, Values: []float64{5, 5, 5, 9}})
	if s := flat[0]; s.N != 2 || s.MAE != 2 || !math.IsNaN(s.MASE) || s.Covered != 0.5 || s.SumCovered != 0.5 {
		t.Errorf("%+v", s)
	}
	// Known 5,5,9: 9 against 3, after steps of 2 on average.
	later := trials.Evaluate(lastModel(t), &forecast.Series{Period: 60, Values: []float64{5, 5, 9, 3}})
	if s := later[0]; s.N != 2 || s.MAE != 5 || s.MASE != 3 {
		t.Errorf("%+v", s)
	}
}

// Whole periods of an origin's future that lie behind a break are not scored.
func TestNothingIsScoredAcrossABreak(t *testing.T) {
	trials := forecast.Trials{First: 2, Step: 1, Horizons: []int{1, 2}, Level: 90}
	series := &forecast.Series{Period: 60, Values: []float64{5, 5, 6, 90, 90}, Breaks: []int{3}}
	if origins := trials.Origins(series); !slices.Equal(origins, []int{2, 4}) {
		t.Errorf("origins %v", origins)
	}
	got := trials.Evaluate(lastModel(t), series)
	if got[0].N != 2 || got[0].MAE != 0.5 || got[1].N != 0 || !math.IsNaN(got[1].MAE) {
		t.Errorf("%+v", got)
	}
}
