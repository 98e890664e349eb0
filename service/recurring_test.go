package service

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// A recurring reservation of others is planned around up to the last thing promised, and at
// most mostReturns times.
func TestReturnsOfOthersAreBounded(t *testing.T) {
	const day = 24 * 3600
	e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		each     site.Period
		foreseen berth.Time // nothing that is asked for ends later
		want     int
		last     berth.Time
	}{
		{"", 3 * 365 * day, 1, 100},
		{site.Daily, 10*day + 100, 10, 9*day + 100},
		{site.Daily, 10*day + 101, 11, 10*day + 100},
		{site.Hourly, 3 * 365 * day, mostReturns, 100 + 3600*(mostReturns-1)},
	} {
		k := &keeper{foreseen: c.foreseen}
		b := &site.Booking{Name: "maint", Start: 100, End: 200, Repeat: site.Repeat{Each: c.each}}
		h := Host{core: &Core{engine: e}}
		n, last := 0, berth.Time(-1)
		takeAll(b.Occurrences(h.foreseen(k, c.foreseen.Add(foreseeAgain-foresight))), nil, func(berth.Time) string { return "" }, func(_ string, _ []site.Share, from, until berth.Time) {
			if until != from.Add(100) || from <= last {
				t.Fatalf("%q: return %d is from %d to %d, after %d", c.each, n, from, until, last)
			}
			n, last = n+1, from
		})
		if n != c.want || last != c.last || k.foreseen != c.foreseen {
			t.Errorf("%q until %d: %d returns, the last at %d; want %d, the last at %d", c.each, c.foreseen, n, last, c.want, c.last)
		}
	}
}
