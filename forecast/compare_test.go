package forecast_test

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
)

func TestCompareScoresModelsAgainstTheLastValue(t *testing.T) {
	var s forecast.Series
	s.Period = 60
	for i := range 40 {
		s.Values = append(s.Values, float64(i%2))
	}
	trials := forecast.DefaultTrials(&s, 8, 90, 0, 0)
	if trials.First != 20 || trials.Step != 1 || len(trials.Horizons) != 4 || trials.Horizons[3] != 8 {
		t.Errorf("%+v, want every origin from half of the values on, at 1, 2, 4 and 8 ahead", trials)
	}
	var scores []forecast.Scored
	for score := range trials.Compare(forecast.Models[:2], forecast.Context{Period: 60}, &s) {
		scores = append(scores, score)
	}
	if len(scores) != 8 || scores[0].Model != forecast.Models[0].Name || scores[4].Model != forecast.Models[1].Name {
		t.Fatalf("%d scores, want 4 of each of two models: %+v", len(scores), scores)
	}
	if scores[0].VersusLast != 1 {
		t.Errorf("the last value is %v of itself, want 1", scores[0].VersusLast)
	}
	if !math.IsNaN(scores[1].VersusLast) { // a period of 2: the last value is right
		t.Errorf("MAE %v over one of 0 is %v, want no number", scores[1].MAE, scores[1].VersusLast)
	}
	for range trials.Compare(forecast.Models, forecast.Context{Period: 60}, &s) {
		break // may be left at any time
	}
}

func TestAveragesPassOverWhatIsNoNumber(t *testing.T) {
	score := func(n int, mae, versus float64) forecast.Scored {
		return forecast.Scored{Score: forecast.Score{Horizon: 3, N: n, MAE: mae}, Model: "m", VersusLast: versus}
	}
	got := forecast.Averages([]forecast.Scored{score(5, 1, 0.5), score(5, 3, 2), score(5, math.NaN(), math.Inf(1)), score(0, 100, 0.1)})
	if len(got) != 1 {
		t.Fatalf("%d averages, want one", len(got))
	}
	a := &got[0]
	if a.Series != 3 || a.Better != 1 || *a.MAE != 2 || math.Abs(*a.LogVersusLast) > 1e-12 {
		t.Errorf("%d series, %d better, MAE %v, mean logarithm %v; want 3, 1, 2 and 0", a.Series, a.Better, *a.MAE, *a.LogVersusLast)
	}
	if none := forecast.Averages([]forecast.Scored{score(0, 1, 1)}); none[0].MAE != nil || none[0].LogVersusLast != nil {
		t.Errorf("%+v, want no mean of nothing", none[0])
	}
}

func TestUnitsSayHowManyBytesAValueMoves(t *testing.T) {
	for name, want := range map[string]float64{"Mbit/s": 60 * 125_000, "GB/s": 60e9, "bit": 1. / 8, "B": 1} {
		unit, ok := forecast.UnitNamed(name)
		if link := unit.Link(berth.Duration(60), 0.5); !ok || link.BytesPerUnit != want || link.LeastBytes != 30_000_000 || link.Period != 60 {
			t.Errorf("%s: %v %+v, want %v bytes in 60 s, at least 30 MB", name, ok, link, want)
		}
	}
	if _, ok := forecast.UnitNamed("furlong"); ok {
		t.Error("there is a unit of that name")
	}
}
