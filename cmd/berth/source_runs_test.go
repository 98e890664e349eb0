package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
)

// parts returns a request of two parts, of 10 s and of 20 s.
func parts(id string) berth.Request {
	r := berth.Rigid(id, 0, 0, 90, 1, 10)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 20}}})
	return r
}

func TestRunTimes(t *testing.T) {
	requests := []berth.Request{berth.Job("a", 0, 1, 1000), parts("b"), berth.Job("c", 0, 1, 1000)}
	made := func(runs []berth.Duration) func(int) ([]berth.Request, []berth.Duration, error) {
		return func(int) ([]berth.Request, []berth.Duration, error) { return requests, runs, nil }
	}
	for name, c := range map[string]struct {
		runs, want []berth.Duration
	}{
		"as given": {nil, nil},
		"told":     {[]berth.Duration{7, 0, 2000}, []berth.Duration{7, 20, 2000}},
	} {
		work, err := withNoise(&simFlags{}, made(c.runs))(1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, work.Runs); diff != "" {
			t.Error(name, diff)
		}
	}
	flags := &simFlags{noise: 0.5, seed: 4}
	var drawn [2][]berth.Duration
	for r := range drawn {
		work, err := withNoise(flags, made(nil))(r + 1)
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

func TestJobsAreDrawnForTheTimeTheyTook(t *testing.T) {
	end, actual := berth.Time(9), berth.Time(5)
	lines := []berth.Line{
		{ID: "j", Kind: berth.KindJob, End: &end, ActualEnd: &actual}, {ID: "r", Kind: berth.KindRequest, End: &end, ActualEnd: &actual},
	}
	got := drawn(lines)
	if got[0].Kind != berth.KindRequest || *got[0].End != 5 || *got[1].End != 9 || lines[0].Kind != berth.KindJob {
		t.Errorf("%+v", got)
	}
}
