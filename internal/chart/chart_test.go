package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/berth-hpc/berth"
)

// lines returns a chart of n series that rise from 1 to 4.
func lines(n int) *Chart {
	c := &Chart{Title: "Rising <fast>", X: "place", Y: "value", Ticks: []Tick{{0, "none"}, {3, "all"}}}
	for i := range n {
		s := Series{Name: "series " + string(rune('a'+i)), Line: true}
		for k := range 4 {
			y := float64(1 + k)
			low, high := y-0.5, y+0.25
			s.Points = append(s.Points, Point{X: float64(k), Y: y, Low: &low, High: &high})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func svg(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return out.String()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestChartShowsItsWordsAndSeries(t *testing.T) {
	c := lines(3)
	drawn := svg(t, c.WriteSVG)
	for _, word := range []string{">Rising &lt;fast&gt;<", ">place<", ">value<", ">none<", ">all<", ">series a<", ">series c<", ">0.5<", ">4.5<"} {
		if !strings.Contains(drawn, word) {
			t.Errorf("no %s", word)
		}
	}
	for _, p := range []paint{paints[5], paints[6], paints[7]} {
		// A line, the marks and the intervals.
		if !strings.Contains(drawn, "stroke:"+hex(p.light)) || strings.Count(drawn, "fill:"+hex(p.light)) != 5 {
			t.Errorf("%s: %d marks, want 4 and that of the legend", p.name, strings.Count(drawn, "fill:"+hex(p.light)))
		}
	}
	if drawn != svg(t, c.WriteSVG) {
		t.Error("the same chart gives other bytes")
	}
	if one := svg(t, lines(1).WriteSVG); strings.Contains(one, "series a") {
		t.Error("a legend of one series")
	}
	c.Series[1].Points[2].Y = 1.5
	if drawn == svg(t, c.WriteSVG) {
		t.Error("a value that does not show")
	}
}

// Inline it has no prologue, and every colour may be replaced.
func TestInlineChart(t *testing.T) {
	drawn := svg(t, lines(len(looks)).WriteInline)
	if !strings.HasPrefix(drawn, "<svg ") {
		t.Errorf("begins with %.20q", drawn)
	}
	for _, p := range paints {
		if n, variables := strings.Count(drawn, hex(p.light)), strings.Count(drawn, "var(--chart-"+p.name+","+hex(p.light)+")"); n != variables || n == 0 {
			t.Errorf("%s: %d of %d can be replaced", p.name, variables, n)
		}
		if !strings.Contains(DarkStyle(), "--chart-"+p.name+":#") {
			t.Errorf("%s has no dark colour", p.name)
		}
	}
}

// As many series as the largest figure has are told from each other by their
// colour, and without it by dashes and marks.
func TestSeriesLookDifferent(t *testing.T) {
	if len(looks) < 10 {
		t.Errorf("%d looks, and figures of 10 series", len(looks))
	}
	for i := range looks {
		for k := range i {
			a, b := &looks[i], &looks[k]
			if a.colour == b.colour || slices.Equal(a.dashes, b.dashes) || a.corner == b.corner && a.turn == b.turn && a.open == b.open {
				t.Errorf("series %d and %d look alike: %+v and %+v", k, i, *a, *b)
			}
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, c := range map[string]*Chart{
		"no series":    {Title: "x"},
		"no points":    {Series: []Series{{Name: "a"}}},
		"infinite":     {Series: []Series{{Points: []Point{{1, 2, nil, nil}, {1, math.Inf(1), nil, nil}}}}},
		"not a number": {Series: []Series{{Points: []Point{{1, math.NaN(), nil, nil}}}}},
	} {
		err := c.WriteSVG(io.Discard)
		if e, ok := errors.AsType[*berth.Error](err); !ok || e.Code != berth.Invalid {
			t.Errorf("%s: error %v", name, err)
		}
		if c.WriteInline(io.Discard) == nil {
			t.Errorf("%s: no error inline", name)
		}
	}
}

func TestBoundsHoldEverything(t *testing.T) {
	low, high := -2.3, 7.1
	for _, c := range []struct {
		name        string
		chart       Chart
		bottom, top float64
	}{
		{"interval", Chart{Series: []Series{{Points: []Point{{0, 1, &low, &high}}}}}, -4, 8},
		{"flat", Chart{Series: []Series{{Points: []Point{{0, 5, nil, nil}, {9, 5, nil, nil}}}}}, 4, 6},
		{"zero", Chart{Zero: true, Series: []Series{{Points: []Point{{0, 90, nil, nil}, {1, 97, nil, nil}}}}}, 0, 100},
	} {
		b, ok := c.chart.bounds()
		if !ok || b.bottom != c.bottom || b.top != c.top {
			t.Errorf("%s: %+v, want from %v to %v", c.name, b, c.bottom, c.top)
		}
		for _, s := range c.chart.Series {
			for _, p := range s.Points {
				if p.X <= b.left || p.X >= b.right {
					t.Errorf("%s: %v is not within %+v", c.name, p.X, b)
				}
			}
		}
	}
}

// The vertical axis begins and ends at marks, which are multiples of a round step
// also where rounding makes the axis so long that it takes a larger one.
func TestMarksAreRound(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		marks     []string
	}{
		{88.2, 96.1, []string{"88", "90", "92", "94", "96", "98"}},
		{-2, 151, []string{"-50", "0", "50", "100", "150", "200"}},
		{46, 83, []string{"45", "50", "55", "60", "65", "70", "75", "80", "85"}},
		{0, 100, []string{"0", "20", "40", "60", "80", "100"}},
	} {
		chart := &Chart{Ticks: []Tick{{0, "x"}}, Series: []Series{{Points: []Point{{0, c.low, nil, nil}, {1, c.high, nil, nil}}}}}
		var marks []string
		for _, text := range regexp.MustCompile(`>(-?[0-9.]+)<`).FindAllStringSubmatch(svg(t, chart.WriteSVG), -1) {
			marks = append(marks, text[1])
		}
		if diff := cmp.Diff(c.marks, marks); diff != "" {
			t.Errorf("%v to %v: %s", c.low, c.high, diff)
		}
		if b, _ := chart.bounds(); number(b.bottom, 1) != marks[0] || number(b.top, 1) != marks[len(marks)-1] {
			t.Errorf("%v to %v: the frame is %+v", c.low, c.high, b)
		}
	}
}

// Values that cannot be below 0 or above 100 have no axis that goes there: their
// intervals are cut off, but never short of the value.
func TestIntervalsAreCutOff(t *testing.T) {
	low, high := -20.0, 130.0
	points := []Point{{0, 10, &low, &high}, {1, 90, &low, &high}}
	for _, band := range []bool{false, true} {
		c := &Chart{Within: &Range{0, 100}, Series: []Series{{Line: true, Band: band, Points: points}}}
		cut := svg(t, c.WriteSVG)
		zero, hundred := 0.0, 100.0
		c.Series[0].Points = []Point{{0, 10, &zero, &hundred}, {1, 90, &zero, &hundred}}
		if b, _ := c.bounds(); b.bottom != 0 || b.top != 100 || cut != svg(t, c.WriteSVG) {
			t.Errorf("band %v: not as an interval from 0 to 100, %+v", band, b)
		}
	}
	c := &Chart{Within: &Range{0, 100}}
	if l, h, ok := c.interval(&Point{0, -3, &low, &high}); !ok || l != -3 || h != 100 {
		t.Errorf("from %v to %v around -3", l, h)
	}
	c.Within = &Range{0, math.Inf(1)}
	if l, h, _ := c.interval(&points[0]); l != 0 || h != 130 {
		t.Errorf("from %v to %v without an end", l, h)
	}
}

// A logarithmic axis has powers of ten, equally far apart, and takes no 0.
func TestLogarithmicAxis(t *testing.T) {
	low, high := 0.05, 2.0
	c := &Chart{Log: true, Series: []Series{{Line: true, Points: []Point{{0, 0.3, &low, &high}, {1, 700, nil, nil}}}}}
	drawn := svg(t, c.WriteSVG)
	for _, mark := range []string{">0.01<", ">0.1<", ">1<", ">10<", ">100<", ">1000<"} {
		if !strings.Contains(drawn, mark) {
			t.Errorf("no %s", mark)
		}
	}
	b, ok := c.bounds()
	if !ok || b.bottom != -2 || b.top != 3 {
		t.Errorf("%+v", b)
	}
	a := c.axes(draw.New(vgsvg.New(width, height)), b)
	if one, two := a.y(1)-a.y(0.1), a.y(100)-a.y(10); math.Abs(float64(one-two)) > 1e-9 || one <= 0 {
		t.Errorf("ten times is %v and %v", one, two)
	}
	for _, y := range []float64{0, -1} {
		c.Series[0].Points[1].Y = y
		if c.WriteSVG(io.Discard) == nil {
			t.Errorf("%v on a logarithmic axis", y)
		}
	}
}

// Series stand side by side at each place, however many, within the frame and
// nearer to it than to the next place; a single place has a single mark.
func TestSeriesStandSideBySide(t *testing.T) {
	for _, line := range []bool{false, true} {
		c := lines(10)
		for i := range c.Series {
			c.Series[i].Line, c.Series[i].Band = line, !line // without a line there is no band
		}
		b, _ := c.bounds()
		a := c.axes(draw.New(vgsvg.New(width-2*margin-leftWidth-rightWidth, height)), b)
		wide := a.apart * 9
		if gap := a.x(1) - a.x(0); a.apart < 2 || wide > 0.7*gap {
			t.Errorf("line %v: %v apart, and the next place is %v away", line, a.apart, gap)
		}
		if left, right := a.x(0)-wide/2, a.x(3)+wide/2; left-markRadius < a.Min.X || right+markRadius > a.Max.X {
			t.Errorf("line %v: from %v to %v in a frame of %v", line, left, right, a.Max.X)
		}
	}
	c := &Chart{Series: []Series{{Name: "a", Points: []Point{{1920, 20, nil, nil}}}, {Name: "b", Points: []Point{{1920, 20, nil, nil}}}}}
	drawn := svg(t, c.WriteSVG)
	if strings.Count(drawn, ">1920<") != 1 || strings.Contains(drawn, "1919") || strings.Contains(drawn, "1920.") {
		t.Error("more than one mark of one place")
	}
	b, _ := c.bounds()
	if a := c.axes(draw.New(vgsvg.New(width, height)), b); a.apart < 2*markRadius {
		t.Errorf("equal values cover each other, %v apart", a.apart)
	}
}

func TestRoundSteps(t *testing.T) {
	for length, want := range map[float64]float64{8: 1, 9: 2, 16: 2, 17: 5, 41: 10, 80: 10, 0.3: 0.05, 12345: 2000, 1e-5: 2e-6} {
		if got := roundStep(length); math.Abs(got-want) > want*1e-9 {
			t.Errorf("an axis of %v has steps of %v, want %v", length, got, want)
		}
	}
}

func TestMarksAreWrittenShortly(t *testing.T) {
	var got []string
	for _, c := range [][2]float64{{0.30000000000000004, 0.1}, {1e-17, 0.05}, {2000, 500}, {-0.5, 0.5}, {7, 1}} {
		got = append(got, number(c[0], c[1]))
	}
	if diff := cmp.Diff([]string{"0.3", "0.00", "2000", "-0.5", "7"}, got); diff != "" {
		t.Error(diff)
	}
}

// Many series need a legend of several rows, and leave the chart its room.
func TestLegendWraps(t *testing.T) {
	c := lines(6)
	for i := range c.Series {
		c.Series[i].Name = strings.Repeat("long name ", 3)
	}
	drawn := svg(t, c.WriteSVG)
	if n := strings.Count(drawn, ">"+strings.Repeat("long name ", 3)+"<"); n != 6 {
		t.Errorf("%d names", n)
	}
	if drawn == svg(t, lines(6).WriteSVG) {
		t.Error("the names do not matter")
	}
}

// A band is one shape that may be seen through, in place of the bars, and the
// points of all series stand where their values are.
func TestBands(t *testing.T) {
	c := lines(2)
	bars := svg(t, c.WriteSVG)
	for i := range c.Series {
		c.Series[i].Band = true
	}
	drawn := svg(t, c.WriteSVG)
	for _, p := range []paint{paints[5], paints[6]} {
		if n := strings.Count(drawn, "fill:"+hex(p.light)+";fill-opacity"); n != 1 {
			t.Errorf("%d bands in %s", n, p.name)
		}
		if strings.Contains(bars, "fill:"+hex(p.light)+";fill-opacity") || strings.Count(drawn, "<path") >= strings.Count(bars, "<path")+2 {
			t.Errorf("%s has bars and a band", p.name)
		}
	}
	if inline := svg(t, c.WriteInline); !strings.Contains(inline, "fill:var(--chart-blue,#0072B2);fill-opacity") {
		t.Error("the colour of a band cannot be replaced")
	}
	// Without an interval there is nothing to shade.
	for k := range c.Series[1].Points {
		c.Series[1].Points[k].Low = nil
	}
	if drawn == svg(t, c.WriteSVG) {
		t.Error("a band without intervals")
	}
}

// A series keeps its look where others are left out.
func TestLookOfASeries(t *testing.T) {
	c := lines(1)
	if drawn := svg(t, c.WriteSVG); !strings.Contains(drawn, hex(paints[5].light)) {
		t.Error("the first is not blue")
	}
	c.Series[0].Look = 2
	if drawn := svg(t, c.WriteSVG); strings.Contains(drawn, hex(paints[5].light)) || !strings.Contains(drawn, hex(paints[6].light)) {
		t.Error("the second look is not vermilion")
	}
}
