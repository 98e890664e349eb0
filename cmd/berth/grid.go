package main

import (
	"cmp"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/sites"
)

// grid is the machine to simulate: what a sites file says, or one pool.
type grid struct {
	file *sites.File // nil without --sites
	// bindings are overridden by --bind where it is given, or where there is
	// no sites file.
	rebind bool
}

// settleSim checks the flags of a simulation and returns its machine, the bindings of
// which become those of the flags, and the scheduler for it.
func (a *app) settleSim(cmd *cobra.Command, flags *simFlags) (*grid, engine.Config, error) {
	if err := flags.validate(cmd); err != nil {
		return nil, engine.Config{}, err
	}
	machine, err := a.openGrid(cmd, flags)
	if err != nil {
		return nil, engine.Config{}, err
	}
	config, err := machine.configure(cmd, flags)
	if machine.file == nil && !machine.rebind && flags.as == asJobs {
		// A job that is planned with PE numbers keeps others out that would fit by
		// count, and nothing is gained: no job is told its numbers before it starts.
		flags.binds = []string{string(berth.Late)}
	}
	flags.binds = machine.binds(flags)
	return machine, config, err
}

// openGrid reads the sites file, if there is one.
func (a *app) openGrid(cmd *cobra.Command, flags *simFlags) (*grid, error) {
	g := &grid{rebind: cmd.Flags().Changed("bind")}
	if flags.sites == "" {
		return g, nil
	}
	if err := refuseIdle(cmd, []need{{false, "a machine of one pool; the sites file tells the sizes", []string{"pes"}}}); err != nil {
		return nil, err
	}
	file, err := readInput(a, flags.sites, sites.Open, sites.Read)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(file.Described(), checkNames(file)); err != nil {
		return nil, err
	}
	g.file = file
	return g, nil
}

// pes returns the size of the largest pool, which no job may exceed, and of
// all pools together; 0 without a sites file.
func (g *grid) pes() (largest, all berth.Count) {
	if g.file == nil {
		return 0, 0
	}
	for i := range g.file.Sites {
		for _, pool := range g.file.Sites[i].Pools {
			largest = max(largest, pool.PEs)
			all += pool.PEs
		}
	}
	return largest, all
}

// sites returns the sites with the binding of a run: those of the sites file,
// whose own bindings stand without --bind, or one pool of pes.
func (g *grid) sites(pes berth.Count, binding berth.Binding) []berth.Site {
	if g.file == nil {
		return sim.OnePool(pes, binding)
	}
	list := make([]berth.Site, len(g.file.Sites))
	for i, site := range g.file.Sites {
		if g.rebind {
			pools := make([]berth.Pool, len(site.Pools))
			for k, pool := range site.Pools {
				pool.Binding = binding
				pools[k] = pool
			}
			site.Pools = pools
		}
		list[i] = site
	}
	return list
}

// mixed is the binding told of a run on sites whose pools bind differently.
const mixed = "mixed"

// binds returns the bindings to run: those of --bind, or the one of the sites
// file.
func (g *grid) binds(flags *simFlags) []string {
	if g.file == nil || g.rebind {
		return flags.binds
	}
	var all berth.Binding
	for i := range g.file.Sites {
		for _, pool := range g.file.Sites[i].Pools {
			if all != "" && pool.Binding != all {
				return []string{mixed}
			}
			all = pool.Binding
		}
	}
	return []string{string(all)}
}

// configure returns the engine's configuration, without sites, placement and
// pass for jobs. Flags rule over the sites file, and what neither chooses is the
// preset's; a preset given as a flag also rules over the file's order, match,
// place and jobs. The placements to compare are those of --policy where it is
// given, else the one of the sites file; likewise the passes of --backfill.
func (g *grid) configure(cmd *cobra.Command, flags *simFlags) (engine.Config, error) {
	config := engine.Config{
		Horizon: flags.horizon, Calendar: flags.calendar, Choice: policy.Choice(flags.choice), Seed: flags.seed,
		Order: flags.order, Match: flags.match, Compress: flags.compress, Preempt: flags.preempt,
		Trigger: engine.Trigger(flags.trigger), Period: flags.every, Immediate: engine.Immediate(flags.immediate),
		Overrun: engine.Overrun(flags.overrun), Extension: flags.extension,
		Staging: stagingNamed(flags.staging), Unaware: flags.unaware,
	}
	if g.file != nil {
		g.fromFile(cmd, flags, &config)
	}
	preset, ok := engine.PresetNamed(flags.preset)
	if !ok {
		return config, berth.Errorf(berth.Invalid, "preset", "%s", unknown("preset", flags.preset, presets()))
	}
	every, compress := config.Period, config.Compress
	preset.Apply(&config)
	config.Period = cmp.Or(every, config.Period) // of the preset's own trigger too
	if flags.backfills == nil {
		flags.backfills = []string{cmp.Or(config.Jobs, engine.JobPasses()[0].Name)}
	}
	config.Compress = compress && slices.Contains(flags.backfills, conservative)
	if flags.as == "" && preset.Jobs {
		flags.as = asJobs
	}
	flags.as = cmp.Or(flags.as, asRequests)
	return config, nil
}

// fromFile takes from the sites file what no flag says.
func (g *grid) fromFile(cmd *cobra.Command, flags *simFlags, config *engine.Config) {
	p := &g.file.Policies
	given := cmd.Flags().Changed("preset")
	if !given {
		config.Order, config.Match = cmp.Or(config.Order, p.Order), cmp.Or(config.Match, p.Match)
		flags.preset = cmp.Or(p.Preset, flags.preset)
		config.Jobs = p.Jobs
		if p.Place != "" && !cmd.Flags().Changed("policy") {
			flags.policies = []string{p.Place}
		}
	}
	if p.Horizon != "" && !cmd.Flags().Changed("horizon") {
		config.Horizon = p.Horizon
	}
	if p.Choice != "" && !cmd.Flags().Changed("choice") {
		config.Choice = policy.Choice(p.Choice)
	}
	if p.Seed != 0 && !cmd.Flags().Changed("seed") {
		config.Seed = p.Seed
	}
	if flags.trigger == "" {
		config.Trigger, config.Period = engine.Trigger(p.Trigger), cmp.Or(config.Period, p.Every)
	}
	if flags.overrun == "" {
		config.Overrun, config.Extension = engine.Overrun(p.Overrun), cmp.Or(config.Extension, p.Extension)
	}
	config.Immediate = cmp.Or(config.Immediate, engine.Immediate(p.Immediate))
	if p.Compress != nil && !cmd.Flags().Changed("compress") {
		config.Compress = *p.Compress
	}
	if !cmd.Flags().Changed("preempt") {
		config.Preempt = p.Preempt
	}
	if !cmd.Flags().Changed("staging") {
		config.Staging = stagingNamed(p.Staging)
	}
	if !cmd.Flags().Changed("unaware") {
		config.Unaware = p.Unaware
	}
	config.Uplink = g.file.Uplink
	orderFrom(g.file, config)
	admitFrom(g.file, config)
}
