package sim_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// Requests in short become what they are in full, whatever happens to them.
func TestRequestsInShortAreReplayedAlike(t *testing.T) {
	log, err := workload.Open(realdata.File(t, "swf", "CTC-SP2-1996-3.1-cln.swf.gz"), workload.Options{Jobs: 4000})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reserve float64
		runs    bool
		config  engine.Config
	}{
		"requests, early":   {1, false, engine.Config{Sites: sim.OnePool(338, berth.Early)}},
		"requests at sites": {1, true, engine.Config{Sites: split(3, 338, berth.Late), Trigger: engine.TriggerOnPeriod, Period: 600}},
		"managed":           {1, true, engine.Config{Sites: managed(sim.OnePool(338, berth.Late))}},
		"mixed, preempted":  {.3, true, engine.Config{Sites: sim.OnePool(338, berth.Late), Preempt: true}},
		"jobs, delayed":     {0, true, engine.Config{Sites: sim.OnePool(338, berth.Late), Overrun: engine.OverrunDelay, Jobs: "conservative"}},
	} {
		t.Run(name, func(t *testing.T) {
			mix := workload.NewMix(1)
			mix.Reserve, mix.ArrivalFactor, mix.Estimates = c.reserve, 1.5, c.runs
			requests, runs, err := mix.Requests(log.Records, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			plain, _, err := mix.Plain(log.Records, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !c.runs {
				runs = nil
			}
			outage := func(yield func(sim.Outage) bool) {
				from := plain[len(plain)/2].Arrival
				yield(sim.Outage{Resource: berth.PoolID(c.config.Sites[0].Name, c.config.Sites[0].Pools[0].Name), PEs: berth.NewPESet(berth.Run{Hi: 60}), From: from, Until: from + 90000})
			}
			want, err := sim.Replay(t.Context(), c.config, sim.Workload{Requests: requests, Runs: runs, Outages: outage}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := sim.Replay(t.Context(), c.config, sim.Workload{Plain: plain, Runs: runs, Outages: outage}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in full (-), in short (+):\n%.2000s", diff)
			}
		})
	}
}

// managed returns sites as managed ones.
func managed(sites []berth.Site) []berth.Site {
	for i := range sites {
		sites[i].Managed = true
	}
	return sites
}

func TestRequestsAreInShortOrInFull(t *testing.T) {
	work := sim.Workload{Requests: []berth.Request{berth.Job("a", 0, 1, 10)}, Plain: []berth.Plain{{ID: "b", Deadline: 10, Duration: 10, NPE: 1}}}
	_, err := sim.Replay(t.Context(), engine.Config{Sites: sim.OnePool(1, berth.Late)}, work, nil)
	if e, ok := errors.AsType[*berth.Error](err); !ok || e.Field != "plain" {
		t.Errorf("both: %v", err)
	}
}
