package sim_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
)

// twoParts returns a request of two parts, of 10 s and of 20 s.
func twoParts(id string) berth.Request {
	r := berth.Rigid(id, 0, 0, 90, 1, 10)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 20}}})
	return r
}

// a ran to its end, b wanted more than it was given, of c's parts the shorter one
// is done first, d wanted more than both its parts, and e was stopped after 4 s
// of 9.
func TestWantedRuns(t *testing.T) {
	work := &sim.Workload{
		Requests: []berth.Request{
			berth.Job("a", 0, 1, 10), berth.Job("b", 0, 1, 10), twoParts("c"), twoParts("d"), berth.Job("e", 0, 1, 10),
		},
		Runs: []berth.Duration{8, 12, 20, 25, 9},
	}
	line := func(id string, d berth.Duration) berth.Line { return berth.Line{ID: id, Duration: d} }
	start, end := berth.Time(3), berth.Time(7)
	lines := []berth.Line{
		line("a", 10), line("b", 10), line("c", 10), line("c", 20), line("d", 10), line("d", 20), line("e", 6),
		{ID: "e/1", Kind: berth.KindBooking, Start: &start, End: &end},
	}
	want := []berth.Duration{8, 12, 10, 20, 25, 25, 5, 0}
	if diff := cmp.Diff(want, sim.WantedRuns(work, nil, berth.Each(lines))); diff != "" {
		t.Error(diff)
	}
	if got := sim.WantedRuns(&sim.Workload{Requests: work.Requests}, nil, berth.Each(lines)); got != nil {
		t.Error(got)
	}
	if got := sim.WantedRuns(&sim.Workload{Requests: work.Requests, Outages: slices.Values(make([]sim.Outage, 1))}, nil, berth.Each(lines)); len(got) != len(lines) || got[1] != 0 {
		t.Error(got)
	}
}
