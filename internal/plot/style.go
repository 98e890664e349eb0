package plot

import (
	"image/color"
	"math"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth"
)

// The colours. Waiting runs from pale to dark blue, so that it reads by
// lightness alone; refusals and the second bar are the vermilion and orange of
// Okabe and Ito's palette, which no common colour blindness confuses with blue.
var (
	white   = color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
	ink     = color.NRGBA{R: 0x22, G: 0x26, B: 0x2b, A: 0xff}
	faint   = color.NRGBA{R: 0x6b, G: 0x72, B: 0x7b, A: 0xff}
	frame   = color.NRGBA{R: 0xa9, G: 0xb0, B: 0xb8, A: 0xff}
	grid    = color.NRGBA{R: 0xe8, G: 0xeb, B: 0xee, A: 0xff}
	refused = color.NRGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}
	barOne  = color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	barTwo  = color.NRGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
)

const hour = 3600

// waits are the classes of waiting after the ready time, each up to and
// including its limit.
var waits = []struct {
	upTo  berth.Duration
	label string
	fill  color.NRGBA
}{
	{0, "none", color.NRGBA{R: 0xae, G: 0xd4, B: 0xe8, A: 0xff}},
	{hour, "up to 1 h", color.NRGBA{R: 0x6b, G: 0xae, B: 0xd6, A: 0xff}},
	{4 * hour, "up to 4 h", color.NRGBA{R: 0x2f, G: 0x7f, B: 0xbd, A: 0xff}},
	{12 * hour, "up to 12 h", color.NRGBA{R: 0x0b, G: 0x4f, B: 0x96, A: 0xff}},
	{berth.Forever, "longer", color.NRGBA{R: 0x08, G: 0x25, B: 0x5c, A: 0xff}},
}

// waitClass returns the index in waits of a reservation's waiting.
func waitClass(wait berth.Duration) int {
	for i, class := range waits {
		if wait <= class.upTo {
			return i
		}
	}
	return len(waits) - 1
}

// fonts are the faces that come with the drawing library, so that a figure
// does not depend on what the machine has installed.
var fonts = font.NewCache(liberation.Collection())

// style returns a text style with the anchor at the given corner.
func style(size vg.Length, bold bool, ink color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	face := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		face.Weight = stdfont.WeightBold
	}
	return text.Style{Color: ink, Font: face, XAlign: x, YAlign: y, Handler: text.Plain{Fonts: fonts}}
}

// The kinds of text.
var (
	titleText  = style(15, true, ink, text.XLeft, text.YTop)
	headText   = style(11, true, ink, text.XLeft, text.YBottom)
	factText   = style(9, false, faint, text.XRight, text.YBottom)
	tickXText  = style(9, false, faint, text.XCenter, text.YTop)
	tickYText  = style(9, false, faint, text.XRight, text.YCenter)
	labelText  = style(9, false, ink, text.XLeft, text.YCenter)
	rightText  = style(9, false, ink, text.XRight, text.YCenter)
	axisYText  = turned(style(9, false, ink, text.XCenter, text.YCenter))
	noticeText = style(11, false, faint, text.XCenter, text.YCenter)
)

// turned returns the style reading upwards.
func turned(s text.Style) text.Style {
	s.Rotation = math.Pi / 2
	return s
}

// write puts text at a point.
func write(c draw.Canvas, at vg.Point, s text.Style, words string) { c.FillText(s, at, words) }

// rectangle appends a closed rectangle to a path. Many rectangles in one path
// are filled at once, which keeps the SVG small.
func rectangle(path vg.Path, x0, y0, x1, y1 vg.Length) vg.Path {
	path.Move(vg.Point{X: x0, Y: y0})
	path.Line(vg.Point{X: x1, Y: y0})
	path.Line(vg.Point{X: x1, Y: y1})
	path.Line(vg.Point{X: x0, Y: y1})
	path.Close()
	return path
}

// fillRect fills one rectangle.
func fillRect(c draw.Canvas, r vg.Rectangle, fill color.Color) {
	fillPath(c, rectangle(nil, r.Min.X, r.Min.Y, r.Max.X, r.Max.Y), fill)
}

// fillPath fills a path; an empty one leaves no trace.
func fillPath(c draw.Canvas, path vg.Path, fill color.Color) {
	if len(path) == 0 {
		return
	}
	c.SetColor(fill)
	c.Fill(path)
}

// strokePath draws a path's outline; an empty one leaves no trace.
func strokePath(c draw.Canvas, path vg.Path, width vg.Length, line color.Color) {
	if len(path) == 0 {
		return
	}
	c.SetLineStyle(draw.LineStyle{Color: line, Width: width})
	c.Stroke(path)
}

// segment returns the path of one straight line.
func segment(x0, y0, x1, y1 vg.Length) vg.Path {
	var path vg.Path
	path.Move(vg.Point{X: x0, Y: y0})
	path.Line(vg.Point{X: x1, Y: y1})
	return path
}
