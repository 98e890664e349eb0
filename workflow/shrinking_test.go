package workflow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// The starts that are kept free are the same whether the schedule of the tasks that are left is made
// from nothing each time or only where it has changed, also of workflows whose list has
// many marks, and in orders that have nothing to do with the numbers of PEs.
func TestStartsOfFewerTasksAreThoseFromNothing(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := workload.NewDaggen()
		d.Tasks, d.Density = 1+rng.IntN(300), .1+.8*rng.Float64()
		w, err := d.Generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		q := berth.Count(1 + rng.IntN(200))
		npe := make([]berth.Count, w.Len())
		for i := range npe {
			npe[i] = 1 + berth.Count(rng.IntN(int(q)))
		}
		all := make([]berth.Count, w.Len())
		for i := range all {
			all[i] = 1 + berth.Count(rng.IntN(64))
		}
		want, got := workflow.StartsOfFewer(w, npe, all, 1000, q)
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("seed %d: task %d of %d starts at %d, from nothing at %d", seed, i, w.Len(), got[i], want[i])
			}
		}
	}
}
