package reproduce

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// waitingScale is how much of the waiting-time experiments is simulated.
type waitingScale struct {
	repetitions int
	requests    int // of one run
}

var (
	quickWaiting = waitingScale{repetitions: 5, requests: 600}
	fullWaiting  = waitingScale{repetitions: 30, requests: 5000}
)

// meanDuration is the mean run time of every job, in seconds. Loads and waiting
// limits are relative to it, so its size means nothing but how fine whole
// seconds are.
const meanDuration = 1000

// waitingSetting is one configuration of the waiting-time experiments.
type waitingSetting struct {
	sites  []berth.Count // sizes
	law    string        // of workload.SizeLaws
	k1, k2 int64         // of the law and of the eager filter, in thousandths
	load   float64       // PE-seconds that arrive in a second, for each PE
	limit  float64       // mean waiting limit, in mean run times
	fixed  bool          // every job runs equally long
	wide   berth.Count   // sizes from here on count as wide
}

// pes returns the size of all sites and of the largest.
func (s *waitingSetting) pes() (all, largest berth.Count) {
	for _, n := range s.sites {
		all += n
		largest = max(largest, n)
	}
	return all, largest
}

// String names the configuration among its fellows.
func (s *waitingSetting) String() string {
	return fmt.Sprintf("sites %s, K1 %s, K2 %s, load %s, limit %s, %s", s.sizes(),
		short(float64(s.k1)/1000), short(float64(s.k2)/1000), short(s.load), short(s.limit), s.durations())
}

func (s *waitingSetting) sizes() string {
	var sizes []string
	for _, n := range s.sites {
		sizes = append(sizes, fmt.Sprint(n))
	}
	return strings.Join(sizes, "+")
}

func (s *waitingSetting) durations() string {
	if s.fixed {
		return "fixed"
	}
	return "exponential"
}

// workload returns the generator of the requests. The largest site is the
// largest size.
func (s *waitingSetting) workload(seed uint64) (workload.Waiting, error) {
	law, ok := workload.SizeLawNamed(s.law)
	if !ok {
		return workload.Waiting{}, berth.Errorf(berth.Invalid, "sizes", "unknown law %q", s.law)
	}
	all, largest := s.pes()
	w := workload.Waiting{
		Sizes: law, MaxNPE: largest, K1: s.k1, K2: s.k2, Seed: seed,
		Gap: 1, Duration: meanDuration, Fixed: s.fixed, Limit: float64(s.limit * meanDuration),
	}
	w.Gap = float64(w.MeanNPE()*meanDuration) / float64(s.load*float64(all))
	return w, nil
}

// config returns the engine's configuration, sequential or, with a filter,
// eager. PEs are promised as counts, as the paper has it.
func (s *waitingSetting) config(filter *policy.Eager) engine.Config {
	name := "wms-sequential"
	if filter != nil {
		name = "wms-eager"
	}
	preset, ok := engine.PresetNamed(name)
	if !ok {
		panic("reproduce: no preset " + name)
	}
	config := engine.Config{Eager: filter}
	for i, n := range s.sites {
		config.Sites = append(config.Sites, berth.Site{
			Name:  fmt.Sprintf("m%d", i+1),
			Pools: []berth.Pool{{Name: "pool", PEs: n, Binding: berth.Late}},
		})
	}
	preset.Apply(&config)
	return config
}

// filter is the eager filter of the setting.
func (s *waitingSetting) filter() *policy.Eager {
	return &policy.Eager{K1: policy.Permille(s.k1), K2: policy.Permille(s.k2)}
}

// waitingOutcome is what one run was worth, once the first tenth of the
// requests has filled the machine, until the last arrives: in the long run, as
// the theorem has it.
type waitingOutcome struct {
	utilization  float64 // busy PE-seconds of all PE-seconds
	acceptance   float64 // accepted of all requests
	narrow, wide float64 // the same of the requests below the setting's wide, and the others
	hash         string  // of the decisions
}

// run simulates one repetition.
func (s *waitingSetting) run(ctx context.Context, filter *policy.Eager, seed uint64, requests int) (waitingOutcome, error) {
	w, err := s.workload(seed)
	if err != nil {
		return waitingOutcome{}, err
	}
	jobs, err := w.Requests(requests)
	if err != nil {
		return waitingOutcome{}, err
	}
	lines, err := sim.Run(ctx, s.config(filter), jobs, nil)
	if err != nil {
		return waitingOutcome{}, err
	}
	all, _ := s.pes()
	return waitingOutcomeOf(lines, all, s.wide), nil
}

func waitingOutcomeOf(lines []berth.Line, pes, wide berth.Count) waitingOutcome {
	first := len(lines) / 10
	window := berth.Interval{Start: lines[first].Arrival, End: lines[len(lines)-1].Arrival}
	var asked, accepted [2]int
	for i := first; i < len(lines); i++ {
		class := 0
		if lines[i].NPE >= wide {
			class = 1
		}
		asked[class]++
		if lines[i].Accepted {
			accepted[class]++
		}
	}
	return waitingOutcome{
		utilization: utilization(lines, pes, window),
		acceptance:  share(accepted[0]+accepted[1], asked[0]+asked[1]),
		narrow:      share(accepted[0], asked[0]),
		wide:        share(accepted[1], asked[1]),
		hash:        measure.Hash(lines),
	}
}

// utilization returns the part of the PE-seconds of a window that accepted
// lines take.
func utilization(lines []berth.Line, pes berth.Count, window berth.Interval) float64 {
	var busy int64
	for i := range lines {
		l := &lines[i]
		if !l.Accepted {
			continue
		}
		if start, end := max(*l.Start, window.Start), min(*l.End, window.End); start < end {
			busy += berth.Area(l.NPE, end.Sub(start))
		}
	}
	total := berth.Area(pes, window.Length())
	if total <= 0 {
		return math.NaN()
	}
	return float64(busy) / float64(total)
}

// share returns a part of a whole, NaN of nothing.
func share[T int | int64](part, whole T) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

// waitingMeans are the outcomes of one setting under one policy, by
// repetition, shares as percentages.
type waitingMeans struct{ utilization, acceptance, narrow, wide sample }

func waitingMeansOf(outcomes []waitingOutcome) waitingMeans {
	var m waitingMeans
	for _, o := range outcomes {
		m.utilization = append(m.utilization, float64(100*o.utilization))
		m.acceptance = append(m.acceptance, float64(100*o.acceptance))
		m.narrow = append(m.narrow, float64(100*o.narrow))
		m.wide = append(m.wide, float64(100*o.wide))
	}
	return m
}

// comparison is a setting under both policies.
type comparison struct {
	setting           waitingSetting
	sequential, eager waitingMeans
}

// waitingData is everything that the claims of the waiting-time paper are
// judged by.
type waitingData struct {
	search []comparison // of the theorem
	waits  []comparison // by waiting limit
	loads  []comparison // by load, for narrow and wide requests
	open   openFilter
}

// openFilter says, by configuration, whether a filter changed a decision about
// the same requests: those that must not matter, and one that should.
type openFilter struct{ k2One, k1Zero, filtered []bool }

// The theorem's search: 216 settings, every combination of these.
var (
	searchSites  = [][]berth.Count{{32}, {16, 32}, {32, 32}}
	searchK      = [][2]int64{{400, 300}, {500, 200}, {600, 100}, {350, 350}} // each fulfils the theorem's conditions
	searchLoads  = []float64{0.7, 1, 2}
	searchLimits = []float64{0, 1, 10}
)

func searchSettings() []waitingSetting {
	var settings []waitingSetting
	for _, sites := range searchSites {
		for _, k := range searchK {
			for _, load := range searchLoads {
				for _, limit := range searchLimits {
					for _, fixed := range []bool{false, true} {
						s := waitingSetting{
							sites: sites, law: "theorem", k1: k[0], k2: k[1], load: load, limit: limit, fixed: fixed,
						}
						_, largest := s.pes()
						s.wide = berth.Count((int64(largest)*s.k1 + 999) / 1000)
						settings = append(settings, s)
					}
				}
			}
		}
	}
	return settings
}

// uniformSetting is the one in which waiting limits and loads are varied: two
// sites; the larger alone takes wide requests.
func uniformSetting(load, limit float64) waitingSetting {
	return waitingSetting{
		sites: []berth.Count{16, 32}, law: "uniform", k1: 400, k2: 300, load: load, limit: limit, wide: 16,
	}
}

var (
	waitLimits = []float64{0, 0.5, 1, 2, 5, 10}
	wideLoads  = []float64{0.7, 1, 2, 3}
)

// waitingTime prepares the waiting-time experiments. The paper prints none of
// its own; these are the ones of spec 4, c.
func waitingTime(s *session) (*experiment, error) {
	scale := quickWaiting
	if s.Scale == Full {
		scale = fullWaiting
	}
	scale.repetitions = s.repetitions
	runs := len(waitingRuns()) * scale.repetitions
	return &experiment{
		settings: []sweep.Setting{{Name: "requests", Value: strconv.Itoa(scale.requests)}},
		cells:    waitingCells(s, scale),
		names: func(i int) []string {
			if i < runs {
				return waitingNames
			}
			return openNames
		},
		judge: func(values [][]float64) *findings {
			data := waitingDataOf(values, scale.repetitions)
			return &findings{
				Setting: waitingRows(scale),
				Notes:   waitingNotes,
				Claims:  waitingClaims(data),
				Figures: waitingFigures(data),
				Tables:  []Table{searchTable(data.search)},
			}
		},
	}, nil
}

// waitingRun is one setting under one policy.
type waitingRun struct {
	study   string
	setting waitingSetting
	eager   bool
}

// waitingRuns lists the runs: the search, the waiting limits, the loads, each
// setting sequential before eager.
func waitingRuns() []waitingRun {
	var runs []waitingRun
	add := func(study string, setting waitingSetting) {
		runs = append(runs, waitingRun{study, setting, false}, waitingRun{study, setting, true})
	}
	for _, setting := range searchSettings() {
		add("search", setting)
	}
	for _, limit := range waitLimits {
		add("waits", uniformSetting(1, limit))
	}
	for _, load := range wideLoads {
		add("loads", uniformSetting(load, 1))
	}
	return runs
}

// key names the run among all.
func (w *waitingRun) key() string {
	policy := "sequential"
	if w.eager {
		policy = "eager"
	}
	s := &w.setting
	return fmt.Sprintf("%s/%s/%d-%d/%g/%g/%s/%s", w.study, s.sizes(), s.k1, s.k2, s.load, s.limit, s.durations(), policy)
}

// waitingCells lists the measurements: every run, repetition by repetition, and
// then the filters that admit everything.
func waitingCells(s *session, scale waitingScale) []sweep.Cell {
	var cells []sweep.Cell
	runs := waitingRuns()
	for i := range runs {
		run := &runs[i]
		for r := range scale.repetitions {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("%s/seed=%d", run.key(), s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					var filter *policy.Eager
					if run.eager {
						filter = run.setting.filter()
					}
					o, err := run.setting.run(ctx, filter, s.seed(r), scale.requests)
					return []float64{o.utilization, o.acceptance, o.narrow, o.wide}, err
				},
			})
		}
	}
	open := openSettings()
	for i := range open {
		setting := &open[i]
		cells = append(cells, sweep.Cell{
			Key: fmt.Sprintf("open/%s/%g/%g/%s/seed=%d", setting.sizes(), setting.load, setting.limit, setting.durations(), s.Seed),
			Run: func(ctx context.Context) ([]float64, error) {
				return setting.changed(ctx, s.Seed, scale.requests)
			},
		})
	}
	return cells
}

// waitingNames and openNames are those of the values of the two kinds of cells.
var (
	waitingNames = []string{"utilization", "acceptance", "narrow", "wide"}
	openNames    = []string{"changed by K2 = 1", "changed by K1 = 0", "changed by a filter"}
)

// waitingDataOf sorts the values of waitingCells.
func waitingDataOf(values [][]float64, repetitions int) *waitingData {
	runs := waitingRuns()
	data := &waitingData{}
	means := func(row int) waitingMeans {
		var outcomes []waitingOutcome
		for _, v := range values[row*repetitions : (row+1)*repetitions] {
			outcomes = append(outcomes, waitingOutcome{utilization: v[0], acceptance: v[1], narrow: v[2], wide: v[3]})
		}
		return waitingMeansOf(outcomes)
	}
	for row := 0; row < len(runs); row += 2 {
		c := comparison{runs[row].setting, means(row), means(row + 1)}
		switch runs[row].study {
		case "search":
			data.search = append(data.search, c)
		case "waits":
			data.waits = append(data.waits, c)
		default:
			data.loads = append(data.loads, c)
		}
	}
	for _, v := range values[len(runs)*repetitions:] {
		data.open.add(v)
	}
	return data
}

// openSettings are where filters that admit everything are compared: the
// search with one pair of K1 and K2.
func openSettings() []waitingSetting {
	var settings []waitingSetting
	for _, s := range searchSettings() {
		if s.k1 == searchK[0][0] && s.k2 == searchK[0][1] {
			settings = append(settings, s)
		}
	}
	return settings
}

// changed returns for a filter with K2 = 1, one with K1 = 0 and the setting's own
// whether it changes a decision: 1 or 0.
func (s *waitingSetting) changed(ctx context.Context, seed uint64, requests int) ([]float64, error) {
	sequential, err := s.run(ctx, nil, seed, requests)
	if err != nil {
		return nil, err
	}
	var changes []float64
	for _, filter := range []*policy.Eager{
		{K1: policy.Permille(s.k1), K2: 1000}, {K1: 0, K2: policy.Permille(s.k2)}, s.filter(),
	} {
		outcome, err := s.run(ctx, filter, seed, requests)
		if err != nil {
			return nil, err
		}
		change := 0.0
		if outcome.hash != sequential.hash {
			change = 1
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// add takes in what changed returned.
func (o *openFilter) add(changes []float64) {
	o.k2One = append(o.k2One, changes[0] != 0)
	o.k1Zero = append(o.k1Zero, changes[1] != 0)
	o.filtered = append(o.filtered, changes[2] != 0)
}
