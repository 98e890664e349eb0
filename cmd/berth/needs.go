package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
)

// need is flags that do something only where it is met.
type need struct {
	met   bool
	where string // in words, behind "applies to"
	flags []string
}

// refuseIdle refuses the first flag that was given and would do nothing.
func refuseIdle(cmd *cobra.Command, needs []need) error {
	for _, n := range needs {
		if n.met {
			continue
		}
		for _, flag := range n.flags {
			if cmd.Flags().Changed(flag) {
				return usagef(cmd, "--%s: applies to %s", flag, n.where)
			}
		}
	}
	return nil
}

// origin is where a workload comes from.
type origin int

const (
	ofLog      origin = iota // a log, of which jobs and windows are made
	ofModel                  // a model, likewise
	ofRequests               // a file of requests, which brings all of it
)

// traits are what requests have on which it depends whether a flag does anything.
type traits struct {
	moldable bool // a request may choose among variants
	forNow   bool // a request wants to start when it arrives
	data     bool // a request has data to move
}

// look finds the traits of a workload. Cost: O(n) for n requests.
func look(work *sim.Workload) traits {
	var f traits
	for i := range work.Requests {
		r := &work.Requests[i]
		f.moldable = f.moldable || slices.ContainsFunc(r.Parts, func(p berth.Part) bool { return len(p.Variants) > 1 })
		f.forNow = f.forNow || !r.IsJob() && r.Ready == r.Arrival
		f.data = f.data || r.StorageMB > 0
	}
	return f
}

// simNeeds is the table of what the flags of a simulation need. Its order is that
// in which mistakes are told.
func simNeeds(flags *simFlags, machine *grid, src *source, config *engine.Config) []need {
	var (
		file      = src.origin == ofRequests
		batch     = slices.Contains(namesOf(policy.Batches, func(b policy.NamedBatch) string { return b.Name }), config.Match)
		chance    = config.Match == "random" || config.Match == "mga" // draws of its own
		extends   = config.Overrun == engine.OverrunRunOn || config.Overrun == engine.OverrunDelay
		preset, _ = engine.PresetNamed(flags.preset)
		every     = config.Trigger == engine.TriggerOnPeriod
	)
	const runs = "run times that differ from what was reserved: --noise, --run-times actual, --as jobs or mixed, or run in a file"
	return []need{
		{src.origin == ofModel, "a model (lublin:NAME)", []string{"umed"}},
		{src.origin == ofLog, "a log; a model has no requested times, and a file of requests brings its runs", []string{"estimates", "run-times"}},
		{src.origin != ofModel, "a file; a model has no lines", []string{"strict"}},
		{!file, "a log or a model; a file of requests brings its windows, kinds and runs", []string{
			"arrival-factor", "artime-factor", "deadline-factor", "as", "reserve-share", "waiting-limit",
		}},
		{!file || flags.replications == 1 || flags.noise > 0 || flags.failures.pes > 0, "a log or a model, --noise or --failures; nothing else is drawn for a file of requests", []string{"replications"}},
		{!file || flags.noise > 0 || flags.failures.pes > 0 || chance, "what is drawn: a log or a model, --noise, --failures, --match random or mga", []string{"seed"}},
		{src.requests, "requests; there are only ordinary jobs", []string{"policy", "artime-factor", "deadline-factor", "choice", "horizon", "immediate", "by-size"}},
		{src.jobs, "ordinary jobs; there are none without --as jobs or mixed, or kind job in a file", []string{"waiting-limit", "backfill", "compress", "preempt"}},
		{src.jobs || !preset.Jobs, "ordinary jobs with " + flags.preset + ", which is about nothing else; there are none", []string{"preset"}},
		{src.requests, "requests beside the jobs; nothing else stops a job", []string{"preempt"}},
		{file || flags.as == asMixed, "--as mixed", []string{"reserve-share"}},
		{slices.Contains(flags.backfills, conservative), "--backfill conservative", []string{"compress"}},
		{every, "--trigger every", []string{"every"}},
		{src.runs, runs, []string{"overrun", "extension"}},
		{extends, "--overrun extend or delay", []string{"extension"}},
		{src.moldable, "moldable requests, which have variants in a file; there are none", []string{"choice"}},
		{src.forNow, "requests that want to start when they arrive; there are none", []string{"immediate"}},
		{src.jobs || config.Trigger != engine.TriggerOnArrival, "several at a time: ordinary jobs, or --trigger instant or every", []string{"order"}},
		{machine.pools() > 1 || batch, "several pools, which a file of --sites has, or a match of several requests", []string{"match"}},
		{batch, "a match of several requests: " + oneOf(namesOf(policy.Batches, func(b policy.NamedBatch) string { return b.Name })), []string{"unaware"}},
		{src.data && machine.links(), "data to move: storage in a file of requests, and links in one of --sites", []string{"staging"}},
		{flags.format == formats[0], "-o table; the other forms have it always", []string{"by-size"}},
	}
}

// pools returns how many pools the machine has.
func (g *grid) pools() int {
	if g.file == nil {
		return 1
	}
	n := 0
	for i := range g.file.Sites {
		n += len(g.file.Sites[i].Pools)
	}
	return n
}

// links reports whether moving data takes time.
func (g *grid) links() bool {
	if g.file == nil {
		return false
	}
	return g.file.Uplink > 0 || slices.ContainsFunc(g.file.Sites, func(s berth.Site) bool { return s.Link != berth.Link{} })
}

// fit refuses flags that do nothing for the workload and the machine, and leaves
// out of the configuration what has no object.
func (s *source) fit(cmd *cobra.Command, flags *simFlags, machine *grid, config *engine.Config) error {
	if config.Immediate == engine.ImmediateQueue {
		s.jobs = true // what finds no room waits like one
	}
	if err := refuseIdle(cmd, simNeeds(flags, machine, s, config)); err != nil {
		return err
	}
	if !s.runs { // everything runs as long as it was given: nothing overruns
		config.Overrun, config.Extension = "", 0
	}
	if config.Trigger == engine.TriggerOnPeriod && config.Period == 0 {
		return usagef(cmd, "--every: missing; want how often --trigger every decides, such as 15m")
	}
	return nil
}
