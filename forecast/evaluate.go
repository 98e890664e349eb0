package forecast

import (
	"math"
	"slices"
)

// Trials says from where and how far an evaluation forecasts.
type Trials struct {
	// First is the number of values the first origin knows, and Step how many
	// more each further one; both at least 1.
	First, Step int
	Horizons    []int // periods ahead that are scored, each at least 1
	Level       int   // of the intervals, one of Levels
}

// Score is how right one model was at one horizon. Means over no trial are NaN.
type Score struct {
	Horizon int
	N       int     // forecasts scored
	MAE     float64 // mean absolute error of the period that far ahead
	RMSE    float64 // root of the mean squared error
	SMAPE   float64 // mean of 2·|error| / (|forecast| + |actual|), 0 where both are 0
	// MASE is the mean of |error| / mean absolute step of the values then known,
	// over the forecasts before which there had been any step.
	MASE    float64
	Covered float64 // share of actual values inside the interval of their period
	// Of the sum of all periods up to the horizon:
	SumMAE     float64 // mean absolute error
	SumCovered float64 // share inside the interval
	// Of moving what the mean of the known values would in that many periods:
	Transfers     int     // that ended before the series or a break did
	TransferError float64 // mean of |predicted - actual| / actual time

	stepped int // forecasts in MASE
}

// Trial is one origin of an evaluation.
type Trial struct {
	Known, Coming []float64 // Coming ends at the next break
	Fit           Fit       // of Known
	Steps         []Step    // up to the farthest horizon and Coming
}

// Origins returns from where a series is forecast: how many values are known
// each time. What comes next never came behind a break.
func (t Trials) Origins(s *Series) []int {
	var origins []int
	for origin := max(1, t.First); origin < len(s.Values); origin += max(1, t.Step) {
		if !slices.Contains(s.Breaks, origin) {
			origins = append(origins, origin)
		}
	}
	return origins
}

// Each lets a model forecast from one origin after another, each time fitted
// anew to what was known then, and shows what it said and what came. Cost: a fit
// for each origin.
func (t Trials) Each(model Model, s *Series, see func(Trial)) {
	farthest := 0
	for _, h := range t.Horizons {
		farthest = max(farthest, h)
	}
	breaks := s.Breaks
	for _, origin := range t.Origins(s) {
		for len(breaks) > 0 && breaks[0] <= origin {
			breaks = breaks[1:]
		}
		end := len(s.Values)
		if len(breaks) > 0 {
			end = breaks[0]
		}
		trial := Trial{Known: s.Values[:origin:origin], Coming: s.Values[origin:end]}
		trial.Fit = model.Fit(trial.Known)
		trial.Steps = trial.Fit.From(trial.Known).Steps(min(farthest, len(trial.Coming)))
		see(trial)
	}
}

// Evaluate scores what Each shows, one score for each horizon. Horizons behind a
// break or the end of the series are not scored. Where the values known have a
// mean of 0 or more, a forecast below 0 counts as 0 unless a negative value came.
func (t Trials) Evaluate(model Model, s *Series) []Score {
	scores := make([]Score, len(t.Horizons))
	for i, h := range t.Horizons {
		scores[i].Horizon = h
	}
	z, _ := Quantile(t.Level)
	t.Each(model, s, func(trial Trial) {
		truth := outcome{
			known: trial.Known, coming: trial.Coming,
			step: averageStep(trial.Known), level: average(tail(trial.Known, arimaLength)),
		}
		for i, h := range t.Horizons {
			if h <= len(trial.Coming) {
				scores[i].add(&truth, trial.Steps, z)
			}
			scores[i].transfer(&truth, trial.Fit)
		}
	})
	for i := range scores {
		scores[i].divide()
	}
	return scores
}

// outcome is what an origin knew and what came.
type outcome struct {
	known, coming []float64
	step          float64 // mean absolute step of what was known
	level         float64 // its mean
}

// averageStep returns the mean absolute difference of neighbours.
func averageStep(x []float64) float64 {
	sum := 0.0
	for i := 1; i < len(x); i++ {
		sum += math.Abs(x[i] - x[i-1])
	}
	return sum / float64(max(1, len(x)-1))
}

// add scores one forecast.
func (s *Score) add(o *outcome, steps []Step, z float64) {
	step, actual := steps[s.Horizon-1], o.coming[s.Horizon-1]
	mean := step.Mean
	if actual >= 0 && o.level >= 0 {
		mean = max(mean, 0)
	}
	err := math.Abs(mean - actual)
	s.N++
	s.MAE += err
	s.RMSE += float64(err * err)
	if size := math.Abs(mean) + math.Abs(actual); size > 0 {
		s.SMAPE += 2 * err / size
	}
	if o.step > 0 {
		s.stepped++
		s.MASE += err / o.step
	}
	if math.Abs(step.Mean-actual) <= float64(z*step.SD) {
		s.Covered++
	}
	sum := 0.0
	for _, x := range o.coming[:s.Horizon] {
		sum += x
	}
	s.SumMAE += math.Abs(step.Sum - sum)
	if math.Abs(step.Sum-sum) <= float64(z*step.SumSD) {
		s.SumCovered++
	}
}

// transfer scores the time to move what the mean would in Horizon periods.
func (s *Score) transfer(o *outcome, fit Fit) {
	if o.level <= 0 {
		return
	}
	const bytes, period = 1_000_000_000, 1000 // that a value of the mean moves, and seconds: units that round little
	volume := int64(s.Horizon) * bytes
	scale := bytes / o.level
	actual, moved := -1.0, 0.0
	for i, x := range o.coming {
		amount := float64(max(x, 0) * scale)
		if moved+amount >= float64(volume) && amount > 0 {
			actual = float64(i) + (float64(volume)-moved)/amount
			break
		}
		moved += amount
	}
	if actual <= 0 {
		return
	}
	// A thousandth of the mean is the least, so that no prediction is endless.
	link := Link{Period: period, BytesPerUnit: scale, LeastBytes: bytes / 1000}
	volumes := link.Volumes(fit.From(o.known))
	predicted, _ := volumes.Time(volume)
	s.Transfers++
	s.TransferError += math.Abs(predicted.Float()/period-actual) / actual
}

// divide turns sums into means.
func (s *Score) divide() {
	n := float64(s.N)
	for _, sum := range []*float64{&s.MAE, &s.RMSE, &s.SMAPE, &s.Covered, &s.SumMAE, &s.SumCovered} {
		*sum /= n
	}
	s.RMSE = sqrt(s.RMSE)
	s.MASE /= float64(s.stepped)
	s.TransferError /= float64(s.Transfers)
}
