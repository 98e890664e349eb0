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
