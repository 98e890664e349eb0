package measure_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
)

// Of 200 jobs, one a second, where each waits 5 s and runs 20 s: the first
// two to end do not count, nor the 25 that end after the last arrival.
func TestSteadyState(t *testing.T) {
	var lines []berth.Line
	for i := range berth.Time(200) {
		start, end := i+5, i+25
		lines = append(lines, berth.Line{Kind: berth.KindJob, Arrival: i, Accepted: true, Start: &start, ActualEnd: &end})
	}
	lines = append(lines, berth.Line{Kind: berth.KindRequest, Arrival: 5000}, berth.Line{Kind: berth.KindJob, Arrival: 3})
	got := measure.SteadyState(lines, nil)
	if got.Jobs != 200-2-25 || *got.MeanWait != 5 || *got.MeanBoundedSlowdown != 1.25 {
		t.Errorf("%d jobs, wait %v, slowdown %v", got.Jobs, *got.MeanWait, *got.MeanBoundedSlowdown)
	}
	// What is dropped still is among the first hundredth.
	got = measure.SteadyState(lines, func(line int) bool { return line%2 == 0 })
	if got.Jobs != 86 {
		t.Errorf("%d jobs with every other one dropped", got.Jobs)
	}
	// A job of 2 s that waits 8 s is bounded by 10 s; one that waits none by 1.
	short := []berth.Line{lines[0], lines[199]}
	start, end := berth.Time(8), berth.Time(10)
	short[0].Start, short[0].ActualEnd = &start, &end
	if got = measure.SteadyState(short, nil); *got.MeanBoundedSlowdown != 1 {
		t.Errorf("slowdown %v, want 1", *got.MeanBoundedSlowdown)
	}
	if got = measure.SteadyState(nil, nil); got.Jobs != 0 || got.MeanWait != nil || got.MeanBoundedSlowdown != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
