package plot

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
)

// drawBars compares the shares, two bars a row.
func drawBars(c draw.Canvas, shares []Share) {
	pen.Write(c, vg.Point{X: c.Min.X + leftMargin, Y: c.Max.Y - headHeight + 5}, headText, "Accepted share")
	x := key(c, c.Max.X-150, c.Max.Y-headHeight+9, barOne, "of requests")
	key(c, x+10, c.Max.Y-headHeight+9, barTwo, "of PE-seconds")

	var widest vg.Length
	for _, share := range shares {
		widest = max(widest, labelText.Width(share.Title))
	}
	chart := draw.Crop(c, max(leftMargin, widest+8), -1, tickHeight, -headHeight)
	for percent := 0; percent <= 100; percent += 20 {
		x := chart.Min.X + (chart.Max.X-chart.Min.X)*vg.Length(percent)/100
		pen.StrokePath(c, pen.Segment(x, chart.Min.Y, x, chart.Max.Y), 0.6, grid)
		pen.Write(c, vg.Point{X: x, Y: chart.Min.Y - 4}, tickXText, fmt.Sprintf("%d %%", percent))
	}
	row := min((chart.Max.Y-chart.Min.Y)/vg.Length(len(shares)), 40)
	for i, share := range shares {
		middle := chart.Max.Y - (vg.Length(i)+0.5)*row
		pen.Write(c, vg.Point{X: chart.Min.X - 6, Y: middle}, rightText, share.Title)
		bar(chart, middle, middle+row*0.4, share.Requests, barOne, white)
		bar(chart, middle-row*0.4, middle, share.PESeconds, barTwo, ink)
	}
	pen.StrokePath(c, pen.Segment(chart.Min.X, chart.Min.Y, chart.Min.X, chart.Max.Y), 0.6, frame)
}

// bar draws one bar with its value in it, or beside it where it is short. A
// value needs room for its letters, so bars of very many rows bear none.
func bar(c draw.Canvas, bottom, top vg.Length, share float64, fill, letters color.Color) {
	end := c.Min.X + (c.Max.X-c.Min.X)*vg.Length(share)
	pen.FillRect(c, vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: bottom}, Max: vg.Point{X: end, Y: top}}, fill)
	if top-bottom < 5 {
		return
	}
	value := rightText
	value.Font.Size = min(9, top-bottom)
	at := vg.Point{X: end - 4, Y: (bottom + top) / 2}
	if share < 0.15 {
		value.XAlign, at.X, letters = labelText.XAlign, end+4, ink
	}
	value.Color = letters
	pen.Write(c, at, value, fmt.Sprintf("%.1f %%", 100*share))
}

// drawLegend explains the time axis and the colours below the panels.
func drawLegend(c draw.Canvas, span berth.Interval) {
	pen.Write(c, vg.Point{X: c.Min.X + leftMargin, Y: c.Max.Y - 14}, labelText, "time in "+axisTitle(span))
	y := c.Min.Y + 6
	words := "waited after ready:"
	x := c.Min.X + leftMargin
	pen.Write(c, vg.Point{X: x, Y: y}, labelText, words)
	x += labelText.Width(words) + 8
	for _, class := range waits {
		x = key(c, x, y, class.fill, class.label) + 12
	}
	key(c, x+12, y, refused, "refused demand (PEs, from ready)")
}

// key draws one entry of a legend and returns where it ends.
func key(c draw.Canvas, x, y vg.Length, fill color.Color, words string) vg.Length {
	pen.FillRect(c, vg.Rectangle{Min: vg.Point{X: x, Y: y - 4}, Max: vg.Point{X: x + 12, Y: y + 4}}, fill)
	pen.Write(c, vg.Point{X: x + 16, Y: y}, labelText, words)
	return x + 16 + labelText.Width(words)
}
