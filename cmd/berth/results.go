package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/sim"
)

// simOutput is what sim -o json writes.
type simOutput struct {
	Runs    []runOutput     `json:"runs"`
	Summary []summaryOutput `json:"summary"`
}

// runOutput is one run. Between two equal invocations only WallSeconds differs.
type runOutput struct {
	Policy      string        `json:"policy"`
	Bind        berth.Binding `json:"bind"`
	Backfill    string        `json:"backfill,omitempty"` // where there may be ordinary jobs
	Replication int           `json:"replication"`
	Seed        uint64        `json:"seed"`
	measure.Metrics
	Workflows    *sim.FlowSummary `json:"workflows,omitempty"`
	DecisionHash string           `json:"decision_hash"`
	WallSeconds  float64          `json:"wall_seconds"`
}

// summaryOutput is one policy, binding and pass for jobs over its replications.
type summaryOutput struct {
	Policy   string        `json:"policy"`
	Bind     berth.Binding `json:"bind"`
	Backfill string        `json:"backfill,omitempty"`
	measure.Summary
}

// run returns what the replications have in common.
func (s *summaryOutput) run() *scenario.Run {
	return &scenario.Run{Policy: s.Policy, Bind: s.Bind, Backfill: s.Backfill}
}

// title names the summary among its fellows.
func (s *summaryOutput) title(flags *simFlags) string { return runTitle(s.run(), flags) }

// shares returns the accepted parts of the requests and of their PE-seconds,
// both as means over the replications; 0 where there is none.
func (s *summaryOutput) shares() (requests, seconds float64) {
	if mean := s.AcceptanceRate.Mean; mean != nil {
		requests = *mean
	}
	if asked := s.RequestedPESeconds.Mean; asked != nil && *asked > 0 {
		seconds = *s.AcceptedPESeconds.Mean / *asked
	}
	return requests, seconds
}

// summaries returns one summary for each policy, binding and pass for jobs, in
// the order of the results.
func summaries(results []*result) []summaryOutput {
	summed := []summaryOutput{}
	for from := 0; from < len(results); {
		first := &results[from].Run
		var metrics []measure.Metrics
		to := from
		for ; to < len(results) && results[to].Run.Alike(first); to++ {
			metrics = append(metrics, results[to].Metrics)
		}
		summed = append(summed, summaryOutput{Policy: first.Policy, Bind: first.Bind, Backfill: first.Backfill, Summary: measure.Summarize(metrics)})
		from = to
	}
	return summed
}

// print writes the figures of the finished runs to stdout.
func (a *app) print(flags *simFlags, src *scenario.Scenario, results []*result) error {
	var err error
	to := a.figuresTo(flags.schedule, flags.plot)
	switch flags.format {
	case "json":
		err = printJSON(to, results)
	case "csv":
		err = printCSV(to, results)
	default:
		err = printTable(to, flags, src, results)
	}
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

func printJSON(w io.Writer, results []*result) error {
	out := simOutput{Runs: []runOutput{}, Summary: summaries(results)}
	for _, r := range results {
		out.Runs = append(out.Runs, runOutput{
			Policy: r.Run.Policy, Bind: r.Run.Bind, Backfill: r.Run.Backfill, Replication: r.Run.Replication, Seed: r.Run.Seed,
			Metrics: r.Metrics, Workflows: r.Flows, DecisionHash: r.Hash, WallSeconds: r.Wall.Seconds(),
		})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// printTable writes the figures for people: with one replication those of the
// runs, with several the means and their 95 % intervals.
func printTable(w io.Writer, flags *simFlags, src *scenario.Scenario, results []*result) error {
	if len(results) == 0 {
		return nil
	}
	var tables []table.Writer
	if src.Requests {
		tables = append(tables, requestTable(flags, results))
		if t, some := refusalTable(flags, results); some {
			tables = append(tables, t)
		}
		if t, some := promiseTable(flags, results); some {
			tables = append(tables, t)
		}
	}
	if src.Jobs {
		tables = append(tables, queueTable(flags, results))
	}
	if t, some := workflowTable(flags, results); some {
		tables = append(tables, t)
	}
	if flags.bySize {
		tables = append(tables, sizeTable(flags, results))
	}
	tables[0].SetTitle("%s", titleOf(src, flags))
	if flags.Replications > 1 {
		tables[0].SetCaption("mean ± half the 95 %% interval over the replications")
	}
	var page strings.Builder
	for i, t := range tables {
		if i > 0 {
			page.WriteString("\n")
		}
		page.WriteString(t.Render() + "\n")
	}
	for line := range strings.Lines(page.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// requestTable tells of the requests.
func requestTable(flags *simFlags, results []*result) table.Writer {
	out := newTable("requests")
	if flags.Replications == 1 {
		out.AppendHeader(table.Row{"policy", "accepted", "of requests", "of PE-seconds", "slowdown", "mean wait", "utilization", "decision hash"})
		for _, r := range results {
			m := &r.Metrics
			out.AppendRow(table.Row{
				runTitle(&r.Run, flags), fmt.Sprintf("%d of %d", m.Accepted, m.Jobs), percent(m.AcceptanceRate), percent(secondsRate(m)),
				decimals(m.MeanSlowdown), clock(m.MeanWait), percent(m.Utilization), r.Hash[:12],
			})
		}
		return out
	}
	out.AppendHeader(table.Row{"policy", "runs", "accepted requests", "of PE-seconds", "slowdown", "mean wait", "utilization"})
	for _, s := range summaries(results) {
		_, seconds := s.shares()
		out.AppendRow(table.Row{
			s.title(flags), s.Replications, spread(s.AcceptanceRate, percent), percent(&seconds),
			spread(s.MeanSlowdown, decimals), spread(s.MeanWait, clock), spread(s.Utilization, percent),
		})
	}
	return out
}

// sizeTable tells for each run how many of the requests of each size were
// accepted, in the first replication.
func sizeTable(flags *simFlags, results []*result) table.Writer {
	title := "accepted by size in PEs"
	if flags.Replications > 1 {
		title += ", replication 1"
	}
	out := newTable(title)
	header := table.Row{"policy"}
	for i, r := range results {
		if r.Run.Replication != 1 {
			continue
		}
		row := table.Row{runTitle(&r.Run, flags)}
		for _, class := range r.Metrics.SizeClasses {
			if i == 0 {
				header = append(header, sizes(class.MinNPE, class.MaxNPE))
			}
			row = append(row, fmt.Sprintf("%d of %d", class.Accepted, class.Jobs))
		}
		out.AppendRow(row)
	}
	out.AppendHeader(header)
	return out
}

func sizes(least, most int64) string {
	if least == most {
		return strconv.FormatInt(least, 10)
	}
	return fmt.Sprintf("%d–%d", least, most)
}

// newTable returns a plain table: names to the left, figures to the right.
func newTable(title string) table.Writer {
	out := table.NewWriter()
	out.SetTitle("%s", title)
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Format.HeaderAlign = text.AlignRight
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	out.SetStyle(style)
	columns := []table.ColumnConfig{{Number: 1, Align: text.AlignLeft, AlignHeader: text.AlignLeft}}
	for n := 2; n <= 40; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	out.SetColumnConfigs(columns)
	return out
}

// secondsRate returns the accepted part of the PE-seconds, nil of nothing.
func secondsRate(m *measure.Metrics) *float64 {
	if m.RequestedPESeconds == 0 {
		return nil
	}
	rate := float64(m.AcceptedPESeconds) / float64(m.RequestedPESeconds)
	return &rate
}

// What stands in a cell for a mean over nothing.
const nothing = "–"

func percent(x *float64) string {
	if x == nil {
		return nothing
	}
	return fmt.Sprintf("%.1f %%", 100**x)
}

func decimals(x *float64) string {
	if x == nil {
		return nothing
	}
	return fmt.Sprintf("%.3f", *x)
}

// clock writes seconds as [D-]HH:MM:SS, with a minus in front if it was less.
func clock(x *float64) string {
	if x == nil {
		return nothing
	}
	sign, seconds := "", int64(math.Abs(*x)+0.5)
	if *x < 0 && seconds > 0 {
		sign = "-"
	}
	days := ""
	if seconds >= 86_400 {
		days = fmt.Sprintf("%d-", seconds/86_400)
		seconds %= 86_400
	}
	return fmt.Sprintf("%s%s%02d:%02d:%02d", sign, days, seconds/3600, seconds/60%60, seconds%60)
}

// spread writes an estimate as mean ± half its interval.
func spread(e measure.Estimate, write func(*float64) string) string {
	if e.CI95 == nil {
		return write(e.Mean)
	}
	half := (e.CI95[1] - e.CI95[0]) / 2
	return write(e.Mean) + " ± " + write(&half)
}
