package reproduce

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/workload"
)

// awareScale is how much of the application-aware experiments is simulated.
type awareScale struct {
	repetitions int
	counts      []int // of jobs, before crowdedJobs
	measured    []int // the same with measured bandwidths
	origins     int   // from which each link is forecast in trials
}

var (
	quickAware = awareScale{repetitions: 3, counts: []int{960, 1920, 2880}, measured: []int{1920}, origins: 5}
	fullAware  = awareScale{
		repetitions: 10, counts: []int{960, 1200, 1440, 1680, 1920, 2160, 2400, 2640, 2880}, measured: []int{960, 1920, 2880}, origins: 20,
	}
)

// crowdedJobs is how many jobs bring AJSM close to MGA, the paper says.
const crowdedJobs = 5000

// awareSpans are the numbers of scheduling periods in which jobs arrive.
var awareSpans = []int{60, 120}

// hpc2n is where the jobs' run times and nodes come from.
var hpc2n = archiveLog{name: "hpc2n", file: "HPC2N-2002-2.2-cln", thanks: "Ake Sandgren", pes: 240}

// awareMatcher is a way to decide a round.
type awareMatcher struct {
	name    string // in keys and figures
	match   string // of policy.Batches
	unaware bool
}

// awareMatchers lists them: the paper's three, the two it compares with when
// they look at what jobs require, and others that do.
var awareMatchers = []awareMatcher{
	{"ajsm", "ajsm", false},
	{"mga", "mga", true},
	{"min-min", "min-min", true},
	{"aware mga", "mga", false},
	{"aware min-min", "min-min", false},
	{"aware max-min", "max-min", false},
	{"aware sufferage", "sufferage", false},
	{"aware mct", "mct", false},
	{"aware met", "met", false},
}

// fairJobs and fairPeriods are where all of them are compared.
const fairJobs, fairPeriods = 1920, 60

var fairSetting = awareSetting{netSynthetic, fairPeriods, fairJobs, printedDemands}

// The places of awareMatchers that the claims name.
const (
	awareAJSM = iota
	plainMGA
	plainMinMin
	fairMGA
	fairMinMin
)

// The figures of one matcher in one run.
const (
	awRejected        = iota // percent of the jobs
	awSoftware               // percent of the jobs, refused by a site that lacks the program
	awAPT                    // mean processing time of the accepted, s
	awAPTAll                 // their sum over all jobs, s
	awTPT                    // their sum, in 10^6 s
	awMakespan               // last end - first arrival, s
	awLate                   // percent of the accepted whose data come too late for the deadline
	awNear                   // percent of the long transfers that take within 10 % of what was foreseen
	awError                  // mean |foreseen - actual| / actual of them, percent
	awShared                 // percent of the jobs that AJSM accepts too; of those:
	awSharedAPT              // mean processing time, s
	awSharedAPTOfAJSM        // the same under AJSM
	awSharedMakespan         // last end - first arrival, s
	awSharedMakespanOfAJSM
	awKept // how many figures there are
)

var awareFigureNames = [awKept]string{
	"rejected", "no software", "APT", "APT over all", "TPT", "makespan", "late", "transfers within 10 %", "transfer error",
	"shared", "shared APT", "AJSM's shared APT", "shared makespan", "AJSM's shared makespan",
}

// awareNames are those of the values of a run of n matchers.
func awareNames(matchers int) []string {
	var names []string
	for _, m := range awareMatchers[:matchers] {
		for _, figure := range awareFigureNames {
			names = append(names, m.name+": "+figure)
		}
	}
	return names
}

// awareDemands are what jobs demand, where the paper leaves it open.
type awareDemands struct {
	name        string  // in keys and ids; empty for those of the paper's claims
	mostFactor  float64 // of the deadline, from leastFactor on
	accelerated float64 // part of the jobs
}

// printedDemands have the deadlines that the three rows of the paper's Table 3 suggest.
var printedDemands = awareDemands{"", 1.5, 0.3}

// otherDemands are what else could be meant: each parameter by itself, and both.
var otherDemands = []awareDemands{{"loose", 5, 0.3}, {"plain", 1.5, 0}, {"loose-plain", 5, 0}}

// awareSetting is where a run stands.
type awareSetting struct {
	net     string
	periods int
	jobs    int
	demands awareDemands // of the jobs
}

func (s *awareSetting) String() string {
	if s.demands.name == "" {
		return fmt.Sprintf("%s/%d/%d", s.net, s.periods, s.jobs)
	}
	return fmt.Sprintf("%s/%s/%d/%d", s.demands.name, s.net, s.periods, s.jobs)
}

// matchers returns how many of awareMatchers are compared there.
func (s *awareSetting) matchers() int {
	switch {
	case s.jobs == crowdedJobs, s.demands.name != "":
		return fairMGA // it is about the paper's three
	case *s == fairSetting:
		return len(awareMatchers)
	}
	return fairMinMin + 1
}

// awareSettings lists the settings.
func awareSettings(scale awareScale, measured bool) []awareSetting {
	var settings []awareSetting
	for _, periods := range awareSpans {
		for _, jobs := range append(slices.Clone(scale.counts), crowdedJobs) {
			settings = append(settings, awareSetting{netSynthetic, periods, jobs, printedDemands})
		}
	}
	for _, demands := range otherDemands {
		for _, jobs := range []int{scale.counts[0], scale.counts[len(scale.counts)-1]} {
			settings = append(settings, awareSetting{netSynthetic, awareSpans[0], jobs, demands})
		}
	}
	if measured {
		for _, jobs := range scale.measured {
			settings = append(settings, awareSetting{netMeasured, awareSpans[0], jobs, printedDemands})
		}
	}
	return settings
}

// awareSource is where jobs and bandwidths come from.
type awareSource struct {
	records  []workload.Record
	log      *openLog // nil if the records are the model's
	measured *awareNet
	digest   string // of the measurements

	mutex  sync.Mutex
	worlds map[string]*awareWorld
}

// world returns the world of a net and a seed, drawn once.
func (a *awareSource) world(net string, seed uint64) *awareWorld {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	key := fmt.Sprintf("%s/%d", net, seed)
	w, there := a.worlds[key]
	if !there {
		from := syntheticNet
		if net == netMeasured {
			from = *a.measured
		}
		w = newAwareWorld(seed, from, slices.Max(awareSpans))
		a.worlds[key] = w
	}
	return w
}

// modelJobs is how many jobs of the model stand in for the log's.
const modelJobs = 20_000

// awareSources finds the log and the measurements, or what stands in for them.
func awareSources(s *session) (*awareSource, error) {
	if err := s.checkData(); err != nil {
		return nil, err
	}
	a := &awareSource{worlds: map[string]*awareWorld{}}
	log, found, err := s.find(&hpc2n)
	if err != nil {
		return nil, err
	}
	var records []workload.Record
	if found {
		a.log, records = log, log.records
	} else {
		model, err := workload.NewModel("lublin:typeless", workload.Params{PEs: hpc2n.pes})
		if err != nil {
			return nil, err
		}
		for _, r := range model.Generate(modelJobs, s.Seed) {
			if r.Size() <= 128 {
				records = append(records, r)
			}
		}
	}
	for i := range records {
		if records[i].Run >= leastRun && records[i].Size() > 0 {
			a.records = append(a.records, records[i])
		}
	}
	if len(a.records) == 0 {
		return nil, berth.Errorf(berth.Invalid, "data", "%s: no job of %d s or more", hpc2n.file, leastRun)
	}
	if net, digest, found, err := s.findMeasured(); err != nil {
		return nil, err
	} else if found {
		a.measured, a.digest = net, digest
	}
	return a, nil
}

// applicationAware prepares the application-aware experiments (spec 5, c).
func applicationAware(s *session) (*experiment, error) {
	scale := quickAware
	if s.Scale == Full {
		scale = fullAware
	}
	scale.repetitions = s.repetitions
	source, err := awareSources(s)
	if err != nil {
		return nil, err
	}
	settings := []sweep.Setting{{Name: "jobs", Value: strconv.Itoa(len(scale.counts))}}
	if source.log != nil {
		settings = append(settings, source.log.setting())
	}
	if source.measured != nil {
		settings = append(settings, sweep.Setting{Name: "bandwidths", Value: source.digest})
	}
	all := awareSettings(scale, source.measured != nil)
	runs := len(all) * scale.repetitions
	trials := len(source.nets()) * scale.repetitions
	return &experiment{
		settings: settings,
		cells:    awareCells(s, scale, source),
		names: func(i int) []string {
			switch {
			case i < runs:
				return awareNames(all[i/scale.repetitions].matchers())
			case i < runs+trials:
				return trialNames()
			}
			return curveNames()
		},
		judge: func(values [][]float64) *findings {
			data := awareDataOf(values, scale, source)
			return &findings{
				Setting: awareRows(scale, source), Notes: awareNotes(source), Claims: awareClaims(data),
				Figures: awareFigures(data), Tables: awareTables(data),
			}
		},
	}, nil
}

// awareCells lists the measurements: the runs, setting by setting, then the
// forecasts by net, and the curve of a link.
func awareCells(s *session, scale awareScale, source *awareSource) []sweep.Cell {
	var cells []sweep.Cell
	for _, setting := range awareSettings(scale, source.measured != nil) {
		for r := range scale.repetitions {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("%s/seed=%d", &setting, s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					w := source.world(setting.net, s.seed(r))
					return w.measure(ctx, &setting, w.jobs(source.records, setting.jobs, setting.periods, setting.demands))
				},
			})
		}
	}
	for _, net := range source.nets() {
		for r := range scale.repetitions {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("forecast/%s/seed=%d", net.name, s.seed(r)),
				Run: func(context.Context) ([]float64, error) { return net.trials(s.seed(r), scale.origins), nil },
			})
		}
	}
	nets := source.nets()
	return append(cells, sweep.Cell{
		Key: "curve/" + nets[len(nets)-1].name,
		Run: func(context.Context) ([]float64, error) { return nets[len(nets)-1].curve(s.Seed), nil },
	})
}

// nets lists the nets whose forecasts are tried; the last is shown.
func (a *awareSource) nets() []awareNet {
	if a.measured == nil {
		return []awareNet{uniformNet, syntheticNet}
	}
	return []awareNet{uniformNet, syntheticNet, *a.measured}
}

// awareData is everything that the claims of the application-aware paper are
// judged by.
type awareData struct {
	scale    awareScale
	settings []awareSetting
	runs     [][][]float64 // by setting and repetition: awareNames
	trials   map[string][][]float64
	curve    []float64
	shown    string // the net of the curve
}

// awareDataOf sorts the values of awareCells.
func awareDataOf(values [][]float64, scale awareScale, source *awareSource) *awareData {
	d := &awareData{scale: scale, settings: awareSettings(scale, source.measured != nil), trials: map[string][][]float64{}}
	next := func(n int) [][]float64 {
		part := values[:n]
		values = values[n:]
		return part
	}
	for range d.settings {
		d.runs = append(d.runs, next(scale.repetitions))
	}
	for _, net := range source.nets() {
		d.trials[net.name] = next(scale.repetitions)
		d.shown = net.name
	}
	d.curve = next(1)[0]
	return d
}

// of returns a figure of a matcher in a setting, by repetition; the matcher must
// have been measured there.
func (d *awareData) of(setting awareSetting, matcher, figure int) sample {
	at := slices.Index(d.settings, setting)
	s := make(sample, len(d.runs[at]))
	for r, values := range d.runs[at] {
		s[r] = values[matcher*awKept+figure]
	}
	return s
}

// reduction returns by how many percent a figure of AJSM is less than that of
// another matcher.
func (d *awareData) reduction(setting awareSetting, matcher, figure int) sample {
	return less(d.of(setting, awareAJSM, figure), d.of(setting, matcher, figure))
}

// less returns by how many percent a is less than b, by repetition.
func less(a, b sample) sample {
	s := make(sample, len(a))
	for r := range s {
		s[r] = 100 - 100*a[r]/b[r]
	}
	return s
}

// over returns the mean of a figure over settings, by repetition.
func over(settings []awareSetting, of func(awareSetting) sample) sample {
	var all []sample
	for _, s := range settings {
		all = append(all, of(s))
	}
	return meanOf(all)
}

// spanned returns the settings of a number of periods with synthetic bandwidths,
// without the crowded one.
func (d *awareData) spanned(periods int) []awareSetting {
	var list []awareSetting
	for _, s := range d.settings {
		if s.net == netSynthetic && s.periods == periods && s.jobs != crowdedJobs && s.demands == printedDemands {
			list = append(list, s)
		}
	}
	return list
}
