package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// A promise that would be given up if it were not used is used in a simulation: the
// schedule is that without the limit, and nothing gets its PEs meanwhile.
func TestWhatStartsIsUsed(t *testing.T) {
	schedule := func(noShow berth.Duration, runs []berth.Duration) []berth.Line {
		t.Helper()
		requests := []berth.Request{
			berth.Rigid("a", 0, 10, 200, 4, 100),
			berth.Rigid("b", 1, 10, 400, 3, 100),
			berth.Rigid("c", 2, 10, 400, 2, 30),
		}
		requests[2].Arrival = 60
		requests[2].Ready = 60
		for i := range requests {
			requests[i].NoShow = noShow
		}
		config := engine.Config{Sites: sim.OnePool(4, berth.Late)}
		lines, err := sim.Replay(t.Context(), config, sim.Workload{Requests: requests, Runs: runs}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	for _, runs := range [][]berth.Duration{nil, {50, 0, 10}} {
		want := schedule(0, runs)
		if len(want) != 3 || !want[0].Accepted || *want[0].Start != 10 || *want[1].Start < 60 {
			t.Fatalf("without a limit: %+v", want)
		}
		if d := cmp.Diff(want, schedule(5, runs)); d != "" {
			t.Errorf("with a limit, runs %v (-want +got):\n%s", runs, d)
		}
	}
}
