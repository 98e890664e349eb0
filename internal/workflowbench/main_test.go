package main

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workload"
)

// The goals' work can be done, in both forms where the plain one is quick.
func TestGoals(t *testing.T) {
	goals, err := daggenGoals(realdata.File(t, "swf"))
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range goals {
		for _, plain := range []bool{false, true} {
			if plain && i > 3 {
				continue
			}
			if err := g.work(plain); err != nil {
				t.Errorf("%s, plain %v: %v", g.name, plain, err)
			}
		}
	}
}

// On a hundredth of the paper's scenarios our planners are ahead: bd-thrift of
// the best published one on turn-around and on CPU-hours, dl-thrift-lambda on tightest
// deadlines.
func TestOwnPlanners(t *testing.T) {
	earliest, deadlines := contests()
	var took duel
	e := experiment{each: 1, stride: 24, seed: 3000}
	for _, m := range []machine{blue, hpc2n} {
		records, err := m.records(realdata.File(t, "swf"))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.onMachine(m, records, earliest, deadlines, &took); err != nil {
			t.Fatal(err)
		}
	}
	mean := func(c *contest, name string, figure int) float64 {
		return c.mean(slices.Index(c.planners, name), figure)
	}
	for figure, name := range earliest.figures {
		own := mean(earliest, "bd-thrift", figure)
		for _, other := range []string{"bd-all", "bd-half", "bd-cpa", "bd-cpar"} {
			if theirs := mean(earliest, other, figure); own >= theirs {
				t.Errorf("%s: bd-thrift %.4f above the best, %s %.4f", name, own, other, theirs)
			}
		}
	}
	if own, theirs := mean(deadlines, "dl-thrift-lambda", 0), mean(deadlines, "dl-rcbd-cpar-lambda", 0); own >= theirs {
		t.Errorf("tightest deadlines: dl-thrift-lambda %.4f above the best, dl-rcbd-cpar-lambda %.4f", own, theirs)
	}
	for figure, name := range deadlines.figures {
		i := slices.Index(deadlines.planners, "dl-portfolio")
		for k, other := range deadlines.planners {
			if k != i && (deadlines.mean(i, figure) > deadlines.mean(k, figure) || deadlines.tail(i, figure) > deadlines.tail(k, figure)) {
				t.Errorf("%s: dl-portfolio %.4f above the best, p99 %.4f; %s %.4f, p99 %.4f", name, deadlines.mean(i, figure), deadlines.tail(i, figure), other, deadlines.mean(k, figure), deadlines.tail(k, figure))
			}
		}
	}
	if own, theirs := mean(earliest, "bd-portfolio", 0), mean(earliest, "bd-thrift", 0); own >= theirs {
		t.Errorf("turn-around: bd-portfolio %.4f above the best, bd-thrift %.4f", own, theirs)
	}
	if took[0] <= 0 || earliest.scenarios != 30 {
		t.Errorf("%v for %d scenarios, want 30", took, earliest.scenarios)
	}
}

// Table 1 has forty kinds of workflow, each valid; degradations are averaged
// over instances, then over scenarios.
func TestExperiment(t *testing.T) {
	list := specs()
	if len(list) != 40 || len(settings()) != 9 {
		t.Fatalf("%d kinds of workflow and %d of bookings, want 40 and 9", len(list), len(settings()))
	}
	seen := map[workload.Daggen]int{}
	for _, d := range list {
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
		seen[d]++
	}
	if seen[workload.NewDaggen()] != 6 { // once in each of the six series
		t.Errorf("the defaults stand %d times among %d", seen[workload.NewDaggen()], len(list))
	}
	c := newContest([]string{"x"}, []string{"a", "b"}, nil)
	for _, scenario := range [][][]float64{{{10, 20}, {30, 30}}, {{40, 10}}} {
		for _, instance := range scenario {
			c.judge([][]float64{{instance[0]}, {instance[1]}})
		}
		c.end()
	}
	// a: 0, 0 and 3; b: 1, 0 and 0.
	if c.total[0][0] != 3 || c.total[1][0] != .5 || c.wins[0][0] != 1 || c.wins[1][0] != 1 || c.scenarios != 2 {
		t.Errorf("%+v", c)
	}
}
