package plot

import (
	"iter"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
)

// Up to this many rectangles a panel shows single reservations. Beyond, they
// are thinner than a line and only slow the reader down.
const (
	loneRectangles  = 6000
	panelRectangles = 2000
)

// The measures within a panel.
const (
	headHeight  vg.Length = 17
	leftMargin  vg.Length = 52
	tickHeight  vg.Length = 14
	stripHeight vg.Length = 26 // of the refused demand
	stripGap    vg.Length = 5
	pieceWidth  vg.Length = 1.5 // of one piece of a profile
)

// axes maps seconds and PEs to points of a canvas.
type axes struct {
	draw.Canvas
	span berth.Interval
	top  float64 // the value at the upper edge
}

func (a *axes) x(t berth.Time) vg.Length {
	return a.Min.X + (a.Max.X-a.Min.X)*vg.Length(float64(t-a.span.Start)/float64(a.span.Length()))
}

func (a *axes) y(v float64) vg.Length {
	return a.Min.Y + (a.Max.Y-a.Min.Y)*vg.Length(v/a.top)
}

// pieces returns how many pieces a profile over these axes has.
func (a *axes) pieces() int { return max(1, int((a.Max.X-a.Min.X)/pieceWidth)) }

// drawPanel draws one run: a heading, PEs over time, and below them the demand
// that was refused. With titled it is one of several and bears its own title.
func drawPanel(c draw.Canvas, pes berth.Count, span berth.Interval, run *Run, most int, titled bool) {
	sum := summarise(run.Lines)
	heading(c, run.Title, &sum, titled)

	strip := stripHeight
	if sum.accepted == sum.requests {
		strip = 0
	}
	chart := &axes{
		Canvas: draw.Crop(c, leftMargin, -1, tickHeight+strip+stripGap, -headHeight),
		span:   span, top: float64(pes),
	}
	backdrop(chart, pes)
	single := drawable(run.Lines, most)
	if single {
		drawReservations(chart, run.Lines)
	} else {
		drawLoads(chart, run.Lines)
	}
	box(chart)
	name := "PE number"
	if !single {
		name = "PEs reserved"
	}
	pen.Write(c, vg.Point{X: c.Min.X + 6, Y: chart.Center().Y}, axisYText, name)

	foot := chart.Min.Y
	if strip > 0 {
		below := draw.Crop(c, leftMargin, -1, tickHeight, -(c.Max.Y - chart.Min.Y + stripGap))
		drawRefused(&axes{Canvas: below, span: span}, run.Lines)
		foot = below.Min.Y
	}
	for _, t := range timeTicks(span.Length()) {
		x := chart.x(span.Start + berth.Time(t.at))
		pen.StrokePath(c, pen.Segment(x, foot, x, foot-3), 0.6, frame)
		pen.Write(c, vg.Point{X: x, Y: foot - 4}, tickXText, t.label)
	}
	if sum.requests == 0 {
		pen.Write(c, chart.Center(), noticeText, "no requests")
	}
}

// heading writes the run's title and counts over a panel, as much as fits.
func heading(c draw.Canvas, title string, sum *summary, titled bool) {
	base := c.Max.Y - headHeight + 5
	left := c.Min.X + leftMargin
	if titled {
		pen.Write(c, vg.Point{X: left, Y: base}, headText, title)
		left += headText.Width(title) + 8
	}
	facts := sum.accepts()
	if sum.accepted < sum.requests {
		if longer := facts + "; " + sum.refuses(); factText.Width(longer) <= c.Max.X-left {
			facts = longer
		}
	}
	pen.Write(c, vg.Point{X: c.Max.X, Y: base}, factText, facts)
}

// backdrop draws the grid and the labels of the PEs.
func backdrop(a *axes, pes berth.Count) {
	for _, t := range timeTicks(a.span.Length()) {
		x := a.x(a.span.Start + berth.Time(t.at))
		pen.StrokePath(a.Canvas, pen.Segment(x, a.Min.Y, x, a.Max.Y), 0.6, grid)
	}
	for _, t := range peTicks(pes) {
		y := a.y(float64(t.at))
		pen.StrokePath(a.Canvas, pen.Segment(a.Min.X, y, a.Max.X, y), 0.6, grid)
		pen.Write(a.Canvas, vg.Point{X: a.Min.X - 4, Y: y}, tickYText, t.label)
	}
}

// box draws the frame around a chart.
func box(a *axes) {
	pen.StrokePath(a.Canvas, pen.Rectangle(nil, a.Min.X, a.Min.Y, a.Max.X, a.Max.Y), 0.6, frame)
}

// drawable reports whether single reservations can be shown: every accepted
// request names its PEs, and there are at most most rectangles in all.
func drawable(lines iter.Seq[*berth.Line], most int) bool {
	rectangles := 0
	for line := range lines {
		if !isRequest(line) || !line.Accepted {
			continue
		}
		rectangles += len(line.PEs.Runs())
		if line.PEs.Empty() || rectangles > most {
			return false
		}
	}
	return true
}

// drawReservations draws every run of PEs of every reservation, coloured by
// its waiting.
func drawReservations(a *axes, lines iter.Seq[*berth.Line]) {
	paths := make([]vg.Path, len(waits))
	for line := range lines {
		if !isRequest(line) || !line.Accepted || line.Start == nil || line.End == nil {
			continue
		}
		class := waitClass(line.Start.Sub(line.Ready))
		for _, run := range line.PEs.Runs() {
			paths[class] = pen.Rectangle(paths[class],
				a.x(*line.Start), a.y(float64(run.Lo)), a.x(*line.End), a.y(float64(run.Hi)))
		}
	}
	for class, path := range paths {
		pen.FillPath(a.Canvas, path, waits[class].fill)
		pen.StrokePath(a.Canvas, path, 0.4, white)
	}
}

// drawLoads draws how many PEs were reserved over time, the classes of waiting
// one upon another, those that waited least at the bottom.
func drawLoads(a *axes, lines iter.Seq[*berth.Line]) {
	below := make(profile, a.pieces())
	for class, load := range loads(lines, a.span, a.pieces()) {
		if load.peak() == 0 {
			continue
		}
		upper := make(profile, len(below))
		for i := range upper {
			upper[i] = below[i] + load[i]
		}
		pen.FillPath(a.Canvas, band(a, below, upper), waits[class].fill)
		below = upper
	}
}

// drawRefused draws the refused demand in a strip whose height is its own peak.
func drawRefused(a *axes, lines iter.Seq[*berth.Line]) {
	load := refusedLoad(lines, a.span, a.pieces())
	a.top = max(1, load.peak())
	pen.FillPath(a.Canvas, band(a, make(profile, len(load)), load), refused)
	box(a)
	pen.Write(a.Canvas, vg.Point{X: a.Min.X - 4, Y: a.Max.Y - 4}, tickYText, grouped(int64(a.top+0.5)))
	pen.Write(a.Canvas, vg.Point{X: a.Min.X - 4, Y: a.Min.Y + 4}, tickYText, "refused")
}

// band returns the steps between two profiles as one path of columns; equal
// neighbours share a column, and empty ones are left out.
func band(a *axes, lower, upper profile) vg.Path {
	var path vg.Path
	width := (a.Max.X - a.Min.X) / vg.Length(len(lower))
	for i := 0; i < len(lower); {
		j := i + 1
		for j < len(lower) && lower[j] == lower[i] && upper[j] == upper[i] {
			j++
		}
		if upper[i] > lower[i] {
			path = pen.Rectangle(path, a.Min.X+vg.Length(i)*width, a.y(lower[i]), a.Min.X+vg.Length(j)*width, a.y(upper[i]))
		}
		i = j
	}
	return path
}
