package main

import (
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/scenario"
)

// simCommand returns berth sim.
func (a *app) simCommand() *cobra.Command {
	flags := newSimFlags()
	cmd := &cobra.Command{
		Use:   "sim --workload FILE.swf|FILE.jsonl|lublin:NAME",
		Short: "Replay a log or generate a workload, and compare policies",
		Long:  simLong(),
		Example: `  berth sim --workload examples/first-light.swf --policy all
  berth sim --workload log.swf.gz --pes 128 --policy first-fit,pe-worst --bind early,late -o json
  berth sim --workload lublin:lanl-cm5 --jobs 10000 --replications 10 --policy all
  berth sim --workload requests.jsonl --pes 64 --schedule out.jsonl --plot out.svg
  berth sim --workload log.swf.gz --sites examples/sites.yaml --schedule out.jsonl
  berth sim --workload log.swf.gz --as jobs --estimates --backfill all
  berth sim --workload log.swf.gz --as mixed --noise 0.1 --overrun delay --failures 30d,4h,16`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sim(cmd, flags) },
	}
	addSimFlags(cmd, flags)
	return cmd
}

// sim runs the command.
func (a *app) sim(cmd *cobra.Command, flags *simFlags) error {
	files := claims{cmd: cmd}
	files.reads("--workload", flags.Workload)
	files.reads("--sites", flags.sites)
	files.reads("--outages", flags.Outages)
	if from := flags.Workflows.From; from != "" && !scenario.DrawnWorkflows(from) {
		files.reads("--workflows", from)
	}
	files.writes("--schedule", flags.scheduleNames()...)
	files.writes("--plot", flags.plot)
	files.shows()
	if err := files.apart(); err != nil {
		return err
	}
	spacious()
	machine, config, err := a.settleSim(cmd, flags)
	if err != nil {
		return err
	}
	src, first, err := a.prepare(cmd, flags, machine)
	if err != nil {
		return err
	}
	if err := fit(cmd, flags, machine, src, &config); err != nil {
		return err
	}
	for _, note := range flags.idle(cmd, src, &config) {
		a.say("berth: %s", note)
	}
	batch := &scenario.Batch{Runs: flags.Runs(src.Jobs), Scenario: src, First: first, Machine: machine, Config: config}
	if err := flags.runsWritable(batch.Runs); err != nil {
		return err
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	results, err := a.runAll(ctx, flags, batch)
	if err != nil {
		return err
	}
	if err := a.print(flags, src, results); err != nil {
		return err
	}
	if len(results) < len(batch.Runs) {
		kept := fmt.Sprintf("%d of %d runs had finished", len(results), len(batch.Runs))
		if flags.plot != "" {
			kept += "; no figure was drawn"
		}
		return &interrupted{kept: kept}
	}
	if flags.plot != "" {
		return a.draw(flags, src, results)
	}
	return nil
}

// validate finds what no single flag can see.
func (flags *simFlags) validate(cmd *cobra.Command) error {
	switch {
	case flags.Workload == "":
		return usagef(cmd, "--workload: missing; want FILE.swf, FILE.jsonl or lublin:NAME")
	case flags.Seed > math.MaxUint64-uint64(flags.Replications):
		return usagef(cmd, "--seed: %d and %d replications go beyond the largest seed", flags.Seed, flags.Replications)
	}
	if err := refuseIdle(cmd, []need{{flags.Workflows.From != "", "--workflows", []string{
		"workflow-count", "workflow-slack", "workflow-algorithm", "workflow-repair", "workflow-noise", "workflow-failures", "workflow-retries",
	}}}); err != nil {
		return err
	}
	flags.Waits = cmd.Flags().Changed("waiting-limit")
	if flags.plot != "" {
		if _, ok := figureFormat(flags.plot); !ok {
			return usagef(cmd, "--plot: %q does not tell a format; want a name ending in .%s",
				flags.plot, strings.Join(plot.Formats(), " or ."))
		}
	}
	return nil
}

// draw writes the figure of the first replication of every policy and binding.
// Its bars are means over all replications.
func (a *app) draw(flags *simFlags, src *scenario.Scenario, results []*result) error {
	figure := plot.Figure{PEs: src.PEs}
	for _, r := range results {
		if r.Run.Replication != 1 {
			continue
		}
		figure.Runs = append(figure.Runs, plot.Run{Title: runTitle(&r.Run, flags), Lines: drawn(r.played.All())})
	}
	if flags.Replications > 1 {
		for _, s := range summaries(results) {
			requests, seconds := s.shares()
			figure.Shares = append(figure.Shares, plot.Share{Title: s.title(flags), Requests: requests, PESeconds: seconds})
		}
	}
	figure.Title = titleOf(src, flags)
	if len(figure.Runs) == 1 {
		figure.Title = scene(src) + ", " + fullTitle(&results[0].Run)
	}
	if flags.Replications > 1 {
		figure.Title += fmt.Sprintf(" (replication 1 of %d; bars: all)", flags.Replications)
	}
	out, err := a.create("plot", flags.plot)
	if err != nil {
		return err
	}
	defer out.Drop()
	format, _ := figureFormat(flags.plot)
	if err := plot.Write(out, format, figure); err != nil {
		return fmt.Errorf("writing %s: %w", flags.plot, err)
	}
	return out.Keep()
}

// drawn returns the lines of a figure, which knows requests alone: a job that
// ran is drawn as a request for the time it took.
func drawn(lines iter.Seq[*berth.Line]) iter.Seq[*berth.Line] {
	return func(yield func(*berth.Line) bool) {
		var ran berth.Line
		for line := range lines {
			if line.Kind == berth.KindJob {
				ran = *line
				if line, ran.Kind = &ran, berth.KindRequest; ran.ActualEnd != nil {
					ran.End = ran.ActualEnd
				}
			}
			if !yield(line) {
				return
			}
		}
	}
}

// withSuffix puts a suffix before a file's ending: a.jsonl and -x make
// a-x.jsonl; .gz counts as a part of the ending. A stream stays what it is, and so does nothing.
func withSuffix(path, suffix string) string {
	if path == stdStream || path == "" {
		return path
	}
	gz := ""
	if bare, zipped := strings.CutSuffix(path, ".gz"); zipped {
		gz, path = ".gz", bare
	}
	ending := filepath.Ext(path)
	return strings.TrimSuffix(path, ending) + suffix + ending + gz
}
