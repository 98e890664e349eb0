package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/berth-hpc/berth"
)

// plansOutput is what plan -o json writes for several algorithms; for one it is
// a planOutput.
type plansOutput struct {
	Plans []planOutput `json:"plans"`
}

// planOutput is one plan, or one refusal, which has no figures and no tasks.
// Between two equal invocations only WallSeconds differs.
type planOutput struct {
	Algorithm        string          `json:"algorithm"`
	Workflow         string          `json:"workflow"`
	PEs              berth.Count     `json:"pes"`
	Now              berth.Time      `json:"now"`
	Free             berth.Count     `json:"q"`          // PEs free on average in the past
	Turnaround       *berth.Duration `json:"turnaround"` // seconds from now
	CPUHours         *float64        `json:"cpu_hours"`
	LowerBound       berth.Time      `json:"lower_bound"` // no plan ends earlier
	Deadline         *berth.Time     `json:"deadline,omitempty"`
	DeadlineMet      *bool           `json:"deadline_met,omitempty"`
	TightestDeadline *berth.Time     `json:"tightest_deadline,omitempty"`
	TightestBy       string          `json:"tightest_by,omitempty"` // in a refusal
	Reason           berth.Reason    `json:"reason,omitempty"`
	Lambda           *float64        `json:"lambda,omitempty"`
	Probes           int             `json:"probes,omitempty"`
	Moved            []string        `json:"moved,omitzero"`
	Estimates        *replayOutput   `json:"estimates,omitempty"`
	CriticalPath     []string        `json:"critical_path"`
	WallSeconds      float64         `json:"wall_seconds"`
	Tasks            []taskOutput    `json:"tasks"`
}

// taskOutput is one task's reservation.
type taskOutput struct {
	ID    string      `json:"id"`
	NPE   berth.Count `json:"npe"`
	Start berth.Time  `json:"start"`
	End   berth.Time  `json:"end"`
}

// hours turns CPU-seconds into hours.
func hours(seconds int64) float64 { return float64(seconds) / 3600 }

// widens reports whether the planner tries one reserve after another.
func (r *planned) widens() bool { return strings.HasSuffix(r.planner.Name, "-lambda") }

// lambda is the reserve with which the planner succeeded, nil if it has none.
func (r *planned) lambda() *float64 {
	if r.refusal != nil || !r.widens() {
		return nil
	}
	return new(float64(r.plan.Lambda) / 20)
}

// output returns a result as JSON has it.
func (p *planning) output(r *planned, flags *planFlags) planOutput {
	out := planOutput{
		Algorithm: r.planner.Name, Workflow: p.name, PEs: p.pes, Now: p.now, Free: p.instance.Free(),
		LowerBound: p.instance.Bound(), Lambda: r.lambda(), CriticalPath: []string{}, WallSeconds: r.wall.Seconds(), Tasks: []taskOutput{},
		Probes: r.probes, Moved: r.moved, Estimates: r.replayed,
	}
	if flags.deadline.set {
		out.Deadline, out.DeadlineMet = &flags.deadline.t, new(r.refusal == nil)
	}
	if r.refusal != nil {
		out.Reason = r.refusal.Reason
		if r.refusal.TightestBy != "" {
			out.TightestDeadline, out.TightestBy = &r.refusal.Tightest, r.refusal.TightestBy
		}
		return out
	}
	if r.tightest != berth.Forever {
		out.TightestDeadline = &r.tightest
	}
	out.Turnaround, out.CPUHours = &r.plan.Turnaround, new(hours(r.plan.CPUSeconds))
	for _, i := range r.plan.Critical(p.flow) {
		out.CriticalPath = append(out.CriticalPath, p.flow.Task(i).ID)
	}
	for _, t := range r.plan.Tasks {
		out.Tasks = append(out.Tasks, taskOutput{p.flow.Task(t.Task).ID, t.NPE, t.Start, t.End})
	}
	return out
}

// printPlans writes the results to stdout.
func (a *app) printPlans(p *planning, results []*planned, flags *planFlags) error {
	to := a.figuresTo(flags.schedule, flags.plot)
	switch flags.format {
	case "json":
		return printPlansJSON(to, p, results, flags)
	case "csv":
		return printPlansCSV(to, p, results, flags)
	}
	out := p.compared(results)
	if !flags.compares() {
		if results[0].refusal != nil {
			return nil // all there is to say goes to stderr
		}
		out = p.tabled(results[0])
	}
	title := p.title()
	switch {
	case flags.repair != "":
		title += ", repaired"
	case !flags.compares():
		title += ", by " + results[0].planner.Name
	}
	// A table breaks a title that is wider than itself, so it stands over it.
	for line := range strings.Lines(title + "\n\n" + out.Render() + "\n") {
		if _, err := io.WriteString(to, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func printPlansJSON(w io.Writer, p *planning, results []*planned, flags *planFlags) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if !flags.compares() {
		return encoder.Encode(p.output(results[0], flags))
	}
	out := plansOutput{Plans: []planOutput{}}
	for _, r := range results {
		out.Plans = append(out.Plans, p.output(r, flags))
	}
	return encoder.Encode(out)
}

// printPlansCSV writes a row for each task of one plan, or for each of several
// algorithms. What there is none of is an empty field.
func printPlansCSV(w io.Writer, p *planning, results []*planned, flags *planFlags) error {
	out := csv.NewWriter(w)
	if flags.compares() {
		_ = out.Write([]string{ // errors stay with the writer until Flush
			"algorithm", "turnaround", "cpu_hours", "deadline", "deadline_met", "tightest_deadline", "reason", "lambda", "wall_seconds",
		})
		for _, r := range results {
			_ = out.Write(comparedCells(p.output(r, flags)))
		}
	} else {
		_ = out.Write([]string{"id", "npe", "start", "end", "critical"})
		critical := p.critical(results[0])
		for _, t := range results[0].plan.Tasks {
			_ = out.Write([]string{
				p.flow.Task(t.Task).ID, strconv.Itoa(int(t.NPE)), strconv.FormatInt(int64(t.Start), 10), strconv.FormatInt(int64(t.End), 10),
				strconv.FormatBool(critical[t.Task]),
			})
		}
	}
	out.Flush()
	return out.Error()
}

func comparedCells(o planOutput) []string {
	whole := func(t *berth.Time) string {
		if t == nil {
			return ""
		}
		return strconv.FormatInt(int64(*t), 10)
	}
	met := ""
	if o.DeadlineMet != nil {
		met = strconv.FormatBool(*o.DeadlineMet)
	}
	return []string{
		o.Algorithm, whole((*berth.Time)(o.Turnaround)), number(o.CPUHours), whole(o.Deadline), met, whole(o.TightestDeadline),
		string(o.Reason), number(o.Lambda), number(&o.WallSeconds),
	}
}

// critical tells which tasks are on the critical path.
func (p *planning) critical(r *planned) map[int]bool {
	on := map[int]bool{}
	if r.refusal == nil {
		for _, i := range r.plan.Critical(p.flow) {
			on[i] = true
		}
	}
	return on
}

// title says what was planned, and around what.
func (p *planning) title() string {
	return fmt.Sprintf("%s (%d tasks) on %d PEs, from %d", p.name, p.flow.Len(), p.pes, p.now)
}

// tabled tells one plan, task by task in the order of their starts.
func (p *planning) tabled(r *planned) table.Writer {
	out := newTable("")
	out.AppendHeader(table.Row{"task", "PEs", "start", "end", "takes", "critical"})
	critical := p.critical(r)
	for _, t := range byStart(r.plan.Tasks) {
		mark := ""
		if critical[t.Task] {
			mark = "*"
		}
		out.AppendRow(table.Row{p.flow.Task(t.Task).ID, t.NPE, t.Start, t.End, seconds(int64(t.End - t.Start)), mark})
	}
	facts := fmt.Sprintf("turn-around %s, %.2f CPU-hours; ends at %d", seconds(int64(r.plan.Turnaround)), hours(r.plan.CPUSeconds), r.plan.End(p.now))
	if r.tightest != berth.Forever {
		facts += fmt.Sprintf("; the tightest deadline found is %d", r.tightest)
	}
	if x := r.lambda(); x != nil {
		facts += fmt.Sprintf("; λ = %.2f", *x)
	}
	out.SetCaption("%s", strings.Join(append(slices.Concat([]string{facts}, r.notes), p.facts()), "\n"))
	return out
}

// facts says what holds for every algorithm.
func (p *planning) facts() string {
	return fmt.Sprintf("%d of %d PEs free on average in the past (q); no plan can end before %d", p.instance.Free(), p.pes, p.instance.Bound())
}

// compared tells several plans, a row for each. Behind turn-around and CPU-hours
// stands how much more than the best of all it is.
func (p *planning) compared(results []*planned) table.Writer {
	out := newTable("")
	header := table.Row{"algorithm", "turn-around", "more", "CPU-hours", "more", "ends at", "deadline", "λ", "planned in"}
	if p.actual != p.flow {
		header = append(header, "in fact", "used", "cut off", "lost")
	}
	out.AppendHeader(header)
	soonest, cheapest := best(results)
	for _, r := range results {
		deadline := ""
		if r.refusal != nil {
			if r.refusal.TightestBy != "" {
				deadline = fmt.Sprintf("missed; %d by %s", r.refusal.Tightest, r.refusal.TightestBy)
			}
			out.AppendRow(table.Row{r.planner.Name, nothing, "", nothing, "", nothing, deadline, "", wall(r)})
			continue
		}
		if r.tightest != berth.Forever {
			deadline = fmt.Sprintf("tightest %d", r.tightest)
		}
		reserve := ""
		if x := r.lambda(); x != nil {
			reserve = fmt.Sprintf("%.2f", *x)
		}
		row := table.Row{
			r.planner.Name, seconds(int64(r.plan.Turnaround)), more(int64(r.plan.Turnaround), soonest),
			fmt.Sprintf("%.2f", hours(r.plan.CPUSeconds)), more(r.plan.CPUSeconds, cheapest), r.plan.End(p.now), deadline, reserve, wall(r),
		}
		if o := r.replayed; o != nil {
			row = append(row, seconds(int64(o.Turnaround)), fmt.Sprintf("%.2f", o.UsedCPUHours), len(o.CutOff), len(o.Lost))
		}
		out.AppendRow(row)
	}
	out.SetCaption("%s", p.facts())
	return out
}

// best returns the shortest turn-around and the fewest CPU-seconds of all plans.
func best(results []*planned) (soonest, cheapest int64) {
	first := true
	for _, r := range results {
		if r.refusal != nil {
			continue
		}
		turnaround, cpu := int64(r.plan.Turnaround), r.plan.CPUSeconds
		if first {
			soonest, cheapest, first = turnaround, cpu, false
		}
		soonest, cheapest = min(soonest, turnaround), min(cheapest, cpu)
	}
	return soonest, cheapest
}

// more says how much more than the least something is: in hundredths, or from
// ten times as much on as a multiple.
func more(x, least int64) string {
	switch {
	case x == least:
		return "best"
	case x/10 >= least:
		return fmt.Sprintf("× %.0f", float64(x)/float64(least))
	}
	return fmt.Sprintf("+%.1f %%", 100*(float64(x)/float64(least)-1))
}

// seconds writes a length of time as people read it.
func seconds(n int64) string { return clock(new(float64(n))) }

func wall(r *planned) string { return fmt.Sprintf("%.2f ms", 1000*r.wall.Seconds()) }
