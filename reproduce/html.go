package reproduce

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
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
	About  string
	Tally  string
	Counts []int // of claims, by verdict
	Claims []htmlClaim
	Others []htmlFigure // that no claim shows
	Tables []htmlTable
}

// What is longer than this stands behind a line that opens it, on the screen, and
// in files alone in print.
const (
	longList  = 8
	longTable = 100
)

type htmlTable struct {
	*Table
	Open bool
}

type htmlClaim struct {
	*Claim
	Sign, Class string
	Decided     *htmlPart // by what
	Compared    string
	Open        bool
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
		Command  string
		Dark     template.CSS
		Verdicts []Verdict
		Papers   []*htmlPage
	}{Command: command, Verdicts: allVerdicts, Dark: template.CSS(chart.DarkStyle())}
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
	page := &htmlPage{Report: r, Prefix: prefix, Dark: template.CSS(chart.DarkStyle()), About: sentence(r.Paper.About), Tally: r.tally(), Counts: r.counts()}
	shown := map[string]bool{}
	for i := range r.Claims {
		c := &r.Claims[i]
		row := htmlClaim{Claim: c, Sign: badges[c.Verdict].sign, Class: badges[c.Verdict].class}
		for k := range c.Parts {
			row.Rows = append(row.Rows, htmlPartOf(&c.Parts[k]))
		}
		if len(c.Parts) > 0 {
			decided := htmlPartOf(c.Deciding())
			row.Decided = &decided
		}
		row.Compared, row.Open = compared(c.Parts), len(c.Parts) <= longList
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
	for i := range r.Tables {
		page.Tables = append(page.Tables, htmlTable{&r.Tables[i], len(r.Tables[i].Rows) <= longTable})
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

// allVerdicts lists them from the best.
var allVerdicts = []Verdict{Held, WithinTolerance, NotHeld, NotTestable}

// counts returns how many claims have each verdict.
func (r *Report) counts() []int {
	counts := make([]int, len(allVerdicts))
	for i := range r.Claims {
		counts[slices.Index(allVerdicts, r.Claims[i].Verdict)]++
	}
	return counts
}

// tally tells the verdicts of the claims in a sentence.
func (r *Report) tally() string {
	return fmt.Sprintf("%d claims: %s.", len(r.Claims), inWords(r.counts()))
}

// compared tells those of a claim's parts.
func compared(parts []Part) string {
	counts := make([]int, len(allVerdicts))
	for i := range parts {
		counts[slices.Index(allVerdicts, parts[i].Verdict)]++
	}
	if len(parts) == 1 {
		return "1 comparison: " + string(parts[0].Verdict)
	}
	return fmt.Sprintf("%d comparisons: %s", len(parts), inWords(counts))
}

// sentence begins words with a capital letter.
func sentence(words string) string { return strings.ToUpper(words[:1]) + words[1:] }

// inWords writes how many have each verdict.
func inWords(counts []int) string {
	var words []string
	for i, n := range counts {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, allVerdicts[i]))
		}
	}
	return strings.Join(words, ", ")
}
