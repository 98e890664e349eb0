package workflow

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// Among plans the earliest end is taken that costs at most a quarter more than the fewest CPU-hours, or one that is cheaper and ends at most a
// hundredth later; plans that end too late are none if another is in time.
func TestEarliestOfPlans(t *testing.T) {
	for _, c := range []struct {
		turnaround []berth.Duration
		cost       []int64
		most       berth.Duration
		want       int
	}{
		{[]berth.Duration{1000, 500}, []int64{100, 125}, berth.Endless, 1}, // sooner, at a quarter more
		{[]berth.Duration{1000, 500}, []int64{100, 126}, berth.Endless, 0}, // at more than that
		{[]berth.Duration{1010, 1000}, []int64{100, 110}, berth.Endless, 0},
		{[]berth.Duration{1011, 1000}, []int64{100, 110}, berth.Endless, 1},
		{[]berth.Duration{1010, 1000}, []int64{100, 110}, 1005, 1}, // the cheaper one is too late
		{[]berth.Duration{1000, 500}, []int64{100, 400}, 600, 1},
		{[]berth.Duration{1000, 500}, []int64{100, 400}, 400, 0},                        // both are
		{[]berth.Duration{963, 929, 1100}, []int64{2105, 2569, 2000}, berth.Endless, 0}, // the second is too dear beside the third
		{[]berth.Duration{963, 929, 1100}, []int64{2105, 2569, 2000}, 963, 0},           // and still is where the third is too late
		{[]berth.Duration{963, 929, 1100}, []int64{2105, 2569, 2000}, 940, 1},
		{[]berth.Duration{700, 700}, []int64{100, 100}, berth.Endless, 0},
	} {
		var plans []Plan
		for i := range c.turnaround {
			plans = append(plans, Plan{Turnaround: c.turnaround[i], CPUSeconds: c.cost[i], Lambda: i})
		}
		if got := earliest(plans, c.most).Lambda; got != c.want {
			t.Errorf("%v for %v by %d: plan %d, want %d", c.turnaround, c.cost, c.most, got, c.want)
		}
	}
}
