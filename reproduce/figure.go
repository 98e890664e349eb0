package reproduce

import (
	"io"
	"math"

	"github.com/berth-hpc/berth/internal/chart"
	"github.com/berth-hpc/berth/measure"
)

// Figure is values over a common axis, drawn and as numbers.
type Figure struct {
	Name    string // of its files
	Title   string
	Caption string
	X, Y    string
	Ticks   []Tick // nil chooses round numbers
	Zero    bool   // the vertical axis includes 0
	Log     bool   // the vertical axis is logarithmic
	Within  *Range // what the values can be; nil is anything
	Series  []Series
}

// Tick is a mark of the horizontal axis.
type Tick struct {
	At    float64
	Label string
}

// Range is from the least value to the largest; either may be infinite.
type Range struct{ Least, Most float64 }

// What values can be: shares in percent, what is counted or takes time, and
// slowdowns.
var (
	percentages = &Range{Least: 0, Most: 100}
	notNegative = &Range{Least: 0, Most: math.Inf(1)}
	notBelowOne = &Range{Least: 1, Most: math.Inf(1)}
)

// Series is the points of one thing that is compared.
type Series struct {
	Name   string
	Line   bool
	Points []Point
}

// Point is an estimate at a place of the axis.
type Point struct {
	X     float64
	Label string // what stands there, if X is only a place
	Value measure.Estimate
	N     int // repetitions behind the value
}

// line returns a series of samples over an axis. Where labels are given, the
// places are counted from 0.
func line(name string, xs []float64, labels []string, samples []sample) Series {
	s := Series{Name: name, Line: true}
	for i, values := range samples {
		p := Point{}
		p.Value, p.N = values.estimate()
		if labels != nil {
			p.X, p.Label = float64(i), labels[i]
		} else {
			p.X = xs[i]
		}
		s.Points = append(s.Points, p)
	}
	return s
}

// geometric turns a series of decimal logarithms into one of geometric means.
func geometric(s Series) Series {
	for i := range s.Points {
		e := &s.Points[i].Value
		if e.Mean != nil {
			*e.Mean = math.Pow(10, *e.Mean)
		}
		if e.CI95 != nil {
			e.CI95 = &[2]float64{math.Pow(10, e.CI95[0]), math.Pow(10, e.CI95[1])}
		}
	}
	return s
}

// bandFrom is from how many points on a line has a band in place of bars, which
// would cover one another.
const bandFrom = 30

// Legend is the caption with what the drawing does to the numbers.
func (f *Figure) Legend() string {
	cut := false
	for _, s := range f.Series {
		for _, p := range s.Points {
			cut = cut || f.Within != nil && p.Value.CI95 != nil && (p.Value.CI95[0] < f.Within.Least || p.Value.CI95[1] > f.Within.Most)
		}
	}
	if cut {
		return f.Caption + " Intervals are cut off at what the values can be."
	}
	return f.Caption
}

// ticksAt marks the places of labels.
func ticksAt(labels []string) []Tick {
	ticks := make([]Tick, len(labels))
	for i, label := range labels {
		ticks[i] = Tick{At: float64(i), Label: label}
	}
	return ticks
}

// WriteSVG draws the figure.
func (f *Figure) WriteSVG(w io.Writer) error { return f.drawn().WriteSVG(w) }

// drawn returns the figure as a chart.
func (f *Figure) drawn() *chart.Chart {
	c := &chart.Chart{Title: f.Title, X: f.X, Y: f.Y, Zero: f.Zero, Log: f.Log, Within: (*chart.Range)(f.Within)}
	for _, tick := range f.Ticks {
		c.Ticks = append(c.Ticks, chart.Tick(tick))
	}
	for _, s := range f.Series {
		drawn := chart.Series{Name: s.Name, Line: s.Line, Band: s.Line && len(s.Points) >= bandFrom}
		for _, p := range s.Points {
			if p.Value.Mean == nil {
				continue
			}
			point := chart.Point{X: p.X, Y: *p.Value.Mean}
			if p.Value.CI95 != nil {
				point.Low, point.High = &p.Value.CI95[0], &p.Value.CI95[1]
			}
			drawn.Points = append(drawn.Points, point)
		}
		c.Series = append(c.Series, drawn)
	}
	return c
}

// table returns the figure's numbers.
func (f *Figure) table() Table {
	t := Table{Name: f.Name, Title: f.Title, Header: []string{"series", "x", "label", "mean", "low", "high", "repetitions"}}
	for _, s := range f.Series {
		for _, p := range s.Points {
			row := append([]string{s.Name, digits(p.X), p.Label}, numbers(p.Value, p.N)...)
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
