package scenario

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
)

// TestRequestsAreMadeOncePerReplication counts how often runs ask for them.
func TestRequestsAreMadeOncePerReplication(t *testing.T) {
	options := &Options{Policies: Placements(), Binds: Bindings(), Replications: 3, Seed: 5}
	made := make([]int, 4)
	src := &Scenario{PEs: 4, Work: func(replication int) (*sim.Workload, error) {
		made[replication]++
		return &sim.Workload{Requests: []berth.Request{berth.Rigid("a", 0, 0, 10, 4, 10)}}, nil
	}}
	b := &Batch{Runs: options.Runs(false), Scenario: src, Machine: &Machine{}}
	results, err := b.Do(t.Context())
	if err != nil || len(results) != len(Placements())*2*3 {
		t.Fatal(len(results), err)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 1}, made); diff != "" {
		t.Error(diff)
	}
	for _, s := range b.works {
		if s.work != nil {
			t.Error("requests are kept after their last run")
		}
	}
}

// TestOrderTakesReplicationsInTurn wants all policies of a replication started
// before the next, and every run once.
func TestOrderTakesReplicationsInTurn(t *testing.T) {
	options := &Options{Policies: Placements()[:3], Binds: Bindings(), Replications: 2}
	b := &Batch{Runs: options.Runs(false)}
	order := b.order()
	last := 1
	for _, i := range order {
		if r := b.Runs[i].Replication; r < last {
			t.Fatalf("replication %d starts after %d", r, last)
		} else {
			last = r
		}
	}
	slices.Sort(order)
	for i, n := range order {
		if i != n {
			t.Fatalf("runs in the order: %v", order)
		}
	}
	if len(order) != 12 {
		t.Fatalf("%d runs, want 12", len(order))
	}
}
