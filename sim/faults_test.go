package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// two is a machine of two pools, one twice as fast as the other.
func two(speed berth.Speed) []berth.Site {
	return []berth.Site{{Name: "s", Pools: []berth.Pool{
		{Name: "a", PEs: 4, Binding: berth.Early}, {Name: "b", PEs: 4, Binding: berth.Early, Speed: speed},
	}}}
}

// Of two parts the first is over when an outage takes the second one's PEs.
func TestFailureOfThePartThatStillRuns(t *testing.T) {
	r := berth.Rigid("r", 0, 0, 50, 4, 2)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 4, Duration: 10}}})
	w := sim.Workload{Requests: []berth.Request{r}}
	var down []sim.Outage
	for _, pool := range []string{"a", "b"} {
		down = append(down, sim.Outage{Resource: berth.PoolID("s", pool), PEs: berth.PEsOf(0, 1, 2, 3), From: 5, Until: 9})
	}
	w.Outages = slices.Values(down)
	lines := replay(t, engine.Config{Sites: two(0)}, w)
	if lines[0].ActualEnd != nil || lines[1].ActualEnd == nil || *lines[1].ActualEnd != 5 {
		t.Errorf("the first part ended at 2, the second one failed at 5:\n%+v\n%+v", lines[0], lines[1])
	}
}

// What takes 100 s on a standard PE takes 50 on one that is twice as fast.
func TestRunsAreScaled(t *testing.T) {
	sites := two(2000)
	sites[0].Pools = sites[0].Pools[1:]
	w := sim.Workload{Requests: []berth.Request{berth.Job("j", 0, 4, 120)}, Runs: []berth.Duration{100}}
	for _, overrun := range []engine.Overrun{engine.OverrunKill, engine.OverrunRunOn} {
		lines := replay(t, engine.Config{Sites: sites, Overrun: overrun}, w)
		if *lines[0].End != 60 || *lines[0].ActualEnd != 50 {
			t.Errorf("%s: given until %d, ended at %d; want 60 and 50", overrun, *lines[0].End, *lines[0].ActualEnd)
		}
	}
}

// Without run times everything ends at its limit, whatever overruns may do.
func TestNothingOverrunsWithoutRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	lines, err := sim.Replay(ctx, engine.Config{Sites: two(0), Overrun: engine.OverrunRunOn, Extension: 1},
		sim.Workload{Requests: []berth.Request{berth.Rigid("r", 0, 0, 50, 4, 2)}}, nil)
	if err != nil || lines[0].ActualEnd != nil {
		t.Error(err, lines)
	}
}

// A promise that an outage broke is told from a request that was never promised
// anything.
func TestBrokenPromiseIsToldFromARefusal(t *testing.T) {
	sites := two(0)
	sites[0].Pools = sites[0].Pools[:1]
	w := sim.Workload{
		Requests: []berth.Request{berth.Rigid("r", 0, 10, 20, 4, 10)},
		Outages:  slices.Values([]sim.Outage{{Resource: berth.PoolID("s", "a"), PEs: berth.PEsOf(0), From: 5, Until: 100}}),
	}
	lines := replay(t, engine.Config{Sites: sites}, w)
	if lines[0].Accepted || lines[0].PromisedStart == nil || *lines[0].PromisedStart != 10 {
		t.Errorf("%+v", lines[0])
	}
}

// PE 0 is down during [0,10) and, by another outage, during [10,20).
func TestOutageThatFollowsAtOnce(t *testing.T) {
	sites := two(0)
	sites[0].Pools = sites[0].Pools[:1]
	outage := func(from, until berth.Time) sim.Outage {
		return sim.Outage{Resource: berth.PoolID("s", "a"), PEs: berth.PEsOf(0), From: from, Until: until}
	}
	lines := replay(t, engine.Config{Sites: sites}, sim.Workload{
		Requests: []berth.Request{berth.Rigid("r", 12, 12, 90, 4, 5)}, Outages: slices.Values([]sim.Outage{outage(0, 10), outage(10, 20)}),
	})
	if *lines[0].Start != 20 {
		t.Errorf("all PEs are promised at %d, and one is down until 20", *lines[0].Start)
	}
}

// An outage that was over before the engine's time begins is none.
func TestOutageBeforeTheBeginning(t *testing.T) {
	sites := two(0)
	sites[0].Pools = sites[0].Pools[:1]
	replay(t, engine.Config{Sites: sites}, sim.Workload{
		Requests: []berth.Request{berth.Rigid("r", 0, 0, 90, 4, 5)},
		Outages:  slices.Values([]sim.Outage{{Resource: berth.PoolID("s", "a"), PEs: berth.PEsOf(0), From: -10, Until: -5}}),
	})
}
