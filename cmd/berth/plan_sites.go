package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workflow/flowfile"
	"github.com/berth-hpc/berth/workload"
)

// poolOutput is a pool that was planned on.
type poolOutput struct {
	Site  string      `json:"site"`
	Pool  string      `json:"pool"`
	PEs   berth.Count `json:"pes"`
	Speed float64     `json:"speed"`
	Free  berth.Count `json:"q"`

	bookings []workload.Booking
}

// name is how tables and messages call the pool.
func (p *poolOutput) name() string {
	if p.Pool == "pool" { // the only one of a site that names none
		return p.Site
	}
	return p.Site + "/" + p.Pool
}

// siteTask is one task's reservation at one of several sites.
type siteTask struct {
	ID    string      `json:"id"`
	Site  string      `json:"site"`
	Pool  string      `json:"pool"`
	NPE   berth.Count `json:"npe"`
	Start berth.Time  `json:"start"`
	End   berth.Time  `json:"end"`
}

// sitesOutput is what plan --sites writes as JSON.
type sitesOutput struct {
	Algorithm  string         `json:"algorithm"`
	Workflow   string         `json:"workflow"`
	Now        berth.Time     `json:"now"`
	Pools      []poolOutput   `json:"pools"`
	Turnaround berth.Duration `json:"turnaround"`
	CPUHours   float64        `json:"cpu_hours"`   // of PEs of whatever speed
	LowerBound berth.Time     `json:"lower_bound"` // no plan ends earlier
	Deadline   *berth.Time    `json:"deadline,omitempty"`
	Tasks      []siteTask     `json:"tasks"`
}

// gridPlanning is a workflow to be planned over several pools.
type gridPlanning struct {
	planning.Planning
	grid  workflow.Grid
	sites []berth.Site
	pools []poolOutput
}

// planSites runs plan --sites: every pair of a pool and a number of PEs is a
// candidate.
func (a *app) planSites(cmd *cobra.Command, path string, flags *planFlags) error {
	p, err := a.openGridPlanning(path, flags)
	if err != nil {
		return err
	}
	if flags.plot != "" {
		if err := flags.claims(cmd, path, p.pools).apart(); err != nil {
			return err
		}
	}
	deadline, by := berth.Forever, "bd-cpar"
	if flags.deadline.set {
		deadline, by = flags.deadline.t, "dl-bd-cpar"
	}
	plan, ok, err := p.grid.Plan(deadline)
	if err != nil {
		return err
	}
	if !ok {
		return p.refusal(by, flags)
	}
	out := sitesOutput{Algorithm: by, Workflow: p.Name, Now: p.Now, Pools: p.pools, Turnaround: plan.Turnaround, CPUHours: hours(plan.CPUSeconds), LowerBound: plan.Bound}
	if flags.deadline.set {
		out.Deadline = &flags.deadline.t
	}
	for i, t := range plan.Tasks {
		at := &p.pools[t.Site]
		out.Tasks = append(out.Tasks, siteTask{p.Flow.Task(i).ID, at.Site, at.Pool, t.NPE, t.Start, t.End})
	}
	if flags.schedule != "" {
		lines := p.lines(&plan, flags)
		berth.TellSizes(lines, p.sites)
		if err := a.writeSchedule(flags.schedule, berth.Each(lines)); err != nil {
			return err
		}
	}
	if flags.plot != "" {
		if err := a.drawPools(p, &plan, by, flags); err != nil {
			return err
		}
	}
	if err := out.print(a.figuresTo(flags.schedule, flags.plot), p, flags); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// refusal says what deadline could be had instead.
func (p *gridPlanning) refusal(by string, flags *planFlags) error {
	text := "there is no plan"
	if flags.deadline.set {
		text = fmt.Sprintf("deadline %d: found no plan", flags.deadline.t)
	}
	soonest, ok, err := p.grid.Plan(berth.Forever)
	switch {
	case err != nil:
		return err
	case ok:
		text += fmt.Sprintf("; the tightest deadline found is %d, by bd-cpar", soonest.End(p.Now))
	}
	return berth.Errorf(berth.Exhausted, "", "%s over %d pools: %s", by, len(p.pools), text)
}

// openGridPlanning reads workflow, sites and bookings.
func (a *app) openGridPlanning(path string, flags *planFlags) (*gridPlanning, error) {
	flow, err := a.openWorkflow(path, flags)
	if err != nil {
		return nil, err
	}
	file, err := readInput(a, flags.sites, sites.Open, sites.Read)
	if err != nil {
		return nil, err
	}
	p := &gridPlanning{Planning: planning.Planning{Name: flow.Name, Flow: flow.Flow, Now: flags.now.t, Everywhere: true}}
	p.sites = file.Sites
	p.grid = workflow.Grid{Workflow: flow.Flow, Now: p.Now}
	p.Past = berth.Interval{Start: p.Now, End: p.Now}
	if flags.bookings != "" {
		held, err := a.readBookings(flags.bookings, workload.Options{Strict: flags.strict})
		if err != nil {
			return nil, err
		}
		a.tell(&held.Report)
		p.Bookings, p.Past = held.Bookings, workload.Past(held.Begin, p.Now)
		for i := range p.Bookings {
			b := &p.Bookings[i]
			if _, known := file.Size(b.Site, b.Pool); !known {
				return nil, berth.Errorf(berth.Invalid, "site", "%s: booking %q is at site %q, pool %q, which %s does not have or not for certain", flags.bookings, b.ID, b.Site, b.Pool, flags.sites)
			}
		}
	}
	for i := range file.Sites {
		for k := range file.Sites[i].Pools {
			if err := p.addPool(file, &file.Sites[i], &file.Sites[i].Pools[k]); err != nil {
				return nil, err
			}
		}
	}
	if err := p.keepAt(flow, flags.sites); err != nil {
		return nil, err
	}
	largest := slices.MaxFunc(p.pools, func(a, b poolOutput) int { return cmp.Compare(a.PEs, b.PEs) })
	return p, flow.Larger(largest.PEs, flags.sites)
}

// keepAt keeps the tasks that name a site there.
func (p *gridPlanning) keepAt(flow *flowfile.File, source string) error {
	for i := range flow.Tasks {
		name := flow.Tasks[i].Site
		if name == "" {
			continue
		}
		there := false
		for k := range p.grid.Sites {
			s := &p.grid.Sites[k]
			if s.Resource.Site == name {
				there = true
				continue
			}
			if s.Unfit == nil {
				s.Unfit = make([]bool, len(flow.Tasks))
			}
			s.Unfit[i] = true
		}
		if !there {
			return berth.Errorf(berth.Invalid, "site", "task %q is to run at site %q, which %s does not have", flow.Flow.Task(i).ID, name, source)
		}
	}
	return nil
}

// addPool makes a pool with its bookings a candidate.
func (p *gridPlanning) addPool(file *sites.File, site *berth.Site, pool *berth.Pool) error {
	var here []workload.Booking
	for i := range p.Bookings {
		b := &p.Bookings[i]
		if (b.Site == site.Name || b.Site == "" && len(file.Sites) == 1) && (b.Pool == pool.Name || b.Pool == "" && len(site.Pools) == 1) {
			here = append(here, *b)
		}
	}
	at := planning.Planning{PEs: pool.PEs, Now: p.Now, Bookings: here}
	out := poolOutput{site.Name, pool.Name, pool.PEs, float64(pool.Speed) / float64(berth.StandardSpeed), workload.AverageFree(here, pool.PEs, p.Past), here}
	if pool.Speed == 0 {
		out.Speed = 1
	}
	if err := workload.CheckFit(here, pool.PEs); err != nil {
		return fmt.Errorf("%s: %w", out.name(), err)
	}
	around, err := at.Calendar()
	if err != nil {
		return err
	}
	p.pools = append(p.pools, out)
	p.grid.Sites = append(p.grid.Sites, workflow.Site{
		Resource: berth.PoolID(site.Name, pool.Name), Calendar: around, Free: out.Free, Speed: out.Speed,
	})
	return nil
}

// lines returns bookings and plan as lines of a schedule.
func (p *gridPlanning) lines(plan *workflow.GridPlan, flags *planFlags) []berth.Line {
	flat := workflow.Plan{Turnaround: plan.Turnaround}
	for _, t := range plan.Tasks {
		flat.Tasks = append(flat.Tasks, t.Placement)
	}
	lines, tasks := p.Schedule(&flat, flags.goal().Deadline)
	for i := range tasks {
		at := &p.pools[plan.Tasks[i].Site]
		tasks[i].Site, tasks[i].Pool = at.Site, at.Pool
	}
	return append(lines, tasks...)
}

// drawPools draws what is planned on each pool that has any of it, a file each.
func (a *app) drawPools(p *gridPlanning, plan *workflow.GridPlan, by string, flags *planFlags) error {
	for k := range p.pools {
		at := &p.pools[k]
		figure := plot.Gantt{
			Title: fmt.Sprintf("%s: %s at %s, from %d", by, p.Name, at.name(), p.Now), PEs: at.PEs, Now: p.Now, Deadline: berth.Forever,
			Facts: fmt.Sprintf("the whole has turn-around %s, %.2f CPU-hours", seconds(int64(plan.Turnaround)), hours(plan.CPUSeconds)),
		}
		if flags.deadline.set {
			figure.Deadline = flags.deadline.t
		}
		for i, t := range plan.Tasks {
			if t.Site == k {
				figure.Tasks = append(figure.Tasks, plot.Bar{Label: p.Flow.Task(i).ID, NPE: t.NPE, Start: t.Start, End: t.End})
			}
		}
		if figure.Tasks == nil {
			continue
		}
		for i := range at.bookings {
			b := &at.bookings[i]
			figure.Others = append(figure.Others, plot.Bar{NPE: b.NPE, Start: b.Start, End: b.End})
		}
		if err := a.drawGantt(flags.plotOf(at), figure); err != nil {
			return err
		}
	}
	return nil
}

// print writes the plan to stdout.
func (o *sitesOutput) print(w io.Writer, p *gridPlanning, flags *planFlags) error {
	switch flags.format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(o)
	case "csv":
		out := csv.NewWriter(w)
		_ = out.Write([]string{"id", "site", "pool", "npe", "start", "end"}) // errors stay with the writer until Flush
		for _, t := range o.Tasks {
			_ = out.Write([]string{
				t.ID, t.Site, t.Pool, strconv.Itoa(int(t.NPE)), strconv.FormatInt(int64(t.Start), 10), strconv.FormatInt(int64(t.End), 10),
			})
		}
		out.Flush()
		return out.Error()
	}
	out := newTable("")
	out.AppendHeader(table.Row{"task", "at", "PEs", "start", "end", "takes"})
	sorted := slices.Clone(o.Tasks)
	slices.SortStableFunc(sorted, func(a, b siteTask) int { return int(a.Start - b.Start) })
	for _, t := range sorted {
		at := poolOutput{Site: t.Site, Pool: t.Pool}
		out.AppendRow(table.Row{t.ID, at.name(), t.NPE, t.Start, t.End, seconds(int64(t.End - t.Start))})
	}
	var free []string
	for i := range p.pools {
		at := &p.pools[i]
		free = append(free, fmt.Sprintf("%s %d of %d", at.name(), at.Free, at.PEs))
	}
	out.SetCaption("turn-around %s, %.2f CPU-hours; ends at %d\nPEs free on average in the past (q): %s; no plan can end before %d",
		seconds(int64(o.Turnaround)), o.CPUHours, o.Now.Add(o.Turnaround), strings.Join(free, ", "), o.LowerBound)
	title := fmt.Sprintf("%s (%d tasks) over %d pools, from %d, by %s", o.Workflow, len(o.Tasks), len(p.pools), o.Now, o.Algorithm)
	for line := range strings.Lines(title + "\n\n" + out.Render() + "\n") {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}
