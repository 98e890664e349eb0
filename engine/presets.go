package engine

import "github.com/berth-hpc/berth/policy"

// Preset is a configuration with a name: the choices of one paper, or of one
// classic scheduler. It says nothing of sites, and leaves the placement to the
// caller where the paper compares several.
type Preset struct {
	Name  string
	About string
	// Apply makes the preset's choices where the configuration has none yet.
	Apply func(*Config)
}

// Presets lists the presets; the first is the default.
var Presets = []Preset{
	{"li", "advance reservations first come, first served; the placement decides (Li et al.)", func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "best-key")
	}},
	{"wms-sequential", "the smallest site with room within the waiting limit (Sahakyan and Petrosyan, section 5)", func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "smallest-fit")
		choose(&c.Place, "first-fit")
	}},
	{"wms-eager", "the same, with narrow jobs refused at busy sites (section 6); K1 = K2 = 0.5 unless the sites file says", func(c *Config) {
		choose(&c.Order, "fcfs")
		choose(&c.Match, "smallest-fit")
		choose(&c.Place, "first-fit")
		if c.Eager == nil {
			c.Eager = &policy.Eager{K1: 500, K2: 500}
		}
	}},
}

func choose(name *string, choice string) {
	if *name == "" {
		*name = choice
	}
}

// PresetNamed returns the preset of that name.
func PresetNamed(name string) (Preset, bool) {
	for _, preset := range Presets {
		if preset.Name == name {
			return preset, true
		}
	}
	return Preset{}, false
}
