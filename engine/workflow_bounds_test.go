package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// boundedPool is 20 PEs, 3 of them with accelerators, with a partition that limits what it serves.
func boundedPool() engine.Config {
	config := onePool(20, berth.Early)
	site := &config.Sites[0]
	site.Pools[0].Classes = []berth.Class{
		{Name: "plain", PEs: berth.NewPESet(berth.Run{Hi: 17})},
		{Name: "gpu", PEs: berth.NewPESet(berth.Run{Lo: 17, Hi: 20}), Node: berth.Node{Accelerators: 4}},
	}
	site.Partitions = []berth.Partition{{Name: "short", Pool: "pool", MaxNPE: 8, MaxDuration: 7200}}
	return config
}

// A task gets as many PEs as its nodes, its partition and the longest time there leave it, not as many as it could use: a
// plan that cannot be placed is no reason to refuse.
func TestTasksKeepWithinTheirNodesAndPartitions(t *testing.T) {
	for name, c := range map[string]struct {
		task     berth.WorkflowTask
		deadline berth.Time
		most     berth.Count // it may get
		longest  berth.Duration
	}{
		"accelerators": {berth.WorkflowTask{Requirements: berth.Requirements{Accelerators: 2}, Seconds: 36000}, berth.Forever, 3, berth.Endless},
		"a partition":  {berth.WorkflowTask{Requirements: berth.Requirements{Partition: "short"}, Seconds: 36000}, berth.Forever, 8, 7200},
		"a partition by a late deadline": {
			berth.WorkflowTask{Requirements: berth.Requirements{Partition: "short"}, Seconds: 36000}, 1_000_000, 8, 7200,
		},
		"accelerators in a partition": {
			berth.WorkflowTask{Requirements: berth.Requirements{Partition: "short", Accelerators: 1}, Seconds: 14400, Alpha: 0.2}, berth.Forever, 3, 7200,
		},
		"measured": {
			berth.WorkflowTask{Requirements: berth.Requirements{Partition: "short"}, Measured: []berth.Measurement{{NPE: 1, Seconds: 9000}, {NPE: 4, Seconds: 7000}, {NPE: 16, Seconds: 100}}},
			berth.Forever, 8, 7200,
		},
	} {
		for _, algorithm := range []string{"bd-all", "dl-rc-cpar", berth.BestAlgorithm} {
			e := newEngine(t, boundedPool())
			c.task.ID = "a"
			w := flow("w", 0, c.deadline, c.task)
			w.Algorithm = algorithm
			if offers, err := e.WorkflowOffers(w, 6); err != nil || len(offers) < 5 {
				t.Errorf("%s, %s: %d offers, %v", name, algorithm, len(offers), err)
			}
			changes := apply(t, e, 0, engine.SubmitWorkflow(w))
			if last := changes[len(changes)-1]; last.Kind == change.WorkflowRefused {
				t.Errorf("%s, %s: refused: %+v", name, algorithm, last.Refusal)
				continue
			}
			if r, _ := e.Reservation("w.1"); r.Allotments[0].NPE > c.most || r.Allotments[0].End.Sub(r.Allotments[0].Start) > c.longest {
				t.Errorf("%s, %s: %+v; want at most %d PEs and %d s", name, algorithm, r.Allotments[0], c.most, c.longest)
			}
		}
	}
}

// A refusal names the pool that was asked for, or none if there is no such pool.
func TestWorkflowsAreRefusedByTheirPool(t *testing.T) {
	config := onePool(20, berth.Late)
	config.Sites = append(config.Sites, berth.Site{Name: "small", Pools: []berth.Pool{{Name: "p", PEs: 2, Binding: berth.Late}}})
	wide := task("a", 10)
	wide.Few = 5
	for _, c := range []struct {
		site string
		want berth.Refusal
	}{
		{"small", berth.Refusal{Reason: berth.TooLarge, Resource: berth.PoolID("small", "p"), Wanted: 5, Limit: 2, Task: "a"}},
		{"nowhere", berth.Refusal{Reason: berth.NoSuitableSite, Wanted: 5}},
	} {
		e := newEngine(t, config)
		w := flow("w", 0, berth.Forever, task("b", 10), wide)
		w.Site = c.site
		changes := apply(t, e, 0, engine.SubmitWorkflow(w))
		if no := changes[len(changes)-1].Refusal; no == nil || *no != c.want {
			t.Errorf("at %s: %+v; want %+v", c.site, no, c.want)
		}
	}
}

// What a user has leaves their share again when it ends, also where another takes as many PEs
// at that moment, so that the pool is as full as before.
func TestAShareIsFreeAgainWhereThePoolIsNot(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		config := onePool(8, binding)
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 500}}
		e := newEngine(t, config)
		own, other := berth.Rigid("own", 0, 20, 60, 2, 40), berth.Rigid("other", 0, 60, 100, 2, 40)
		own.User, other.User = "ada", "bob"
		accepted(t, submit(t, e, 0, own))
		accepted(t, submit(t, e, 0, other))
		wide := berth.WorkflowTask{ID: "wide", Measured: []berth.Measurement{{NPE: 4, Seconds: 30}}}
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 200, wide))), "workflow_promised:w w.1@60-90")
	}
}

// While a user has all of their share nothing is free for them, whatever the pool has.
func TestAShareThatIsTakenLeavesNothing(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		config := onePool(8, binding)
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 500}}
		e := newEngine(t, config)
		own := berth.Rigid("own", 0, 0, 60, 4, 60)
		own.User = "ada"
		accepted(t, submit(t, e, 0, own))
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 200, task("narrow", 10)))), "workflow_promised:w w.1@60-70")
	}
}

// Who has a share plans as if no more PEs had been free in the past than that: of more there is
// nothing for them.
func TestAShareBoundsWhatWasFree(t *testing.T) {
	promised := func(free berth.Count) string {
		config := onePool(16, berth.Late)
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 250}}
		e := newEngine(t, config)
		w := flow("w", 0, berth.Forever)
		for i := range 4 {
			w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: string(rune('a' + i)), Seconds: 900, Alpha: 0.02})
		}
		w.Free = []berth.Average{{Resource: berth.PoolID("cm5", "pool"), NPE: free}}
		var words []string
		for _, c := range apply(t, e, 0, engine.SubmitWorkflow(w)) {
			if c.Kind == change.WorkflowPromised {
				for _, r := range slices.Collect(e.Reservations()) {
					a := &r.Allotments[0]
					words = append(words, fmt.Sprintf("%d@%d-%d", a.NPE, a.Start, a.End))
				}
			}
		}
		return strings.Join(words, " ")
	}
	if all, share := promised(16), promised(4); all != share || share == "" {
		t.Errorf("with 16 PEs free the plan is %s, with the share of 4 %s", all, share)
	}
	if unknown, share := promised(0), promised(4); unknown != share {
		t.Errorf("without a figure for the past the plan is %s, with 4 PEs free %s", unknown, share)
	}
}

// A share narrows the plan of a workflow as it does the place of a request: what is wide on an
// empty machine, or has many tasks beside each other, is promised within it, beside what its user
// has already.
func TestASharedPoolNarrowsThePlan(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		for _, algorithm := range []string{"bd-all", "dl-rc-cpar", berth.BestAlgorithm} {
			config := onePool(8, binding)
			config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 500}}
			e := newEngine(t, config)
			own := berth.Rigid("own", 0, 20, 60, 2, 40)
			own.User = "ada"
			submit(t, e, 0, own)
			w := flow("w", 0, berth.Forever, berth.WorkflowTask{ID: "wide", Seconds: 400})
			for i := range 6 {
				w.Tasks = append(w.Tasks, task(string(rune('a'+i)), 30))
			}
			w.Algorithm = algorithm
			offers, err := e.WorkflowOffers(w, 6)
			if err != nil || len(offers) < 5 {
				t.Fatalf("%s, %s: %d offers, %v", binding, algorithm, len(offers), err)
			}
			changes := apply(t, e, 0, engine.SubmitWorkflow(w))
			if last := changes[len(changes)-1]; last.Kind == change.WorkflowRefused {
				t.Errorf("%s, %s: refused: %+v, %+v", binding, algorithm, last.Refusal, last.Refusal.Exceeded)
			}
			for at := berth.Time(0); at < 2000; at += 5 {
				used := berth.Count(0)
				for r := range e.Reservations() {
					if a := &r.Allotments[0]; a.Start <= at && at < a.End {
						used += a.NPE
					}
				}
				if used > 4 {
					t.Fatalf("%s, %s: %d PEs at %d; the share is 4", binding, algorithm, used, at)
				}
			}
		}
	}
}
