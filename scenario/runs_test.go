package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
)

// parts returns a request of two parts, of 10 s and of 20 s.
func parts(id string) berth.Request {
	r := berth.Rigid(id, 0, 0, 90, 1, 10)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 20}}})
	return r
}

func TestRunTimes(t *testing.T) {
	requests := []berth.Request{berth.Job("a", 0, 1, 1000), parts("b"), berth.Job("c", 0, 1, 1000)}
	made := func(runs []berth.Duration) func(int) (*sim.Workload, error) {
		return func(int) (*sim.Workload, error) { return &sim.Workload{Requests: requests, Runs: runs}, nil }
	}
	for name, c := range map[string]struct {
		runs, want []berth.Duration
	}{
		"as given": {nil, nil},
		"told":     {[]berth.Duration{7, 0, 2000}, []berth.Duration{7, 20, 2000}},
	} {
		work, err := new(Options).withNoise(made(c.runs))(1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, work.Runs); diff != "" {
			t.Error(name, diff)
		}
	}
	flags := &Options{Noise: 0.5, Seed: 4}
	var drawn [2][]berth.Duration
	for r := range drawn {
		work, err := flags.withNoise(made(nil))(r + 1)
		if err != nil {
			t.Fatal(err)
		}
		drawn[r] = work.Runs
		for i, base := range []berth.Duration{1000, 20, 1000} {
			if run := work.Runs[i]; run < base/2 || run > base*3/2 || (base == 1000 && run == base) {
				t.Errorf("run %d of %d s takes %d s", i, base, run)
			}
		}
	}
	if cmp.Equal(drawn[0], drawn[1]) {
		t.Error("two replications have the same noise")
	}
}
