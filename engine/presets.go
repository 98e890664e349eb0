package engine

import (
	"slices"

	"github.com/berth-hpc/berth/policy"
)

// Preset is a configuration with a name: the choices of one paper, or of one
// classic scheduler. It says nothing of sites, and leaves the placement to the
// caller where the paper compares several.
type Preset struct {
	Name  string
	About string
	// Jobs says that the preset is about ordinary jobs: a replay under it takes the
	// records of a log for jobs, not for requests.
	Jobs  bool
	apply func(*Config)
}

// Apply makes the preset's choices where the configuration leaves them open.
func (p *Preset) Apply(c *Config) { p.apply(c) }

// Presets lists the presets; the first is the default.
func Presets() []Preset { return slices.Clone(presets) }

var presets = []Preset{
	{Name: "li", About: "advance reservations first come, first served; the placement decides (Li et al.)", apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "best-key")
	}},
	{Name: "dpsar", About: "by users' priorities and lengths, sites in random order (Ahuja et al.); three of a user alone in a round unless the sites file says", apply: func(c *Config) {
		choose(&c.Order, "dpsar")
		choose(&c.Match, "random")
		choose(&c.Place, "first-fit")
		if c.Options.N == 0 {
			c.Options.N = 3 // as in the paper's example
		}
	}},
	{Name: "arwp", About: "the same without priorities, in the order of submission (Sulistio and Buyya)", apply: func(c *Config) {
		choose(&c.Order, "arwp")
		choose(&c.Match, "random")
		choose(&c.Place, "first-fit")
	}},
	{Name: "wms-sequential", About: "the smallest site with room within the waiting limit (Sahakyan and Petrosyan, section 5)", apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "smallest-fit")
		choose(&c.Place, "first-fit")
	}},
	{Name: "wms-eager", About: "the same, with narrow jobs refused at busy sites (section 6); K1 = K2 = 0.5 unless the sites file says", apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "smallest-fit")
		choose(&c.Place, "first-fit")
		if c.Eager == nil {
			c.Eager = &policy.Eager{K1: 500, K2: 500}
		}
	}},
	{Name: "wms-lazy", About: "jobs wait, and a site that is free takes the one that fits it best (section 4)", Jobs: true, apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "smallest-fit")
		choose(&c.Jobs, "lazy")
	}},
	{Name: "easy", About: "jobs in order; others start early if they do not delay the first (Lifka)", Jobs: true, apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "earliest-finish")
		choose(&c.Jobs, "easy")
	}},
	{Name: "conservative", About: "jobs in order; others start early if they delay no job ahead; planned anew on early ends (Mu'alem and Feitelson)", Jobs: true, apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "earliest-finish")
		choose(&c.Jobs, "conservative")
		c.Compress = true // without it plans made from long estimates stay where they are: waits of days
	}},
	{Name: "ajsm", About: "every four minutes the request first that ends first, where it ends first, data and software counted (Tang and Liao)", apply: func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "ajsm")
		choose(&c.Place, "first-fit")
		choose(&c.Staging, StagingHold)
		if c.Trigger == "" {
			c.Trigger, c.Period = TriggerOnPeriod, 240 // in the paper's evaluation; its text once says two minutes
		}
	}},
	{Name: "default", About: "all of it: by users' priorities and lengths, where a request ends first; jobs around the promises", apply: func(c *Config) {
		choose(&c.Order, "dpsar")
		choose(&c.Match, "earliest-finish")
		choose(&c.Place, "first-fit")
		choose(&c.Jobs, "easy")
		choose(&c.Staging, StagingBefore)
	}},
}

func choose[T ~string](name *T, choice T) {
	if *name == "" {
		*name = choice
	}
}

// PresetNamed returns the preset of that name.
func PresetNamed(name string) (Preset, bool) {
	for _, preset := range presets {
		if preset.Name == name {
			return preset, true
		}
	}
	return Preset{}, false
}
