package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// What is walked line by line is what there is as a whole, as often as one likes, and a
// line that was written to is as before the next time.
func TestLinesOneByOne(t *testing.T) {
	w := sim.Workload{
		Requests: []berth.Request{berth.Rigid("a", 0, 0, 90, 1, 10), twoParts("b"), berth.Rigid("c", 5, 5, 9, 9, 1), berth.Job("d", 6, 1, 20)},
		Outages: func(yield func(sim.Outage) bool) {
			yield(sim.Outage{Resource: berth.PoolID(sim.DefaultSite, "pool"), PEs: berth.PEsOf(0, 1, 2, 3), From: 3, Until: 50})
		},
		Flows: []sim.Flow{{Workflow: diamond("w", 100, 900, berth.RepairBoth)}},
	}
	config := engine.Config{Sites: sim.OnePool(4, berth.Early), Jobs: "easy"}
	want, err := sim.Replay(t.Context(), config, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := sim.Play(t.Context(), config, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := result.Schedule.Len(); n != 6 || len(want) != n+4 {
		t.Fatalf("%d lines of %d, want 6 and those of 4 tasks", n, len(want))
	}
	for range 2 {
		var got []berth.Line
		for line := range result.All() {
			got = append(got, *line)
			line.PoolPEs = 7
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
	for n := range want {
		seen := 0
		for range result.All() {
			if seen++; seen > n {
				break
			}
		}
		if seen != n+1 {
			t.Errorf("%d lines until the walk ended, want %d", seen, n+1)
		}
	}
	if result = new(sim.Result); result.Schedule.Len() != 0 || len(result.Schedule.Lines()) != 0 {
		t.Errorf("nothing became of nothing: %+v", result)
	}
}
