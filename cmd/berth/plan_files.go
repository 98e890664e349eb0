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
	files.reads("WORKFLOW.json", path)
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
			if err := writable(flag, flags.fileOf(path, planner)); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepPlans writes the schedules and the figures of what was planned.
func (a *app) keepPlans(cmd *cobra.Command, p *planning, results []*planned, flags *planFlags) error {
	if flags.schedule == "" && flags.plot == "" {
		return nil
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	booked := p.bookingLines(flags)
	prefix := p.prefix(booked)
	for i, r := range results {
		if ctx.Err() != nil {
			return &interrupted{kept: fmt.Sprintf("the files of %d of %d plans were written", i, len(results))}
		}
		if r.refusal != nil {
			continue
		}
		if flags.schedule != "" {
			lines := append(slices.Clip(slices.Clone(booked)), p.taskLines(r, prefix, flags)...)
			tellSizes(lines, sim.OnePool(p.pes, berth.Late))
			if err := a.writeSchedule(flags.fileOf(flags.schedule, r.planner), lines); err != nil {
				return err
			}
		}
		if flags.plot != "" {
			if err := a.drawPlan(p, flags.fileOf(flags.plot, r.planner), r, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

// bookingLines returns the bookings as lines of a schedule: those that last
// beyond now, and those of which the average of free PEs was taken, so that the
// schedule can be planned around again. An id that was there before gets a
// number; what has none is called a booking.
func (p *planning) bookingLines(flags *planFlags) []berth.Line {
	if flags.schedule == "" {
		return nil
	}
	taken := map[string]bool{}
	for i := range p.bookings {
		taken[p.bookings[i].ID] = true
	}
	numbers := map[string]int{} // of those that have used an id
	site, pool := p.place()
	var lines []berth.Line
	for i := range p.bookings {
		b := &p.bookings[i]
		if flags.sites != "" { // each at its own
			site, pool = b.Site, b.Pool
		}
		if b.End <= p.past.Start {
			continue
		}
		id := cmp.Or(b.ID, "booking")
		for bare := id; ; {
			numbers[bare]++
			if n := numbers[bare]; n > 1 {
				id = fmt.Sprintf("%s#%d", bare, n)
			}
			if id == b.ID || !taken[id] {
				break
			}
		}
		lines = append(lines, berth.Line{
			ID: id, Kind: berth.KindBooking, Site: site, Pool: pool, Arrival: b.Start, Ready: b.Start, Deadline: b.End,
			Duration: b.End.Sub(b.Start), NPE: b.NPE, Accepted: true, Start: &b.Start, End: &b.End,
		})
	}
	return lines
}

// place names the site and pool of everything in a schedule: what a booking
// names, else the site that simulations have too.
func (p *planning) place() (site, pool string) {
	for i := range p.bookings {
		if b := &p.bookings[i]; b.Site != "" || b.Pool != "" {
			return cmp.Or(b.Site, sim.DefaultSite), b.Pool
		}
	}
	return sim.DefaultSite, ""
}

// taskPrefix begins the ids of tasks where a booking has the id of one.
const taskPrefix = "task:"

// prefix returns what the ids of tasks begin with in a schedule: nothing, unless
// a booking has the id of a task.
func (p *planning) prefix(booked []berth.Line) string {
	taken := map[string]bool{}
	for i := range booked {
		taken[booked[i].ID] = true
	}
	prefix := ""
	for i := 0; i < p.flow.Len(); i++ {
		if taken[prefix+p.flow.Task(i).ID] {
			prefix += taskPrefix
			i = -1
		}
	}
	return prefix
}

// taskLines returns the plan as lines of a schedule, in the order of the
// workflow. Without a deadline that of every task is the end of the plan.
func (p *planning) taskLines(r *planned, prefix string, flags *planFlags) []berth.Line {
	deadline := r.plan.End(p.now)
	switch {
	case flags.deadline.set:
		deadline = flags.deadline.t
	case r.tightest != berth.Forever:
		deadline = r.tightest
	}
	site, pool := p.place()
	lines := make([]berth.Line, 0, len(r.plan.Tasks))
	for i := range r.plan.Tasks {
		t := &r.plan.Tasks[i]
		line := berth.Line{
			ID: prefix + p.flow.Task(t.Task).ID, Kind: berth.KindRequest, Site: site, Pool: pool, Workflow: p.name, Task: p.flow.Task(t.Task).ID,
			Arrival: p.now, Ready: p.now, Deadline: deadline, Duration: t.End.Sub(t.Start), NPE: t.NPE,
			Accepted: true, Start: &t.Start, End: &t.End,
		}
		for _, parent := range p.flow.Parents(t.Task) {
			line.After = append(line.After, prefix+p.flow.Task(int(parent)).ID)
		}
		lines = append(lines, line)
	}
	return lines
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
func (a *app) drawPlan(p *planning, path string, r *planned, flags *planFlags) error {
	figure := plot.Gantt{
		Title: r.planner.Name + ": " + p.title(), PEs: p.pes, Now: p.now, Deadline: r.tightest,
		Facts: "turn-around " + seconds(int64(r.plan.Turnaround)) + ", " + strconv.FormatFloat(hours(r.plan.CPUSeconds), 'f', 2, 64) + " CPU-hours",
	}
	if flags.deadline.set {
		figure.Deadline = flags.deadline.t
	}
	for i := range p.bookings {
		b := &p.bookings[i]
		figure.Others = append(figure.Others, plot.Bar{NPE: b.NPE, Start: b.Start, End: b.End})
	}
	critical := p.critical(r)
	for _, t := range r.plan.Tasks {
		figure.Tasks = append(figure.Tasks, plot.Bar{
			Label: p.flow.Task(t.Task).ID, NPE: t.NPE, Start: t.Start, End: t.End, Critical: critical[t.Task],
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
	defer out.drop()
	format, _ := figureFormat(path)
	if err := plot.WriteGantt(out, format, figure); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.keep()
}
