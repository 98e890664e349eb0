package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/lab"
	"github.com/berth-hpc/berth/measure"
)

// labReport is where the results of lab go.
type labReport struct {
	app    *app
	format string
	folder *wholefile.Folder // nil without --out
}

// labReport finds out, before anything is simulated, whether the report can be
// written.
func (a *app) labReport(cmd *cobra.Command, flags *labFlags) (*labReport, error) {
	r := &labReport{app: a, format: flags.sim.format}
	if cmd.Flags().Changed(outFlag) {
		var err error
		if r.folder, err = wholefile.OpenFolder(outFlag, flags.out); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// drop removes what was begun and not kept.
func (r *labReport) drop() {
	if r.folder != nil {
		r.folder.Drop()
	}
}

// write writes the report to its folder, and the figures to stdout.
func (r *labReport) write(results *lab.Results) error {
	if r.folder != nil {
		files, err := results.Files(labLine(results.Plan))
		if err != nil {
			return err
		}
		for i := range files {
			if err := r.folder.Write(files[i].Name, files[i].Data); err != nil {
				return err
			}
		}
		if err := r.folder.Keep(); err != nil {
			return err
		}
	}
	var err error
	switch r.format {
	case "json":
		err = printLabJSON(r.app.stdout, results)
	case "csv":
		err = results.WriteSummary(r.app.stdout)
	default:
		err = printLab(r.app.stdout, results)
	}
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	if r.format == "table" && results.Plan.Replications == 1 {
		r.app.say("berth: one replication has no intervals; --replications 5 gives each figure its 95 %% interval, unless nothing is drawn")
	}
	return nil
}

// labLine is the command line that repeats a plan.
func labLine(plan *lab.Plan) string {
	var line strings.Builder
	line.WriteString("berth lab")
	word := func(text string) string {
		if strings.ContainsAny(text, " ;'\"$&|<>()*?\\") {
			return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		}
		return text
	}
	flag := func(name, value string) {
		switch value {
		case "true":
			line.WriteString(" --" + name)
		case "false":
			line.WriteString(" --" + name + "=false")
		default:
			line.WriteString(" --" + name + " " + word(value))
		}
	}
	for _, s := range plan.Settings {
		if !strings.Contains(s.Name, " ") { // else it is about a file
			flag(s.Name, s.Value)
		}
	}
	for _, d := range plan.Dimensions {
		flag("sweep", d.Name+"="+lab.JoinValues(d.Values))
	}
	flag("replications", fmt.Sprint(plan.Replications))
	flag("seed", fmt.Sprint(plan.Seed))
	var baseline []string
	for _, b := range plan.Baseline {
		baseline = append(baseline, b.Name+"="+b.Value)
	}
	if baseline == nil {
		baseline = []string{noBaseline}
	}
	flag("baseline", lab.JoinValues(baseline))
	return line.String()
}

// printLab writes tables for people: the main figures of every point, and what
// would have changed.
func printLab(w io.Writer, results *lab.Results) error {
	plan := results.Plan
	figures, main := lab.Figures(), results.Main()
	values, changes := newTable(plan.Title), newTable("")
	header := table.Row{""}
	for _, f := range main {
		header = append(header, figures[f].Title)
	}
	values.AppendHeader(header)
	header = table.Row{"change against " + plan.Against()}
	for _, f := range main {
		title := figures[f].Title
		if unit := figures[f].ChangeUnit(); unit != "" {
			title += ", " + unit
		}
		header = append(header, title)
	}
	changes.AppendHeader(header)
	for _, point := range plan.Points() {
		line, change, compared := table.Row{plan.Name(point)}, table.Row{plan.Name(point)}, false
		for _, f := range main {
			e, _ := results.Estimate(point, f)
			line = append(line, figures[f].Spread(e))
			d, n := results.Difference(point, f)
			text := figures[f].Change(d)
			if figures[f].Judge(d) != lab.Open {
				text += " *"
			} else {
				text += "  "
			}
			change, compared = append(change, text), compared || n > 0
		}
		values.AppendRow(line)
		if compared {
			changes.AppendRow(change)
		}
	}
	note := ""
	if plan.Replications > 1 {
		note = "mean ± half the 95 % interval over the replications"
		if len(plan.Baseline) > 0 {
			note += "; * where that of the change does not hold 0"
		}
		if results.Alike() {
			note = "all replications came to the same, for nothing was drawn at random"
		}
	}
	page := values.Render() + "\n"
	if changes.Length() > 0 {
		page += "\n" + changes.Render() + "\n"
	}
	if note != "" {
		page += note + "\n"
	}
	for line := range strings.Lines(page) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// labOutput is what lab -o json writes.
type labOutput struct {
	Title        string              `json:"title"`
	Settings     map[string]string   `json:"settings"`
	Sweep        map[string][]string `json:"sweep"`
	Baseline     map[string]string   `json:"baseline"`
	Replications int                 `json:"replications"`
	Seed         uint64              `json:"seed"`
	Points       []labPoint          `json:"points"`
}

// labPoint is one combination.
type labPoint struct {
	Values  map[string]string    `json:"values"`
	Figures map[string]labFigure `json:"figures"`
	Runs    []labRun             `json:"runs"`
}

// labFigure is a figure over the replications, and its difference to the baseline,
// null for the baseline itself.
type labFigure struct {
	measure.Estimate
	Difference *measure.Estimate `json:"difference"`
}

// labRun is one run: the figures that it has, and hashes as text.
type labRun struct {
	Replication int            `json:"replication"`
	Seed        uint64         `json:"seed"`
	Figures     map[string]any `json:"figures"`
}

func printLabJSON(w io.Writer, results *lab.Results) error {
	plan := results.Plan
	named := func(settings []lab.Setting) map[string]string {
		out := map[string]string{}
		for _, s := range settings {
			out[s.Name] = s.Value
		}
		return out
	}
	out := labOutput{
		Title: plan.Title, Settings: named(plan.Settings), Sweep: map[string][]string{}, Baseline: named(plan.Baseline),
		Replications: plan.Replications, Seed: plan.Seed,
	}
	for _, d := range plan.Dimensions {
		out.Sweep[d.Name] = d.Values
	}
	figures := lab.Figures()
	for _, point := range plan.Points() {
		p := labPoint{Values: named(plan.Values(point)), Figures: map[string]labFigure{}}
		for _, f := range results.Present() {
			if figures[f].Unit == lab.Hash {
				continue
			}
			e, _ := results.Estimate(point, f)
			figure := labFigure{Estimate: e}
			if d, n := results.Difference(point, f); n > 0 {
				figure.Difference = &d
			}
			p.Figures[figures[f].Name] = figure
		}
		for r := 1; r <= plan.Replications; r++ {
			run := labRun{Replication: r, Seed: plan.Seed + uint64(r) - 1, Figures: map[string]any{}}
			for _, f := range results.Present() {
				v := results.Value(point, r, f)
				switch {
				case math.IsNaN(v):
					run.Figures[figures[f].Name] = nil
				case figures[f].Unit == lab.Hash:
					run.Figures[figures[f].Name] = figures[f].Text(v)
				default:
					run.Figures[figures[f].Name] = v
				}
			}
			p.Runs = append(p.Runs, run)
		}
		out.Points = append(out.Points, p)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
