package reproduce

import (
	"io"

	"github.com/berth-hpc/berth/internal/chart"
	"github.com/berth-hpc/berth/measure"
)

// Figure is values over a common axis, drawn and as numbers.
type Figure struct {
	Name    string // of its files
	Title   string
	Caption string
	X, Y    string
	Ticks   []chart.Tick // nil chooses round numbers
	Zero    bool         // the vertical axis includes 0
	Series  []Series
}

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

// ticksAt marks the places of labels.
func ticksAt(labels []string) []chart.Tick {
	ticks := make([]chart.Tick, len(labels))
	for i, label := range labels {
		ticks[i] = chart.Tick{At: float64(i), Label: label}
	}
	return ticks
}

// WriteSVG draws the figure.
func (f *Figure) WriteSVG(w io.Writer) error { return f.drawn().WriteSVG(w) }

// drawn returns the figure as a chart.
func (f *Figure) drawn() *chart.Chart {
	c := &chart.Chart{Title: f.Title, X: f.X, Y: f.Y, Ticks: f.Ticks, Zero: f.Zero}
	for _, s := range f.Series {
		drawn := chart.Series{Name: s.Name, Line: s.Line}
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
