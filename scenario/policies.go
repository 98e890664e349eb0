package scenario

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sites"
)

// orderFrom takes the users and the options of the order from a sites file.
func orderFrom(file *sites.File, config *engine.Config) {
	config.Users = file.Users
	d := file.Policies.DPSAR
	if d == nil {
		return
	}
	config.Options = policy.OrderOptions{
		N: d.N, NUJP: d.NUJP, Overflow: policy.Overflow(d.Overflow), Chain: d.Chain, LengthClasses: d.LengthClasses,
		InUser: policy.InUser(d.InUser), Aging: d.Aging,
	}
	if d.SD != nil {
		levels := policy.Levels(*d.SD)
		config.Options.SD = &levels
	}
}

// The names that the key admit of a sites file may list.
const (
	admitAll          = "all"
	admitRequirements = "requirements" // always looked at
	admitEager        = "eager"
	admitAhead        = "ahead"
	admitQuota        = "quota" // likewise: the limits
)

// admitFrom takes the admission policies from a sites file. If it lists some,
// the others are off, whatever else it says of them; requirements and limits cannot be.
func admitFrom(file *sites.File, config *engine.Config) {
	p := &file.Policies
	config.Limits, config.Prices = file.Limits, file.Prices
	uses := func(name string) bool { return len(p.Admit) == 0 || slices.Contains(p.Admit, name) }
	if p.Eager != nil && uses(admitEager) {
		config.Eager = &policy.Eager{
			K1: policy.Permille(p.Eager.K1), K2: policy.Permille(p.Eager.K2),
			Grid: p.Eager.Scope == sites.ScopeGrid, RefuseAll: p.Eager.RefuseAll,
		}
	}
	if uses(admitAhead) {
		config.Ahead = p.Ahead
	}
}

// CheckNames finds names in the policies of a sites file that no table has, and tells the
// line. Errors are of code Invalid.
func CheckNames(file *sites.File) error {
	p := &file.Policies
	type choice struct {
		key, name string
		known     []string
	}
	all := []choice{
		{"preset", p.Preset, Presets()},
		{"trigger", p.Trigger, Triggers()},
		{"order", p.Order, Orders()},
		{"match", p.Match, Matches()},
		{"place", p.Place, Placements()},
		{"choice", p.Choice, Choices()},
		{"horizon", p.Horizon, Horizons()},
		{"jobs", p.Jobs, JobPasses()},
		{"immediate", p.Immediate, Immediates()},
		{"overrun", p.Overrun, Overruns()},
		{"staging", p.Staging, Stagings()},
	}
	if d := p.DPSAR; d != nil {
		all = append(all,
			choice{"dpsar.overflow", d.Overflow, []string{string(policy.Defer), string(policy.Discard)}},
			choice{"dpsar.in_user", d.InUser, []string{string(policy.ShortestInUser), string(policy.FirstInUser), string(policy.LongestInUser)}},
		)
	}
	for _, name := range p.Admit {
		all = append(all, choice{"admit", name, []string{admitAll, admitRequirements, admitEager, admitAhead, admitQuota}})
	}
	for _, c := range all {
		if c.name != "" && !slices.Contains(c.known, c.name) {
			key := "policies." + c.key
			what := c.key[strings.LastIndexByte(c.key, '.')+1:]
			return berth.Errorf(berth.Invalid, key, "%s: %s", file.Where(key), nearest.Unknown(what, c.name, c.known))
		}
	}
	return nil
}
