package plot

import (
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
)

// Outlook is a series of measurements and what is expected of it.
type Outlook struct {
	Title  string
	Unit   string // of the values; title of the vertical axis
	Period berth.Duration
	Past   []float64 // one a period, the last one just over
	Ahead  []Band    // the periods to come
}

// Band is the forecast of one period with its bounds.
type Band struct{ Mean, Low, High float64 }

// bandFill is a pale form of the orange of the forecast.
var bandFill = color.NRGBA{R: 0xfb, G: 0xe6, B: 0xc2, A: 0xff}

// The outlook's measures.
const (
	outlookWidth  vg.Length = 760
	outlookHeight vg.Length = 380
	outlookLeft   vg.Length = 62
	outlookFoot   vg.Length = 52
)

// WriteOutlook writes the figure in one of Formats. All values must be finite.
// Cost: O(len(Past) + len(Ahead)).
func WriteOutlook(w io.Writer, format string, o Outlook) error {
	if len(o.Past)+len(o.Ahead) == 0 || o.Period < 1 {
		return berth.Errorf(berth.Invalid, "series", "nothing to draw; want at least one value, and a period of at least 1 s")
	}
	return encode(w, format, outlookWidth, outlookHeight, o.draw)
}

// span returns the least and greatest value, rounded outwards to multiples of a
// step that gives at most eight marks; 0 is shown if no value is negative.
func (o *Outlook) span() (bottom, top, step float64) {
	bottom, top = math.Inf(1), math.Inf(-1)
	for _, v := range o.Past {
		bottom, top = min(bottom, v), max(top, v)
	}
	for _, b := range o.Ahead {
		bottom, top = min(bottom, b.Low), max(top, b.High)
	}
	if bottom >= 0 && bottom < top/2 {
		bottom = 0
	}
	if top-bottom <= 1e-9*math.Abs(top) {
		bottom, top = bottom-max(1, math.Abs(bottom)/10), top+max(1, math.Abs(top)/10)
	}
	step = math.Pow(10, math.Floor(math.Log10((top-bottom)/8)))
	for _, digit := range []float64{1, 2, 5, 10} {
		if (top-bottom)/(digit*step) <= 8 {
			step *= digit
			break
		}
	}
	return step * math.Floor(bottom/step), step * math.Ceil(top/step), step
}

func (o *Outlook) draw(c draw.Canvas) {
	pen.FillRect(c, c.Rectangle, white)
	pen.Write(c, vg.Point{X: c.Min.X + margin, Y: c.Max.Y - margin}, titleText, o.Title)
	area := draw.Crop(c, margin+outlookLeft, -margin, margin+outlookFoot, -margin-titleHeight)
	bottom, top, step := o.span()
	length := berth.Duration(len(o.Past)+len(o.Ahead)) * o.Period
	x := func(periods float64) vg.Length {
		return area.Min.X + (area.Max.X-area.Min.X)*vg.Length(periods/float64(len(o.Past)+len(o.Ahead)))
	}
	y := func(v float64) vg.Length {
		return area.Min.Y + (area.Max.Y-area.Min.Y)*vg.Length((v-bottom)/(top-bottom))
	}

	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	for i := 0; bottom+float64(i)*step <= top+step/2; i++ {
		v := bottom + float64(i)*step
		pen.StrokePath(c, pen.Segment(area.Min.X, y(v), area.Max.X, y(v)), 0.7, grid)
		label := strconv.FormatFloat(v, 'f', decimals, 64)
		if len(label) > 8 {
			label = strconv.FormatFloat(v, 'g', 4, 64)
		}
		pen.Write(c, vg.Point{X: area.Min.X - 5, Y: y(v)}, tickYText, label)
	}
	for _, t := range timeTicks(length) {
		at := x(float64(t.at) / float64(o.Period))
		pen.StrokePath(c, pen.Segment(at, area.Min.Y, at, area.Min.Y-4), 0.7, frame)
		pen.Write(c, vg.Point{X: at, Y: area.Min.Y - 6}, tickXText, t.label)
	}
	pen.Write(c, vg.Point{X: c.Min.X + margin + 6, Y: (area.Min.Y + area.Max.Y) / 2}, axisYText, o.Unit)
	pen.Write(c, vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: area.Min.Y - 20}, tickXText, unitFor(length).name)

	// A value stands in the middle of its period.
	var band, past, ahead vg.Path
	n := float64(len(o.Past))
	for i, b := range o.Ahead {
		band = extend(band, x(n+float64(i)+0.5), y(b.High))
	}
	for i, b := range slices.Backward(o.Ahead) {
		band = extend(band, x(n+float64(i)+0.5), y(b.Low))
	}
	if len(band) > 0 {
		band.Close()
	}
	for i, v := range o.Past {
		past = extend(past, x(float64(i)+0.5), y(v))
	}
	if len(o.Past) > 0 {
		ahead = extend(ahead, x(n-0.5), y(o.Past[len(o.Past)-1]))
	}
	for i, b := range o.Ahead {
		ahead = extend(ahead, x(n+float64(i)+0.5), y(b.Mean))
	}
	pen.FillPath(c, band, bandFill)
	pen.StrokePath(c, ahead, 1.6, refused)
	pen.StrokePath(c, past, 1.1, barOne)
	box := pen.Rectangle(nil, area.Min.X, area.Min.Y, area.Max.X, area.Max.Y)
	pen.StrokePath(c, box, 0.7, frame)

	at := vg.Point{X: area.Min.X, Y: c.Min.Y + margin}
	for _, key := range []struct {
		words string
		line  color.Color
	}{{"measured", barOne}, {"forecast", refused}, {"bounds", bandFill}} {
		pen.FillRect(c, vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - 3}, Max: vg.Point{X: at.X + 18, Y: at.Y + 3}}, key.line)
		pen.Write(c, vg.Point{X: at.X + 24, Y: at.Y}, labelText, key.words)
		at.X += 96
	}
}

// extend appends a point to a line, or begins it.
func extend(path vg.Path, x, y vg.Length) vg.Path {
	if len(path) == 0 {
		path.Move(vg.Point{X: x, Y: y})
	} else {
		path.Line(vg.Point{X: x, Y: y})
	}
	return path
}
