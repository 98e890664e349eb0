package workload

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// The steps are what counting second by second gives.
func TestLoadAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var steps load
		var booked [60]int64
		for range rapid.IntRange(0, 15).Draw(t, "bookings") {
			start := rapid.IntRange(5, 45).Draw(t, "start")
			end := start + rapid.IntRange(1, 10).Draw(t, "length")
			npe := rapid.IntRange(1, 5).Draw(t, "npe")
			steps.add(berth.Time(start), berth.Time(end), berth.Count(npe))
			for s := start; s < end; s++ {
				booked[s] += int64(npe)
			}
		}
		for start := range booked {
			most := int64(0)
			for end := start + 1; end < len(booked); end++ {
				most = max(most, booked[end-1])
				if got := steps.peak(berth.Time(start), berth.Time(end)); got != most {
					t.Fatalf("at most %d booked during [%d,%d), want %d", got, start, end, most)
				}
			}
		}
	})
}
