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
func (r *planned) widens() bool { return strings.HasSuffix(r.Planner.Name, "-lambda") }

// lambda is the reserve with which the planner succeeded, nil if it has none.
func (r *planned) lambda() *float64 {
	if r.Refusal != nil || !r.widens() {
		return nil
	}
	return new(float64(r.Plan.Lambda) / 20)
}

// planOutputOf returns a result as JSON has it.
func planOutputOf(p *planInput, r *planned, flags *planFlags) planOutput {
	out := planOutput{
		Algorithm: r.Planner.Name, Workflow: p.Name, PEs: p.PEs, Now: p.Now, Free: p.Instance.Free(),
		LowerBound: p.Instance.Bound(), Lambda: r.lambda(), CriticalPath: []string{}, WallSeconds: r.Wall.Seconds(), Tasks: []taskOutput{},
		Probes: r.Probes, Moved: r.Moved, Estimates: r.replayed,
	}
	if flags.deadline.set {
		out.Deadline, out.DeadlineMet = &flags.deadline.t, new(r.Refusal == nil)
	}
	if r.Refusal != nil {
		out.Reason = r.Refusal.Reason
		if r.Refusal.TightestBy != "" {
			out.TightestDeadline, out.TightestBy = &r.Refusal.Tightest, r.Refusal.TightestBy
		}
		return out
	}
	if r.Tightest != berth.Forever {
		out.TightestDeadline = &r.Tightest
	}
	out.Turnaround, out.CPUHours = &r.Plan.Turnaround, new(hours(r.Plan.CPUSeconds))
	for _, i := range r.Plan.Critical(p.Flow) {
		out.CriticalPath = append(out.CriticalPath, p.Flow.Task(i).ID)
	}
	for _, t := range r.Plan.Tasks {
		out.Tasks = append(out.Tasks, taskOutput{p.Flow.Task(t.Task).ID, t.NPE, t.Start, t.End})
	}
	return out
}

// printPlans writes the results to stdout.
func (a *app) printPlans(p *planInput, results []*planned, flags *planFlags) error {
	to := a.figuresTo(flags.schedule, flags.plot)
	switch flags.format {
	case "json":
		return printPlansJSON(to, p, results, flags)
	case "csv":
		return printPlansCSV(to, p, results, flags)
	}
	out := compareTable(p, results)
	if !flags.compares() {
		if results[0].Refusal != nil {
			return nil // all there is to say goes to stderr
		}
		out = planTable(p, results[0])
	}
	title := planTitle(p)
	switch {
	case flags.repair != "":
		title += ", repaired"
	case !flags.compares():
		title += ", by " + results[0].Planner.Name
	}
	// A table breaks a title that is wider than itself, so it stands over it.
	for line := range strings.Lines(title + "\n\n" + out.Render() + "\n") {
		if _, err := io.WriteString(to, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func printPlansJSON(w io.Writer, p *planInput, results []*planned, flags *planFlags) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if !flags.compares() {
		return encoder.Encode(planOutputOf(p, results[0], flags))
	}
	out := plansOutput{Plans: []planOutput{}}
	for _, r := range results {
		out.Plans = append(out.Plans, planOutputOf(p, r, flags))
	}
	return encoder.Encode(out)
}

// printPlansCSV writes a row for each task of one plan, or for each of several
// algorithms. What there is none of is an empty field.
func printPlansCSV(w io.Writer, p *planInput, results []*planned, flags *planFlags) error {
	out := csv.NewWriter(w)
	if flags.compares() {
		_ = out.Write([]string{ // errors stay with the writer until Flush
			"algorithm", "turnaround", "cpu_hours", "deadline", "deadline_met", "tightest_deadline", "reason", "lambda", "wall_seconds",
		})
		for _, r := range results {
			_ = out.Write(comparedCells(planOutputOf(p, r, flags)))
		}
	} else {
		_ = out.Write([]string{"id", "npe", "start", "end", "critical"})
		onPath := critical(p, results[0])
		for _, t := range results[0].Plan.Tasks {
			_ = out.Write([]string{
				p.Flow.Task(t.Task).ID, strconv.Itoa(int(t.NPE)), strconv.FormatInt(int64(t.Start), 10), strconv.FormatInt(int64(t.End), 10),
				strconv.FormatBool(onPath[t.Task]),
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
func critical(p *planInput, r *planned) map[int]bool {
	on := map[int]bool{}
	if r.Refusal == nil {
		for _, i := range r.Plan.Critical(p.Flow) {
			on[i] = true
		}
	}
	return on
}

// planTitle says what was planned, and around what.
func planTitle(p *planInput) string {
	return fmt.Sprintf("%s (%d tasks) on %d PEs, from %d", p.Name, p.Flow.Len(), p.PEs, p.Now)
}

// planTable tells one plan, task by task in the order of their starts.
func planTable(p *planInput, r *planned) table.Writer {
	out := newTable("")
	out.AppendHeader(table.Row{"task", "PEs", "start", "end", "takes", "critical"})
	onPath := critical(p, r)
	for _, t := range byStart(r.Plan.Tasks) {
		mark := ""
		if onPath[t.Task] {
			mark = "*"
		}
		out.AppendRow(table.Row{p.Flow.Task(t.Task).ID, t.NPE, t.Start, t.End, seconds(int64(t.End - t.Start)), mark})
	}
	facts := fmt.Sprintf("turn-around %s, %.2f CPU-hours; ends at %d", seconds(int64(r.Plan.Turnaround)), hours(r.Plan.CPUSeconds), r.Plan.End(p.Now))
	if r.Tightest != berth.Forever {
		facts += fmt.Sprintf("; the tightest deadline found is %d", r.Tightest)
	}
	if x := r.lambda(); x != nil {
		facts += fmt.Sprintf("; λ = %.2f", *x)
	}
	out.SetCaption("%s", strings.Join(append(slices.Concat([]string{facts}, r.notes), planFacts(p)), "\n"))
	return out
}

// planFacts says what holds for every algorithm.
func planFacts(p *planInput) string {
	return fmt.Sprintf("%d of %d PEs free on average in the past (q); no plan can end before %d", p.Instance.Free(), p.PEs, p.Instance.Bound())
}

// compareTable tells several plans, a row for each. Behind turn-around and CPU-hours
// stands how much more than the best of all it is.
func compareTable(p *planInput, results []*planned) table.Writer {
	out := newTable("")
	header := table.Row{"algorithm", "turn-around", "more", "CPU-hours", "more", "ends at", "deadline", "λ", "planned in"}
	if p.actual != p.Flow {
		header = append(header, "in fact", "used", "cut off", "lost")
	}
	out.AppendHeader(header)
	soonest, cheapest := best(results)
	for _, r := range results {
		deadline := ""
		if r.Refusal != nil {
			if r.Refusal.TightestBy != "" {
				deadline = fmt.Sprintf("missed; %d by %s", r.Refusal.Tightest, r.Refusal.TightestBy)
			}
			out.AppendRow(table.Row{r.Planner.Name, nothing, "", nothing, "", nothing, deadline, "", wall(r)})
			continue
		}
		if r.Tightest != berth.Forever {
			deadline = fmt.Sprintf("tightest %d", r.Tightest)
		}
		reserve := ""
		if x := r.lambda(); x != nil {
			reserve = fmt.Sprintf("%.2f", *x)
		}
		row := table.Row{
			r.Planner.Name, seconds(int64(r.Plan.Turnaround)), more(int64(r.Plan.Turnaround), soonest),
			fmt.Sprintf("%.2f", hours(r.Plan.CPUSeconds)), more(r.Plan.CPUSeconds, cheapest), r.Plan.End(p.Now), deadline, reserve, wall(r),
		}
		if o := r.replayed; o != nil {
			row = append(row, seconds(int64(o.Turnaround)), fmt.Sprintf("%.2f", o.UsedCPUHours), len(o.CutOff), len(o.Lost))
		}
		out.AppendRow(row)
	}
	out.SetCaption("%s", planFacts(p))
	return out
}

// best returns the shortest turn-around and the fewest CPU-seconds of all plans.
func best(results []*planned) (soonest, cheapest int64) {
	first := true
	for _, r := range results {
		if r.Refusal != nil {
			continue
		}
		turnaround, cpu := int64(r.Plan.Turnaround), r.Plan.CPUSeconds
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

func wall(r *planned) string { return fmt.Sprintf("%.2f ms", 1000*r.Wall.Seconds()) }
