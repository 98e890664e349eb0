package workload_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workload"
)

func transformed(t *testing.T, transform workload.Transform, records ...workload.Record) []berth.Request {
	t.Helper()
	requests, err := transform.Requests(records, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// Without slack the times are the log's own.
func TestTransformKeepsJobs(t *testing.T) {
	records := []workload.Record{record(7, 10, 60, 8), record(3, 10, 61, -1)}
	records[1].User = -1
	got := transformed(t, workload.Transform{ArrivalFactor: 1}, records...)
	want := []berth.Request{
		berth.Rigid("7", 10, 10, 70, 8, 60),
		berth.Rigid("3", 10, 10, 71, 16, 61),
	}
	want[0].User = "3"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTransformDividesArrivals(t *testing.T) {
	for _, c := range []struct {
		factor       float64
		submit, want berth.Time
	}{
		{1, 7, 7},
		{2, 7, 3},
		{0.5, 7, 14},
		{3, 2, 0},
		{3, 3, 1},
		{1.5, 10, 6},
		{0.75, 10, 13},
		{0.1, 3, 30},
		{1, berth.TimeLimit - 1000, berth.TimeLimit - 1000},
		{math.MaxFloat64, 1 << 40, 0},
		{2, -3, -2},
	} {
		got := transformed(t, workload.Transform{ArrivalFactor: c.factor}, record(1, c.submit, 60, 8))
		if got[0].Arrival != c.want || got[0].Ready != c.want {
			t.Errorf("%d / %v arrives at %d, want %d", c.submit, c.factor, got[0].Arrival, c.want)
		}
	}
}

// Job i gets draw i of two streams of their own.
func TestTransformDrawsByIndex(t *testing.T) {
	records := make([]workload.Record, 200)
	for i := range records {
		records[i] = record(int64(i), berth.Time(10*i), berth.Duration(1+997*i), 8)
	}
	got := transformed(t, workload.Transform{ArrivalFactor: 1, ArtimeFactor: 3, DeadlineFactor: 0.5, Seed: 42}, records...)
	u1, u2 := stream.New(42, "artime"), stream.New(42, "deadline")
	for i, r := range got {
		d := float64(records[i].Run)
		ready := records[i].Submit + berth.Time(math.Floor(3*u1.Float64(uint64(i))*d))
		deadline := ready + berth.Time(d) + berth.Time(math.Floor(0.5*u2.Float64(uint64(i))*d))
		if r.Ready != ready || r.Deadline != deadline {
			t.Fatalf("job %d: ready %d, deadline %d, want %d, %d", i, r.Ready, r.Deadline, ready, deadline)
		}
	}
}

// A job's slack depends on nothing but the seed and its place: not on the other
// factors, not on how many jobs there are.
func TestTransformUsesCommonRandomNumbers(t *testing.T) {
	m, err := workload.NewModel("lublin:lanl-cm5", workload.Params{})
	if err != nil {
		t.Fatal(err)
	}
	records := m.Generate(500, 1)
	base := transformed(t, workload.NewTransform(0), records...)
	other := workload.NewTransform(0)
	other.ArrivalFactor, other.DeadlineFactor = 1.5, 0
	for i, r := range transformed(t, other, records[:100]...) {
		if got, want := r.Ready-r.Arrival, base[i].Ready-base[i].Arrival; got != want {
			t.Errorf("job %d waits %d to be ready, want %d", i, got, want)
		}
	}
	again := transformed(t, workload.NewTransform(0), records...)
	if diff := cmp.Diff(base, again); diff != "" {
		t.Errorf("seed 0 is not a seed: %s", diff)
	}
	next := transformed(t, workload.NewTransform(1), records...)
	same := 0
	for i := range next {
		if next[i].Ready == base[i].Ready {
			same++
		}
	}
	if same > 50 {
		t.Errorf("%d of 500 ready times are the same under another seed", same)
	}
}

func TestTransformSlackIsUniform(t *testing.T) {
	records := make([]workload.Record, 20_000)
	for i := range records {
		records[i] = record(int64(i), 0, 1_000_000, 8)
	}
	var ready, slack float64
	for _, r := range transformed(t, workload.NewTransform(3), records...) {
		if r.Ready < 0 || r.Ready >= 3_000_000 || r.Deadline < r.Ready+1_000_000 || r.Deadline >= r.Ready+4_000_000 {
			t.Fatalf("window [%d, %d) outside the factors' range", r.Ready, r.Deadline)
		}
		ready += float64(r.Ready) / 3e6
		slack += float64(r.Deadline-r.Ready-1_000_000) / 3e6
	}
	// The mean of 20,000 uniform draws has a standard deviation of 0.002.
	for name, mean := range map[string]float64{"ready": ready / 20_000, "deadline": slack / 20_000} {
		if math.Abs(mean-0.5) > 0.01 {
			t.Errorf("%s: mean draw %.4f, want 0.5", name, mean)
		}
	}
}

func TestTransformEstimates(t *testing.T) {
	records := []workload.Record{record(1, 0, 60, 8), record(2, 0, 60, 8), record(3, 0, 60, 8)}
	records[1].ReqTime, records[2].ReqTime = -1, 0
	transform := workload.Transform{ArrivalFactor: 1, Estimates: true}
	var report workload.Report
	requests, err := transform.Requests(records, true, &report)
	if err != nil {
		t.Fatal(err)
	}
	var got []berth.Duration
	for _, r := range requests {
		got = append(got, r.Parts[0].Variants[0].Duration)
	}
	if diff := cmp.Diff([]berth.Duration{600, 60, 60}, got); diff != "" {
		t.Error(diff)
	}
	if report.NoEstimate != 2 {
		t.Errorf("%d without estimate, want 2", report.NoEstimate)
	}
}

func TestTransformRefusesFactors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for field, bad := range map[string][]workload.Transform{
		"arrival-factor":  {{}, {ArrivalFactor: -1}, {ArrivalFactor: nan}, {ArrivalFactor: inf}},
		"artime-factor":   {{ArrivalFactor: 1, ArtimeFactor: -0.1}, {ArrivalFactor: 1, ArtimeFactor: nan}, {ArrivalFactor: 1, ArtimeFactor: inf}},
		"deadline-factor": {{ArrivalFactor: 1, DeadlineFactor: -0.1}, {ArrivalFactor: 1, DeadlineFactor: nan}, {ArrivalFactor: 1, DeadlineFactor: inf}},
	} {
		for _, transform := range bad {
			_, err := transform.Requests(nil, false, nil)
			wantMistake(t, err, field, "it must be")
		}
	}
}

// Times beyond the limits are bad, and leave the others' draws alone.
func TestTransformBeyondLimits(t *testing.T) {
	records := []workload.Record{record(1, 5, 60, 8), record(2, 1<<41, 60, 8), record(3, 6, 60, 8)}
	records[2].Submit = 1 << 41
	for name, transform := range map[string]workload.Transform{
		"arrival":       {ArrivalFactor: 0.25},
		"infinite":      {ArrivalFactor: math.SmallestNonzeroFloat64},
		"ready":         {ArrivalFactor: 1, ArtimeFactor: 1e300},
		"deadline":      {ArrivalFactor: 1, DeadlineFactor: 1e300},
		"all overflow":  {ArrivalFactor: 1e-300, ArtimeFactor: math.MaxFloat64, DeadlineFactor: math.MaxFloat64},
		"only the last": {ArrivalFactor: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			var report workload.Report
			requests, err := transform.Requests(records, false, &report)
			if err != nil {
				t.Fatal(err)
			}
			if report.Bad == 0 || len(requests)+report.Bad != 3 || len(report.FirstBad) != report.Bad {
				t.Errorf("%d requests, %d bad", len(requests), report.Bad)
			}
			for _, r := range requests {
				if err := r.Validate(); err != nil {
					t.Error(err)
				}
			}
			_, err = transform.Requests(records, true, nil)
			wantMistake(t, err, report.FirstBad[0].Field, "job ")
		})
	}
	with := transformed(t, workload.NewTransform(1), record(1, 5, 60, 8), record(2, 5, 60, 8), record(3, 6, 60, 8))
	transform := workload.NewTransform(1)
	without, err := transform.Requests([]workload.Record{record(1, 5, 60, 8), record(2, berth.TimeLimit-1, 60, 8), record(3, 6, 60, 8)}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(with[2], without[1]); diff != "" {
		t.Errorf("a bad request shifts the next one's draws: %s", diff)
	}
}

// Whatever the factors, what comes out is valid and in order.
func TestTransformKeepsOrderAndValidity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		transform := workload.Transform{
			ArrivalFactor:  rapid.Float64Range(1e-3, 1e3).Draw(t, "af"),
			ArtimeFactor:   rapid.Float64Range(0, 1e4).Draw(t, "artime"),
			DeadlineFactor: rapid.Float64Range(0, 1e4).Draw(t, "k"),
			Estimates:      rapid.Bool().Draw(t, "estimates"),
			Seed:           rapid.Uint64().Draw(t, "seed"),
		}
		records := drawRecords(t)
		var report workload.Report
		requests, err := transform.Requests(records, false, &report)
		if err != nil {
			t.Fatal(err)
		}
		if len(requests)+report.Bad != len(records) {
			t.Fatalf("%d requests and %d bad of %d records", len(requests), report.Bad, len(records))
		}
		for _, r := range requests {
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.IsSortedFunc(requests, func(a, b berth.Request) int { return int(a.Arrival - b.Arrival) }) {
			t.Fatal("not in order of arrival")
		}
	})
}

// A factor by which most of many records are beyond all times is an error that names it.
func TestFactorsThatLeadBeyondAllTimes(t *testing.T) {
	records := make([]workload.Record, 200)
	for i := range records {
		records[i] = workload.Record{Job: int64(i + 1), Submit: berth.Time(i), Run: 100, Procs: 1, ReqProcs: -1, ReqTime: -1}
	}
	for field, set := range map[string]func(*workload.Transform){
		"arrival-factor":  func(t *workload.Transform) { t.ArrivalFactor = 1e-300 },
		"artime-factor":   func(t *workload.Transform) { t.ArtimeFactor = 1e18 },
		"deadline-factor": func(t *workload.Transform) { t.DeadlineFactor = 1e300 },
	} {
		transform := workload.NewTransform(1)
		set(&transform)
		var report workload.Report
		_, err := transform.Requests(records, false, &report)
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Field != field || report.Bad != 0 {
			t.Errorf("%s: %v with %d bad records", field, err, report.Bad)
		}
	}
}
