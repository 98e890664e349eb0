// Package pen draws what all our figures are made of: text in a face that comes
// along, rectangles, lines. It knows nothing of what a figure shows, and has no
// colours of its own.
package pen

import (
	"image/color"
	"math"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fonts are the faces that come with the drawing library, so that a figure
// does not depend on what the machine has installed.
var fonts = font.NewCache(liberation.Collection())

// Style returns a text style with the anchor at the given corner.
func Style(size vg.Length, bold bool, ink color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	face := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		face.Weight = stdfont.WeightBold
	}
	return text.Style{Color: ink, Font: face, XAlign: x, YAlign: y, Handler: text.Plain{Fonts: fonts}}
}

// Turned returns the style reading upwards.
func Turned(s text.Style) text.Style {
	s.Rotation = math.Pi / 2
	return s
}

// Write puts text at a point.
func Write(c draw.Canvas, at vg.Point, s text.Style, words string) { c.FillText(s, at, words) }

// Rectangle appends a closed rectangle to a path. Many rectangles in one path
// are filled at once, which keeps the SVG small.
func Rectangle(path vg.Path, x0, y0, x1, y1 vg.Length) vg.Path {
	path.Move(vg.Point{X: x0, Y: y0})
	path.Line(vg.Point{X: x1, Y: y0})
	path.Line(vg.Point{X: x1, Y: y1})
	path.Line(vg.Point{X: x0, Y: y1})
	path.Close()
	return path
}

// Segment returns the path of one straight line.
func Segment(x0, y0, x1, y1 vg.Length) vg.Path {
	var path vg.Path
	path.Move(vg.Point{X: x0, Y: y0})
	path.Line(vg.Point{X: x1, Y: y1})
	return path
}

// FillRect fills one rectangle.
func FillRect(c draw.Canvas, r vg.Rectangle, fill color.Color) {
	FillPath(c, Rectangle(nil, r.Min.X, r.Min.Y, r.Max.X, r.Max.Y), fill)
}

// FillPath fills a path; an empty one leaves no trace.
func FillPath(c draw.Canvas, path vg.Path, fill color.Color) {
	if len(path) == 0 {
		return
	}
	c.SetColor(fill)
	c.Fill(path)
}

// StrokePath draws a path's outline; an empty one leaves no trace.
func StrokePath(c draw.Canvas, path vg.Path, width vg.Length, line color.Color) {
	if len(path) == 0 {
		return
	}
	c.SetLineStyle(draw.LineStyle{Color: line, Width: width})
	c.Stroke(path)
}
