package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/scenario"
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

// simNeeds is the table of what the flags of a simulation need. Its order is that
// in which mistakes are told.
func simNeeds(flags *simFlags, machine *scenario.Machine, src *scenario.Scenario, config *engine.Config) []need {
	var (
		file      = src.Origin == scenario.OfRequests
		batch     = slices.Contains(scenario.Batches(), config.Match)
		draws     = flags.draws(config)
		extends   = config.Overrun == engine.OverrunRunOn || config.Overrun == engine.OverrunDelay
		preset, _ = engine.PresetNamed(flags.Preset)
		every     = config.Trigger == engine.TriggerOnPeriod
	)
	const runs = "run times that differ from what was reserved: --noise, --run-times actual, --as jobs or mixed, or run in a file"
	return []need{
		{src.Origin == scenario.OfModel, "a model (lublin:NAME)", []string{"umed"}},
		{src.Origin == scenario.OfLog, "a log; a model has no requested times, and a file of requests brings its runs", []string{"estimates", "run-times"}},
		{src.Origin != scenario.OfModel || flags.Outages != "", "a file; a model has no lines", []string{"strict"}},
		{!file, "a log or a model; a file of requests brings its windows, kinds and runs", []string{
			"arrival-factor", "artime-factor", "deadline-factor", "as", "reserve-share", "waiting-limit",
		}},
		{!file || flags.Replications == 1 || draws, "a log or a model, --noise, --failures, --workflows, --match random or mga; nothing else is drawn for a file of requests", []string{"replications"}},
		{!file || draws, "what is drawn: a log or a model, --noise, --failures, --workflows, --match random or mga", []string{"seed"}},
		{src.Requests, "requests; there are only ordinary jobs", []string{"policy", "artime-factor", "deadline-factor", "choice", "horizon", "immediate", "by-size"}},
		{src.Jobs, "ordinary jobs; there are none without --as jobs or mixed, or kind job in a file", []string{"waiting-limit", "backfill", "compress", "preempt"}},
		{src.Jobs || !preset.Jobs, "ordinary jobs with " + flags.Preset + ", which is about nothing else; there are none", []string{"preset"}},
		{src.Requests, "requests beside the jobs; nothing else stops a job", []string{"preempt"}},
		{file || flags.As == scenario.AsMixed, "--as mixed", []string{"reserve-share"}},
		{slices.Contains(flags.Backfills, scenario.Conservative), "--backfill conservative", []string{"compress"}},
		{every, "--trigger every", []string{"every"}},
		{src.Runs, runs, []string{"overrun", "extension"}},
		{extends, "--overrun extend or delay", []string{"extension"}},
		{src.Moldable, "moldable requests, which have variants in a file; there are none", []string{"choice"}},
		{src.ForNow, "requests that want to start when they arrive; there are none", []string{"immediate"}},
		{src.Jobs || config.Trigger != engine.TriggerOnArrival, "several at a time: ordinary jobs, or --trigger instant or every", []string{"order"}},
		{machine.Pools() > 1 || batch, "several pools, which a file of --sites has, or a match of several requests", []string{"match"}},
		{batch, "a match of several requests: " + nearest.OneOf(scenario.Batches()), []string{"unaware"}},
		{src.Data && machine.Links(), "data to move: storage in a file of requests, and links in one of --sites", []string{"staging"}},
		{flags.format == formats[0], "-o table; the other forms have it always", []string{"by-size"}},
	}
}

// draws reports whether something is drawn at random, whatever the workload is.
func (flags *simFlags) draws(config *engine.Config) bool {
	return config.Match == "random" || config.Match == "mga" || flags.Noise > 0 || flags.Failures.PEs > 0 || flags.Workflows.Draws()
}

// idle says of flags that were given and do nothing, but are given out of habit and so not refused, why they do nothing.
func (flags *simFlags) idle(cmd *cobra.Command, src *scenario.Scenario, config *engine.Config) (notes []string) {
	log := src.Origin == scenario.OfLog
	for _, flag := range []string{"seed", "replications"} {
		if log && !src.Requests && !flags.draws(config) && cmd.Flags().Changed(flag) {
			notes = append(notes, fmt.Sprintf("--%s: does nothing; ordinary jobs are as the log has them, and nothing is drawn without --noise, --failures, --workflows, --match random or mga", flag))
		}
	}
	if log && !flags.Estimates && cmd.Flags().Changed("run-times") {
		notes = append(notes, "--run-times: does nothing without --estimates; what a log asks for is how long it ran")
	}
	return notes
}

// fit refuses flags that do nothing for the workload and the machine, and leaves
// out of the configuration what has no object.
func fit(cmd *cobra.Command, flags *simFlags, machine *scenario.Machine, s *scenario.Scenario, config *engine.Config) error {
	if config.Immediate == engine.ImmediateQueue {
		s.Jobs = true // what finds no room waits like one
	}
	if err := refuseIdle(cmd, simNeeds(flags, machine, s, config)); err != nil {
		return err
	}
	if !s.Runs { // everything runs as long as it was given: nothing scenario.Overruns()
		config.Overrun, config.Extension = "", 0
	}
	if config.Trigger == engine.TriggerOnPeriod && config.Period == 0 {
		return usagef(cmd, "--every: missing; want how often --trigger every decides, such as 15m")
	}
	return nil
}
