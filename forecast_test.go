package berth_test

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// The more there is to move, the longer it takes, however long that is.
func TestForecastOfALinkAlmostAtRest(t *testing.T) {
	f := &berth.Forecast{From: 0, Period: 1 << 20, Kilobytes: []int64{1, 2}}
	before := berth.Duration(0)
	for kilobytes := int64(1); kilobytes <= 1000*berth.MaxMegabytes; kilobytes *= 2 {
		takes := f.Takes(0, kilobytes)
		if takes < before || takes < 1<<20 {
			t.Fatalf("%d kB take %d s, half of it %d s", kilobytes, takes, before)
		}
		before = takes
	}
	if before != berth.Endless {
		t.Errorf("the most take %d s", before)
	}
}

// What a link moves grows by at most 2^42 kB in a period, whatever it has moved before.
func TestAForecastGrowsByAtMostSoMuch(t *testing.T) {
	const most = int64(1) << 42
	for _, c := range []struct {
		kilobytes []int64
		right     bool
	}{
		{[]int64{most, 2 * most, 2 * most, 3 * most}, true},
		{[]int64{most + 1}, false},
		{[]int64{most, 2*most + 1}, false},
		{[]int64{most, most - 1}, false},
		{[]int64{-1}, false},
	} {
		f := &berth.Forecast{Period: 60, Kilobytes: c.kilobytes}
		if err := f.Validate(); (err == nil) != c.right {
			t.Errorf("%d: %v", c.kilobytes, err)
		}
	}
}
