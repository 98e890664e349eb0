package plot

import (
	"fmt"
	"strconv"

	"github.com/berth-hpc/berth"
)

// tick is one mark of an axis.
type tick struct {
	at    int64 // seconds since the span's start, or a PE number
	label string
}

const day = 24 * hour

// timeUnit says in which unit the labels of an axis count, chosen from its
// length in seconds.
type timeUnit struct {
	name    string
	seconds int64
}

func unitFor(length berth.Duration) timeUnit {
	switch {
	case length <= 2*hour:
		return timeUnit{"minutes", 60}
	case length <= 4*day:
		return timeUnit{"hours", hour}
	default:
		return timeUnit{"days", day}
	}
}

// timeTicks marks an axis of the given length with at most 11 ticks at round
// numbers of its unit, from 0.
func timeTicks(length berth.Duration) []tick {
	unit := unitFor(length)
	steps := []int64{1, 2, 5, 10}
	if unit.seconds == hour {
		steps = []int64{1, 2, 3, 6, 12, 24}
	}
	step := roundStep(int64(length)/unit.seconds, 10, steps)
	var ticks []tick
	for n := int64(0); n*unit.seconds <= int64(length); n += step {
		ticks = append(ticks, tick{n * unit.seconds, grouped(n)})
	}
	return ticks
}

// peTicks marks 0 … pes, in quarters where they are whole.
func peTicks(pes berth.Count) []tick {
	step := int64(pes) / 4
	if pes%4 != 0 || pes < 8 {
		step = roundStep(int64(pes), 5, []int64{1, 2, 5, 10})
	}
	var ticks []tick
	for n := int64(0); n <= int64(pes); n += step {
		ticks = append(ticks, tick{n, grouped(n)})
	}
	return ticks
}

// roundStep returns the smallest of the steps, else of their tenfold series
// 1, 2, 5, 10, …, that divides length into at most most pieces.
func roundStep(length, most int64, steps []int64) int64 {
	for _, step := range steps {
		if length/step <= most {
			return step
		}
	}
	for decade := int64(10); ; decade *= 10 {
		for _, step := range []int64{1, 2, 5} {
			if length/(step*decade) <= most {
				return step * decade
			}
		}
	}
}

// grouped writes a count with commas between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// axisTitle says what the time axis counts, and where its 0 stands on the
// workload's own clock.
func axisTitle(span berth.Interval) string {
	title := unitFor(span.Length()).name + " since the first arrival"
	if span.Start != 0 {
		title += fmt.Sprintf(" (second %s of the workload's clock)", grouped(int64(span.Start)))
	}
	return title
}
