package reproduce

import (
	"math"
	"slices"
	"time"
)

// How long the same work is timed.
const (
	// timedAtOnce is the least that one look at the clock is about. Some clocks tick a
	// thousand times a second.
	timedAtOnce = time.Millisecond
	// timedEnough ends it however much the times differ.
	timedEnough = 50 * time.Millisecond
	// timedLooks is the least number of times: the least and the greatest of six are a 95 % interval
	// of their median.
	timedLooks = 6
	// timedWithin is how wide that interval may be, as a part of the median.
	timedWithin = 0.05
)

// middleOf returns the median of how long a piece of work takes, in milliseconds. took does
// it a number of times and returns how long they took together. It is asked until the 95 %
// interval of the median is at most 5 % wide, or the work took 50 ms in all; so work of
// more than 50 ms is done once.
func middleOf(took func(runs int) time.Duration) float64 {
	runs, first, spent := 1, took(1), time.Duration(0)
	for first < timedAtOnce {
		spent += first
		runs *= 2
		first = took(runs)
	}
	each := []float64{first.Seconds()}
	for spent += first; spent < timedEnough && !middleKnown(each); {
		t := took(runs)
		spent += t
		each = append(each, t.Seconds())
	}
	slices.Sort(each)
	middle := (each[(len(each)-1)/2] + each[len(each)/2]) / 2
	if each[0] == 0 { // the clock ticks too seldom for a median
		sum := 0.0
		for _, t := range each {
			sum += t
		}
		middle = sum / float64(len(each))
	}
	return middle * 1000 / float64(runs)
}

// middleKnown reports whether the median of times is known well enough: by the binomial
// distribution, as the normal one has it.
func middleKnown(times []float64) bool {
	n := len(times)
	if n < timedLooks {
		return false
	}
	sorted := slices.Sorted(slices.Values(times))
	low := max(0, int(math.Floor((float64(n)-1.96*math.Sqrt(float64(n)))/2)))
	return sorted[0] > 0 && sorted[n-1-low]-sorted[low] <= timedWithin*sorted[n/2]
}
