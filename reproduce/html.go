package reproduce

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

//go:embed all.tmpl.html
var allText string

// badges tell a verdict by a sign and by a class of the style sheet, so that
// colour is never alone.
var badges = map[Verdict]struct{ sign, class string }{
	Held:            {"✓", "held"},
	WithinTolerance: {"≈", "within"},
	NotHeld:         {"✗", "nothold"},
	NotTestable:     {"?", "untested"},
}

// htmlPage is what the template shows.
type htmlPage struct {
	Report *Report
	Prefix string // of every anchor
	Dark   template.CSS
	Tally  string
	Claims []htmlClaim
	Others []htmlFigure // that no claim shows
}

type htmlClaim struct {
	*Claim
	Sign, Class string
	Rows        []htmlPart
	Drawing     *htmlFigure // where it is shown first
	See         string      // the figure's name elsewhere
}

type htmlPart struct {
	*Part
	Sign, Class    string
	Mean, Interval string
}

type htmlFigure struct {
	*Figure
	Prefix string
	SVG    template.HTML
}

// WriteHTML writes the report as one page that refers to nothing outside
// itself.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := r.page("")
	if err != nil {
		return err
	}
	text, err := template.New("report").Parse(pageText)
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	if err := text.Execute(w, page); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// WriteAllHTML writes one page over several reports: every claim with its
// verdict, numbers and figure. It refers to nothing outside itself. command is
// what makes all of them.
func WriteAllHTML(w io.Writer, command string, reports []*Report) error {
	all := struct {
		Command string
		Dark    template.CSS
		Papers  []*htmlPage
	}{Command: command, Dark: template.CSS(chart.DarkStyle())}
	for _, r := range reports {
		page, err := r.page(r.Paper.Name + "-")
		if err != nil {
			return err
		}
		all.Papers = append(all.Papers, page)
	}
	text, err := template.New("report").Parse(pageText)
	if err == nil {
		text, err = text.New("all").Parse(allText)
	}
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	if err := text.Execute(w, all); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// page prepares the page; prefix sets its anchors apart from those of others.
func (r *Report) page(prefix string) (*htmlPage, error) {
	drawings := map[string]*htmlFigure{}
	for i := range r.Figures {
		var out bytes.Buffer
		if err := r.Figures[i].drawn().WriteInline(&out); err != nil {
			return nil, fmt.Errorf("drawing %s: %w", r.Figures[i].Name, err)
		}
		drawings[r.Figures[i].Name] = &htmlFigure{&r.Figures[i], prefix, template.HTML(out.String())}
	}
	page := &htmlPage{Report: r, Prefix: prefix, Dark: template.CSS(chart.DarkStyle()), Tally: r.tally()}
	shown := map[string]bool{}
	for i := range r.Claims {
		c := &r.Claims[i]
		row := htmlClaim{Claim: c, Sign: badges[c.Verdict].sign, Class: badges[c.Verdict].class}
		for k := range c.Parts {
			row.Rows = append(row.Rows, htmlPartOf(&c.Parts[k]))
		}
		if shown[c.Figure] {
			row.See = c.Figure
		} else {
			row.Drawing = drawings[c.Figure]
			shown[c.Figure] = true
		}
		page.Claims = append(page.Claims, row)
	}
	for i := range r.Figures {
		if !shown[r.Figures[i].Name] {
			page.Others = append(page.Others, *drawings[r.Figures[i].Name])
		}
	}
	return page, nil
}

func htmlPartOf(p *Part) htmlPart {
	row := htmlPart{Part: p, Sign: badges[p.Verdict].sign, Class: badges[p.Verdict].class, Mean: "–", Interval: "–"}
	if p.Value.Mean != nil {
		row.Mean = short(*p.Value.Mean)
	}
	if p.Value.CI95 != nil {
		row.Interval = short(p.Value.CI95[0]) + " to " + short(p.Value.CI95[1])
	}
	return row
}

// tally counts the verdicts in a sentence.
func (r *Report) tally() string {
	counts := map[Verdict]int{}
	for i := range r.Claims {
		counts[r.Claims[i].Verdict]++
	}
	var words []string
	for _, v := range []Verdict{Held, WithinTolerance, NotHeld, NotTestable} {
		if counts[v] > 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	return fmt.Sprintf("%d claims: %s.", len(r.Claims), strings.Join(words, ", "))
}
