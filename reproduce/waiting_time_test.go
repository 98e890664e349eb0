package reproduce

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
)

// around returns four repetitions about a mean, so close that a difference of
// 0.5 can be told.
func around(mean float64) sample { return sample{mean - 0.1, mean, mean + 0.1, mean} }

// waitingAs makes data in which every claim but the negative one holds: eager
// utilises more everywhere, accepts fewer narrow and more wide requests, and
// longer limits are better. The negative claim, E4, contradicts T.
func waitingAs() *waitingData {
	d := &waitingData{}
	for _, s := range searchSettings() {
		d.search = append(d.search, comparison{
			setting: s, sequential: waitingMeans{utilization: around(60)}, eager: waitingMeans{utilization: around(63)},
		})
	}
	for i, limit := range waitLimits {
		accepted := 50 + 2*float64(i)
		d.waits = append(d.waits, comparison{
			setting:    uniformSetting(1, limit),
			sequential: waitingMeans{acceptance: around(accepted)}, eager: waitingMeans{acceptance: around(accepted - 5)},
		})
	}
	for _, load := range wideLoads {
		d.loads = append(d.loads, comparison{
			setting:    uniformSetting(load, 1),
			sequential: waitingMeans{narrow: around(80), wide: around(20)},
			eager:      waitingMeans{narrow: around(60), wide: around(22)},
		})
	}
	for range 20 {
		d.open.add([]float64{0, 0, 1})
	}
	return d
}

// swapped exchanges the data of the two policies; in E1, which is about one, of
// the filter that admits everything and the one that does not; in E2, of the
// shortest and the longest limit.
func (d *waitingData) swapped() *waitingData {
	s := &waitingData{open: d.open}
	s.open.k2One, s.open.filtered = d.open.filtered, d.open.k2One
	for _, rows := range []struct{ from, to *[]comparison }{{&d.search, &s.search}, {&d.loads, &s.loads}} {
		for _, c := range *rows.from {
			c.sequential, c.eager = c.eager, c.sequential
			*rows.to = append(*rows.to, c)
		}
	}
	s.waits = slices.Clone(d.waits)
	first, last := &s.waits[0], &s.waits[len(s.waits)-1]
	first.sequential, last.sequential = last.sequential, first.sequential
	first.eager, last.eager = last.eager, first.eager
	return s
}

func verdicts(claims []Claim) map[string]Verdict {
	found := map[string]Verdict{}
	for i := range claims {
		claims[i].settle()
		found[claims[i].ID] = claims[i].Verdict
		if claims[i].Magnitude != "" {
			found[claims[i].ID+"'s numbers"] = claims[i].Magnitude
		}
	}
	return found
}

func TestWaitingVerdictsComeFromTheData(t *testing.T) {
	d := waitingAs()
	want := map[string]Verdict{"T": Held, "E1": Held, "E2": Held, "E3": Held, "E4": NotHeld}
	if diff := cmp.Diff(want, verdicts(waitingClaims(d))); diff != "" {
		t.Error(diff)
	}
	want = map[string]Verdict{"T": NotHeld, "E1": NotHeld, "E2": NotHeld, "E3": NotHeld, "E4": Held}
	if diff := cmp.Diff(want, verdicts(waitingClaims(d.swapped()))); diff != "" {
		t.Error("swapped: ", diff)
	}
}

// One setting that speaks against a claim of all is enough, and some against
// one of nearly all are not.
func TestWaitingVerdictsBetween(t *testing.T) {
	d := waitingAs()
	swapped := d.swapped()
	d.search[7] = swapped.search[7]
	if got := judged(claimTheorem(d).Parts); got != NotHeld {
		t.Errorf("one setting against the theorem: %s", got)
	}
	for _, c := range []struct {
		against int
		want    Verdict
	}{{10, Held}, {11, WithinTolerance}, {21, WithinTolerance}, {22, NotHeld}} {
		d.search = append(slices.Clone(waitingAs().search[:c.against]), swapped.search[c.against:]...)
		if got := judged(claimUtilization(d).Parts); got != c.want {
			t.Errorf("%d of 216 settings against E4: %s, want %s", c.against, got, c.want)
		}
	}
	d = waitingAs()
	d.waits[2].eager.acceptance = around(*mean(d.waits[1].eager.acceptance) - 0.3)
	if got := judged(claimLimits(d).Parts); got != Held {
		t.Errorf("a step back of 0.3 points, less than the margin: %s", got)
	}
	d.waits[2].eager.acceptance = around(*mean(d.waits[1].eager.acceptance) - 1)
	if got := judged(claimLimits(d).Parts); got != NotHeld {
		t.Errorf("a step back of 1 point: %s", got)
	}
	d = waitingAs()
	d.loads[1].eager.wide = around(19.7)
	if got := judged(claimWide(d).Parts); got != Held {
		t.Errorf("0.3 points fewer wide ones, less than the margin: %s", got)
	}
	d.loads[1].eager.wide = around(19)
	if got := judged(claimWide(d).Parts); got != NotHeld {
		t.Errorf("a point fewer wide ones: %s", got)
	}
}

func mean(s sample) *float64 {
	e, _ := s.estimate()
	return e.Mean
}

// Without repetition there is no interval, and nothing to judge by but hashes.
func TestOneRepetitionIsNoTest(t *testing.T) {
	d := waitingAs()
	cut := func(m *waitingMeans) {
		for _, s := range []*sample{&m.utilization, &m.acceptance, &m.narrow, &m.wide} {
			*s = (*s)[:min(1, len(*s))]
		}
	}
	for _, rows := range [][]comparison{d.search, d.waits, d.loads} {
		for i := range rows {
			cut(&rows[i].sequential)
			cut(&rows[i].eager)
		}
	}
	want := map[string]Verdict{"T": NotTestable, "E1": Held, "E2": NotTestable, "E3": NotTestable, "E4": NotTestable}
	if diff := cmp.Diff(want, verdicts(waitingClaims(d))); diff != "" {
		t.Error(diff)
	}
}

// A difference counts only if it is large enough and can be told from chance.
func TestTally(t *testing.T) {
	at := func(gain sample) comparison {
		return comparison{sequential: waitingMeans{utilization: sample{0, 0, 0, 0}}, eager: waitingMeans{utilization: gain}}
	}
	got := tallyOf([]comparison{
		at(sample{1, 1.1, 1, 0.9}), at(sample{-1, -1.1, -1, -0.9}),
		at(sample{0.1, 0.11, 0.1, 0.09}),     // too small to matter
		at(sample{-3, 5, -4, 6}),             // chance
		at(sample{-0.1, -0.11, -0.1, -0.09}), // too small to matter
	})
	if got.better != 1 || got.worse != 1 || got.equal != 3 || got.best != 1 || got.least != -1 {
		t.Errorf("%+v", got)
	}
}

func TestSearchIsTheOneOfTheSpecification(t *testing.T) {
	settings := searchSettings()
	if len(settings) != 216 {
		t.Fatalf("%d settings, want 216", len(settings))
	}
	seen := map[string]bool{}
	for i := range settings {
		s := &settings[i]
		if seen[s.String()] {
			t.Errorf("%s is there twice", s)
		}
		seen[s.String()] = true
		if !s.fulfils() {
			t.Errorf("%s: P(A) = %.3f, so it does not fulfil the theorem's conditions", s, s.bandShare())
		}
	}
}

// P(A) by hand: m = 10, K1 = 0.4, K2 = 0.3 give the weights 1/3, 1/2, 1, then 1
// for 4 to 7, then 1, 1/2, 1/3; A is 4 to 7.
func TestConditionsOfTheTheorem(t *testing.T) {
	s := waitingSetting{sites: []berth.Count{10}, law: "theorem", k1: 400, k2: 300}
	total := 2*(1.0/3+1.0/2+1) + 4
	if got := s.bandShare(); math.Abs(got-4/total) > 1e-12 {
		t.Errorf("P(A) = %v, want %v", got, 4/total)
	}
	for _, c := range []struct {
		law    string
		k1, k2 int64
		want   bool
	}{
		{"theorem", 400, 300, true},
		{"theorem", 350, 300, false}, // 2 K1 = 1 - K2
		{"theorem", 600, 300, false}, // A is 6 and 7
		{"uniform", 400, 100, false}, // P(A) is 0.6, but 2 K1 < 1 - K2
		{"uniform", 400, 201, false}, // P(A) is 0.4
		{"none", 400, 300, false},
	} {
		s.law, s.k1, s.k2 = c.law, c.k1, c.k2
		if s.fulfils() != c.want {
			t.Errorf("%s, K1 %d, K2 %d: %v, P(A) = %v", c.law, c.k1, c.k2, s.fulfils(), s.bandShare())
		}
	}
}

// Ten requests on 4 PEs; what happened before the second arrived, at 10, and
// after the last, at 20, does not count.
func TestOutcomeOfARun(t *testing.T) {
	at := func(t berth.Time) *berth.Time { return &t }
	lines := []berth.Line{
		{ID: "1", Arrival: 0, NPE: 4, Accepted: true, Start: at(0), End: at(12)},   // 2 s in the window: 8
		{ID: "2", Arrival: 10, NPE: 1, Accepted: true, Start: at(12), End: at(15)}, // 3
		{ID: "3", Arrival: 10, NPE: 3, Reason: berth.NoCapacity},
	}
	for range 6 {
		lines = append(lines, berth.Line{Arrival: 10, NPE: 2, Reason: berth.NoCapacity})
	}
	lines = append(lines, berth.Line{ID: "10", Arrival: 20, NPE: 3, Accepted: true, Start: at(18), End: at(30)}) // 6
	got := waitingOutcomeOf(lines, 4, 3)
	got.hash = ""
	want := waitingOutcome{utilization: 17.0 / 40, acceptance: 2.0 / 9, narrow: 1.0 / 7, wide: 0.5}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(waitingOutcome{})); diff != "" {
		t.Error(diff)
	}
	if got := waitingOutcomeOf(lines, 4, 5); !math.IsNaN(got.wide) {
		t.Errorf("%v of no wide request accepted", got.wide)
	}
}

// The results do not depend on how many cores there are, and the same seed
// gives them again; another one does not.
func TestWaitingIsTheSameOnAnyNumberOfCores(t *testing.T) {
	measure := func(cores int, seed uint64) *waitingData {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		s := &session{Options: Options{Seed: seed}, repetitions: 2}
		return waitingDataOf(measured(t, waitingCells(s, waitingScale{repetitions: 2, requests: 40})), 2)
	}
	same := cmp.AllowUnexported(waitingData{}, comparison{}, waitingSetting{}, waitingMeans{}, openFilter{})
	one, four := measure(1, 3), measure(4, 3)
	if diff := cmp.Diff(one, four, same); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(one, measure(2, 4), same) {
		t.Error("the seed does not matter")
	}
	if len(one.search) != 216 || len(one.waits) != len(waitLimits) || len(one.loads) != len(wideLoads) || len(one.open.filtered) != 54 {
		t.Errorf("%d, %d, %d and %d settings", len(one.search), len(one.waits), len(one.loads), len(one.open.filtered))
	}
}

// The offered load is what the setting says.
func TestLoadOfTheWorkload(t *testing.T) {
	s := uniformSetting(2, 1)
	w, err := s.workload(2)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := w.Requests(20000)
	if err != nil {
		t.Fatal(err)
	}
	var work int64
	for i := range jobs {
		work += jobs[i].Parts[0].Variants[0].Area()
	}
	if load := float64(work) / float64(jobs[len(jobs)-1].Arrival) / 48; math.Abs(load-2) > 0.05 {
		t.Errorf("load %.3f, want 2", load)
	}
	s.law = "none"
	if _, err := s.run(t.Context(), nil, 1, 10); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v about an unknown law", err)
	}
}
