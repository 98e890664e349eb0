// Package chart draws measured values with their intervals over a common axis,
// as an SVG. The same chart gives the same bytes. It computes no value and
// knows no experiment.
package chart

import (
	"bytes"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
)

// Point is a value, with an interval around it if Low and High are there.
type Point struct {
	X, Y      float64
	Low, High *float64
}

// Series is the points of one thing that is compared.
type Series struct {
	Name   string
	Points []Point
	// Line joins the points; without it they stand alone.
	Line bool
	// Band shades the intervals between the points of a line, in place of a bar at
	// each.
	Band bool
	// Look is from 1 and says which of the looks it has, the same in several
	// charts; 0 is by its place.
	Look int
}

// Tick is a mark of the horizontal axis.
type Tick struct {
	At    float64
	Label string
}

// Chart is what to draw.
type Chart struct {
	Title  string
	X, Y   string // what the axes count, with the unit
	Series []Series
	// Ticks of the horizontal axis; nil chooses round numbers.
	Ticks []Tick
	// Zero makes the vertical axis begin at 0, or include it.
	Zero bool
	// Log makes the vertical axis logarithmic, with marks at powers of ten. Every
	// value must be above 0 then.
	Log bool
	// Within is what the values can be: intervals are cut off there. Nil is
	// anything.
	Within *Range
}

// Range is from the least value to the largest; either may be infinite.
type Range struct{ Least, Most float64 }

// The chart's measures.
const (
	width  vg.Length = 660
	height vg.Length = 400

	margin      vg.Length = 14
	titleHeight vg.Length = 26
	keyHeight   vg.Length = 18 // of one row of the legend
	footHeight  vg.Length = 34
	leftWidth   vg.Length = 58
	rightWidth  vg.Length = 4
)

// WriteSVG draws the chart as a file. A chart without a point, or with one that
// cannot be drawn, is an error of code Invalid.
func (c *Chart) WriteSVG(w io.Writer) error {
	spread, ok := c.bounds()
	if !ok {
		return berth.Errorf(berth.Invalid, "series", "no point, or one that is not finite or, on a logarithmic axis, not above 0; a chart needs at least one")
	}
	canvas := vgsvg.New(width, height)
	c.draw(draw.New(canvas), spread)
	_, err := canvas.WriteTo(w)
	return err
}

// WriteInline draws the chart as an element for an HTML page, whose style sheet
// may replace the colours: DarkStyle does so for a dark page.
func (c *Chart) WriteInline(w io.Writer) error {
	var out bytes.Buffer
	if err := c.WriteSVG(&out); err != nil {
		return err
	}
	// The element alone, without the prologue of a file.
	element := out.Bytes()[bytes.Index(out.Bytes(), []byte("<svg")):]
	_, err := w.Write([]byte(variables().Replace(string(element))))
	return err
}

func (c *Chart) draw(page draw.Canvas, spread bounds) {
	pen.FillRect(page, page.Rectangle, white)
	inner := draw.Crop(page, margin, -margin, margin, -margin)
	pen.Write(inner, vg.Point{X: inner.Min.X, Y: inner.Max.Y}, titleText, c.Title)

	rows := drawKeys(inner, c.Series)
	body := draw.Crop(inner, leftWidth, -rightWidth, footHeight, -titleHeight-vg.Length(rows)*keyHeight)
	a := c.axes(body, spread)
	a.frame()
	for i := range c.Series {
		a.series(i, len(c.Series), &c.Series[i])
	}
	pen.Write(inner, vg.Point{X: body.Center().X, Y: inner.Min.Y}, footText, c.X)
	pen.Write(inner, vg.Point{X: inner.Min.X + 6, Y: body.Center().Y}, sideText, c.Y)
}

// drawKeys writes the legend below the title and returns how many rows it
// takes. One series alone needs none.
func drawKeys(inner draw.Canvas, series []Series) (rows int) {
	if len(series) < 2 {
		return 0
	}
	rows = 1
	x, y := inner.Min.X, inner.Max.Y-titleHeight-keyHeight/2+5
	for i := range series {
		wide := 30 + keyText.Width(series[i].Name)
		if x > inner.Min.X && x+wide > inner.Max.X {
			rows++
			x, y = inner.Min.X, y-keyHeight
		}
		look := series[i].look(i)
		if series[i].Line {
			look.stroke(inner, pen.Segment(x, y, x+22, y))
		}
		look.mark(inner, vg.Point{X: x + 11, Y: y}, markRadius)
		pen.Write(inner, vg.Point{X: x + 27, Y: y}, keyText, series[i].Name)
		x += wide + 16
	}
	return rows
}
