package plot

import (
	"image/color"

	"gonum.org/v1/plot/text"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/pen"
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
	{berth.Endless, "longer", color.NRGBA{R: 0x08, G: 0x25, B: 0x5c, A: 0xff}},
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

// The kinds of text.
var (
	titleText  = pen.Style(15, true, ink, text.XLeft, text.YTop)
	headText   = pen.Style(11, true, ink, text.XLeft, text.YBottom)
	factText   = pen.Style(9, false, faint, text.XRight, text.YBottom)
	tickXText  = pen.Style(9, false, faint, text.XCenter, text.YTop)
	tickYText  = pen.Style(9, false, faint, text.XRight, text.YCenter)
	labelText  = pen.Style(9, false, ink, text.XLeft, text.YCenter)
	rightText  = pen.Style(9, false, ink, text.XRight, text.YCenter)
	axisYText  = pen.Turned(pen.Style(9, false, ink, text.XCenter, text.YCenter))
	noticeText = pen.Style(11, false, faint, text.XCenter, text.YCenter)
)
