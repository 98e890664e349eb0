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
	Inconclusive:    {"?", "untested"},
	NotTestable:     {"–", "untested"},
	NotHeld:         {"✗", "nothold"},
}

// htmlPage is what the template shows.
type htmlPage struct {
	Report *Report
	Prefix string // of every anchor
	Dark   template.CSS
	About  string
	Tally  string
	Rules  string // their digest
	Kinds  []htmlKind
	Claims []htmlClaim
	Others []htmlFigure // that no claim shows
	Tables []htmlTable
}

// htmlKind are the claims of one kind.
type htmlKind struct {
	Prefix, Title string
	Kind          Kind
	Claims        []htmlClaim
	Counts        []int // by verdict
	Sizes         []int // by verdict on the magnitude
	Numbers       bool  // some are about printed numbers
}

// kindTitles are the headings over the claims of each kind.
var kindTitles = map[Kind]string{
	Published: "What the paper states",
	Own:       "Not in the paper: predictions, variants, other logs",
	Check:     "Checks of code and workload, which hold whatever the policies are called",
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
	Size        *htmlVerdict // of the magnitude
	Decided     *htmlPart    // by what
	Sized       *htmlPart    // by what the magnitude was
	Compared    string
	Open        bool
	Rows        []htmlPart
	Drawing     *htmlFigure // where it is shown first
	See         string      // the figure's name elsewhere
}

type htmlVerdict struct {
	Verdict
	Sign, Class string
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
		Kinds    []Kind
		Titles   map[Kind]string
		Rules    string
		Papers   []*htmlPage
	}{Command: command, Verdicts: Verdicts(), Kinds: Kinds(), Titles: kindTitles, Rules: RulesDigest(), Dark: template.CSS(chart.DarkStyle())}
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
	page := &htmlPage{Report: r, Prefix: prefix, Dark: template.CSS(chart.DarkStyle()), About: sentence(r.Paper.About), Tally: r.tally(), Rules: RulesDigest()}
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
		if c.Magnitude != "" {
			row.Size = &htmlVerdict{c.Magnitude, badges[c.Magnitude].sign, badges[c.Magnitude].class}
			sized := htmlPartOf(c.DecidingMagnitude())
			row.Sized = &sized
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
	for _, kind := range Kinds() {
		k := htmlKind{Prefix: prefix, Title: kindTitles[kind], Kind: kind, Counts: r.counts(kind), Sizes: r.sizes(kind)}
		for i := range page.Claims {
			if page.Claims[i].Kind == kind {
				k.Claims, k.Numbers = append(k.Claims, page.Claims[i]), k.Numbers || page.Claims[i].Size != nil
			}
		}
		if len(k.Claims) > 0 {
			page.Kinds = append(page.Kinds, k)
		}
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

// counts returns how many claims of a kind have each verdict.
func (r *Report) counts(kind Kind) []int {
	counts := make([]int, len(Verdicts()))
	for i := range r.Claims {
		if r.Claims[i].Kind == kind {
			counts[slices.Index(Verdicts(), r.Claims[i].Verdict)]++
		}
	}
	return counts
}

// sizes is the same of the verdicts on the numbers that the paper prints.
func (r *Report) sizes(kind Kind) []int {
	counts := make([]int, len(Verdicts()))
	for i := range r.Claims {
		if r.Claims[i].Kind == kind && r.Claims[i].Magnitude != "" {
			counts[slices.Index(Verdicts(), r.Claims[i].Magnitude)]++
		}
	}
	return counts
}

// tally tells the verdicts of the claims in a sentence.
func (r *Report) tally() string {
	var words []string
	for _, kind := range []struct {
		Kind
		called string
	}{{Published, "the paper's"}, {Own, "our own"}, {Check, "checks"}} {
		if counts := r.counts(kind.Kind); total(counts) > 0 {
			words = append(words, fmt.Sprintf("%s: %s", kind.called, inWords(counts)))
		}
		if sizes := r.sizes(kind.Kind); total(sizes) > 0 {
			words = append(words, "numbers that it prints: "+inWords(sizes))
		}
	}
	return fmt.Sprintf("%d claims. %s.", len(r.Claims), sentence(strings.Join(words, "; ")))
}

func total(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// compared tells those of a claim's parts.
func compared(parts []Part) string {
	counts := make([]int, len(Verdicts()))
	for i := range parts {
		counts[slices.Index(Verdicts(), parts[i].Verdict)]++
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
			words = append(words, fmt.Sprintf("%d %s", n, Verdicts()[i]))
		}
	}
	return strings.Join(words, ", ")
}
