package lab

import (
	"encoding/json"
	"testing"
)

// summaryOf returns the summary of a report.
func summaryOf(t *testing.T, r *Results) Summary {
	t.Helper()
	files, err := r.Files("berth lab --x")
	if err != nil {
		t.Fatal(err)
	}
	var s Summary
	for _, f := range files {
		if f.Name == "summary.json" {
			if err := json.Unmarshal(f.Data, &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// The summary says what the page says.
func TestTheSummaryIsThePageAsData(t *testing.T) {
	r := run(t, twoByThree(3), Options{})
	s := summaryOf(t, r)
	if s.Title != "made <up>" || s.Count != "6 combinations, 18 runs" || s.Against != "first-fit" || s.Drawn != r.drawn() || !s.Intervals || len(s.Rows) != 6 || len(s.Figures) != len(r.Main()) {
		t.Errorf("%+v", s)
	}
	for i, point := range r.Plan.Points() {
		row := s.Rows[i]
		if row.Name != r.Plan.Name(point) || row.Baseline != (i < 3) || len(row.Cells) != len(s.Figures) {
			t.Errorf("row %d: %+v", i, row)
		}
		for k, f := range r.Main() {
			e, _ := r.Estimate(point, f)
			d, n := r.Difference(point, f)
			if row.Cells[k].Value != figures[f].Spread(e) || n > 0 && row.Cells[k].Change != figures[f].Change(d) {
				t.Errorf("row %d, %s: %+v", i, figures[f].Name, row.Cells[k])
			}
		}
	}
	if len(s.Drawings) != len(r.Drawings()) || s.Drawings[0].Name != r.Drawings()[0].Name || len(s.Best) == 0 {
		t.Errorf("%+v, %+v", s.Drawings, s.Best)
	}
}

// The sentence is about the most important figure that clearly differs, and there is none
// where nothing does.
func TestTheSentenceIsAboutWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		baseline     Setting
		replications int
		want         string
	}{
		{Setting{"policy", "first-fit"}, 20, "pe-worst, slack 4 would have accepted 1.58 ± 1.38 points more requests than first-fit, slack 4."},
		{Setting{"slack", "4"}, 4, "With first-fit, slack 1 requests would have waited 00:00:51 ± 00:00:14 less than with first-fit, slack 4."},
		{Setting{"policy", "first-fit"}, 4, ""},
		{Setting{"slack", "4"}, 1, ""},
	} {
		p := twoByThree(c.replications)
		p.Baseline = []Setting{c.baseline}
		if s := summaryOf(t, run(t, p, Options{})); s.Sentence != c.want || s.Intervals != (c.replications > 1) {
			t.Errorf("against %v, %d replications: %q, want %q", c.baseline, c.replications, s.Sentence, c.want)
		}
	}
}
