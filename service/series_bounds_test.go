package service

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// What is remembered of series is bounded in bytes: the oldest go first, but for those that have something live, which
// go once that is over.
func TestSeriesAreBoundedInBytes(t *testing.T) {
	c, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}, "test", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	c.shows = true
	of := func(id string) *berth.Series {
		s := &berth.Series{ID: id, Least: 1, Request: berth.Rigid("", 0, 100, 200, 1, 100)}
		for i := range 1000 {
			s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: berth.Time(100 + 200*i), Deadline: berth.Time(200 + 200*i)})
		}
		return s
	}
	number := uint64(1)
	event := engine.SubmitSeries(of("live"))
	c.seal(c.apply(0, &event), &asked{})
	for i := range 600 {
		number++
		c.followSeries(0, &change.Change{Kind: change.SeriesRefused, Series: of(fmt.Sprint("s", i))}, number)
	}
	sum := int64(0)
	for _, s := range c.series.byID {
		sum += s.cost()
	}
	if sum != c.series.bytes || sum > keepSeries || len(c.series.order) != len(c.series.byID) || len(c.series.byID) < 200 {
		t.Errorf("%d bytes of %d are remembered, %d counted, of %d series, %d in order", sum, keepSeries, c.series.bytes, len(c.series.byID), len(c.series.order))
	}
	for id, want := range map[string]bool{"live": true, "s0": false, "s599": true} {
		if got := c.series.byID[id] != nil; got != want {
			t.Errorf("series %s is remembered: %t", id, got)
		}
	}
}
