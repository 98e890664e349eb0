package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/sim"
)

// drawFlows draws requests and workflows for two sites whose nodes fail often.
func drawFlows(seed uint64) (sim.Workload, []berth.Site) {
	draw := stream.New(seed, "flow schedules").Rand()
	sites := []berth.Site{
		{Name: "a", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 16}, {Name: "q", PEs: 12, Speed: 1500}}},
		{Name: "b", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 8}}},
	}
	binding := []berth.Binding{berth.Late, berth.Late, berth.Early}[seed%3]
	var pools []berth.ResourceID
	for i := range sites {
		for k := range sites[i].Pools {
			sites[i].Pools[k].Binding = binding
			pools = append(pools, berth.PoolID(sites[i].Name, sites[i].Pools[k].Name))
		}
	}
	w := sim.Workload{}
	at := berth.Time(0)
	for i := range 120 {
		at += berth.Time(draw.IntN(40))
		npe, d, ready := berth.Count(1+draw.IntN(8)), berth.Duration(1+draw.IntN(400)), at+berth.Time(draw.IntN(900))
		r := berth.Rigid(fmt.Sprint("r", i), at, ready, ready.Add(3*d), npe, d)
		if draw.IntN(4) == 0 {
			r = berth.Job(fmt.Sprint("j", i), at, npe, d)
		}
		w.Requests, w.Runs = append(w.Requests, r), append(w.Runs, 1+berth.Duration(draw.IntN(int(d)*5/4)))
	}
	for i := range 30 {
		f := sim.Flow{Workflow: diamond(fmt.Sprint("w", i), berth.Time(i*70), berth.Time(i*70+700+draw.IntN(1500)), berth.Repairs()[draw.IntN(3)])}
		for k := range f.Workflow.Tasks {
			f.Workflow.Tasks[k].Alpha = .1
			f.Factors, f.Fails = append(f.Factors, .3+1.3*draw.Float64()), append(f.Fails, draw.IntN(10)/7)
		}
		w.Flows = append(w.Flows, f)
	}
	var outages []sim.Outage
	free := map[berth.ResourceID]berth.Time{}
	for from := berth.Time(200); from < 3000; from += 1 + berth.Time(draw.IntN(200)) {
		pool := pools[draw.IntN(len(pools))]
		if first := berth.PE(4 * draw.IntN(2)); free[pool] <= from {
			until := from + 1 + berth.Time(draw.IntN(500))
			free[pool] = until + 1
			outages = append(outages, sim.Outage{Resource: pool, PEs: berth.PEsOf(first, first+1, first+2, first+3), From: from, Until: until})
		}
	}
	w.Outages = slices.Values(outages)
	return w, sites
}

// The validator accepts schedules with workflows where nodes fail: where their tasks were planned before says
// which PEs were free when a promise had to move.
func TestSchedulesOfWorkflowsPassCheck(t *testing.T) {
	replanned, moved, given, extended := 0, 0, 0, 0
	for seed := range uint64(80) {
		w, sites := drawFlows(seed)
		config := engine.Config{Sites: sites, Jobs: "easy"}
		if seed%4 == 1 {
			config.Overrun = engine.OverrunRunOn
		}
		result, err := sim.Play(t.Context(), config, w, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		lines := append(result.Schedule.Lines(), result.Tasks...)
		for _, v := range checked(t, lines, check.Against(sites, 0)).Violations {
			t.Errorf("seed %d: %v", seed, v)
		}
		for i := range lines {
			l := &lines[i]
			replanned, moved = replanned+len(l.ReplannedFrom), moved+len(l.MovedFrom)
			if l.Task != "" && !l.Accepted {
				given++
			}
			if l.Task != "" && l.Limit != nil {
				extended++
			}
		}
	}
	if replanned < 500 || moved < 100 || given < 10 || extended < 10 {
		t.Errorf("%d places planned otherwise, %d moved, %d tasks given up, %d extended; that is too little to tell", replanned, moved, given, extended)
	}
}
