package chart

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth/internal/pen"
)

// bounds is the part of the plane that a chart shows.
type bounds struct{ left, right, bottom, top float64 }

// bounds returns what holds every point and interval, rounded outwards to the
// marks of the vertical axis; ok is false without a point, or with one that is
// not finite.
func (c *Chart) bounds() (b bounds, ok bool) {
	b = bounds{left: math.Inf(1), right: math.Inf(-1), bottom: math.Inf(1), top: math.Inf(-1)}
	for i := range c.Series {
		for _, p := range c.Series[i].Points {
			ok = true
			b.left, b.right = min(b.left, p.X), max(b.right, p.X)
			b.bottom, b.top = min(b.bottom, p.Y), max(b.top, p.Y)
			if p.Low != nil && p.High != nil {
				b.bottom, b.top = min(b.bottom, *p.Low), max(b.top, *p.High)
			}
		}
	}
	if size := b.right - b.left + b.top - b.bottom; !ok || math.IsNaN(size) || math.IsInf(size, 0) {
		return b, false
	}
	for _, t := range c.Ticks {
		b.left, b.right = min(b.left, t.At), max(b.right, t.At)
	}
	if c.Zero {
		b.bottom, b.top = min(b.bottom, 0), max(b.top, 0)
	}
	if b.left == b.right {
		b.left, b.right = b.left-1, b.right+1
	}
	if b.bottom == b.top {
		b.bottom, b.top = b.bottom-1, b.top+1
	}
	step := roundStep(b.top - b.bottom)
	b.bottom, b.top = step*math.Floor(b.bottom/step), step*math.Ceil(b.top/step)
	edge := (b.right - b.left) / 25
	b.left, b.right = b.left-edge, b.right+edge
	return b, ok
}

// roundStep returns the distance of the marks of an axis of that length: 1, 2
// or 5 times a power of ten, at most 8 of them.
func roundStep(length float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(length))-1)
	for {
		for _, digit := range []float64{1, 2, 5} {
			if length/(digit*power) <= 8 {
				return digit * power
			}
		}
		power *= 10
	}
}

// axes maps values to points of a canvas.
type axes struct {
	draw.Canvas
	bounds
}

func (a *axes) x(v float64) vg.Length {
	return a.Min.X + (a.Max.X-a.Min.X)*vg.Length((v-a.left)/(a.right-a.left))
}

func (a *axes) y(v float64) vg.Length {
	return a.Min.Y + (a.Max.Y-a.Min.Y)*vg.Length((v-a.bottom)/(a.top-a.bottom))
}

// frame draws the grid, the marks and the box.
func (a *axes) frame(c *Chart) {
	step := roundStep(a.top - a.bottom)
	for i := 0; ; i++ {
		v := a.bottom + step*float64(i)
		if v > a.top+step*1e-9 { // what is rounded outwards may end between two marks
			break
		}
		line := grid
		if math.Abs(v) < step/2 && a.bottom < -step/2 {
			line = frame // the zero between gain and loss
			v = 0
		}
		pen.StrokePath(a.Canvas, pen.Segment(a.Min.X, a.y(v), a.Max.X, a.y(v)), 0.7, line)
		pen.Write(a.Canvas, vg.Point{X: a.Min.X - 5, Y: a.y(v)}, leftText, number(v, step))
	}
	for _, t := range a.ticks(c) {
		x := a.x(t.At)
		pen.StrokePath(a.Canvas, pen.Segment(x, a.Min.Y, x, a.Min.Y-4), 0.7, frame)
		pen.Write(a.Canvas, vg.Point{X: x, Y: a.Min.Y - 5}, belowText, t.Label)
	}
	box := pen.Rectangle(nil, a.Min.X, a.Min.Y, a.Max.X, a.Max.Y)
	pen.StrokePath(a.Canvas, box, 0.7, frame)
}

// ticks returns the marks of the horizontal axis.
func (a *axes) ticks(c *Chart) []Tick {
	if c.Ticks != nil {
		return c.Ticks
	}
	step := roundStep(a.right - a.left)
	var ticks []Tick
	for v := step * math.Ceil(a.left/step); v <= a.right; v += step {
		ticks = append(ticks, Tick{At: v, Label: number(v, step)})
	}
	return ticks
}

// number writes a mark with as many decimals as the step needs.
func number(v, step float64) string {
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if math.Abs(v) < step/1e6 {
		v = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// beside is how far the intervals of neighbouring series are moved apart, so
// that equal values can be told.
const beside vg.Length = 5

// series draws the points of series i of n.
func (a *axes) series(i, n int, s *Series) {
	look := s.look(i)
	shift := vg.Length(0)
	if s.Line && !s.Band {
		shift = beside * (vg.Length(i) - vg.Length(n-1)/2)
	}
	at := func(p *Point, v float64) vg.Point { return vg.Point{X: a.x(p.X) + shift, Y: a.y(v)} }
	if s.Line && s.Band {
		a.band(look, s.Points)
	}
	var intervals, line vg.Path
	for k := range s.Points {
		p := &s.Points[k]
		if p.Low != nil && p.High != nil && (!s.Line || !s.Band) {
			low, high := at(p, *p.Low), at(p, *p.High)
			intervals = append(intervals, pen.Segment(low.X, low.Y, high.X, high.Y)...)
			if s.Line {
				intervals = append(intervals, pen.Segment(low.X-3, low.Y, low.X+3, low.Y)...)
				intervals = append(intervals, pen.Segment(high.X-3, high.Y, high.X+3, high.Y)...)
			}
		}
		if k == 0 {
			line.Move(at(p, p.Y))
		} else {
			line.Line(at(p, p.Y))
		}
	}
	pen.StrokePath(a.Canvas, intervals, 0.9, look.colour)
	if s.Line && len(s.Points) > 1 {
		look.stroke(a.Canvas, line)
	}
	for k := range s.Points {
		p := &s.Points[k]
		look.mark(a.Canvas, at(p, p.Y), radiusFor(len(s.Points)))
	}
}

// veil is a colour through which what lies below shows, also below several of
// them.
type veil color.NRGBA

// RGBA rounds up: who divides by the opacity again and cuts off, as vgsvg does,
// gets the very colour, and a page can replace it.
func (v veil) RGBA() (r, g, b, a uint32) {
	const opacity = 0x30 * 0x101
	thin := func(c uint8) uint32 { return (uint32(c)*opacity + 0xfe) / 0xff }
	return thin(v.R), thin(v.G), thin(v.B), opacity
}

// band shades what lies between the ends of the intervals. A point without one
// is a place where the band has no width.
func (a *axes) band(look *look, points []Point) {
	var path vg.Path
	for k := range points {
		p := &points[k]
		low := p.Y
		if p.Low != nil && p.High != nil {
			low = *p.Low
		}
		if at := (vg.Point{X: a.x(p.X), Y: a.y(low)}); k == 0 {
			path.Move(at)
		} else {
			path.Line(at)
		}
	}
	for k := range points {
		p := &points[len(points)-1-k]
		high := p.Y
		if p.Low != nil && p.High != nil {
			high = *p.High
		}
		path.Line(vg.Point{X: a.x(p.X), Y: a.y(high)})
	}
	path.Close()
	pen.FillPath(a.Canvas, path, veil(look.colour))
}
