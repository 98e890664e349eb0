package scenario

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

// Options are what is chosen of a simulation. NewOptions has the defaults; a name that is
// empty is settled by the preset, the sites file or the workload, as Settle and Open say.
type Options struct {
	// Workload is a log, a file of requests, or a model such as lublin:lanl-cm5.
	Workload string
	Jobs     int // only the first usable ones; 0 for all of a file, DefaultJobs of a model
	// As is what the records of a log or a model become, one of Kinds.
	As             string
	ReserveShare   float64 // the part that become requests as AsMixed
	UMed           float64 // break point of a model's sizes, 0 for its own
	ArrivalFactor  float64
	ArtimeFactor   float64
	DeadlineFactor float64
	Estimates      bool // book what users had asked for
	WaitingLimit   berth.Duration
	Waits          bool // there is a limit
	Strict         bool // the first bad line is an error

	PEs      berth.Count // of a machine of one pool; 0 for what the workload tells
	Binds    []string    // bindings to compare
	Outages  string      // file of outages; empty for none
	Failures workload.Failures

	Preset    string
	Policies  []string // placements to compare
	Choice    string
	Horizon   string
	Order     string
	Match     string
	Trigger   string
	Every     berth.Duration
	Immediate string
	Backfills []string // passes for ordinary jobs to compare
	Compress  bool
	Preempt   bool
	Staging   string
	Unaware   bool
	Calendar  string

	Workflows Workflows

	RunTimes  string
	Noise     float64
	Overrun   string
	Extension berth.Duration

	Replications int
	Seed         uint64 // of the first replication; the next ones count up

	// Given says which options were chosen, by the names of the flags of berth sim: these
	// rule over a sites file, and others do not. nil is none.
	Given func(option string) bool
}

// NewOptions returns the defaults: the scheduler of Li et al. with its first placement,
// early binding, one replication. ReserveShare is within the range of the experiments of
// Ahuja et al., who let 0 to 30 % reserve.
func NewOptions() Options {
	return Options{
		ReserveShare: 0.2, ArrivalFactor: 1, ArtimeFactor: 3, DeadlineFactor: 3,
		Preset: "li", Policies: []string{policy.Placements[0].Name}, Binds: []string{string(berth.Early)},
		Horizon: Horizons()[0], Choice: Choices()[0], Calendar: Calendars()[0],
		Compress: true, Replications: 1, Seed: 1, Workflows: NewWorkflows(),
	}
}

func (o *Options) given(option string) bool { return o.Given != nil && o.Given(option) }

// Settle returns the machine of a simulation, of a sites file or nil for one pool, and the
// scheduler for it. The bindings to compare, the placements, the passes for jobs, the
// preset and what records become are settled in the options. Errors are of code Invalid.
func (o *Options) Settle(file *sites.File) (*Machine, engine.Config, error) {
	m := &Machine{File: file, rebind: o.given("bind")}
	config, err := o.Configure(file)
	if m.File == nil && !m.rebind && o.As == AsJobs {
		// A job that is planned with PE numbers keeps others out that would fit by
		// count, and nothing is gained: no job is told its numbers before it starts.
		o.Binds = []string{string(berth.Late)}
	}
	if file != nil && !m.rebind {
		o.Binds = []string{m.binding()}
	}
	return m, config, err
}

// Configure returns the engine's configuration, without sites, placement and pass for
// jobs. Given options rule over the sites file, which may be nil, and what neither chooses
// is the preset's; a preset that is given also rules over the file's order, match, place
// and jobs. The placements to compare are the policies where they are given, else the one
// of the sites file; likewise the passes for jobs. Errors are of code Invalid.
func (o *Options) Configure(file *sites.File) (engine.Config, error) {
	config := engine.Config{
		Horizon: o.Horizon, Calendar: o.Calendar, Choice: policy.Choice(o.Choice), Seed: o.Seed,
		Order: o.Order, Match: o.Match, Compress: o.Compress, Preempt: o.Preempt,
		Trigger: engine.Trigger(o.Trigger), Period: o.Every, Immediate: engine.Immediate(o.Immediate),
		Overrun: engine.Overrun(o.Overrun), Extension: o.Extension,
		Staging: stagingNamed(o.Staging), Unaware: o.Unaware,
	}
	if file != nil {
		o.fromFile(file, &config)
	}
	preset, ok := engine.PresetNamed(o.Preset)
	if !ok {
		return config, berth.Errorf(berth.Invalid, "preset", "%s", nearest.Unknown("preset", o.Preset, Presets()))
	}
	every, compress := config.Period, config.Compress
	preset.Apply(&config)
	config.Period = cmp.Or(every, config.Period) // of the preset's own trigger too
	if o.Backfills == nil {
		o.Backfills = []string{cmp.Or(config.Jobs, JobPasses()[0])}
	}
	config.Compress = compress && slices.Contains(o.Backfills, Conservative)
	if o.As == "" && preset.Jobs {
		o.As = AsJobs
	}
	o.As = cmp.Or(o.As, AsRequests)
	return config, nil
}

// fromFile takes from the sites file what is not given.
func (o *Options) fromFile(file *sites.File, config *engine.Config) {
	p := &file.Policies
	given := o.given("preset")
	if !given {
		config.Order, config.Match = cmp.Or(config.Order, p.Order), cmp.Or(config.Match, p.Match)
		o.Preset = cmp.Or(p.Preset, o.Preset)
		config.Jobs = p.Jobs
		if p.Place != "" && !o.given("policy") {
			o.Policies = []string{p.Place}
		}
	}
	if p.Horizon != "" && !o.given("horizon") {
		config.Horizon = p.Horizon
	}
	if p.Choice != "" && !o.given("choice") {
		config.Choice = policy.Choice(p.Choice)
	}
	if p.Seed != 0 && !o.given("seed") {
		config.Seed = p.Seed
	}
	if o.Trigger == "" {
		config.Trigger, config.Period = engine.Trigger(p.Trigger), cmp.Or(config.Period, p.Every)
	}
	if o.Overrun == "" {
		config.Overrun, config.Extension = engine.Overrun(p.Overrun), cmp.Or(config.Extension, p.Extension)
	}
	config.Immediate = cmp.Or(config.Immediate, engine.Immediate(p.Immediate))
	if p.Compress != nil && !o.given("compress") {
		config.Compress = *p.Compress
	}
	if !o.given("preempt") {
		config.Preempt = p.Preempt
	}
	if !o.given("staging") {
		config.Staging = stagingNamed(p.Staging)
	}
	if !o.given("unaware") {
		config.Unaware = p.Unaware
	}
	config.Uplink = file.Uplink
	orderFrom(file, config)
	admitFrom(file, config)
}
