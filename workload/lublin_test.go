package workload_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workload"
)

func model(t *testing.T, name string, p workload.Params) *workload.Model {
	t.Helper()
	m, err := workload.NewModel(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sample generates n jobs and returns their sizes, run times and inter-arrivals.
func sample(t *testing.T, name string, p workload.Params, n int, seed uint64) (sizes, runs, gaps []float64) {
	t.Helper()
	return measures(model(t, name, p).Generate(n, seed))
}

func measures(records []workload.Record) (sizes, runs, gaps []float64) {
	for i, r := range records {
		sizes = append(sizes, float64(r.Size()))
		runs = append(runs, float64(r.Run))
		if i > 0 {
			gaps = append(gaps, float64(r.Submit-records[i-1].Submit))
		}
	}
	return sizes, runs, gaps
}

func quantiles(values []float64, at ...float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	var q []float64
	for _, p := range at {
		q = append(q, sorted[int(p*float64(len(sorted)))])
	}
	return q
}

// The authors' own program, typeless on 256 nodes, against ours with ten times
// its jobs. The tolerance on a quantile is the sampling error of 10,000 jobs,
// shown as the two order statistics three standard deviations of their rank
// away, and one second for rounding.
func TestTypelessMatchesTheOriginalProgram(t *testing.T) {
	log, err := workload.Open(realdata.File(t, "swf-model", "lublin_256.swf.gz"), workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	wantSizes, wantRuns, wantGaps := measures(log.Records)
	sizes, runs, gaps := sample(t, "lublin:typeless", workload.Params{PEs: 256}, 100_000, 1)
	for _, m := range []struct {
		name      string
		got, want []float64
	}{{"size", sizes, wantSizes}, {"run time", runs, wantRuns}, {"inter-arrival", gaps, wantGaps}} {
		sorted := slices.Sorted(slices.Values(m.want))
		n := float64(len(sorted))
		for _, p := range []float64{0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99} {
			got := quantiles(m.got, p)[0]
			spread := 3 * math.Sqrt(n*p*(1-p))
			low, high := sorted[int(p*n-spread)], sorted[int(p*n+spread)]
			if got < low-1 || got > high+1 {
				t.Errorf("%s: quantile %v is %v, the original's between %v and %v", m.name, p, got, low, high)
			}
		}
	}
	serial, pow2, total := shares(sizes)
	wantSerial, wantPow2, wantTotal := shares(wantSizes)
	if math.Abs(serial-wantSerial) > 0.015 || math.Abs(pow2-wantPow2) > 0.015 || math.Abs(total/wantTotal-1) > 0.03 {
		t.Errorf("serial %.3f, power of two %.3f, mean %.2f; the original's %.3f, %.3f, %.2f", serial, pow2, total, wantSerial, wantPow2, wantTotal)
	}
}

// shares returns the shares of serial jobs and of powers of two above 1, and
// the mean size.
func shares(sizes []float64) (serial, pow2, mean float64) {
	for _, s := range sizes {
		mean += s / float64(len(sizes))
		if s == 1 {
			serial += 1 / float64(len(sizes))
		} else if n := int(s); n&(n-1) == 0 {
			pow2 += 1 / float64(len(sizes))
		}
	}
	return serial, pow2, mean
}

// Specification 1, section (c): sizes are powers of two from 32 to the machine,
// run times six, and the load at UMed 7 is 0.73 of 1,024 nodes.
func TestLanlCM5MatchesThePaper(t *testing.T) {
	load := 0.0
	const seeds = 20
	sizes, runs := make(map[berth.Count]int), make(map[berth.Duration]int)
	m := model(t, "lublin:lanl-cm5", workload.Params{})
	for seed := range uint64(seeds) {
		records := m.Generate(10_000, seed)
		area := int64(0)
		for _, r := range records {
			sizes[r.Procs]++
			runs[r.Run]++
			area += berth.Area(r.Procs, r.Run)
		}
		load += float64(area) / 1024 / float64(records[len(records)-1].Submit) / seeds
	}
	if math.Abs(load-0.73) > 0.03 {
		t.Errorf("offered load %.3f of 1024 PEs, want 0.73", load)
	}
	for _, want := range []berth.Count{32, 64, 128, 256, 512, 1024} {
		if sizes[want] == 0 {
			t.Errorf("no job of %d PEs", want)
		}
	}
	for _, want := range []berth.Duration{60, 300, 900, 1800, 3600, 10800} {
		if runs[want] == 0 {
			t.Errorf("no job of %d s", want)
		}
	}
	if len(sizes) != 6 || len(runs) != 6 {
		t.Errorf("sizes %v, run times %v; want six of each", sizes, runs)
	}
	// Two-stage uniform on [4.5, 7) and [7, 10), rounded: the share of 2^5 is
	// that of x in [4.5, 5.5).
	const total = seeds * 10_000
	for size, want := range map[berth.Count]float64{
		32: 0.82 / 2.5, 64: 0.82 / 2.5, 128: 0.82*0.5/2.5 + 0.18*0.5/3, 256: 0.18 / 3, 512: 0.18 / 3, 1024: 0.18 * 0.5 / 3,
	} {
		if got := float64(sizes[size]) / total; math.Abs(got-want) > 0.005 {
			t.Errorf("share of size %d is %.4f, want %.4f", size, got, want)
		}
	}
}

// The paper's sweep over UMed: larger jobs, more load, the same arrivals.
func TestLanlCM5LoadGrowsWithUMed(t *testing.T) {
	last := 0.0
	var arrivals []berth.Time
	for _, umed := range []float64{5, 6, 7, 8, 9} {
		records := model(t, "lublin:lanl-cm5", workload.Params{UMed: umed}).Generate(10_000, 1)
		area := int64(0)
		var submits []berth.Time
		for _, r := range records {
			area += berth.Area(r.Procs, r.Run)
			submits = append(submits, r.Submit)
		}
		if float64(area) <= last {
			t.Errorf("UMed %v asks for %d PE-seconds, less than the one before", umed, area)
		}
		last = float64(area)
		if arrivals != nil && !slices.Equal(arrivals, submits) {
			t.Errorf("UMed %v moves arrivals", umed)
		}
		arrivals = submits
	}
}

// Larger jobs run longer, which the papers' policies feed on.
func TestSizeAndRunTimeCorrelate(t *testing.T) {
	for _, name := range []string{"lublin:lanl-cm5", "lublin:typeless", "lublin:batch", "lublin:interactive"} {
		m := model(t, name, workload.Params{})
		var small, large, smallRun, largeRun float64
		for _, r := range m.Generate(50_000, 1) {
			if r.Procs > m.PEs()/4 {
				large++
				largeRun += math.Log(float64(r.Run))
			} else {
				small++
				smallRun += math.Log(float64(r.Run))
			}
		}
		if largeRun/large < smallRun/small+0.2 {
			t.Errorf("%s: mean ln(run time) %.2f of large jobs, %.2f of small ones", name, largeRun/large, smallRun/small)
		}
	}
}

func TestGeneratedRecordsAreUsable(t *testing.T) {
	if testing.Short() {
		t.Skip("works in one goroutine: the race detector has nothing to see")
	}
	for _, info := range workload.Models() {
		if info.About == "" {
			t.Errorf("%s has no description", info.Name)
		}
		for _, pes := range []berth.Count{0, 32, 45, 90, 100, 1000, 1024, berth.MaxPEs} {
			m := model(t, info.Name, workload.Params{PEs: pes})
			if pes != 0 && m.PEs() != pes {
				t.Errorf("%s on %d PEs says %d", info.Name, pes, m.PEs())
			}
			records := m.Generate(3000, 0)
			var file bytes.Buffer
			if err := workload.WriteSWF(&file, m.Header(3000, 0), records); err != nil {
				t.Fatal(err)
			}
			// The header's machine makes a larger job a bad line.
			w, err := workload.ReadSWF(&file, "model.swf", workload.Options{Strict: true})
			if err != nil {
				t.Fatalf("%s on %d PEs: %v", info.Name, pes, err)
			}
			if diff := cmp.Diff(records, w.Records); diff != "" {
				t.Errorf("%s on %d PEs: %s", info.Name, pes, diff)
			}
			if w.PEs() != m.PEs() {
				t.Errorf("%s: header of %d PEs, want %d", info.Name, w.PEs(), m.PEs())
			}
			for i, r := range records {
				if r.Job != int64(i)+1 {
					t.Fatalf("%s: job %d is number %d", info.Name, i, r.Job)
				}
			}
		}
	}
}

func TestGenerateIsReproducible(t *testing.T) {
	m := model(t, "lublin:batch", workload.Params{})
	long, short := m.Generate(2000, 9), m.Generate(500, 9)
	if diff := cmp.Diff(long[:500], short); diff != "" {
		t.Errorf("the first jobs depend on how many there are: %s", diff)
	}
	if cmp.Equal(short, m.Generate(500, 10)) {
		t.Error("another seed makes the same jobs")
	}
	if got := m.Generate(0, 1); len(got) != 0 {
		t.Errorf("%d jobs, want none", len(got))
	}
	if got := m.Generate(-1, 1); len(got) != 0 {
		t.Errorf("%d jobs, want none", len(got))
	}
}

// Files of a model may be stored and compared: on every machine the same bytes.
func TestGeneratedFilesAreFixedForever(t *testing.T) {
	for name, want := range map[string]string{
		"lublin:lanl-cm5":    "1d7cd2f9b412de5b0c769eb8da6142f655c048fb7ee6bdf76f2e7753c5ce68dc",
		"lublin:typeless":    "2cb352a4cfef0d713f9829738fcb502efa609674b1b512bd5f916dff717d8e28",
		"lublin:batch":       "fef4ddeb9c8aa0f6055758bc63ae864cf5324abbcfd88130e8a7b5275e79ab73",
		"lublin:interactive": "7ce8e0c25f9f1fd2990783632cc827bde9cc33e33b347d739c77b4b726ab577f",
	} {
		m := model(t, name, workload.Params{})
		var file bytes.Buffer
		if err := workload.WriteSWF(&file, m.Header(10_000, 1), m.Generate(10_000, 1)); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(file.Bytes())
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s with seed 1 has hash %s, want %s", name, got, want)
		}
	}
}

func TestNewModelRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		params workload.Params
		field  string
		words  string
	}{
		{"lublin:lanl", workload.Params{}, "workload", "lublin:lanl-cm5, lublin:typeless, lublin:batch, lublin:interactive"},
		{"", workload.Params{}, "workload", "no model"},
		{"lublin:lanl-cm5", workload.Params{PEs: 31}, "pes", "from 32"},
		{"lublin:lanl-cm5", workload.Params{PEs: -1}, "pes", "-1"},
		{"lublin:typeless", workload.Params{PEs: 1}, "pes", "from 2"},
		{"lublin:typeless", workload.Params{PEs: berth.MaxPEs + 1}, "pes", "1048576"},
		{"lublin:lanl-cm5", workload.Params{UMed: 4.4}, "umed", "from 4.5 to 10"},
		{"lublin:lanl-cm5", workload.Params{UMed: 10.1}, "umed", "from 4.5 to 10"},
		{"lublin:lanl-cm5", workload.Params{PEs: 64, UMed: 7}, "umed", "from 4.5 to 6"},
		{"lublin:lanl-cm5", workload.Params{UMed: math.NaN()}, "umed", "NaN"},
	} {
		_, err := workload.NewModel(c.name, c.params)
		wantMistake(t, err, c.field, c.words)
	}
}

func TestModelHeaderTellsTheSettings(t *testing.T) {
	h := model(t, "lublin:lanl-cm5", workload.Params{UMed: 5.5}).Header(7, 42)
	text := strings.Join(h, "\n")
	for _, want := range []string{"lublin:lanl-cm5", "UMed 5.5, seed 42", "MaxJobs: 7", "MaxProcs: 1024"} {
		if !strings.Contains(text, want) {
			t.Errorf("header lacks %q:\n%s", want, text)
		}
	}
}
