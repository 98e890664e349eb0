package place

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

func TestNthIsThatOfTheSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var times []berth.Time
		for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 40).Draw(t, "times") {
			times = append(times, berth.Time(n))
		}
		at := rapid.IntRange(0, len(times)-1).Draw(t, "at")
		sorted := slices.Sorted(slices.Values(times))
		if got := nth(times, at); got != sorted[at] {
			t.Fatalf("the %dth of %v is %d; want %d", at, sorted, got, sorted[at])
		}
	})
}
