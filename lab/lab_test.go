package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

const machine = 8

// requests returns a workload that differs by replication and slack.
func requests(replication, slack int) *sim.Workload {
	var list []berth.Request
	for i := range 300 {
		n := (i*i*7 + i*replication*13) % 31
		arrival, duration := berth.Time(i*3), berth.Duration(10+n)
		ready := arrival + berth.Time(n%5)
		list = append(list, berth.Rigid(fmt.Sprint(i), arrival, ready, ready.Add(duration)+berth.Time(slack*n), berth.Count(1+n%machine), duration))
	}
	return &sim.Workload{Requests: list}
}

// caseOf is what is simulated with a placement and a slack.
func caseOf(place string, slack int) *Case {
	return &Case{
		Config:  engine.Config{Place: place, Sites: sim.OnePool(machine, berth.Early)},
		PEs:     machine,
		Work:    func(replication int) (*sim.Workload, error) { return requests(replication, slack), nil },
		WorkKey: fmt.Sprint(slack),
	}
}

// twoByThree is a plan of two placements and three slacks.
func twoByThree(replications int) *Plan {
	p := &Plan{
		Title: "made <up>", Build: "test", Settings: []Setting{{"pes", "8"}}, Replications: replications, Seed: 5,
		Dimensions: []Dimension{
			{Name: "policy", Values: []string{"first-fit", "pe-worst"}}, {Name: "slack", Values: []string{"1", "2", "4"}, Numbers: []float64{1, 2, 4}},
		},
		Baseline: []Setting{{"policy", "first-fit"}},
	}
	p.Case = func(point Point) (*Case, error) {
		return caseOf(p.Dimensions[0].Values[point[0]], int(p.Dimensions[1].Numbers[point[1]])), nil
	}
	return p
}

func run(t *testing.T, p *Plan, o Options) *Results {
	t.Helper()
	r, err := Run(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at returns the place of a figure.
func at(t *testing.T, name string) int {
	t.Helper()
	i := slices.IndexFunc(Figures(), func(f Figure) bool { return f.Name == name })
	if i < 0 {
		t.Fatal("no figure " + name)
	}
	return i
}

func invalid(t *testing.T, err error, field, words string) {
	t.Helper()
	e, is := errors.AsType[*berth.Error](err)
	if !is || e.Code != berth.Invalid || e.Field != field || !strings.Contains(e.Msg, words) {
		t.Errorf("error %v; want one about %s with %q", err, field, words)
	}
}

// Every run is what the simulator and the measures say of its case alone.
func TestRunsAreThoseOfTheSimulator(t *testing.T) {
	p := twoByThree(3)
	r := run(t, p, Options{})
	if !r.Complete() || r.Done != 18 {
		t.Fatalf("%d runs", r.Done)
	}
	for _, point := range p.Points() {
		c, _ := p.Case(point)
		for replication := 1; replication <= 3; replication++ {
			work, _ := c.Work(replication)
			lines, err := sim.Replay(t.Context(), c.Config, *work, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := measure.Of(lines, machine)
			for name, want := range map[string]float64{
				"accepted": float64(m.Accepted), "acceptance_rate": *m.AcceptanceRate, "mean_slowdown": *m.MeanSlowdown, "mean_wait": *m.MeanWait,
				"utilization": *m.Utilization, "accepted_share": float64(m.AcceptedPESeconds) / float64(m.RequestedPESeconds),
			} {
				if got := r.Value(point, replication, at(t, name)); got != want {
					t.Errorf("%s, replication %d: %s is %v, want %v", p.Label(point), replication, name, got, want)
				}
			}
			hash := at(t, "decision_hash")
			if got := Figures()[hash].Text(r.Value(point, replication, hash)); got != measure.Hash(lines)[:hashDigits] {
				t.Errorf("%s: decisions %s, want %s", p.Label(point), got, measure.Hash(lines))
			}
		}
	}
	if r.Has(at(t, "queue_mean_wait")) || !r.Has(at(t, "mean_wait")) {
		t.Error("figures of jobs that there are not, or none of requests")
	}
}

// A difference is the mean over pairs of runs with equal draws.
func TestDifferencesArePaired(t *testing.T) {
	p := twoByThree(4)
	r := run(t, p, Options{})
	wait, varies := at(t, "mean_wait"), false
	for slack := range 3 {
		var differences []float64
		for replication := 1; replication <= 4; replication++ {
			differences = append(differences, r.Value(Point{1, slack}, replication, wait)-r.Value(Point{0, slack}, replication, wait))
		}
		want := measure.EstimateOf(differences)
		got, n := r.Difference(Point{1, slack}, wait)
		if diff := cmp.Diff(want, got); diff != "" || n != 4 {
			t.Errorf("slack %d, %d pairs: %s", slack, n, diff)
		}
		varies = varies || *got.Mean != 0
		if _, n := r.Difference(Point{0, slack}, wait); n != 0 {
			t.Error("a baseline differs from itself")
		}
	}
	if !varies {
		t.Error("nothing differs")
	}
	if _, n := r.Difference(Point{1, 0}, at(t, "decision_hash")); n != 0 {
		t.Error("hashes have a difference")
	}
}

// Shards put together in any order make the report of a single run, byte for
// byte; nothing is done twice, and nothing counted twice.
func TestShardsMakeTheWhole(t *testing.T) {
	whole := run(t, twoByThree(3), Options{})
	want, err := whole.Files("berth lab")
	if err != nil {
		t.Fatal(err)
	}
	var simulated atomic.Int64
	folder := t.TempDir()
	var files []string
	for i := 3; i >= 1; i-- {
		path := filepath.Join(folder, fmt.Sprintf("%d.jsonl", i))
		r := run(t, twoByThree(3), Options{File: path, Shard: Shard{i, 3}, Simulate: counted(&simulated)})
		if r.Complete() || r.Done != 6 {
			t.Errorf("shard %d has %d runs", i, r.Done)
		}
		files = append(files, path)
	}
	if simulated.Load() != 18 {
		t.Errorf("%d simulations of 18", simulated.Load())
	}
	plan, err := Recorded(files[0])
	if err != nil {
		t.Fatal(err)
	}
	plan.Baseline = twoByThree(3).Baseline
	merged, err := Merge(t.Context(), plan, append(files, files[1]))
	if err != nil {
		t.Fatal(err)
	}
	got, err := merged.Files("berth lab")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names(want), names(got)); diff != "" {
		t.Error(diff)
	}
	for i := range want {
		if string(want[i].Data) != string(got[i].Data) {
			t.Errorf("%s differs", want[i].Name)
		}
	}
	_, err = Merge(t.Context(), plan, files[1:])
	invalid(t, err, "merge", "6 of 18 measurements are in none of the files")
	other := twoByThree(3)
	other.Seed = 6
	path := filepath.Join(folder, "other.jsonl")
	run(t, other, Options{File: path, Shard: Shard{1, 3}})
	_, err = Merge(t.Context(), plan, append(files[:2:2], path))
	invalid(t, err, "merge", "measurements with seed 6, and in "+files[0]+" it is 5")
}

func counted(n *atomic.Int64) func(context.Context, engine.Config, sim.Workload, func(int)) (*sim.Result, error) {
	return func(ctx context.Context, c engine.Config, w sim.Workload, progress func(int)) (*sim.Result, error) {
		n.Add(1)
		return sim.Play(ctx, c, w, progress)
	}
}

func names(files []File) []string {
	var list []string
	for _, f := range files {
		list = append(list, f.Name)
	}
	return list
}

// After an interruption the finished runs are in the file, and only the others
// are done.
func TestAnInterruptedRunGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	var finished, again atomic.Int64
	_, err := Run(ctx, twoByThree(3), Options{File: path, Simulate: func(ctx context.Context, c engine.Config, w sim.Workload, progress func(int)) (*sim.Result, error) {
		if finished.Load() >= 5 {
			cancel()
			return nil, ctx.Err()
		}
		result, err := sim.Play(ctx, c, w, progress)
		if err == nil {
			finished.Add(1)
		}
		return result, err
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	r := run(t, twoByThree(3), Options{File: path, Simulate: counted(&again)})
	if again.Load() != 18-finished.Load() || !r.Complete() {
		t.Errorf("%d runs before and %d after", finished.Load(), again.Load())
	}
	if string(r.Measurements()) != string(run(t, twoByThree(3), Options{}).Measurements()) {
		t.Error("the interruption changed the results")
	}
}

// Whatever has the same workload shares it.
func TestWorkloadsAreMadeOnce(t *testing.T) {
	p := twoByThree(4)
	var mu sync.Mutex
	made := map[string]int{}
	plain := p.Case
	p.Case = func(point Point) (*Case, error) {
		c, err := plain(point)
		work := c.Work
		c.Work = func(replication int) (*sim.Workload, error) {
			mu.Lock()
			defer mu.Unlock()
			made[fmt.Sprint(c.WorkKey, "/", replication)]++
			return work(replication)
		}
		return c, err
	}
	run(t, p, Options{})
	if len(made) != 12 {
		t.Errorf("%d workloads, want 12", len(made))
	}
	for key, n := range made {
		if n != 1 {
			t.Errorf("workload %s was made %d times", key, n)
		}
	}
}

func TestProgress(t *testing.T) {
	last, calls := 0.0, 0
	run(t, twoByThree(2), Options{Progress: func(done float64, runs int) {
		if runs != 12 || done < last {
			t.Errorf("%v of %d after %v", done, runs, last)
		}
		last, calls = done, calls+1
	}})
	if math.Abs(last-12) > 1e-9 || calls < 13 {
		t.Errorf("told %d times, %v at last", calls, last)
	}
}

func TestFailuresNameTheirPoint(t *testing.T) {
	p := twoByThree(1)
	p.Case = func(point Point) (*Case, error) {
		c := caseOf("first-fit", 1)
		c.WorkKey = fmt.Sprint(point)
		c.Work = func(int) (*sim.Workload, error) {
			if point[0] == 1 && point[1] == 2 {
				return nil, errors.New("torn")
			}
			return requests(1, 1), nil
		}
		return c, nil
	}
	if _, err := Run(t.Context(), p, Options{}); err == nil || err.Error() != "policy=pe-worst slack=4: torn" {
		t.Errorf("error %v", err)
	}
}

func TestBadPlans(t *testing.T) {
	for words, c := range map[string]struct {
		field  string
		change func(p *Plan)
	}{
		"one combination":                        {"sweep", func(p *Plan) { p.Dimensions = nil }},
		"nothing to compare":                     {"sweep", func(p *Plan) { p.Dimensions = p.Dimensions[:1]; p.Dimensions[0].Values = []string{"x"} }},
		"policy: a value is empty":               {"sweep", func(p *Plan) { p.Dimensions[0].Values = []string{"x", ""} }},
		"slack: a value":                         {"sweep", func(p *Plan) { p.Dimensions[1].Values = nil }},
		"pe-worst is there twice":                {"sweep", func(p *Plan) { p.Dimensions[0].Values = []string{"pe-worst", "pe-worst"} }},
		"policy is there twice":                  {"sweep", func(p *Plan) { p.Dimensions[1].Name = "policy" }},
		"3 numbers of 2 values":                  {"sweep", func(p *Plan) { p.Dimensions[1].Values = []string{"1", "2"} }},
		"0; want at least 1":                     {"replications", func(p *Plan) { p.Replications = 0 }},
		"want at most 1000000 runs":              {"replications", func(p *Plan) { p.Replications = 200_000 }},
		"beyond the largest seed":                {"seed", func(p *Plan) { p.Seed = math.MaxUint64 }},
		"bind is not swept":                      {"baseline", func(p *Plan) { p.Baseline = []Setting{{"bind", "late"}} }},
		"policy=late is not swept; want one of ": {"baseline", func(p *Plan) { p.Baseline = []Setting{{"policy", "late"}} }},
		"more than 1000000 combinations": {"sweep", func(p *Plan) {
			for i := range 3 {
				d := Dimension{Name: fmt.Sprint(i)}
				for k := range 100 {
					d.Values = append(d.Values, fmt.Sprint(k))
				}
				p.Dimensions = append(p.Dimensions, d)
			}
		}},
	} {
		p := twoByThree(2)
		c.change(p)
		_, err := Run(t.Context(), p, Options{})
		invalid(t, err, c.field, words)
	}
}

// What was recorded is read again as it was, whatever the words in it.
func TestRecordedPlans(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9.,/ -]{0,5}[a-z0-9]`)
		p := &Plan{Title: word.Draw(t, "title"), Build: "b", Replications: rapid.IntRange(1, 3).Draw(t, "n"), Seed: rapid.Uint64Range(0, 1<<62).Draw(t, "seed")}
		for i := range rapid.IntRange(1, 3).Draw(t, "dimensions") {
			d := Dimension{Name: fmt.Sprint("d", i), Values: rapid.SliceOfNDistinct(word.Filter(trimmed), 2, 4, rapid.ID).Draw(t, "values")}
			if rapid.Bool().Draw(t, "numbers") {
				d.Numbers = rapid.SliceOfN(rapid.Float64Range(0, 100), len(d.Values), len(d.Values)).Draw(t, "x")
			}
			p.Dimensions = append(p.Dimensions, d)
		}
		p.Settings = []Setting{{"x", word.Draw(t, "setting")}}
		p.Case = func(Point) (*Case, error) { return caseOf("first-fit", 1), nil }
		path := filepath.Join(folder, "cells.jsonl")
		r, err := Run(context.Background(), p, Options{Simulate: func(context.Context, engine.Config, sim.Workload, func(int)) (*sim.Result, error) {
			return new(sim.Result), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, r.Measurements())
		got, err := Recorded(path)
		if err != nil {
			t.Fatal(err)
		}
		got.source, p.Case = "", nil
		if diff := cmp.Diff(p, got, cmp.AllowUnexported(Plan{})); diff != "" {
			t.Fatal(diff)
		}
		points := p.Points()
		for i, point := range points {
			if p.index(point) != i {
				t.Fatalf("point %v is at %d, not %d", point, i, p.index(point))
			}
		}
	})
}

func trimmed(s string) bool { return strings.TrimSpace(s) == s }
