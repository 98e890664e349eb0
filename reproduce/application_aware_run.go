package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/sim"
)

// config returns the engine's configuration for a matcher: that of the preset
// ajsm but for the match.
func (w *awareWorld) config(m *awareMatcher) engine.Config {
	preset, ok := engine.PresetNamed("ajsm")
	if !ok {
		panic("reproduce: no preset ajsm")
	}
	config := engine.Config{Sites: w.sites, Match: m.match, Unaware: m.unaware, Seed: w.seed}
	preset.Apply(&config)
	return config
}

// replay decides the jobs that arrive in n periods.
func (w *awareWorld) replay(ctx context.Context, m *awareMatcher, jobs []berth.Request, periods int) ([]berth.Line, error) {
	return sim.Replay(ctx, w.config(m), sim.Workload{Requests: jobs, Monitor: &awareMonitor{world: w, last: periods}}, nil)
}

// measure decides the same jobs under the matchers of a setting and returns
// awareNames.
func (w *awareWorld) measure(ctx context.Context, setting *awareSetting, jobs []berth.Request) ([]float64, error) {
	var all []float64
	var ajsm []berth.Line
	for i := range awareMatchers[:setting.matchers()] {
		lines, err := w.replay(ctx, &awareMatchers[i], jobs, setting.periods)
		if err != nil {
			return nil, err
		}
		lines = lines[:len(jobs)] // what follows are outages and transfers
		if i == awareAJSM {
			ajsm = lines
		}
		all = append(all, w.outcome(jobs, lines, ajsm)...)
	}
	return all, nil
}

// longTransfer is the least time, in seconds, of a transfer whose forecast is
// scored: that of the least in the paper's Table 4, whole. Of shorter ones the
// rounding to seconds is the error.
const longTransfer = 28

// outcome returns the figures of one matcher's lines beside those of AJSM. A
// processing time is from arrival to the end that was promised, as the paper has
// it; what really happens is told by awLate, awNear and awError.
func (w *awareWorld) outcome(jobs []berth.Request, lines, ajsm []berth.Line) []float64 {
	var accepted, software, late, transfers, near, shared int
	var total, sharedTotal, sharedOfAJSM int64
	var last, sharedLast, sharedLastOfAJSM berth.Time
	off := 0.0
	for i := range lines {
		l := &lines[i]
		if !l.Accepted {
			if l.Reason == berth.NoSoftware || l.Reason == berth.NoLicence {
				software++
			}
			continue
		}
		accepted++
		total += int64(*l.End - l.Arrival)
		last = max(last, *l.End)
		foreseen, actual := w.transfer(&jobs[i], l)
		if l.End.Add(-foreseen).Add(berth.Duration(math.Ceil(actual))) > l.Deadline {
			late++
		}
		if actual >= longTransfer {
			transfers++
			e := math.Abs(float64(foreseen)-actual) / actual
			off += e
			if e < 0.1 {
				near++
			}
		}
		if a := &ajsm[i]; a.Accepted {
			shared++
			sharedTotal += int64(*l.End - l.Arrival)
			sharedOfAJSM += int64(*a.End - a.Arrival)
			sharedLast, sharedLastOfAJSM = max(sharedLast, *l.End), max(sharedLastOfAJSM, *a.End)
		}
	}
	n, first := len(lines), lines[0].Arrival
	return []float64{
		awRejected: float64(100 * share(n-accepted, n)), awSoftware: float64(100 * share(software, n)),
		awAPT: share(total, int64(accepted)), awAPTAll: share(total, int64(n)), awTPT: float64(total) / 1e6, awMakespan: float64(last - first),
		awLate: float64(100 * share(late, accepted)), awNear: float64(100 * share(near, transfers)), awError: 100 * off / float64(transfers),
		awShared: float64(100 * share(shared, n)), awSharedAPT: share(sharedTotal, int64(shared)), awSharedAPTOfAJSM: share(sharedOfAJSM, int64(shared)),
		awSharedMakespan: float64(sharedLast - first), awSharedMakespanOfAJSM: float64(sharedLastOfAJSM - first),
	}
}

// transfer returns how long an accepted job's data were foreseen to take, and how
// long they take.
func (w *awareWorld) transfer(job *berth.Request, l *berth.Line) (foreseen berth.Duration, actual float64) {
	k := slices.IndexFunc(w.sites, func(s berth.Site) bool { return s.Name == l.Site })
	run := w.sites[k].Pools[0].SpeedFor(&job.Requirements).Scale(job.Parts[0].Variants[0].Duration)
	return l.End.Sub(*l.Start) - run, w.links[k].takes(*l.Start, job.StorageMB)
}

// The trials of forecasts: from a point of a link every n periods, of the next one and
// of a transfer of what the mean of the past moves in n.
const (
	trialStep    = 48
	trialPeriods = 24
)

// trialModels are compared.
var trialModels = []string{"last", "mean", "arima", "blend"}

const (
	byLast = iota
	byMean
	byARIMA
	byBlend
)

// The figures of a model: mean absolute error of the next period in MB/s and mean error
// of a transfer's time in percent.
const (
	trialNext = iota
	trialTransfer
	trialKept
)

func trialNames() []string {
	var names []string
	for _, model := range trialModels {
		names = append(names, model+": next period", model+": transfer")
	}
	return names
}

// trials returns trialNames, each the mean over the links of a world and some
// points of each.
func (n *awareNet) trials(seed uint64, origins int) []float64 {
	length := history + origins*trialStep
	values := make([]float64, len(trialModels)*trialKept)
	links := len(awareGrid) - 1
	for k := 1; k <= links; k++ {
		link := n.link(seed, k, length*int(n.period))
		series := &forecast.Series{Period: n.period, Values: link.rates[:length]}
		for m, name := range trialModels {
			entry, ok := forecast.ModelNamed(name)
			if !ok {
				panic("reproduce: no model " + name)
			}
			trials := forecast.Trials{First: history, Step: trialStep, Horizons: []int{1, trialPeriods}, Level: 90}
			scores := trials.Evaluate(entry.New(forecast.Context{Period: n.period}), series)
			values[m*trialKept+trialNext] += scores[0].MAE / float64(links)
			values[m*trialKept+trialTransfer] += 100 * scores[1].TransferError / float64(links)
		}
	}
	return values
}

// curveLength is how many values of a link are shown.
const curveLength = 100

// The parts of a curve: what came, what was expected, and its interval of 95 %.
const (
	curveValue = iota
	curveMean
	curveLow
	curveHigh
	curveKept
)

func curveNames() []string {
	var names []string
	for _, what := range [curveKept]string{"bandwidth", "forecast", "low", "high"} {
		for i := range curveLength {
			names = append(names, fmt.Sprintf("%s %d", what, i+1))
		}
	}
	return names
}

// curve returns values of the first link as they came, and what ARIMA expected
// each to be one period before.
func (n *awareNet) curve(seed uint64) []float64 {
	link := n.link(seed, 1, curveLength*int(n.period))
	entry, ok := forecast.ModelNamed("arima")
	z, known := forecast.Quantile(95)
	if !ok || !known {
		panic("reproduce: no model arima, or no interval of 95 %")
	}
	model := entry.New(forecast.Context{Period: n.period})
	values := make([]float64, curveKept*curveLength)
	for i := range curveLength {
		past := link.rates[i : history+i]
		step := model.Fit(past).From(past).Steps(1)[0]
		values[curveValue*curveLength+i] = link.rates[history+i]
		values[curveMean*curveLength+i] = step.Mean
		values[curveLow*curveLength+i] = step.Mean - float64(z*step.SD)
		values[curveHigh*curveLength+i] = step.Mean + float64(z*step.SD)
	}
	return values
}
