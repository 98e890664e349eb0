package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/measure"
)

// Summary is what a report shows, as data for programs that show it in their own way.
// Estimates are in summary.csv.
type Summary struct {
	Title   string `json:"title"`
	Count   string `json:"count"` // how much was simulated
	Drawn   string `json:"drawn"` // what the intervals are about
	Against string `json:"against"`
	// Intervals says that figures have them, so that a clear difference can be told from chance.
	Intervals bool `json:"intervals"`
	// Sentence says what the main result is, empty if nothing differs clearly.
	Sentence string           `json:"sentence"`
	Figures  []SummaryFigure  `json:"figures"` // columns of the rows
	Rows     []SummaryRow     `json:"rows"`
	Best     []SummaryBest    `json:"best"`
	Drawings []SummaryDrawing `json:"drawings"`
}

// SummaryFigure heads a column.
type SummaryFigure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"` // of changes, where the number does not tell
}

// SummaryRow is one combination.
type SummaryRow struct {
	Name     string        `json:"name"`
	Baseline bool          `json:"baseline"`
	Cells    []SummaryCell `json:"cells"`
}

// SummaryCell is a figure of a combination, with its change against the baseline.
type SummaryCell struct {
	Value  string `json:"value"`
	Change string `json:"change"`
	// Verdict is better, worse, more or less where the change is clear, else empty.
	Verdict string `json:"verdict"`
}

// SummaryBest is the combination that does best by a figure.
type SummaryBest struct {
	Title  string `json:"title"`
	Where  string `json:"where"`
	Value  string `json:"value"`
	Change string `json:"change"`
}

// SummaryDrawing is a drawing by the name of its files.
type SummaryDrawing struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Caption string `json:"caption"`
}

// writeSummaryJSON writes the summary.
func (r *Results) writeSummaryJSON(w io.Writer, drawings []Drawing) error {
	p := page{Results: r}
	r.tabulate(&p)
	s := Summary{
		Title: r.Plan.Title, Count: r.counted(), Drawn: r.drawn(), Against: r.Plan.Against(), Intervals: r.Plan.Replications > 1 && !r.Alike(), Sentence: r.sentence(),
		Figures: []SummaryFigure{}, Rows: []SummaryRow{}, Best: []SummaryBest{}, Drawings: []SummaryDrawing{},
	}
	for _, f := range r.Main() {
		s.Figures = append(s.Figures, SummaryFigure{figures[f].Name, figures[f].Title, figures[f].ChangeUnit()})
	}
	points := r.Plan.Points()
	for i, line := range p.Rows {
		row := SummaryRow{Name: r.Plan.Name(points[i]), Baseline: line.Base, Cells: []SummaryCell{}}
		for _, c := range line.Cells {
			row.Cells = append(row.Cells, SummaryCell{c.Value, c.Change, c.Word})
		}
		s.Rows = append(s.Rows, row)
	}
	for _, b := range p.Best {
		s.Best = append(s.Best, SummaryBest(b))
	}
	for i := range drawings {
		s.Drawings = append(s.Drawings, SummaryDrawing{drawings[i].Name, drawings[i].Title, drawings[i].Caption})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	return encoder.Encode(&s)
}

// mainResults are the figures that the sentence may be about, the most important first, and
// what it says of the better combination, the amount and the baseline.
var mainResults = []struct{ figure, words string }{
	{"acceptance_rate", "%s would have accepted %s points more requests than %s."},
	{"queue_mean_wait", "With %s jobs would have waited %s less than with %s."},
	{"mean_wait", "With %s requests would have waited %s less than with %s."},
}

// sentence says by how much the best combination is better than its baseline, by the first
// figure by which one clearly is.
func (r *Results) sentence() string {
	for _, result := range mainResults {
		f := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == result.figure })
		var best, against Point
		var d measure.Estimate
		for _, point := range r.Plan.Points() {
			change, n := r.Difference(point, f)
			if n == 0 || figures[f].Judge(change) != Better || best != nil && math.Abs(*change.Mean) <= math.Abs(*d.Mean) {
				continue
			}
			base, _ := r.Plan.base(point)
			best, against, d = point, base, change
		}
		if best != nil {
			return fmt.Sprintf(result.words, r.Plan.Name(best), strings.TrimLeft(figures[f].Change(d), "+−"), r.Plan.Name(against))
		}
	}
	return ""
}
