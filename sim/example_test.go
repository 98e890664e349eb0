package sim_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// Three requests and a job on eight PEs; two of them fail from 100 to 210. The
// third request does not fit into its window; the job runs for a shorter time than
// its estimate.
func ExampleReplay() {
	config := engine.Config{Sites: sim.OnePool(8, berth.Early)}
	work := sim.Workload{
		Requests: []berth.Request{
			berth.Rigid("a", 0, 0, 300, 6, 100),
			berth.Rigid("b", 10, 50, 500, 8, 100),
			berth.Rigid("c", 20, 20, 200, 4, 100),
			berth.Job("j", 30, 2, 60),
		},
		Runs:    []berth.Duration{0, 0, 0, 20},
		Outages: slices.Values([]sim.Outage{{Resource: berth.PoolID(sim.DefaultSite, "pool"), PEs: berth.PEsOf(0, 1), From: 100, Until: 210}}),
	}
	lines, err := sim.Replay(context.Background(), config, work, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range lines {
		l := &lines[i]
		if l.Kind == berth.KindOutage {
			continue
		}
		if !l.Accepted {
			fmt.Println(l.ID, "is refused:", l.Reason)
			continue
		}
		fmt.Printf("%s has PEs %s from %d to %d", l.ID, l.PEs, *l.Start, *l.End)
		if l.ActualEnd != nil {
			fmt.Printf(", ended at %d", *l.ActualEnd)
		}
		for _, p := range l.MovedFrom {
			fmt.Printf(", was promised %d until %s", p.Start, p.Cause)
		}
		fmt.Println()
	}
	// Output:
	// a has PEs 0-5 from 0 to 100
	// b has PEs 0-7 from 210 to 310, was promised 100 until outage-1
	// c is refused: no_capacity
	// j has PEs 6-7 from 30 to 90, ended at 50
}
