package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
)

// Bar is one block of PEs in a Gantt chart: NPE PEs throughout [Start, End).
type Bar struct {
	Label      string
	NPE        berth.Count
	Start, End berth.Time
	Critical   bool
}

// Gantt is the plan of a workflow among the bookings of others, as two charts
// over one time axis: the PEs, others' in grey, and below a row for each task
// in the order of their starts. The critical path has a colour of its own.
type Gantt struct {
	Title    string
	Facts    string // in small letters over the chart
	PEs      berth.Count
	Now      berth.Time
	Deadline berth.Time // marked by a line; berth.Forever is none
	Tasks    []Bar
	// Others are what others hold. They and Tasks never take more than PEs.
	Others []Bar
}

// The colours of a Gantt chart. The critical path is the vermilion of refused.
var (
	ours   = color.NRGBA{R: 0x6b, G: 0xae, B: 0xd6, A: 0xff}
	theirs = color.NRGBA{R: 0xc9, G: 0xce, B: 0xd4, A: 0xff}
)

// The measures of a Gantt chart. Up to namedRows tasks each have a row high
// enough for letters; more of them share that height.
const (
	namedRows            = 60
	rowHeight  vg.Length = 11
	leastRows  vg.Length = 60
	nameMargin vg.Length = 150
	leastBar   vg.Length = 1 // a task of one PE among thousands is to be seen
)

// WriteGantt writes the chart in one of Formats. Tasks beyond some dozens have
// no names, and above some thousand rectangles the upper chart shows the load
// over time, so both time and size stay bounded: O(n·r) for n bars in the span
// of the plan and at most r runs of idle PEs.
func WriteGantt(w io.Writer, format string, g Gantt) error {
	if g.PEs < 1 {
		return berth.Errorf(berth.Invalid, "pes", "%d; a chart needs a site of at least 1 PE", g.PEs)
	}
	width, height := g.size()
	return encode(w, format, width, height, g.draw)
}

// rows returns the height of the lower chart.
func (g *Gantt) rows() vg.Length {
	return max(leastRows, rowHeight*vg.Length(min(len(g.Tasks), namedRows)))
}

func (g *Gantt) size() (width, height vg.Length) {
	return loneWidth + nameMargin + 2*margin, titleHeight + loneHeight + gap + g.rows() + legendHeight + 2*margin
}

// span is from now to the last end or the deadline, and never empty. A deadline
// far off would leave the plan a sliver, so it widens the span to twice the
// plan's length at most.
func (g *Gantt) span() berth.Interval {
	end := g.Now + 1
	for i := range g.Tasks {
		end = max(end, g.Tasks[i].End)
	}
	if g.Deadline != berth.Forever {
		end = max(end, min(g.Deadline, end+(end-g.Now)))
	}
	return berth.Interval{Start: g.Now, End: end + (end-g.Now)/50 + 1}
}

func (g *Gantt) draw(c draw.Canvas) {
	pen.FillRect(c, c.Rectangle, white)
	inner := draw.Crop(c, margin, -margin, margin, -margin)
	pen.Write(inner, vg.Point{X: inner.Min.X, Y: inner.Max.Y}, titleText, fitted(titleText, g.Title, inner.Max.X-inner.Min.X))
	body := draw.Crop(inner, nameMargin, -1, legendHeight, -titleHeight)
	pen.Write(body, vg.Point{X: body.Max.X, Y: body.Max.Y - headHeight + 5}, factText, g.Facts)

	span := g.span()
	rows := &axes{Canvas: draw.Crop(body, 0, 0, 0, -(body.Max.Y - body.Min.Y - g.rows())), span: span, top: float64(max(1, len(g.Tasks)))}
	chart := &axes{Canvas: draw.Crop(body, 0, 0, g.rows()+gap, -headHeight), span: span, top: float64(g.PEs)}
	backdrop(chart, g.PEs)
	if !g.drawBlocks(chart) {
		g.drawLoad(chart)
	}
	g.finish(chart, "PEs")
	g.drawRows(rows)
	g.finish(rows, "tasks")
	for _, t := range timeTicks(span.Length()) {
		x := rows.x(span.Start + berth.Time(t.at))
		pen.StrokePath(body, pen.Segment(x, rows.Min.Y, x, rows.Min.Y-3), 0.6, frame)
		pen.Write(body, vg.Point{X: x, Y: rows.Min.Y - 4}, tickXText, t.label)
	}
	g.drawKeys(draw.Crop(inner, nameMargin, 0, 0, -(inner.Max.Y-inner.Min.Y-legendHeight)), span)
}

// finish draws what lies over a chart: the deadline and the frame.
func (g *Gantt) finish(a *axes, name string) {
	if g.Deadline != berth.Forever && g.Deadline <= a.span.End {
		x := a.x(g.Deadline)
		pen.StrokePath(a.Canvas, pen.Segment(x, a.Min.Y, x, a.Max.Y), 1.2, ink)
	}
	box(a)
	pen.Write(a.Canvas, vg.Point{X: a.Min.X - nameMargin + 6, Y: a.Center().Y}, axisYText, name)
}

// block is a bar with the PEs at which it is drawn.
type block struct {
	*Bar
	others bool
	pes    []berth.Run
}

// place gives every bar of the span PEs to be drawn at: those of others the
// lowest that are idle, tasks the highest, side by side where there is room. It
// is false if there are more than most rectangles, or more PEs are taken than
// there are. PEs are late bound, so these stand for any.
func (g *Gantt) place(span berth.Interval, most int) ([]block, bool) {
	var blocks []block
	add := func(bars []Bar, others bool) {
		for i := range bars {
			if b := &bars[i]; b.NPE > 0 && b.Start < b.End && b.Start < span.End && b.End > span.Start {
				blocks = append(blocks, block{Bar: b, others: others})
			}
		}
	}
	add(g.Others, true)
	add(g.Tasks, false)
	if len(blocks) > most {
		return nil, false
	}
	slices.SortStableFunc(blocks, func(a, b block) int { return cmp.Compare(a.Start, b.Start) })
	var (
		idle    = idlePEs{{Lo: 0, Hi: berth.PE(g.PEs)}}
		running []*block // by end
		drawn   int
	)
	for i := range blocks {
		b := &blocks[i]
		for len(running) > 0 && running[0].End <= b.Start {
			idle.give(running[0].pes)
			running = running[1:]
		}
		var ok bool
		if b.pes, ok = idle.take(b.NPE, !b.others); !ok {
			return nil, false
		}
		if drawn += len(b.pes); drawn > most {
			return nil, false
		}
		at, _ := slices.BinarySearchFunc(running, b.End, func(r *block, end berth.Time) int { return cmp.Compare(r.End, end) })
		running = slices.Insert(running, at, b)
	}
	return blocks, true
}

// drawBlocks draws every bar as a rectangle, and is false if they are too many.
func (g *Gantt) drawBlocks(a *axes) bool {
	blocks, ok := g.place(a.span, loneRectangles)
	if !ok {
		return false
	}
	var paths, outlines [3]vg.Path // of others, tasks, critical tasks
	for i := range blocks {
		b := &blocks[i]
		kind := 0
		switch {
		case b.Critical:
			kind = 2
		case !b.others:
			kind = 1
		}
		left, right := a.x(max(b.Start, a.span.Start)), a.x(min(b.End, a.span.End))
		for _, run := range b.pes {
			lower, upper := a.y(float64(run.Lo)), a.y(float64(run.Hi))
			if !b.others {
				upper = max(upper, lower+leastBar)
			}
			paths[kind] = pen.Rectangle(paths[kind], left, lower, right, upper)
			if upper-lower > 2*leastBar { // an outline would hide what is thin
				outlines[kind] = pen.Rectangle(outlines[kind], left, lower, right, upper)
			}
		}
	}
	for kind, fill := range []color.Color{theirs, ours, refused} {
		pen.FillPath(a.Canvas, paths[kind], fill)
		pen.StrokePath(a.Canvas, outlines[kind], 0.4, white)
	}
	for i := range blocks {
		if b := &blocks[i]; !b.others {
			label(a, b)
		}
	}
	return true
}

// label writes a task's name into its largest rectangle, if it fits.
func label(a *axes, b *block) {
	run := slices.MaxFunc(b.pes, func(x, y berth.Run) int { return cmp.Compare(x.Hi-x.Lo, y.Hi-y.Lo) })
	width := a.x(b.End) - a.x(b.Start)
	if a.y(float64(run.Hi))-a.y(float64(run.Lo)) < 9 || labelText.Width(b.Label)+4 > width {
		return
	}
	pen.Write(a.Canvas, vg.Point{X: a.x(b.Start) + 2, Y: (a.y(float64(run.Lo)) + a.y(float64(run.Hi))) / 2}, labelText, b.Label)
}

// drawLoad draws how many PEs are taken over time: by others at the bottom, by
// tasks and by those of the critical path upon that.
func (g *Gantt) drawLoad(a *axes) {
	below := make(profile, a.pieces())
	layer := func(bars []Bar, fill color.Color, critical bool) {
		upper := slices.Clone(below)
		for i := range bars {
			if b := &bars[i]; b.Critical == critical {
				upper.add(a.span, berth.Interval{Start: b.Start, End: b.End}, b.NPE)
			}
		}
		pen.FillPath(a.Canvas, band(a, below, upper), fill)
		below = upper
	}
	layer(g.Others, theirs, false)
	layer(g.Tasks, ours, false)
	layer(g.Tasks, refused, true)
}

// drawRows draws a row for each task, with its name and PEs where there is room.
func (g *Gantt) drawRows(a *axes) {
	for _, t := range timeTicks(a.span.Length()) {
		x := a.x(a.span.Start + berth.Time(t.at))
		pen.StrokePath(a.Canvas, pen.Segment(x, a.Min.Y, x, a.Max.Y), 0.6, grid)
	}
	sorted := slices.Clone(g.Tasks)
	slices.SortStableFunc(sorted, func(x, y Bar) int { return cmp.Compare(x.Start, y.Start) })
	lower := func(i int) float64 { return float64(len(sorted)-i) - 0.88 }
	upper := func(i int) float64 { return float64(len(sorted)-i) - 0.12 }
	var paths [2]vg.Path
	for i := range sorted {
		b := &sorted[i]
		kind := 0
		if b.Critical {
			kind = 1
		}
		right := max(a.x(b.End), a.x(b.Start)+0.8) // a task of a second is to be seen
		paths[kind] = pen.Rectangle(paths[kind], a.x(b.Start), a.y(lower(i)), right, a.y(upper(i)))
	}
	pen.FillPath(a.Canvas, paths[0], ours)
	pen.FillPath(a.Canvas, paths[1], refused)
	if len(sorted) > namedRows {
		return
	}
	for i := range sorted {
		b := &sorted[i]
		y := a.y((lower(i) + upper(i)) / 2)
		pen.Write(a.Canvas, vg.Point{X: a.Min.X - 4, Y: y}, tickYText, fitted(tickYText, b.Label, nameMargin-24))
		size := grouped(int64(b.NPE))
		if at := a.x(b.End) + 3; at+labelText.Width(size) < a.Max.X {
			pen.Write(a.Canvas, vg.Point{X: at, Y: y}, labelText, size)
		} else {
			pen.Write(a.Canvas, vg.Point{X: a.x(b.End) - 3, Y: y}, rightText, size)
		}
	}
}

// drawKeys explains the time axis and the colours.
func (g *Gantt) drawKeys(c draw.Canvas, span berth.Interval) {
	title := fmt.Sprintf("time in %s from now (second %s of the bookings' clock)", unitFor(span.Length()).name, grouped(int64(g.Now)))
	if len(g.Tasks) <= namedRows {
		title += "; beside a task the PEs it has"
	}
	pen.Write(c, vg.Point{X: c.Min.X, Y: c.Max.Y - 24}, labelText, title)
	y := c.Min.Y + 3
	x := key(c, c.Min.X, y, theirs, "booked by others") + 14
	x = key(c, x, y, ours, "tasks") + 14
	x = key(c, x, y, refused, "tasks of the critical path") + 14
	if g.Deadline != berth.Forever {
		words := "deadline, second " + grouped(int64(g.Deadline))
		if g.Deadline <= span.End {
			pen.StrokePath(c, pen.Segment(x, y-5, x, y+5), 1.2, ink)
		} else {
			words += ", beyond the chart"
		}
		pen.Write(c, vg.Point{X: x + 6, Y: y}, labelText, words)
	}
}
