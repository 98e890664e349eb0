package forecast

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// Sample is one measurement.
type Sample struct {
	At    berth.Time
	Value float64
}

// Series is values at regular times: Values[i] is the mean over
// [Start + i·Period, Start + (i+1)·Period), except that the periods of a break,
// in which nothing was measured for long, are left out of the count.
type Series struct {
	Start  berth.Time
	End    berth.Time // when the last period is over; Start if there is none
	Period berth.Duration
	Values []float64
	// Breaks are the indices of values before which there was a break.
	Breaks []int
	// Held counts the values that repeat the one before, for want of any.
	Held int
}

// Resample brings measurements, in order of time, to regular periods. A period
// has the mean of its measurements. One without any repeats the period before,
// for a later measurement was not known then; more than gap such periods in a row
// are a break: they are dropped, and the values behind follow those before.
// Periods are counted anew from each break's end. Errors, of code Invalid, are
// of field period, gap or at. Cost: O(len(samples) + values).
func Resample(samples []Sample, period berth.Duration, gap int) (Series, error) {
	switch {
	case period < 1:
		return Series{}, berth.Errorf(berth.Invalid, "period", "%d s; want at least 1 s", period)
	case gap < 0:
		return Series{}, berth.Errorf(berth.Invalid, "gap", "%d; want at least 0 periods", gap)
	}
	series := Series{Period: period}
	var start berth.Time // of the period at hand
	sum, n := 0.0, 0
	flush := func() {
		if n > 0 {
			series.Values = append(series.Values, sum/float64(n))
		}
		sum, n = 0, 0
	}
	for i, s := range samples {
		switch {
		case !s.At.Valid():
			return Series{}, berth.Errorf(berth.Invalid, "at", "measurement %d at %d; want a time below 2^42 in size", i+1, s.At)
		case i == 0:
			start, series.Start = s.At, s.At
		case s.At < samples[i-1].At:
			return Series{}, berth.Errorf(berth.Invalid, "at", "measurement %d at %d is before the one at %d; want them in order of time", i+1, s.At, samples[i-1].At)
		}
		if passed := s.At.Sub(start) / period; passed > 0 {
			flush()
			if passed-1 > berth.Duration(gap) {
				series.Breaks = append(series.Breaks, len(series.Values))
				start = s.At
			} else {
				for range passed - 1 {
					series.Values = append(series.Values, series.Values[len(series.Values)-1])
					series.Held++
				}
				start = start.Add(passed * period)
			}
		}
		sum += s.Value
		n++
	}
	flush()
	if len(samples) > 0 {
		series.End = start.Add(period)
	}
	return series, nil
}

// Spacing returns the median distance of neighbouring measurements of different
// times, rounded to seconds; 0 if there are no two.
func Spacing(samples []Sample) berth.Duration {
	var steps []berth.Duration
	for i := 1; i < len(samples); i++ {
		if d := samples[i].At.Sub(samples[i-1].At); d > 0 {
			steps = append(steps, d)
		}
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}
