package reproduce

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/measure"
)

// What is drawn are the means and both ends of their intervals; where nothing was
// measured there is no point.
func TestDrawnFigure(t *testing.T) {
	f := Figure{Title: "a", X: "x", Y: "y", Ticks: []Tick{{5, "five"}}, Within: percentages, Series: []Series{line("s", []float64{5, 6, 7}, nil, []sample{{1, 2, 3}, {math.NaN()}, {8}})}}
	c := f.drawn()
	points := c.Series[0].Points
	if len(c.Ticks) != 1 || c.Ticks[0].At != 5 || c.Ticks[0].Label != "five" {
		t.Errorf("ticks %+v", c.Ticks)
	}
	if (*Range)(c.Within) != percentages || c.Log || c.Series[0].Band || len(points) != 2 {
		t.Fatalf("%+v", c)
	}
	// 1, 2, 3: t(0.975, 2) = 4.3027, s = 1.
	if p := points[0]; p.X != 5 || p.Y != 2 || math.Abs(*p.Low+0.4841) > 1e-4 || math.Abs(*p.High-4.4841) > 1e-4 {
		t.Errorf("%v at %v, from %v to %v", p.Y, p.X, *p.Low, *p.High)
	}
	if p := points[1]; p.X != 7 || p.Y != 8 || p.Low != nil || p.High != nil {
		t.Errorf("one value has an interval: %+v", p)
	}
	many := Series{Name: "m", Line: true, Points: make([]Point, bandFrom)}
	for i := range many.Points {
		many.Points[i].Value.Mean = new(float64)
	}
	alone := many
	alone.Line = false
	few := many
	few.Points = many.Points[1:]
	f.Series = []Series{many, alone, few}
	if got := f.drawn().Series; !got[0].Band || got[1].Band || got[2].Band {
		t.Errorf("bands %v, %v, %v; only a line of many points has one", got[0].Band, got[1].Band, got[2].Band)
	}
}

// A caption tells when intervals were cut off, and only then.
func TestLegendTellsOfCuts(t *testing.T) {
	mean := 50.0
	for _, c := range []struct {
		low, high float64
		cut       bool
	}{{0, 100, false}, {-1, 60, true}, {40, 101, true}, {20, 30, false}} {
		f := Figure{Caption: "Means.", Within: percentages, Series: []Series{{Points: []Point{{}, {Value: measure.Estimate{Mean: &mean, CI95: &[2]float64{c.low, c.high}}}}}}}
		if got := f.Legend(); strings.HasSuffix(got, "Intervals are cut off at what the values can be.") != c.cut || !strings.HasPrefix(got, "Means.") {
			t.Errorf("from %v to %v: %s", c.low, c.high, got)
		}
		f.Within = nil
		if got := f.Legend(); got != "Means." {
			t.Errorf("of anything: %s", got)
		}
	}
}

// A mean of logarithms is drawn as a geometric mean, with the interval around it;
// what was too short to be measured does not count.
func TestGeometricMeans(t *testing.T) {
	times := sample{1, 100, 0}
	logs := times.log()
	if logs[0] != 0 || logs[1] != 2 || !math.IsNaN(logs[2]) {
		t.Fatalf("logarithms %v", logs)
	}
	p := geometric(line("s", []float64{1, 2}, nil, []sample{logs, {math.NaN()}})).Points
	// 0 and 2: mean 1, t(0.975, 1) = 12.7062, s/√2 = 1.
	if v := p[0].Value; math.Abs(*v.Mean-10) > 1e-9 || math.Abs(math.Log10(v.CI95[0])+11.7062) > 1e-4 || math.Abs(math.Log10(v.CI95[1])-13.7062) > 1e-4 || p[0].N != 2 {
		t.Errorf("%v, %v of %d", *v.Mean, *v.CI95, p[0].N)
	}
	if p[1].Value.Mean != nil || p[1].Value.CI95 != nil {
		t.Errorf("a mean of nothing: %+v", p[1].Value)
	}
}

// A claim shows the comparison that decided, with its interval and rule; many
// comparisons are folded, and so is a long table. The page over all counts.
func TestPageTellsWhatDecided(t *testing.T) {
	r := reports(t)[3]
	held, not := part("the first", "points", sample{1, 2, 3}.plus(10), above()), part("the second", "points", sample{11, 12, 13}, below())
	many := slices.Repeat([]Part{held}, longList+1)
	r.Claims = []Claim{{ID: "X", Parts: []Part{held, not}}, {ID: "Y", Parts: many}, {ID: "Z"}}
	for i := range r.Claims {
		r.Claims[i].settle()
	}
	r.Figures = nil
	r.Tables = []Table{
		{Name: "short", Title: "Short", Header: []string{"a"}, Rows: [][]string{{"1"}}},
		{Name: "long", Title: "Long", Header: []string{"a"}, Rows: slices.Repeat([][]string{{"1"}}, longTable+1)},
	}
	page := string(filesOf(t, r)["report.html"])
	for _, words := range []string{
		"<dt>decided by</dt><dd>the second: 12 points, 95 % interval 9.52 to 14.5, n = 3; has to be below 0</dd>",
		"<details open><summary>2 comparisons: 1 held, 1 not held</summary>",
		"<details><summary>9 comparisons: 9 held</summary>",
		"<details open><summary>1 rows, in short.csv</summary>", "<details><summary>101 rows, in long.csv</summary>",
		`<a href="#table-long">Long</a>`, `<section id="table-long">`,
	} {
		if strings.Count(page, words) != 1 {
			t.Errorf("%d times %q", strings.Count(page, words), words)
		}
	}
	if n := strings.Count(page, "decided by"); n != 2 {
		t.Errorf("%d of the claims are decided, want 2: nothing decides Z", n)
	}
	var all strings.Builder
	if err := WriteAllHTML(&all, "berth reproduce all", []*Report{r}); err != nil {
		t.Fatal(err)
	}
	// 3 claims: 1 held, none within tolerance or inconclusive, 1 not testable, 1 not held; 4 repetitions.
	row := "waiting-time</a></td>"
	for _, n := range []string{"3", "1", "0", "0", "1", "1", "4"} {
		row += `<td class="number">` + n + "</td>"
	}
	if !strings.Contains(all.String(), row) {
		t.Error("the claims are not counted by verdict")
	}
}
