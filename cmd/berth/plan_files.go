package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
)

// fileOf returns the name of a planner's file: the one given, with the name of
// the planner before its ending if there are several.
func (flags *planFlags) fileOf(path string, planner workflow.Planner) string {
	if !flags.compares() {
		return path
	}
	return withSuffix(path, "-"+strings.ReplaceAll(planner.Name, "/", "-"))
}

// claims notes the files of the command: those of each planner, and of each pool
// that is planned on.
func (flags *planFlags) claims(cmd *cobra.Command, path string, pools []poolOutput) *claims {
	files := &claims{cmd: cmd}
	files.reads("WORKFLOW", path)
	files.reads("--bookings", flags.bookings)
	files.reads("--repair", flags.repair)
	files.reads("--sites", flags.sites)
	for _, planner := range flags.planners {
		files.writes("--schedule", flags.fileOf(flags.schedule, planner))
	}
	for i := range pools {
		files.writes("--plot", flags.plotOf(&pools[i]))
	}
	for _, planner := range flags.planners {
		if pools == nil {
			files.writes("--plot", flags.fileOf(flags.plot, planner))
		}
	}
	files.shows()
	return files
}

// plotOf returns the file of a pool's figure: the one given, with the name of the
// pool before its ending.
func (flags *planFlags) plotOf(pool *poolOutput) string {
	return withSuffix(flags.plot, "-"+strings.ReplaceAll(pool.name(), "/", "-"))
}

// writable finds out before anything is planned whether it can be kept.
func (flags *planFlags) writable() error {
	for flag, path := range map[string]string{"schedule": flags.schedule, "plot": flags.plot} {
		if path == "" {
			continue
		}
		for _, planner := range flags.planners {
			if err := wholefile.Writable(flag, flags.fileOf(path, planner)); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepPlans writes the schedules and the figures of what was planned.
func (a *app) keepPlans(cmd *cobra.Command, p *planInput, results []*planned, flags *planFlags) error {
	if flags.schedule == "" && flags.plot == "" {
		return nil
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	for i, r := range results {
		if ctx.Err() != nil {
			return &interrupted{kept: fmt.Sprintf("the files of %d of %d plans were written", i, len(results))}
		}
		if r.Refusal != nil {
			continue
		}
		if flags.schedule != "" {
			lines := slices.Concat(p.Schedule(&r.Plan, min(flags.goal().Deadline, r.Tightest)))
			berth.TellSizes(lines, sim.OnePool(p.PEs, berth.Late))
			if err := a.writeSchedule(flags.fileOf(flags.schedule, r.Planner), berth.Each(lines)); err != nil {
				return err
			}
		}
		if flags.plot != "" {
			if err := a.drawPlan(p, flags.fileOf(flags.plot, r.Planner), r, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

// byStart returns placements in the order of their starts, those of one start
// in the order of the workflow.
func byStart(tasks []workflow.Placement) []workflow.Placement {
	sorted := slices.Clone(tasks)
	slices.SortFunc(sorted, func(a, b workflow.Placement) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Task, b.Task))
	})
	return sorted
}

// drawPlan draws a plan among the bookings.
func (a *app) drawPlan(p *planInput, path string, r *planned, flags *planFlags) error {
	figure := plot.Gantt{
		Title: r.Planner.Name + ": " + planTitle(p), PEs: p.PEs, Now: p.Now, Deadline: r.Tightest,
		Facts: "turn-around " + seconds(int64(r.Plan.Turnaround)) + ", " + strconv.FormatFloat(hours(r.Plan.CPUSeconds), 'f', 2, 64) + " CPU-hours",
	}
	if flags.deadline.set {
		figure.Deadline = flags.deadline.t
	}
	for i := range p.Bookings {
		b := &p.Bookings[i]
		figure.Others = append(figure.Others, plot.Bar{NPE: b.NPE, Start: b.Start, End: b.End})
	}
	onPath := critical(p, r)
	for _, t := range r.Plan.Tasks {
		figure.Tasks = append(figure.Tasks, plot.Bar{
			Label: p.Flow.Task(t.Task).ID, NPE: t.NPE, Start: t.Start, End: t.End, Critical: onPath[t.Task],
		})
	}
	return a.drawGantt(path, figure)
}

// drawGantt writes a figure to a file of either format.
func (a *app) drawGantt(path string, figure plot.Gantt) error {
	out, err := a.create("plot", path)
	if err != nil {
		return err
	}
	defer out.Drop()
	format, _ := figureFormat(path)
	if err := plot.WriteGantt(out, format, figure); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.Keep()
}
