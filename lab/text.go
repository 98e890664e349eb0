package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/measure"
)

// nothing stands where there is no figure.
const nothing = "–"

// Text writes a value of the figure for people.
func (f *Figure) Text(v float64) string {
	if math.IsNaN(v) {
		return nothing
	}
	switch f.Unit {
	case Share:
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	case Ratio:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case Seconds:
		return clock(v)
	case Hash:
		return fmt.Sprintf("%0*x", hashDigits, uint64(v))
	}
	return grouped(v)
}

// Spread writes an estimate of the figure as mean ± half its interval.
func (f *Figure) Spread(e measure.Estimate) string {
	if e.Mean == nil {
		return nothing
	}
	return f.Text(*e.Mean) + f.half(e, f.Text)
}

// Change writes an estimate of a difference, with its sign; that of shares in
// percentage points.
func (f *Figure) Change(e measure.Estimate) string {
	if e.Mean == nil {
		return nothing
	}
	text := f.Text
	if f.Unit == Share {
		text = func(v float64) string { return strconv.FormatFloat(100*v, 'f', 2, 64) }
	}
	sign, mean := "+", text(math.Abs(*e.Mean))
	switch {
	case mean == text(0):
		sign = ""
	case *e.Mean < 0:
		sign = "−"
	}
	return sign + mean + f.half(e, text)
}

func (f *Figure) half(e measure.Estimate, text func(float64) string) string {
	if e.CI95 == nil {
		return ""
	}
	half := text((e.CI95[1] - e.CI95[0]) / 2)
	return " ± " + strings.TrimSuffix(half, " %")
}

// ChangeUnit says in what Change counts, where the number does not.
func (f *Figure) ChangeUnit() string {
	if f.Unit == Share {
		return "points"
	}
	return ""
}

// clock writes seconds as [D-]HH:MM:SS, with a minus in front below 0.
func clock(x float64) string {
	sign, seconds := "", int64(math.Abs(x)+0.5)
	if x < 0 && seconds > 0 {
		sign = "−"
	}
	days := ""
	if seconds >= 86_400 {
		days = fmt.Sprintf("%d-", seconds/86_400)
		seconds %= 86_400
	}
	return fmt.Sprintf("%s%s%02d:%02d:%02d", sign, days, seconds/3600, seconds/60%60, seconds%60)
}

// grouped writes a count, with one decimal if it is a mean, and a thin gap
// between thousands.
func grouped(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	text, _ = strings.CutSuffix(text, ".0")
	whole, decimals, _ := strings.Cut(text, ".")
	if decimals != "" {
		decimals = "." + decimals
	}
	head := len(whole) % 3
	if strings.HasPrefix(whole, "-") {
		head = 1 + (len(whole)-1)%3
	}
	out := whole[:head]
	for i := head; i < len(whole); i += 3 {
		if out != "" && out != "-" {
			out += "\u202f"
		}
		out += whole[i : i+3]
	}
	return out + decimals
}
