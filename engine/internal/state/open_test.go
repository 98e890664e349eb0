package state

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// An open series that is read has something left to be asked for, and has come to where it can have come.
func TestOpenSeriesThatAreReadAreWellFormed(t *testing.T) {
	series := func() *berth.Series {
		s := &berth.Series{ID: "s", Least: 1, Ahead: 100, Request: berth.Rigid("", 0, 0, 1, 1, 10)}
		for i := range berth.Time(4) {
			s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: 100 * i, Deadline: 100*i + 10})
		}
		return s
	}
	for name, c := range map[string]struct {
		change func(o *savedOpen)
		sound  bool
	}{
		"as it is":               {func(*savedOpen) {}, true},
		"some wait":              {func(o *savedOpen) { o.Progress.Waiting, o.Progress.Again = []int{1, 2}, 60 }, true},
		"one is skipped":         {func(o *savedOpen) { o.Progress.Skipped = []int{4} }, true},
		"without itself":         {func(o *savedOpen) { o.Series = nil }, false},
		"without progress":       {func(o *savedOpen) { o.Progress = nil }, false},
		"not open":               {func(o *savedOpen) { o.Series.Ahead = 0 }, false},
		"a mistaken one":         {func(o *savedOpen) { o.Series.Least = 9 }, false},
		"over":                   {func(o *savedOpen) { o.Progress.Decided = 4 }, false},
		"of another":             {func(o *savedOpen) { o.Progress.Series = "t" }, false},
		"beyond its last":        {func(o *savedOpen) { o.Progress.Last = 5 }, false},
		"waiting before a turn":  {func(o *savedOpen) { o.Progress.Waiting = []int{3} }, false},
		"waiting twice":          {func(o *savedOpen) { o.Progress.Waiting = []int{1, 1} }, false},
		"the next is skipped":    {func(o *savedOpen) { o.Progress.Skipped = []int{3} }, false},
		"skipped behind the end": {func(o *savedOpen) { o.Progress.Skipped = []int{5} }, false},
		"again never":            {func(o *savedOpen) { o.Progress.Again = berth.Forever }, false},
	} {
		o := savedOpen{Series: series(), Number: 1, Progress: &berth.Progress{Series: "s", Decided: 2, Last: 4}}
		c.change(&o)
		s, err := Restore(smallConfig(), encodeSaved(&saved{Submitted: 2, Open: []savedOpen{o}}))
		if (err == nil) != c.sound {
			t.Errorf("%s: error %v; want none: %t", name, err, c.sound)
		}
		if err == nil && (s.OpenSeries("s") == nil || !s.IsAwaited("s.4") == (name != "one is skipped")) {
			t.Errorf("%s: it is not there as it was", name)
		}
	}
	o := savedOpen{Series: series(), Number: 1, Progress: &berth.Progress{Series: "s", Decided: 2, Last: 4}}
	again := o
	again.Number = 2
	if _, err := Restore(smallConfig(), encodeSaved(&saved{Open: []savedOpen{o, again}})); err == nil {
		t.Error("one is there twice")
	}
}
