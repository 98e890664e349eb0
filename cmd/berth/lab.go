package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/berth-hpc/berth/lab"
)

// labFlags is what the command line of lab says beside what is simulated.
type labFlags struct {
	sim      *simFlags
	sweeps   []string
	baseline string
	out      string
	cells    string
	shard    string
	worker   bool // of the service
}

// noBaseline is the baseline of those who want none.
const noBaseline = "none"

// labCommand returns berth lab.
func (a *app) labCommand() *cobra.Command {
	flags := &labFlags{sim: newSimFlags()}
	cmd := &cobra.Command{
		Use:   "lab --workload FILE.swf|FILE.jsonl|lublin:NAME --sweep NAME=VALUE,VALUE",
		Short: "Compare policies on your own history, with differences and intervals",
		Long:  labLong(),
		Example: `  berth lab --workload log.swf.gz --sweep policy=all --sweep bind=early,late --replications 5 --out report
  berth lab --workload log.swf.gz --sweep policy=first-fit,pe-worst --sweep deadline-factor=1,2,3,5 --baseline first-fit
  berth lab --workload log.swf.gz --as jobs --estimates --sweep backfill=all --baseline easy
  berth lab --workload log.swf.gz --as mixed --sweep 'failures=30d,4h,16;90d,4h,16' -o csv
  berth lab --workload log.swf.gz --sweep policy=all --replications 30 --shard 2/8 --cells part-2.jsonl
  berth lab merge part-*.jsonl --out report`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.lab(cmd, flags) },
	}
	comparison := newGroup("The comparison")
	f := comparison.FlagSet
	f.StringArrayVar(&flags.sweeps, "sweep", nil, "compare these values of a flag above, `NAME=VALUE,VALUE`; several make every combination")
	flags.sim.repetitionFlags(f)
	flags.reportFlags(f)
	f.StringVar(&flags.cells, "cells", "", "keep finished runs in `FILE`.jsonl as they come, and go on from what it holds")
	f.StringVar(&flags.shard, "shard", "", "do the I-th of N parts of the runs, `I/N`, into the file of --cells; no report")
	f.BoolVar(&flags.worker, "worker", false, "")
	_ = f.MarkHidden("worker")        // fails for unknown flags only
	cmd.SetFlagErrorFunc(flagMistake) // of this command, though it holds another
	groups := flags.sim.groupFlags()
	simulates := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, group := range groups {
		simulates.AddFlagSet(group.FlagSet)
	}
	addGroups(cmd, append(groups, comparison))
	flags.completeReport(cmd)
	completeSweep(cmd, simulates)
	_ = cmd.MarkFlagFilename("cells", "jsonl") // fails for unknown flags only
	cmd.AddCommand(a.labMergeCommand())
	return cmd
}

// reportFlags are those of the report, of lab and of lab merge.
func (flags *labFlags) reportFlags(f *pflag.FlagSet) {
	f.StringVar(&flags.baseline, "baseline", "", "what the others are compared with: `VALUE`s such as first-fit or policy=first-fit,bind=early, or none (default: the first value of the first --sweep)")
	f.StringVar(&flags.out, outFlag, "", "write the report, its figures and all data to `DIR`, which is made if it is not there")
	f.VarP(&choice{&flags.sim.format, "form", formats}, "output", "o", "form of the figures: "+strings.Join(formats, ", "))
}

func (flags *labFlags) completeReport(cmd *cobra.Command) {
	_ = cmd.MarkFlagDirname(outFlag) // fails for unknown flags only
	complete(cmd, "output", formats)
}

// labLong is the text over the flags.
func labLong() string {
	return `Simulates every combination of the values that --sweep names, each with the same
random draws, and tells what differs: each figure with its 95 % interval over the
replications, and what would have changed against the baseline, over pairs of
runs with the same draws.

--sweep takes any flag that says what is simulated, by its name: of the workload,
the machine, the scheduler, and how long things run. Values stand between commas,
or between semicolons where they hold commas themselves; all stands for every
name that there is. What such flags mean is told by berth sim --help. Figures are
drawn over what is a number, else over the names.

With --out it writes report.html, a page that needs nothing beside it, each figure
as .svg and .csv, summary.csv with all estimates and differences, runs.csv with
every run, and cells.jsonl, from which berth lab merge makes the report again. The
same command gives the same bytes, on any number of cores.

What is long can be interrupted: with --cells finished runs are in a file, and the
same command goes on from there. With --shard several machines do a part each,
into a file each, and berth lab merge FILES makes the report of all. The first line
of such a file says of what the runs are; those of other settings, another input
file or another build are refused, and none is counted twice.`
}

// labMergeCommand returns berth lab merge.
func (a *app) labMergeCommand() *cobra.Command {
	flags := &labFlags{sim: newSimFlags()}
	cmd := &cobra.Command{
		Use:   "merge FILE.jsonl...",
		Short: "Report on all shards together",
		Long: `Puts together the files that the shards of one berth lab have kept with --cells,
in any order, and reports as one berth lab over all would have, byte for byte.
Nothing is simulated, and the workload need not be there.`,
		Example: `  berth lab merge part-*.jsonl --out report
  berth lab merge report/cells.jsonl --baseline bind=early -o csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "want the FILES of the shards, got none")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error { return a.labMerge(cmd, flags, files) },
	}
	cmd.SetUsageTemplate(new(cobra.Command).UsageTemplate()) // not that of lab, with its flags
	cmd.Flags().SortFlags = false
	flags.reportFlags(cmd.Flags())
	flags.completeReport(cmd)
	return cmd
}

// lab runs the command.
func (a *app) lab(cmd *cobra.Command, flags *labFlags) error {
	options := lab.Options{File: flags.cells, Simulate: a.simulate}
	ctx := cmd.Context()
	if flags.worker {
		var end func()
		var err error
		if ctx, end, err = asWorker(ctx, a.stdin); err != nil {
			return err
		}
		defer end()
	}
	for _, name := range []string{"cells", "shard"} {
		if cmd.Flags().Changed(name) && cmd.Flags().Lookup(name).Value.String() == "" {
			return usagef(cmd, "--%s: empty", name)
		}
	}
	if flags.shard != "" {
		var err error
		if options.Shard, err = lab.ParseShard(flags.shard); err != nil {
			return err
		}
		if err := refuseIdle(cmd, []need{{
			options.Shard.N == 1, "a report, which --shard does not write; put the shards together with berth lab merge, and want it there",
			[]string{outFlag, "output", "baseline"},
		}}); err != nil {
			return err
		}
		if flags.cells == "" {
			return usagef(cmd, "--cells: missing; what --shard %s does must be kept in a file", flags.shard)
		}
	}
	if err := flags.apart(cmd); err != nil {
		return err
	}
	plan, err := a.labPlan(cmd, flags)
	if err != nil {
		return err
	}
	if plan.Baseline, err = baselineOf(cmd, plan, flags.baseline); err != nil {
		return err
	}
	report, err := a.labReport(cmd, flags)
	if err != nil {
		return err
	}
	defer report.drop()
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	bar := func() {}
	if flags.worker {
		a.tellSteps(&options)
	} else {
		bar = a.labProgress(&options)
	}
	results, err := lab.Run(ctx, plan, options)
	bar()
	switch {
	case errors.Is(err, context.Canceled):
		return &interrupted{kept: flags.kept()}
	case err != nil:
		return err
	case options.Shard.N > 1:
		a.say("berth: shard %s is done; %s holds %d of %d runs", flags.shard, flags.cells, results.Done, len(plan.Points())*plan.Replications)
		return nil
	}
	if flags.worker {
		report.app = &app{stdout: io.Discard, stderr: io.Discard}
	}
	return report.write(results)
}

// sweptFiles are flags whose values are files to read.
var sweptFiles = []string{"workload", "sites", "outages"}

// apart refuses outputs that are inputs or other outputs, and streams: inputs are
// read for each combination, and what is kept is read again.
func (flags *labFlags) apart(cmd *cobra.Command) error {
	files := claims{cmd: cmd}
	for _, name := range sweptFiles {
		files.reads("--"+name, cmd.Flags().Lookup(name).Value.String())
	}
	for _, sweep := range flags.sweeps {
		name, values, _ := strings.Cut(sweep, "=")
		if slices.Contains(sweptFiles, strings.TrimPrefix(strings.TrimSpace(name), "--")) {
			files.reads("--sweep", lab.SplitValues(values)...)
		}
	}
	files.writes("--cells", flags.cells)
	if err := files.filesOnly(); err != nil {
		return err
	}
	if err := files.fills("--"+outFlag, flags.out); err != nil {
		return err
	}
	return files.apart()
}

// labMerge runs the command.
func (a *app) labMerge(cmd *cobra.Command, flags *labFlags, files []string) error {
	named := claims{cmd: cmd}
	named.reads("FILE.jsonl", files...)
	if err := named.filesOnly(); err != nil {
		return err
	}
	if err := named.fills("--"+outFlag, flags.out); err != nil {
		return err
	}
	if err := named.apart(); err != nil {
		return err
	}
	plan, err := lab.Recorded(files[0])
	if err != nil {
		return err
	}
	if plan.Baseline, err = baselineOf(cmd, plan, flags.baseline); err != nil {
		return err
	}
	report, err := a.labReport(cmd, flags)
	if err != nil {
		return err
	}
	defer report.drop()
	results, err := lab.Merge(cmd.Context(), plan, files)
	if err != nil {
		return err
	}
	return report.write(results)
}

// kept says what an interruption leaves.
func (flags *labFlags) kept() string {
	if flags.cells == "" {
		return "nothing was written; with --cells FILE finished runs are kept"
	}
	return "finished runs are in " + flags.cells + "; the same command goes on from there"
}

// labProgress shows a bar with the time left if people watch, and returns what
// takes it away.
func (a *app) labProgress(options *lab.Options) (end func()) {
	if !isTerminal(a.stderr) {
		return func() {}
	}
	// A run under way counts by its part, in steps of this.
	const steps = 1000
	var finished, runs int
	container := mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(48))
	bar := container.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(s decor.Statistics) string {
			return fmt.Sprintf("simulating %d/%d runs", s.Current/steps, s.Total/steps)
		})),
		mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.Name(" "), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "")),
	)
	options.Progress = func(done float64, all int) {
		if runs != all {
			runs = all
			bar.SetTotal(int64(all)*steps, false)
		}
		if now := int(done * steps); now > finished {
			bar.IncrBy(now - finished)
			finished = now
		}
	}
	return func() {
		bar.Abort(true)
		container.Wait()
	}
}
