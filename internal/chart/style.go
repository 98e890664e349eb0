package chart

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth/internal/pen"
)

// paint is a colour with the name by which a page may replace it, and the
// colour that stands out as well on a dark page.
type paint struct {
	name        string
	light, dark color.NRGBA
}

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

// The colours. Those of the first six series are of Okabe and Ito's palette, which
// no common colour blindness confuses; where there are more, dashes and marks
// tell them apart too.
var (
	paints = []paint{
		{"paper", rgb(0xffffff), rgb(0x14181c)},
		{"ink", rgb(0x22262b), rgb(0xe3e7ea)},
		{"faint", rgb(0x6b727b), rgb(0xa0a8b0)},
		{"frame", rgb(0xa9b0b8), rgb(0x6b747d)},
		{"grid", rgb(0xe8ebee), rgb(0x2c343b)},
		{"blue", rgb(0x0072b2), rgb(0x4da8e8)},
		{"vermilion", rgb(0xd55e00), rgb(0xf4894a)},
		{"green", rgb(0x009e73), rgb(0x35c99d)},
		{"purple", rgb(0xcc79a7), rgb(0xe3a0c6)},
		{"orange", rgb(0xe69f00), rgb(0xf2bb40)},
		{"sky", rgb(0x56b4e9), rgb(0x8fd3f7)},
		{"brown", rgb(0x8a5a2b), rgb(0xc99a66)},
		{"olive", rgb(0x6b7a00), rgb(0xb5c33c)},
	}
	white, ink, faint = paints[0].light, paints[1].light, paints[2].light
	frame, grid       = paints[3].light, paints[4].light
	blue, vermilion   = paints[5].light, paints[6].light
	green, purple     = paints[7].light, paints[8].light
	orange, sky       = paints[9].light, paints[10].light
	brown, olive      = paints[11].light, paints[12].light
)

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// variables makes the colours of a drawing replaceable.
func variables() *strings.Replacer {
	var pairs []string
	for _, p := range paints {
		pairs = append(pairs, hex(p.light), "var(--chart-"+p.name+","+hex(p.light)+")")
	}
	return strings.NewReplacer(pairs...)
}

// DarkStyle returns the CSS declarations that give an inline chart the colours
// of a dark page.
func DarkStyle() string {
	var css strings.Builder
	for _, p := range paints {
		css.WriteString("--chart-" + p.name + ":" + hex(p.dark) + ";")
	}
	return css.String()
}

// look is how a series is told from others: by colour, by dashes and by the
// shape of its marks, full or open, so that it can be told in print without
// colour too.
type look struct {
	colour color.NRGBA
	dashes []vg.Length
	corner int // of the marks: 0 is a circle
	turn   float64
	open   bool
}

var looks = []look{
	{colour: blue},
	{colour: vermilion, dashes: []vg.Length{7, 3}, corner: 4, turn: math.Pi / 4},
	{colour: green, dashes: []vg.Length{2, 2}, corner: 3, turn: math.Pi / 2},
	{colour: purple, dashes: []vg.Length{8, 2, 2, 2}, corner: 4},
	{colour: orange, dashes: []vg.Length{4, 2}, corner: 3, turn: -math.Pi / 2},
	{colour: sky, dashes: []vg.Length{1, 2}, open: true},
	{colour: brown, dashes: []vg.Length{6, 2, 1, 2, 1, 2}, corner: 4, turn: math.Pi / 4, open: true},
	{colour: ink, dashes: []vg.Length{11, 2}, corner: 3, turn: math.Pi / 2, open: true},
	{colour: faint, dashes: []vg.Length{2, 5}, corner: 4, open: true},
	{colour: olive, dashes: []vg.Length{5, 5}, corner: 3, turn: -math.Pi / 2, open: true},
}

// look returns the look of a series at a place from 0.
func (s *Series) look(place int) *look {
	if s.Look > 0 {
		place = s.Look - 1
	}
	return &looks[place%len(looks)]
}

// The marks: of few points, and of too many to stand apart.
const (
	markRadius vg.Length = 3.4
	dotRadius  vg.Length = 1.7
	manyPoints           = 60
)

func radiusFor(points int) vg.Length {
	if points > manyPoints {
		return dotRadius
	}
	return markRadius
}

// mark draws one mark. A large full one has a white rim, which keeps it apart
// from lines; a small one is always full.
func (l *look) mark(c draw.Canvas, at vg.Point, size vg.Length) {
	var path vg.Path
	if l.corner == 0 {
		path.Move(vg.Point{X: at.X + size, Y: at.Y})
		path.Arc(at, size, 0, 2*math.Pi)
	} else {
		radius := float64(size) * 1.25
		for i := range l.corner {
			angle := l.turn + 2*math.Pi*float64(i)/float64(l.corner)
			p := vg.Point{X: at.X + vg.Length(radius*math.Cos(angle)), Y: at.Y + vg.Length(radius*math.Sin(angle))}
			if i == 0 {
				path.Move(p)
			} else {
				path.Line(p)
			}
		}
	}
	path.Close()
	inside, rim, thick := l.colour, white, vg.Length(0.7)
	if l.open && size > dotRadius {
		inside, rim, thick = white, l.colour, 1.3
	}
	pen.FillPath(c, path, inside)
	if size > dotRadius {
		pen.StrokePath(c, path, thick, rim)
	}
}

// stroke draws a line of the series.
func (l *look) stroke(c draw.Canvas, path vg.Path) {
	c.SetLineStyle(draw.LineStyle{Color: l.colour, Width: 1.5, Dashes: l.dashes})
	c.Stroke(path)
	c.SetLineStyle(draw.LineStyle{Color: l.colour, Width: 1})
}

// The kinds of text.
var (
	titleText = pen.Style(13, true, ink, text.XLeft, text.YTop)
	keyText   = pen.Style(10, false, ink, text.XLeft, text.YCenter)
	leftText  = pen.Style(10, false, faint, text.XRight, text.YCenter)
	belowText = pen.Style(10, false, faint, text.XCenter, text.YTop)
	footText  = pen.Style(10, false, ink, text.XCenter, text.YBottom)
	sideText  = pen.Turned(pen.Style(10, false, ink, text.XCenter, text.YCenter))
)
