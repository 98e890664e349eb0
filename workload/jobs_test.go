package workload_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workload"
)

func mixed(t *testing.T, mix workload.Mix, records ...workload.Record) ([]berth.Request, []berth.Duration) {
	t.Helper()
	requests, runs, err := mix.Requests(records, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) != len(runs) {
		t.Fatalf("%d run times of %d requests", len(runs), len(requests))
	}
	return requests, runs
}

// The records ask for 600 s each and run for as long as written.
func TestRecordsBecomeJobs(t *testing.T) {
	records := []workload.Record{record(7, 10, 60, 8), record(3, 11, 900, -1), record(4, 12, 5, 2)}
	records[1].User, records[2].ReqTime = -1, -1
	limit := berth.Duration(30)
	for name, c := range map[string]struct {
		mix       workload.Mix
		durations [3]berth.Duration
		deadlines [3]berth.Time
		arrivals  [3]berth.Time
	}{
		"exact": {
			workload.NewMix(1),
			[3]berth.Duration{60, 900, 5},
			[3]berth.Time{berth.Forever, berth.Forever, berth.Forever},
			[3]berth.Time{10, 11, 12},
		},
		"estimates and a limit": {
			workload.Mix{Transform: workload.Transform{ArrivalFactor: 2, Estimates: true}, Waiting: &limit},
			[3]berth.Duration{600, 600, 5},
			[3]berth.Time{635, 635, 41},
			[3]berth.Time{5, 5, 6},
		},
		"no waiting": {
			workload.Mix{Transform: workload.Transform{ArrivalFactor: 1}, Waiting: new(berth.Duration)},
			[3]berth.Duration{60, 900, 5},
			[3]berth.Time{70, 911, 17},
			[3]berth.Time{10, 11, 12},
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests, runs := mixed(t, c.mix, records...)
			if diff := cmp.Diff([]berth.Duration{60, 900, 5}, runs); diff != "" {
				t.Error(diff)
			}
			for i, size := range []berth.Count{8, 16, 2} {
				want := berth.Job(fmt.Sprint(records[i].Job), c.arrivals[i], size, c.durations[i])
				want.Deadline = c.deadlines[i]
				if i != 1 {
					want.User = "3"
				}
				if diff := cmp.Diff(want, requests[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// A share of the records asks for promises, with the windows that they would
// have if all did; a larger share adds some and changes none.
func TestShareOfRequests(t *testing.T) {
	records := make([]workload.Record, 2000)
	for i := range records {
		records[i] = record(int64(i)+1, berth.Time(i), 100, 4)
	}
	all := transformed(t, workload.NewTransform(9), records...)
	draws := stream.New(9, "reserve")
	for _, share := range []float64{0, 0.2, 0.7, 1} {
		mix := workload.Mix{Transform: workload.NewTransform(9), Reserve: share}
		requests, _ := mixed(t, mix, records...)
		promised := 0
		for i := range requests {
			want := all[i]
			if draws.Float64(uint64(i)) >= share {
				want = berth.Job(all[i].ID, all[i].Arrival, 4, 100)
				want.User = all[i].User
			} else {
				promised++
			}
			if diff := cmp.Diff(want, requests[i]); diff != "" {
				t.Fatal(share, diff)
			}
		}
		if got := float64(promised) / float64(len(requests)); math.Abs(got-share) > 0.04 {
			t.Errorf("share %v: %v ask for promises", share, got)
		}
	}
}

func TestMixCountsWhatIsBad(t *testing.T) {
	records := []workload.Record{record(1, 0, 60, 8), record(2, berth.TimeLimit-50, 60, 8)}
	report := workload.Report{Usable: 2}
	mix := workload.NewMix(1)
	mix.Estimates = true
	records[0].ReqTime = -1
	mix.Waiting = new(berth.Duration)
	requests, runs, err := mix.Requests(records, false, &report)
	if err != nil || len(requests) != 1 || len(runs) != 1 || report.Usable != 1 || report.Bad != 1 || report.NoEstimate != 1 {
		t.Errorf("%d requests, %d runs, %v, %+v", len(requests), len(runs), err, report)
	}
	_, _, err = mix.Requests(records, true, nil)
	wantMistake(t, err, "deadline", "job 2")
}

// Several goroutines make of many records what one makes, whichever of them are bad: at the borders of what each makes, one
// behind another, the first and the last.
func TestManyRecordsAreMadeAsFew(t *testing.T) {
	const n = 36_000
	isBad := map[int]bool{0: true, 1: true, n/4 - 1: true, n / 4: true, n / 2: true, n/2 + 1: true, n - 1: true}
	records := make([]workload.Record, n)
	for i := range records {
		records[i] = record(int64(i*i+1), berth.Time(i), berth.Duration(i%977+1), berth.Count(i%60+1))
		records[i].User = int32(i % 19)
		if records[i].ReqTime = records[i].Run + 1; i%5 == 0 {
			records[i].ReqTime = -1
		}
		if isBad[i] {
			records[i].Submit = berth.TimeLimit - 1
		}
	}
	mix := workload.NewMix(7)
	mix.Estimates, mix.Reserve, mix.Waiting = true, .5, new(berth.Duration)
	type outcome struct {
		plain  []berth.Plain
		runs   []berth.Duration
		report workload.Report
		strict string
	}
	var made []outcome
	for _, cores := range []int{1, 2, 4} {
		usual := runtime.GOMAXPROCS(cores)
		o := outcome{report: workload.Report{Usable: n}}
		var err error
		o.plain, o.runs, err = mix.Plain(records, false, &o.report)
		_, _, refused := mix.Plain(records, true, nil)
		runtime.GOMAXPROCS(usual)
		if err != nil || refused == nil {
			t.Fatal(err, refused)
		}
		o.strict = refused.Error()
		made = append(made, o)
	}
	at := 0
	for i := range records {
		if isBad[i] {
			continue
		}
		p := &made[0].plain[at]
		if p.ID != strconv.FormatInt(records[i].Job, 10) || p.User != strconv.Itoa(i%19) || p.Arrival != records[i].Submit || made[0].runs[at] != records[i].Run {
			t.Fatalf("record %d became %+v, which runs for %d s", i, p, made[0].runs[at])
		}
		at++
	}
	if at != len(made[0].plain) || at != len(made[0].runs) || made[0].report.Bad != len(isBad) || made[0].report.Usable != n-len(isBad) {
		t.Errorf("%d requests, %d run times, %d of %d good ones, %+v", len(made[0].plain), len(made[0].runs), at, n, made[0].report)
	}
	for i, o := range made[1:] {
		if !slices.Equal(made[0].plain, o.plain) || !slices.Equal(made[0].runs, o.runs) || o.strict != made[0].strict {
			t.Errorf("%d cores make something else of them", 2<<i)
		}
		if diff := cmp.Diff(made[0].report, o.report); diff != "" {
			t.Errorf("on %d cores: %s", 2<<i, diff)
		}
	}
}

func TestMixRefuses(t *testing.T) {
	for field, mix := range map[string]workload.Mix{
		"arrival-factor": {},
		"reserve-share":  {Transform: workload.NewTransform(1), Reserve: math.NaN()},
		"waiting-limit":  {Transform: workload.NewTransform(1), Waiting: new(berth.Duration(-1))},
	} {
		_, _, err := mix.Requests(nil, false, nil)
		wantMistake(t, err, field)
	}
	for _, share := range []float64{-0.1, 1.1} {
		mix := workload.Mix{Transform: workload.NewTransform(1), Reserve: share}
		wantMistake(t, mix.Validate(), "reserve-share")
	}
}

// Run times move by at most the amount, either way, all of it alike, and are
// drawn from a stream of their own.
func TestNoise(t *testing.T) {
	runs := make([]berth.Duration, 4000)
	for i := range runs {
		runs[i] = 1000
	}
	noise := workload.Noise{Amount: 0.1, Seed: 5}
	noise.Apply(runs)
	draws := stream.New(5, "noise")
	var tenths [10]int
	for i, run := range runs {
		if run < 900 || run > 1100 {
			t.Fatalf("run %d of 1000 s takes %d s", i, run)
		}
		if want := 900 + 200*draws.Float64(uint64(i)); math.Abs(float64(run)-want) > 0.501 {
			t.Fatalf("run %d takes %d s, want %v rounded", i, run, want)
		}
		tenths[min(9, (run-900)/20)]++
	}
	for i, n := range tenths {
		if n < 320 || n > 480 {
			t.Errorf("%d of %d runs are in tenth %d of the range", n, len(runs), i)
		}
	}
	same := []berth.Duration{1, 7, 1 << 40}
	silence := workload.Noise{Seed: 5}
	silence.Apply(same)
	if diff := cmp.Diff([]berth.Duration{1, 7, 1 << 40}, same); diff != "" {
		t.Error(diff)
	}
	// The ends: nothing runs for less than a second or beyond the limit.
	edges := make([]berth.Duration, 200)
	for i := range edges {
		edges[i] = 1
		if i%2 == 1 {
			edges[i] = berth.TimeLimit - 1
		}
	}
	loud := workload.Noise{Amount: 1}
	loud.Apply(edges)
	for i, run := range edges {
		if run < 1 || run >= berth.TimeLimit {
			t.Errorf("run %d takes %d s", i, run)
		}
	}
	for _, amount := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		n := workload.Noise{Amount: amount}
		wantMistake(t, n.Validate(), "noise")
	}
}

// A file may hold both kinds, and say how long things really run.
func TestReadJSONLJobs(t *testing.T) {
	w := readJSONL(t, `{"id":"j","kind":"job","arrival":5,"duration":60,"npe":8,"user":"ada"}`+"\n"+
		request("run", "70")+
		`{"id":"k","kind":"job","arrival":-5,"ready":-5,"deadline":0,"duration":60,"npe":8,"run":50}`+"\n"+
		`{"id":"l","kind":"job","arrival":7,"ready":7,"deadline":100,"duration":60,"npe":8}`+"\n"+
		request("id", `"p"`, "arrival", "8", "part", "1", "run", "9")+request("id", `"p"`, "arrival", "8", "part", "2", "run", "9"),
		workload.Options{Strict: true})
	j, l := berth.Job("j", 5, 8, 60), berth.Job("l", 7, 8, 60)
	j.User, l.Deadline = "ada", 100
	p := berth.Rigid("p", 8, 10, 100, 8, 60)
	p.Parts = append(p.Parts, p.Parts[0])
	want := []berth.Request{berth.Job("k", -5, 8, 60), berth.Rigid("a", 0, 10, 100, 8, 60), j, l, p}
	if diff := cmp.Diff(want, w.Requests); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]berth.Duration{50, 70, 0, 0, 9}, w.Runs); diff != "" {
		t.Error(diff)
	}
	if w = readJSONL(t, request(), workload.Options{}); w.Runs != nil {
		t.Errorf("runs %v of a file that tells none", w.Runs)
	}
	w = readJSONL(t, request("run", "1")+request("id", `"b"`, "arrival", "1"), workload.Options{Jobs: 1})
	if diff := cmp.Diff([]berth.Duration{1}, w.Runs); diff != "" {
		t.Error(diff)
	}
}

func TestReadJSONLBadJobs(t *testing.T) {
	const good = `{"id":"j","kind":"job","arrival":5,"duration":60,"npe":8}` + "\n"
	for name, c := range map[string]struct{ line, field, want string }{
		"no duration":     {`{"id":"j","kind":"job","arrival":5,"npe":8}`, "duration", "a job needs id, arrival, duration and npe"},
		"not ready":       {`{"id":"j","kind":"job","arrival":5,"ready":6,"duration":60,"npe":8}`, "ready", "ready when it arrives"},
		"deadline":        {`{"id":"j","kind":"job","arrival":5,"deadline":5,"duration":60,"npe":8}`, "deadline", "not after the ready time 5"},
		"moldable":        {`{"id":"j","kind":"job","arrival":5,"variants":[{"npe":1,"duration":2},{"npe":2,"duration":1}]}`, "parts", "several"},
		"run 0":           {request("run", "0"), "run", "from 1"},
		"run beyond":      {request("run", "4398046511104"), "run", "below 2^42"},
		"run of variants": {request("run", "5", "variants", `[{"npe":1,"duration":2},{"npe":2,"duration":1}]`), "run", "moldable"},
		"two jobs":        {good + good, "id", "already"},
		"job and part":    {request("part", "1") + request("kind", `"job"`, "part", "2", "ready", "0"), "id", "already"},
		"other run":       {request("part", "1", "run", "3") + request("part", "2", "run", "4"), "run", "differs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.ReadJSONL(strings.NewReader(c.line), "r.jsonl", workload.Options{Strict: true})
			wantMistake(t, err, c.field, c.want)
		})
	}
}
