package advise

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// scheduler is that of Li et al. on one pool.
func scheduler(t *testing.T, pes berth.Count) engine.Config {
	t.Helper()
	config := engine.Config{Sites: sim.OnePool(pes, berth.Early), Place: "first-fit"}
	preset, ok := engine.PresetNamed("li")
	if !ok {
		t.Fatal("no preset li")
	}
	preset.Apply(&config)
	return config
}

// drawn returns n requests, one arriving about every gap seconds.
func drawn(seed uint64, n, gap int, widest berth.Count, longest int64) []berth.Plain {
	r := rand.New(rand.NewPCG(seed, 1))
	plain := make([]berth.Plain, n)
	at := berth.Time(0)
	for i := range plain {
		at += berth.Time(r.IntN(2*gap + 1))
		d := berth.Duration(1 + r.Int64N(longest))
		ready := at + berth.Time(r.Int64N(longest))
		plain[i] = berth.Plain{
			ID: strconv.Itoa(i + 1), Arrival: at, Ready: ready, Deadline: ready + berth.Time(d) + berth.Time(r.Int64N(longest)),
			Duration: d, NPE: 1 + berth.Count(r.IntN(int(widest))),
		}
	}
	return plain
}

// accepts simulates the requests and reports whether the last one is accepted.
func accepts(t *testing.T, config engine.Config, plain []berth.Plain) bool {
	t.Helper()
	lines, err := sim.Replay(t.Context(), config, sim.Workload{Plain: plain}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines[len(plain)-1].Accepted
}

// The least change is that which is found by trying every second and every PE.
func TestLeastChangeIsTheLeast(t *testing.T) {
	const pes = 6
	looked := 0
	for seed := range uint64(8) {
		plain := drawn(seed, 40, 6, pes, 20)
		config := scheduler(t, pes)
		work := sim.Workload{Plain: plain}
		work.Refused = func(e *engine.Engine, r *berth.Request) error {
			before := e.Hash()
			got, err := LeastOf(e, r, 1)
			if err != nil {
				return err
			}
			if e.Hash() != before {
				t.Errorf("seed %d, request %s: the engine has changed", seed, r.ID)
			}
			at := slices.IndexFunc(plain, func(p berth.Plain) bool { return p.ID == r.ID })
			tried := func(change func(p *berth.Plain)) bool {
				some := slices.Clone(plain[:at+1])
				change(&some[at])
				return accepts(t, config, some)
			}
			var want Least
			for k := berth.Duration(1); want.Later == 0; k++ {
				if tried(func(p *berth.Plain) { p.Deadline += berth.Time(k) }) {
					want.Later = k
				}
			}
			for k := berth.Count(1); k < plain[at].NPE && want.Fewer == 0; k++ {
				if tried(func(p *berth.Plain) { p.NPE -= k }) {
					want.Fewer = k
				}
			}
			for k := berth.Duration(1); k < plain[at].Duration && want.Shorter == 0; k++ {
				if tried(func(p *berth.Plain) { p.Duration -= k }) {
					want.Shorter = k
				}
			}
			if got != want {
				t.Errorf("seed %d, request %s: %+v, want %+v", seed, r.ID, got, want)
			}
			looked++
			return nil
		}
		if _, err := sim.Replay(t.Context(), config, work, nil); err != nil {
			t.Fatal(err)
		}
	}
	if looked < 30 {
		t.Errorf("only %d refusals were looked at", looked)
	}
}

func options() *Options {
	return &Options{Placements: []string{"first-fit", "pe-worst", "least-pressure"}, Segments: 4, Sample: 50, Shares: []float64{0.1, 0.5}, Bound: 10, Seed: 1}
}

// Where nothing contends, everything is accepted and nothing is gained by anything.
func TestNothingToGain(t *testing.T) {
	plain := drawn(3, 800, 100, 1, 100)
	h := &History{PEs: 800, Plain: plain, Config: scheduler(t, 800)}
	a, err := Ask(t.Context(), h, options())
	if err != nil {
		t.Fatal(err)
	}
	all, none := 100.0, 0.0
	full, zero := measure.Estimate{Mean: &all, CI95: &[2]float64{100, 100}}, measure.Estimate{Mean: &none, CI95: &[2]float64{}}
	for _, p := range a.Placements {
		if diff := cmp.Diff([]measure.Estimate{full, full}, []measure.Estimate{p.Requests, p.Work}); diff != "" {
			t.Errorf("%s: %s", p.Name, diff)
		}
	}
	for _, c := range a.Changes {
		if diff := cmp.Diff([]measure.Estimate{zero, zero, zero}, []measure.Estimate{c.Requests, c.Work, c.Wait}); c.Trait != Width && diff != "" {
			t.Errorf("%s %s: %s", c.Trait, c.Name, diff)
		}
	}
	if a.Recommended != "first-fit" || a.Comparisons[0].Verdict != Same || a.Comparisons[1].Verdict != Same {
		t.Errorf("recommended %s, %+v", a.Recommended, a.Comparisons)
	}
	if r := a.Refusals; r.Refused != 0 || r.Sample != 0 || r.HourLater != nil || r.Ways[0].Median != nil {
		t.Errorf("%+v", r)
	}
	if s := a.Shares[1]; *s.Accepted.Mean != 100 || *s.MeanGrowth.Mean != 0 || s.P95Percent.Mean != nil || a.Likely != nil {
		t.Errorf("%+v", s)
	}
}

// Equal questions have equal answers, and another seed other samples.
func TestAdviceIsRepeatable(t *testing.T) {
	h := &History{PEs: 16, Plain: drawn(5, 800, 60, 16, 100), Config: scheduler(t, 16)}
	ask := func(o *Options) string {
		a, err := Ask(t.Context(), h, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if a.Refusals.Sample != 50 || a.Refusals.Refused <= 50 {
			t.Errorf("%d of %d refusals", a.Refusals.Sample, a.Refusals.Refused)
		}
		return string(text)
	}
	first, other := options(), options()
	other.Seed = 2
	runs := 0
	first.Progress = func(_ float64, of int) { runs = of }
	text := ask(first)
	if again := ask(options()); again != text {
		t.Errorf("%s\n%s", text, again)
	}
	if ask(other) == text {
		t.Error("the seed does not matter")
	}
	if runs != 4*(3+len(Changes())+1+1) {
		t.Errorf("%d runs", runs)
	}
}

// What is too small is refused with what would be right.
func TestTooSmall(t *testing.T) {
	config := scheduler(t, 16)
	for want, with := range map[string]struct {
		plain    []berth.Plain
		segments int
	}{
		"199 requests; want at least 200":          {drawn(1, 199, 60, 16, 100), 2},
		"4 of 399 requests, 99 in each; want at":   {drawn(1, 399, 60, 16, 100), 4},
		"so at most 3 segments":                    {drawn(1, 399, 60, 16, 100), 4},
		"1; an interval needs at least 2":          {drawn(1, 399, 60, 16, 100), 1},
		"which is less than 5 times the mean dura": {drawn(1, 400, 1, 16, 100_000), 2},
	} {
		o := options()
		o.Segments = with.segments
		_, err := Ask(t.Context(), &History{PEs: 16, Plain: with.plain, Config: config}, o)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestChanges(t *testing.T) {
	base := berth.Plain{ID: "1", Arrival: 100, Ready: 150, Deadline: 180, Duration: 7, NPE: 5}
	type result struct {
		NPE             berth.Count
		Ready, Deadline berth.Time
		Duration, Run   berth.Duration
	}
	want := []result{
		{5, 150, 3780, 7, 3},
		{5, 150, 14580, 7, 3},
		{3, 150, 187, 14, 6},
		{10, 150, 177, 4, 2},
		{5, 100, 130, 7, 3},
		{5, 125, 155, 7, 3},
		{5, 200, 230, 7, 3},
	}
	for i, c := range Changes() {
		p, run := base, berth.Duration(3)
		c.Apply(&p, &run, 10)
		if got := (result{p.NPE, p.Ready, p.Deadline, p.Duration, run}); got != want[i] {
			t.Errorf("%s %s: %+v, want %+v", c.Trait, c.Name, got, want[i])
		}
	}
	for _, c := range Changes()[2:4] { // what cannot be halved, or would be too wide
		p, run := base, berth.Duration(3)
		p.NPE = 1
		same := p
		if c.Apply(&p, &run, 1); p != same || run != 3 {
			t.Errorf("%s: %+v", c.Name, p)
		}
	}
}

func TestRecommend(t *testing.T) {
	names := []string{"a", "b", "c"}
	flat := func(x float64) []float64 { return []float64{x, x + 1, x - 1, x} }
	same, more := flat(50), flat(60)
	for _, row := range []struct {
		requests, work [][]float64
		best           int
		verdicts       []Verdict
	}{
		{[][]float64{same, same, same}, [][]float64{same, same, same}, 0, []Verdict{Same, Same}},
		{[][]float64{same, more, same}, [][]float64{same, same, same}, 1, []Verdict{Better, Better}},
		{[][]float64{same, more, same}, [][]float64{more, same, same}, 1, []Verdict{Trade, Better}},
		{[][]float64{same, same, same}, [][]float64{same, same, more}, 2, []Verdict{Better, Better}},
	} {
		best, comparisons := Recommend(names, row.requests, row.work)
		if best != row.best || comparisons[0].Verdict != row.verdicts[0] || comparisons[1].Verdict != row.verdicts[1] {
			t.Errorf("%d, %+v; want %d, %v", best, comparisons, row.best, row.verdicts)
		}
	}
}

func TestLargest(t *testing.T) {
	growth := func(share, mean, high float64) ShareOutcome {
		return ShareOutcome{Share: share, P95Percent: measure.Estimate{Mean: &mean, CI95: &[2]float64{2*mean - high, high}}}
	}
	all := []ShareOutcome{growth(0.1, 2, 5), growth(0.2, 4, 12), growth(0.3, 20, 30), growth(0.4, 3, 4)}
	surely, likely := largest(all, 10)
	if surely == nil || *surely != 0.1 || likely == nil || *likely != 0.2 {
		t.Errorf("%v, %v", surely, likely)
	}
	if surely, likely = largest(all, 1); surely != nil || likely != nil {
		t.Errorf("%v, %v", surely, likely)
	}
}

// The bootstrap draws whole groups: groups that are alike inside and differ from one another
// leave the median anywhere between them.
func TestBetween(t *testing.T) {
	median := func(sorted []float64) float64 { return quantile(sorted, 0.5) }
	if ci := between([][]float64{{1, 1, 1}, nil}, 1, "a", median); ci != nil {
		t.Errorf("%v of one group", ci)
	}
	if ci := between([][]float64{{1, 1, 1}, {9, 9, 9}, {5, 5}}, 1, "a", median); ci == nil || *ci != [2]float64{1, 9} {
		t.Errorf("%v", ci)
	}
	if e := partOf([]float64{100, 90}); *e.Mean != 95 || e.CI95[1] != 100 || e.CI95[0] <= 0 {
		t.Errorf("%v, %v", *e.Mean, *e.CI95)
	}
	if got := quantile([]float64{1, 2, 3, 4}, 0.5); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("median %v of nothing", got)
	}
}
