// Package plot draws finished schedules: PEs over time, one panel for each
// run, and bars that compare what the runs accepted. The same figure gives the
// same bytes. It computes no measures beyond what it draws and decides nothing.
package plot

import (
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
)

// Run is one schedule of a figure.
type Run struct {
	Title string // for example "pe-worst" or "pe-worst, late"
	// Lines are the run's schedule in any order, which is gone through several times. Only
	// lines of kind request are drawn, an accepted one as its reserved rectangle.
	Lines iter.Seq[*berth.Line]
}

// Figure is what to draw. With one run it is one large panel; with several it
// is a grid of panels over a common time axis, and a last one with bars.
type Figure struct {
	Title string
	PEs   berth.Count // the machine's size; every panel's height
	Runs  []Run
	// Shares are the bars. If nil they are counted from Runs, which is what to
	// do unless the runs shown are only some of those that were measured.
	Shares []Share
}

// Share is one row of the comparison: which part of the requests, and of
// their PE-seconds, was accepted. Both are fractions from 0 to 1.
type Share struct {
	Title     string
	Requests  float64
	PESeconds float64
}

// Formats lists the endings Write understands, without the dot.
func Formats() []string { return []string{"svg", "png"} }

// FormatOf returns the format that a file's ending asks for, and false if it is
// not one of Formats.
func FormatOf(name string) (format string, ok bool) {
	format = strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
	return format, slices.Contains(Formats(), format)
}

// pngDPI makes letters of the smallest size in use legible on a screen.
const pngDPI = 144

// encode writes what draw draws in one of Formats.
func encode(w io.Writer, format string, width, height vg.Length, do func(draw.Canvas)) error {
	switch format {
	case "svg":
		canvas := vgsvg.New(width, height)
		do(draw.New(canvas))
		_, err := canvas.WriteTo(w)
		return err
	case "png":
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
		do(draw.New(canvas))
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	}
	return berth.Errorf(berth.Invalid, "format", "%q is not one of %s", format, strings.Join(Formats(), ", "))
}

// Write writes the figure in one of Formats. Above some thousand rectangles a
// panel shows the load over time in place of single reservations, so both the
// time taken and the size of the file stay bounded: O(lines) and about 1 MB.
func Write(w io.Writer, format string, figure Figure) error {
	if figure.PEs < 1 {
		return berth.Errorf(berth.Invalid, "pes", "%d; a figure needs a machine of at least 1 PE", figure.PEs)
	}
	if len(figure.Runs) == 0 {
		return berth.Errorf(berth.Invalid, "runs", "none; a figure needs at least one run")
	}
	width, height := figure.size()
	return encode(w, format, width, height, figure.draw)
}

// The figure's measures.
const (
	margin       vg.Length = 18
	titleHeight  vg.Length = 34
	legendHeight vg.Length = 46
	gap          vg.Length = 22 // between panels

	loneWidth   vg.Length = 900
	loneHeight  vg.Length = 400
	panelWidth  vg.Length = 500
	panelHeight vg.Length = 215

	columns = 2
)

// size returns the canvas a figure needs.
func (f *Figure) size() (width, height vg.Length) {
	if len(f.Runs) == 1 {
		return loneWidth + 2*margin, titleHeight + loneHeight + legendHeight + 2*margin
	}
	rows := vg.Length(f.rows())
	width = columns*panelWidth + (columns-1)*gap + 2*margin
	height = titleHeight + rows*panelHeight + (rows-1)*gap + legendHeight + 2*margin
	return width, height
}

// rows counts the rows of the grid: the runs and the bars.
func (f *Figure) rows() int { return (len(f.Runs) + 1 + columns - 1) / columns }

// draw lays the figure out on a canvas of the right size.
func (f *Figure) draw(c draw.Canvas) {
	pen.FillRect(c, c.Rectangle, white)
	inner := draw.Crop(c, margin, -margin, margin, -margin)

	pen.Write(inner, vg.Point{X: inner.Min.X, Y: inner.Max.Y}, titleText, f.Title)

	span := spanOf(f.Runs)
	body := draw.Crop(inner, 0, 0, legendHeight, -titleHeight)
	drawLegend(draw.Crop(inner, 0, 0, 0, -(inner.Max.Y-inner.Min.Y-legendHeight)), span)

	if len(f.Runs) == 1 {
		drawPanel(body, f.PEs, span, &f.Runs[0], loneRectangles, false)
		return
	}
	for i := range f.Runs {
		drawPanel(cell(body, i), f.PEs, span, &f.Runs[i], panelRectangles, true)
	}
	drawBars(cell(body, len(f.Runs)), f.shares())
}

// cell returns the part of the grid that panel i has, row by row from the top.
func cell(body draw.Canvas, i int) draw.Canvas {
	left := body.Min.X + vg.Length(i%columns)*(panelWidth+gap)
	top := body.Max.Y - vg.Length(i/columns)*(panelHeight+gap)
	return draw.Canvas{Canvas: body.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: left, Y: top - panelHeight},
		Max: vg.Point{X: left + panelWidth, Y: top},
	}}
}

// shares returns the rows of the bars.
func (f *Figure) shares() []Share {
	if f.Shares != nil {
		return f.Shares
	}
	shares := make([]Share, len(f.Runs))
	for i := range f.Runs {
		sum := summarise(f.Runs[i].Lines)
		shares[i] = Share{
			Title:     f.Runs[i].Title,
			Requests:  fraction(int64(sum.accepted), int64(sum.requests)),
			PESeconds: fraction(sum.acceptedArea, sum.requestedArea),
		}
	}
	return shares
}
