package forecast

import (
	"iter"
	"math"
	"slices"
)

// mostOrigins is from how many points a series is forecast unless told.
const mostOrigins = 250

// DefaultTrials returns the trials of a series up to a horizon: from half of
// its values on, from at most 250 origins, scored at 1, a quarter, half and all of the
// horizon. first and step, where they are not 0, say otherwise.
func DefaultTrials(s *Series, horizon, level, first, step int) Trials {
	t := Trials{First: first, Step: step, Level: level, Horizons: slices.Compact([]int{1, max(1, horizon/4), max(1, horizon/2), horizon})}
	if t.First == 0 {
		t.First = max(1, len(s.Values)/2)
	}
	if t.Step == 0 {
		t.Step = max(1, (len(s.Values)-t.First+mostOrigins-1)/mostOrigins)
	}
	return t
}

// Scored is how right a model was on a series at one horizon.
type Scored struct {
	Score
	Model string
	// VersusLast is the model's MAE divided by that of the last value; no number where
	// there is none.
	VersusLast float64
}

// Compare scores models on one series, model by model and horizon by horizon. Nothing
// is evaluated until it is asked for. Cost: for each model, that of Evaluate.
func (t Trials) Compare(models []Entry, context Context, s *Series) iter.Seq[Scored] {
	return func(yield func(Scored) bool) {
		last := t.Evaluate(Models[0].New(context), s)
		for _, entry := range models {
			for k, score := range t.Evaluate(entry.New(context), s) {
				if !yield(Scored{Score: score, Model: entry.Name, VersusLast: score.MAE / last[k].MAE}) {
					return
				}
			}
		}
	}
}

// Average is how right a model was at one horizon over several series: means over
// those in which a figure is a number, nil over none.
type Average struct {
	Model                  string
	Horizon                int
	Series                 int // in which it was scored
	Better                 int // in which its MAE was less than that of the last value
	MAE, RMSE, SMAPE, MASE *float64
	// LogVersusLast is the mean logarithm; its exponential is the geometric mean.
	LogVersusLast                      *float64
	Covered, SumCovered, TransferError *float64
}

// Averages returns an average for each model and horizon of the scores, in the order in
// which they first appear. Cost: O(n·m) for n scores of m models at all horizons.
func Averages(scores []Scored) []Average {
	type key struct {
		model   string
		horizon int
	}
	var keys []key
	of := map[key][]*Scored{}
	for i := range scores {
		s := &scores[i]
		k := key{s.Model, s.Horizon}
		if of[k] == nil {
			keys = append(keys, k)
		}
		of[k] = append(of[k], s)
	}
	averages := make([]Average, 0, len(keys))
	for _, k := range keys {
		averages = append(averages, averageOf(of[k]))
	}
	return averages
}

// averageOf averages scores of one model at one horizon.
func averageOf(scores []*Scored) Average {
	a := Average{Model: scores[0].Model, Horizon: scores[0].Horizon}
	scored := slices.DeleteFunc(slices.Clone(scores), func(s *Scored) bool { return s.N == 0 })
	a.Series = len(scored)
	mean := func(figure func(s *Scored) (x float64, known bool)) *float64 {
		sum, n := 0.0, 0
		for _, s := range scored {
			if x, known := figure(s); known && !math.IsNaN(x) && !math.IsInf(x, 0) {
				sum += x
				n++
			}
		}
		if n == 0 {
			return nil
		}
		sum /= float64(n)
		return &sum
	}
	for _, s := range scored {
		if s.VersusLast < 1 {
			a.Better++
		}
	}
	a.MAE = mean(func(s *Scored) (float64, bool) { return s.MAE, true })
	a.RMSE = mean(func(s *Scored) (float64, bool) { return s.RMSE, true })
	a.SMAPE = mean(func(s *Scored) (float64, bool) { return s.SMAPE, true })
	a.MASE = mean(func(s *Scored) (float64, bool) { return s.MASE, true })
	a.Covered = mean(func(s *Scored) (float64, bool) { return s.Covered, true })
	a.SumCovered = mean(func(s *Scored) (float64, bool) { return s.SumCovered, true })
	a.TransferError = mean(func(s *Scored) (float64, bool) { return s.TransferError, true })
	a.LogVersusLast = mean(func(s *Scored) (float64, bool) {
		if !(s.VersusLast > 0) || math.IsInf(s.VersusLast, 0) {
			return 0, false
		}
		return ln(s.VersusLast), true
	})
	return a
}
