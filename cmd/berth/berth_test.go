package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/sim"
)

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errViolations, 1},
		{errors.New("disk on fire"), 1},
		{berth.Errorf(berth.Internal, "", "our fault"), 1},
		{&usageError{}, 2},
		{berth.Errorf(berth.Invalid, "pes", "0"), 2},
		{fmt.Errorf("reading: %w", berth.Errorf(berth.Invalid, "pes", "0")), 2},
		{berth.Errorf(berth.Exhausted, "", "quota"), 3},
		{berth.Errorf(berth.NotFound, "", "no such"), 4},
		{berth.Errorf(berth.Denied, "", "not yours"), 5},
		{berth.Errorf(berth.Conflict, "", "taken"), 6},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), 7},
		{berth.Errorf(berth.Unavailable, "", "no answer"), 8},
		{&interrupted{}, 130},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := scenario.Placements()
	for word, want := range map[string]string{
		"pe-wrost": "pe-worst", "firstfit": "first-fit", "First-Fit": "first-fit", "area_best": "area-best",
		"duration-bst": "duration-best", "first": "first-fit", "worst": "", "": "", "conservative": "", "duration": "",
	} {
		if got, _ := nearest.Completed(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestWithSuffix(t *testing.T) {
	for path, want := range map[string]string{
		"a.jsonl": "a-x.jsonl", "d.ir/a": "d.ir/a-x", "a.b.jsonl.gz": "a.b-x.jsonl.gz", "a": "a-x",
	} {
		if got := withSuffix(path, "-x"); got != want {
			t.Errorf("withSuffix(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "00:00:00", 59.4: "00:00:59", 59.5: "00:01:00", 3661: "01:01:01", -0.4: "00:00:00", -90.5: "-00:01:31", 86_399.4: "23:59:59", 90_061: "1-01:01:01",
	} {
		if got := clock(&seconds); got != want {
			t.Errorf("%v s is %s, want %s", seconds, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	mean := 0.5
	if got := spread(measure.Estimate{Mean: &mean, CI95: &[2]float64{0.4, 0.6}}, percent); got != "50.0 % ± 10.0 %" {
		t.Error(got)
	}
	if got := spread(measure.Estimate{Mean: &mean}, percent); got != "50.0 %" {
		t.Error(got)
	}
	if got := spread(measure.Estimate{}, percent); got != nothing {
		t.Error(got)
	}
}

// requests writes a small workload and returns its path.
func requests(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	text := `{"id":"a","kind":"request","arrival":0,"ready":0,"deadline":10,"duration":10,"npe":4}
{"id":"b","kind":"request","arrival":1,"ready":1,"deadline":15,"duration":5,"npe":2}
`
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestJSONHasTheFixedForm(t *testing.T) {
	var out, messages bytes.Buffer
	args := []string{"sim", "--workload", "lublin:lanl-cm5", "--jobs", "50", "--policy", "pe-worst,first-fit", "--replications", "2", "--seed", "7", "-o", "json"}
	if code := run(args, strings.NewReader(""), &out, &messages); code != exitOK {
		t.Fatal(code, messages.String())
	}
	var got struct {
		Runs    []map[string]any `json:"runs"`
		Summary []map[string]any `json:"summary"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, run := range got.Runs {
		order = append(order, fmt.Sprint(run["policy"], " ", run["bind"], " ", run["replication"], " ", run["seed"]))
		for _, name := range []string{
			"jobs", "accepted", "acceptance_rate", "mean_slowdown", "mean_wait", "utilization",
			"requested_pe_seconds", "accepted_pe_seconds", "wall_seconds",
		} {
			if _, ok := run[name].(float64); !ok {
				t.Errorf("%s is %v, want a number", name, run[name])
			}
		}
		if wall, _ := run["wall_seconds"].(float64); wall <= 0 {
			t.Errorf("wall_seconds is %v, want the time it took", wall)
		}
		if hash, ok := run["decision_hash"].(string); !ok || len(hash) != 64 {
			t.Errorf("decision_hash is %v, want 64 hexadecimal digits", run["decision_hash"])
		}
	}
	want := []string{"pe-worst early 1 7", "pe-worst early 2 8", "first-fit early 1 7", "first-fit early 2 8"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Error(diff)
	}
	order = nil
	for _, summary := range got.Summary {
		order = append(order, fmt.Sprint(summary["policy"], " ", summary["bind"]))
		estimate, ok := summary["acceptance_rate"].(map[string]any)
		if !ok {
			t.Fatalf("acceptance_rate is %v, want an estimate", summary["acceptance_rate"])
		}
		mean, isNumber := estimate["mean"].(float64)
		interval, isList := estimate["ci95"].([]any)
		if !isNumber || !isList || len(interval) != 2 {
			t.Fatalf("the estimate is %v", estimate)
		}
		low, _ := interval[0].(float64)
		high, _ := interval[1].(float64)
		if !(low < mean && mean < high) {
			t.Errorf("%v is not inside [%v, %v]", mean, low, high)
		}
	}
	if diff := cmp.Diff([]string{"pe-worst early", "first-fit early"}, order); diff != "" {
		t.Error(diff)
	}
}

// TestCoresDoNotMatter runs the same on one core and on several.
func TestCoresDoNotMatter(t *testing.T) {
	outputs := map[int]string{}
	for _, cores := range []int{1, 4} {
		before := runtime.GOMAXPROCS(cores)
		var out, messages bytes.Buffer
		args := []string{"sim", "--workload", "lublin:typeless", "--jobs", "300", "--policy", "all", "--bind", "late,early", "--replications", "3"}
		code := run(args, strings.NewReader(""), &out, &messages)
		runtime.GOMAXPROCS(before)
		if code != exitOK {
			t.Fatal(code, messages.String())
		}
		outputs[cores] = out.String()
	}
	if diff := cmp.Diff(outputs[1], outputs[4]); diff != "" {
		t.Error(diff)
	}
}

func TestFailedRunLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	var out, messages bytes.Buffer
	a := &app{
		args:   []string{"sim", "--workload", requests(t), "--pes", "4", "--policy", "pe-best,pe-worst", "--plot", filepath.Join(folder, "f.svg"), "--schedule", filepath.Join(folder, "s.jsonl")},
		stdout: &out, stderr: &messages,
		simulate: func(context.Context, engine.Config, sim.Workload, func(int)) (*sim.Result, error) {
			return nil, errors.New("no luck")
		},
	}
	if code := a.run(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if got := messages.String(); got != "berth: no luck\n" {
		t.Errorf("stderr: %q", got)
	}
	if out.Len() > 0 {
		t.Errorf("stdout: %q", out.String())
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestStdoutThatFailsIsAFailure(t *testing.T) {
	path := requests(t)
	for _, args := range [][]string{
		{"sim", "--workload", path, "--pes", "4"},
		{"sim", "--workload", path, "--pes", "4", "-o", "json"},
		{"sim", "--workload", path, "--pes", "4", "-o", "csv"},
		{"generate", "swf", "--model", "lublin:batch", "--jobs", "3", "--out", "-"},
		{"version"},
	} {
		var messages bytes.Buffer
		if code := run(args, strings.NewReader(""), full{}, &messages); code != exitFailed {
			t.Errorf("%v: exit code %d, want %d", args, code, exitFailed)
		}
		if !strings.Contains(messages.String(), "no space left") {
			t.Errorf("%v: stderr %q", args, messages.String())
		}
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if isTerminal(file) || isTerminal(&bytes.Buffer{}) {
		t.Error("a file is taken for a terminal")
	}
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil || isTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
}

func TestWholeAndFactorTakeTheirBounds(t *testing.T) {
	var pes berth.Count
	bounded := &whole[berth.Count]{&pes, 1, berth.MaxPEs}
	if err := bounded.Set("1048576"); err != nil || pes != berth.MaxPEs {
		t.Error(pes, err)
	}
	if err := bounded.Set("1"); err != nil || pes != 1 {
		t.Error(pes, err)
	}
	var seed uint64
	if err := (&whole[uint64]{&seed, 0, math.MaxUint64}).Set("18446744073709551615"); err != nil || seed != math.MaxUint64 {
		t.Error(seed, err)
	}
	var x float64
	if err := (&factor{&x, false}).Set("0"); err != nil || x != 0 {
		t.Error(x, err)
	}
	if err := (&factor{&x, true}).Set("1e-3"); err != nil || x != 0.001 {
		t.Error(x, err)
	}
	if err := (&factor{&x, false}).Set("1e999"); err == nil {
		t.Error("an infinite factor is taken")
	}
}

func TestJobsAreDrawnForTheTimeTheyTook(t *testing.T) {
	end, actual := berth.Time(9), berth.Time(5)
	lines := []berth.Line{
		{ID: "j", Kind: berth.KindJob, End: &end, ActualEnd: &actual}, {ID: "r", Kind: berth.KindRequest, End: &end, ActualEnd: &actual},
	}
	var got []berth.Line
	for line := range drawn(berth.Each(lines)) {
		got = append(got, *line)
	}
	if got[0].Kind != berth.KindRequest || *got[0].End != 5 || *got[1].End != 9 || lines[0].Kind != berth.KindJob {
		t.Errorf("%+v", got)
	}
}
