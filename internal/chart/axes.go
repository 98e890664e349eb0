package chart

import (
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth/internal/pen"
)

// bounds is the part of the plane that a chart shows; on a logarithmic axis
// bottom and top are exponents of ten.
type bounds struct{ left, right, bottom, top float64 }

// bounds returns what holds every point and interval, rounded outwards to the
// marks of the vertical axis; ok is false without a point, or with one that
// cannot be drawn.
func (c *Chart) bounds() (b bounds, ok bool) {
	b = bounds{left: math.Inf(1), right: math.Inf(-1), bottom: math.Inf(1), top: math.Inf(-1)}
	for i := range c.Series {
		for k := range c.Series[i].Points {
			p := &c.Series[i].Points[k]
			ok = true
			b.left, b.right = min(b.left, p.X), max(b.right, p.X)
			low, high, _ := c.interval(p)
			b.bottom, b.top = min(b.bottom, c.level(p.Y), c.level(low)), max(b.top, c.level(p.Y), c.level(high))
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
	// Rounding makes the axis longer, which may take a larger step.
	for {
		step := c.step(&b)
		b.bottom, b.top = step*math.Floor(b.bottom/step+1e-9), step*math.Ceil(b.top/step-1e-9)
		if c.step(&b) == step {
			break
		}
	}
	edge := (b.right - b.left) * c.edge()
	b.left, b.right = b.left-edge, b.right+edge
	return b, ok
}

// interval returns a point's interval, cut off at what the values can be, or the
// point alone where it has none.
func (c *Chart) interval(p *Point) (low, high float64, ok bool) {
	if p.Low == nil || p.High == nil {
		return p.Y, p.Y, false
	}
	low, high = *p.Low, *p.High
	if c.Within != nil {
		low, high = min(max(low, c.Within.Least), p.Y), max(min(high, c.Within.Most), p.Y)
	}
	return low, high, true
}

// level returns where a value stands on the vertical axis.
func (c *Chart) level(v float64) float64 {
	if c.Log {
		return math.Log10(v)
	}
	return v
}

// step returns the distance of the marks of the vertical axis.
func (c *Chart) step(b *bounds) float64 {
	step := roundStep(b.top - b.bottom)
	if c.Log {
		return max(1, step)
	}
	return step
}

// edge returns the part of the axis's length to leave on either side, with room
// for the series that stand side by side at the first and the last place.
func (c *Chart) edge() float64 {
	const least, mark = 1.0 / 25, 6
	across := float64(width - 2*margin - leftWidth - rightWidth)
	half := (mark + float64(c.apart())*float64(len(c.Series)-1)/2) / across
	return max(least, half/(1-2*half))
}

// apart is how far neighbouring series are moved apart where there is room, so
// that equal values can be told: points that stand alone further than lines.
func (c *Chart) apart() vg.Length {
	var most vg.Length
	for i := range c.Series {
		switch s := &c.Series[i]; {
		case s.Line && s.Band: // stays where its values are
		case s.Line:
			most = max(most, 5)
		default:
			most = max(most, 12)
		}
	}
	return most
}

// places returns the different places of the horizontal axis, in order.
func (c *Chart) places() []float64 {
	var xs []float64
	for i := range c.Series {
		for _, p := range c.Series[i].Points {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	return slices.Compact(xs)
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
	chart *Chart
	apart vg.Length // of neighbouring series
}

// axes lays the axes over a canvas.
func (c *Chart) axes(body draw.Canvas, b bounds) *axes {
	a := &axes{Canvas: body, bounds: b, chart: c, apart: c.apart()}
	places := c.places()
	for i := 1; i < len(places); i++ {
		room := a.x(places[i]) - a.x(places[i-1])
		a.apart = min(a.apart, 0.7*room/vg.Length(len(c.Series)))
	}
	return a
}

func (a *axes) x(v float64) vg.Length {
	return a.Min.X + (a.Max.X-a.Min.X)*vg.Length((v-a.left)/(a.right-a.left))
}

func (a *axes) y(v float64) vg.Length { return a.atLevel(a.chart.level(v)) }

func (a *axes) atLevel(level float64) vg.Length {
	return a.Min.Y + (a.Max.Y-a.Min.Y)*vg.Length((level-a.bottom)/(a.top-a.bottom))
}

// frame draws the grid, the marks and the box.
func (a *axes) frame() {
	step := a.chart.step(&a.bounds)
	for i := 0; ; i++ {
		v := a.bottom + step*float64(i)
		if v > a.top+step/2 {
			break
		}
		line := grid
		if math.Abs(v) < step/2 && a.bottom < -step/2 && !a.chart.Log {
			line = frame // the zero between gain and loss
			v = 0
		}
		label := number(v, step)
		if a.chart.Log {
			label = strconv.FormatFloat(math.Pow(10, math.Round(v)), 'f', -1, 64)
		}
		pen.StrokePath(a.Canvas, pen.Segment(a.Min.X, a.atLevel(v), a.Max.X, a.atLevel(v)), 0.7, line)
		pen.Write(a.Canvas, vg.Point{X: a.Min.X - 5, Y: a.atLevel(v)}, leftText, label)
	}
	for _, t := range a.ticks() {
		x := a.x(t.At)
		pen.StrokePath(a.Canvas, pen.Segment(x, a.Min.Y, x, a.Min.Y-4), 0.7, frame)
		pen.Write(a.Canvas, vg.Point{X: x, Y: a.Min.Y - 5}, belowText, t.Label)
	}
	box := pen.Rectangle(nil, a.Min.X, a.Min.Y, a.Max.X, a.Max.Y)
	pen.StrokePath(a.Canvas, box, 0.7, frame)
}

// ticks returns the marks of the horizontal axis.
func (a *axes) ticks() []Tick {
	if a.chart.Ticks != nil {
		return a.chart.Ticks
	}
	if places := a.chart.places(); len(places) == 1 {
		return []Tick{{At: places[0], Label: strconv.FormatFloat(places[0], 'f', -1, 64)}}
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

// series draws the points of series i of n.
func (a *axes) series(i, n int, s *Series) {
	look := s.look(i)
	shift := a.apart * (vg.Length(i) - vg.Length(n-1)/2)
	if s.Line && s.Band {
		shift = 0
		a.band(look, s.Points)
	}
	at := func(p *Point, v float64) vg.Point { return vg.Point{X: a.x(p.X) + shift, Y: a.y(v)} }
	var intervals, line vg.Path
	for k := range s.Points {
		p := &s.Points[k]
		if l, h, ok := a.chart.interval(p); ok && (!s.Line || !s.Band) {
			low, high := at(p, l), at(p, h)
			intervals = append(intervals, pen.Segment(low.X, low.Y, high.X, high.Y)...)
			if len(s.Points) <= manyPoints {
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
		low, _, _ := a.chart.interval(&points[k])
		if at := (vg.Point{X: a.x(points[k].X), Y: a.y(low)}); k == 0 {
			path.Move(at)
		} else {
			path.Line(at)
		}
	}
	for k := range slices.Backward(points) {
		_, high, _ := a.chart.interval(&points[k])
		path.Line(vg.Point{X: a.x(points[k].X), Y: a.y(high)})
	}
	path.Close()
	pen.FillPath(a.Canvas, path, veil(look.colour))
}
