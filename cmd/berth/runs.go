package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// simulator is sim.Play, or what a test puts in its place.
type simulator func(ctx context.Context, cfg engine.Config, work sim.Workload, progress func(done int)) (*sim.Result, error)

// result is a finished run, with its schedule where the figure needs that.
type result struct {
	*scenario.Result
	played *sim.Result
}

// fullTitle names all that was chosen for the run.
func fullTitle(r *scenario.Run) string {
	title := r.Policy + ", " + string(r.Bind) + " binding"
	if r.Backfill != "" {
		title += ", " + r.Backfill
	}
	return title
}

// runTitle names the run among its fellows: the policy, and the binding and the
// pass for jobs if they vary.
func runTitle(r *scenario.Run, flags *simFlags) string {
	title := r.Policy
	if len(flags.Binds) > 1 {
		title += ", " + string(r.Bind)
	}
	if len(flags.Backfills) > 1 && r.Backfill != "" {
		title += ", " + r.Backfill
	}
	return title
}

// queueTitle names the run by what matters to its jobs: the pass, and the rest
// if it varies.
func queueTitle(r *scenario.Run, flags *simFlags) string {
	title := r.Backfill
	if len(flags.Policies) > 1 {
		title += ", " + r.Policy
	}
	if len(flags.Binds) > 1 {
		title += ", " + string(r.Bind)
	}
	return title
}

// runsWritable finds out before anything is simulated whether the results can be
// kept.
func (flags *simFlags) runsWritable(runs []scenario.Run) error {
	for i := range runs {
		if name := scheduleName(flags, &runs[i]); name != "" {
			if err := wholefile.Writable("schedule", name); err != nil {
				return err
			}
		}
	}
	if flags.plot != "" {
		return wholefile.Writable("plot", flags.plot)
	}
	return nil
}

// scheduleNames returns the files that runs may write their schedules to, whether
// the workload has ordinary jobs or not.
func (flags *simFlags) scheduleNames() []string {
	var names []string
	for _, jobs := range []bool{false, true} {
		if jobs && len(flags.Backfills) < 2 {
			break // the names would be the same
		}
		for _, run := range flags.Runs(jobs) {
			names = append(names, scheduleName(flags, &run))
		}
	}
	return names
}

// scheduleName returns the file for a run's schedule: the name given, with
// what varies among the runs before its ending.
func scheduleName(flags *simFlags, run *scenario.Run) string {
	if flags.schedule == "" {
		return ""
	}
	var suffix strings.Builder
	if len(flags.Policies) > 1 {
		suffix.WriteString("-" + run.Policy)
	}
	if len(flags.Binds) > 1 {
		suffix.WriteString("-" + string(run.Bind))
	}
	if len(flags.Backfills) > 1 && run.Backfill != "" {
		suffix.WriteString("-" + run.Backfill)
	}
	if flags.Replications > 1 {
		fmt.Fprintf(&suffix, "-r%d", run.Replication)
	}
	return withSuffix(flags.schedule, suffix.String())
}

// runAll does the runs of a batch, keeps their schedules and returns the finished ones.
func (a *app) runAll(ctx context.Context, flags *simFlags, b *scenario.Batch) ([]*result, error) {
	bar := a.newProgress(len(b.Runs))
	defer bar.end()
	kept := make([]*sim.Result, len(b.Runs))
	b.Simulate, b.Progress = a.simulate, bar.of
	b.Keep = func(i int, result *sim.Result, on []berth.Site) error {
		if name := scheduleName(flags, &b.Runs[i]); name != "" {
			if err := a.writeSchedule(name, berth.WithSizes(result.All(), on)); err != nil {
				return err
			}
		}
		if flags.plot != "" && b.Runs[i].Replication == 1 {
			kept[i] = result
		}
		return nil
	}
	finished, err := b.Do(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]*result, 0, len(finished))
	for i, at := 0, 0; i < len(finished); i++ {
		for b.Runs[at] != finished[i].Run {
			at++
		}
		results = append(results, &result{finished[i], kept[at]})
	}
	return results, nil
}

// writeSchedule writes a schedule file, compressed if its name ends in .gz.
func (a *app) writeSchedule(path string, lines iter.Seq[*berth.Line]) error {
	out, err := a.create("schedule", path)
	if err != nil {
		return err
	}
	defer out.Drop()
	write := func(w io.Writer) error { return workload.WriteSchedule(w, lines) }
	if err := zipped(out, strings.HasSuffix(path, ".gz"), write); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.Keep()
}

// zipped writes to w, compressed or not.
func zipped(w io.Writer, compress bool, write func(io.Writer) error) error {
	if !compress {
		return write(w)
	}
	zip := gzip.NewWriter(w)
	if err := write(zip); err != nil {
		return err
	}
	return zip.Close()
}
