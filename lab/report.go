package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/berth-hpc/berth/internal/chart"
)

//go:embed report.tmpl.html
var pageText string

// File is one file of a report.
type File struct {
	Name string
	Data []byte
}

// Files returns the report: runs.csv with a row for each run, summary.csv with the
// estimates and differences, summary.json with a Summary, every drawing as .svg and .csv, cells.jsonl in the
// form of Options.File, and report.html, which needs none of the others. Equal
// results give equal bytes. Command is the line that repeats it, for the page.
func (r *Results) Files(command string) ([]File, error) {
	var files []File
	write := func(name string, how func(io.Writer) error) error {
		var out bytes.Buffer
		if err := how(&out); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		files = append(files, File{name, out.Bytes()})
		return nil
	}
	if err := write("runs.csv", r.WriteRuns); err != nil {
		return nil, err
	}
	if err := write("summary.csv", r.WriteSummary); err != nil {
		return nil, err
	}
	drawings := r.Drawings()
	for i := range drawings {
		d := &drawings[i]
		if err := write(d.Name+".csv", d.WriteCSV); err != nil {
			return nil, err
		}
		if err := write(d.Name+".svg", d.WriteSVG); err != nil {
			return nil, err
		}
	}
	if err := write("summary.json", func(w io.Writer) error { return r.writeSummaryJSON(w, drawings) }); err != nil {
		return nil, err
	}
	files = append(files, File{"cells.jsonl", r.Measurements()})
	if err := write("report.html", func(w io.Writer) error { return r.writeHTML(w, command, drawings) }); err != nil {
		return nil, err
	}
	return files, nil
}

// WriteSVG draws it.
func (d *Drawing) WriteSVG(w io.Writer) error { return d.chart.WriteSVG(w) }

// WriteCSV writes its numbers.
func (d *Drawing) WriteCSV(w io.Writer) error {
	return writeCSV(w, append([][]string{{"series", "x", "mean", "low", "high", "n"}}, d.rows...))
}

// page is what the template shows.
type page struct {
	*Results
	Command  string
	Dark     template.CSS
	Count    string
	Drawn    string // what the replications draw, and what not
	Heads    []head
	Rows     []row
	Best     []best
	Settings []Setting
	Drawings []inline
}

type head struct{ Title, Unit string }

// row is one point.
type row struct {
	Values []Setting
	Cells  []cell
	Base   bool
}

// cell is one figure of a point.
type cell struct{ Value, Change, Class, Word string }

// best is the point that does best by one figure.
type best struct{ Title, Where, Value, Change string }

type inline struct {
	*Drawing
	SVG template.HTML
}

// verdictWords are what a clear change is called, and its class in the style.
var verdictWords = map[Verdict]struct{ word, class string }{
	Better: {"better", "better"}, Worse: {"worse", "worse"}, More: {"more", "clear"}, Less: {"less", "clear"},
}

// writeHTML writes the report as one page that refers to nothing outside itself.
func (r *Results) writeHTML(w io.Writer, command string, drawings []Drawing) error {
	text, err := template.New("report").Parse(pageText)
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	p := &page{Results: r, Command: command, Dark: template.CSS(chart.DarkStyle()), Count: r.counted(), Drawn: r.drawn(), Settings: r.Plan.told()}
	for i := range drawings {
		var out bytes.Buffer
		if err := drawings[i].chart.WriteInline(&out); err != nil {
			return fmt.Errorf("drawing %s: %w", drawings[i].Name, err)
		}
		p.Drawings = append(p.Drawings, inline{&drawings[i], template.HTML(out.String())})
	}
	r.tabulate(p)
	return text.Execute(w, p)
}

// Main returns the main figures that any run has, by their places.
func (r *Results) Main() []int {
	var list []int
	for _, f := range r.Present() {
		if figures[f].Main {
			list = append(list, f)
		}
	}
	return list
}

// tabulate fills the tables of the page.
func (r *Results) tabulate(p *page) {
	main := r.Main()
	for _, f := range main {
		p.Heads = append(p.Heads, head{figures[f].Title, figures[f].ChangeUnit()})
		if b, some := r.best(f); some {
			p.Best = append(p.Best, b)
		}
	}
	for _, point := range r.Plan.Points() {
		_, compared := r.Plan.base(point)
		line := row{Values: r.Plan.Values(point), Base: !compared && len(r.Plan.Baseline) > 0}
		for _, f := range main {
			e, _ := r.Estimate(point, f)
			c := cell{Value: figures[f].Spread(e)}
			if d, n := r.Difference(point, f); n > 0 {
				verdict := verdictWords[figures[f].Judge(d)]
				c.Change, c.Class, c.Word = figures[f].Change(d), verdict.class, verdict.word
			}
			line.Cells = append(line.Cells, c)
		}
		p.Rows = append(p.Rows, line)
	}
}

// best returns the point with the best mean of a figure, the first of equal ones.
func (r *Results) best(f int) (best, bool) {
	figure := &figures[f]
	var found Point
	var at float64
	for _, point := range r.Plan.Points() {
		e, _ := r.Estimate(point, f)
		if e.Mean != nil && (found == nil || float64(figure.Better)*(*e.Mean-at) > 0) {
			found, at = point, *e.Mean
		}
	}
	if found == nil || figure.Better == 0 {
		return best{}, false
	}
	e, _ := r.Estimate(found, f)
	b := best{Title: figure.Title, Where: r.Plan.Name(found), Value: figure.Spread(e)}
	if d, n := r.Difference(found, f); n > 0 {
		b.Change = strings.TrimSpace(figure.Change(d)+" "+figure.ChangeUnit()) + " against " + r.Plan.Against()
		if word := verdictWords[figure.Judge(d)].word; word != "" {
			b.Change += ", clearly " + word
		}
	}
	return b, true
}

// Name names a point among the others as people do, such as pe-worst, late.
func (p *Plan) Name(point Point) string { return p.name(point, p.varied()) }

// varied returns the dimensions with more than one value.
func (p *Plan) varied() []int {
	var list []int
	for i := range p.Dimensions {
		if len(p.Dimensions[i].Values) > 1 {
			list = append(list, i)
		}
	}
	return list
}

// counted says how much was simulated.
func (r *Results) counted() string {
	return fmt.Sprintf("%d combinations, %d runs", len(r.values), r.Done)
}

// drawn says what the intervals are about.
func (r *Results) drawn() string {
	switch {
	case r.Plan.Replications == 1:
		return "One replication: there are no intervals, and a difference may be chance."
	case r.Alike():
		return "All replications came to the same, for nothing was drawn at random: the intervals are empty and say nothing about chance."
	}
	return fmt.Sprintf("Intervals are of 95 %% by Student's t over %d replications, and of differences over pairs of runs with the same draws. "+
		"They tell how much what is drawn matters (windows, kinds, noise, failures, a model's jobs); a log is the same in all, so they do not tell how "+
		"another month would have been. Each stands for itself: of twenty, one is expected to be wrong.", r.Plan.Replications)
}

// told returns the plan as a list of settings for people.
func (p *Plan) told() []Setting {
	var list []Setting
	for i := range p.Dimensions {
		list = append(list, Setting{p.Dimensions[i].Name, strings.Join(p.Dimensions[i].Values, ", ")})
	}
	list = append(list, Setting{"replications", fmt.Sprintf("%d, seeds %d to %d", p.Replications, p.Seed, p.Seed+uint64(p.Replications)-1)})
	list = append(list, p.Settings...)
	return append(list, Setting{"berth", p.Build})
}
