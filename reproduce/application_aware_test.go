package reproduce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/internal/stream"
)

// madeAware is the scale of made data.
var madeAware = awareScale{repetitions: 4, counts: []int{960, 1920, 2880}, measured: []int{1920}}

// madeMeasured stands for measurements that are there.
var madeMeasured = &awareSource{measured: &awareNet{name: netMeasured, period: 20, measured: [][]float64{{10, 12}, {20, 21, 22}}}}

// awareAs makes data in which every claim holds.
func awareAs() *awareData {
	d := &awareData{scale: madeAware, settings: awareSettings(madeAware, true), trials: map[string][][]float64{}, shown: netMeasured}
	small := sample{-0.01, 0, 0.01, 0}
	for _, s := range d.settings {
		load, at := float64(s.jobs)/960-1, 0 // 0 to 2
		if s.periods == awareSpans[1] {
			at = 1
		}
		published := awarePublished[at]
		d.runs = append(d.runs, make([][]float64, madeAware.repetitions))
		for r := range madeAware.repetitions {
			var values []float64
			for m := range s.matchers() {
				v := make([]float64, awKept)
				rejected, apt, makespan := 3+float64(2*load)-float64(at), 2000-float64(100*at), 30_000.0
				v[awTPT], v[awShared], v[awNear], v[awLate], v[awSharedAPT], v[awSharedMakespan], v[awSoftware] = 90, 30, 75, 0.1, 2000, 20_000, 2.5
				switch {
				case s.jobs == crowdedJobs:
					rejected = 60
				case m == plainMGA || m == plainMinMin:
					rejected = (5-float64(at))/(1-published.rejected[m-plainMGA]/100) + float64(load-1)/2 // grows less
					apt /= 1 - published.apt[m-plainMGA]/100
					makespan /= 1 - published.makespan[m-plainMGA]/100
					v[awTPT] = 40
				case m >= fairMGA:
					rejected += 0.3
				default:
					v[awSharedAPT], v[awSharedMakespan] = 1900, 19_900
				}
				v[awRejected], v[awAPT], v[awMakespan] = rejected+small[r], apt+small[r], makespan+small[r]
				v[awSharedAPTOfAJSM], v[awSharedMakespanOfAJSM] = 1900+small[r], 19_900+small[r]
				values = append(values, v...)
			}
			d.runs[len(d.runs)-1][r] = values
		}
	}
	for net, rows := range map[string][4]float64{netSynthetic: {20, 30, 10, 10}, netUniform: {30, 10, 10.1, 10}, netMeasured: {20, 15, 12, 10}} {
		for r := range madeAware.repetitions {
			var values []float64
			for _, x := range rows {
				values = append(values, x+small[r], x+small[r])
			}
			d.trials[net] = append(d.trials[net], values)
		}
	}
	for i := range curveKept * curveLength {
		d.curve = append(d.curve, float64(i%curveLength))
	}
	return d
}

// swapped exchanges the data of two matchers.
func (d *awareData) swapped(a, b int) *awareData {
	s := *d
	s.runs = nil
	for i := range d.settings {
		var rows [][]float64
		for _, values := range d.runs[i] {
			values = slices.Clone(values)
			if most := d.settings[i].matchers(); a < most && b < most {
				for figure := range awKept {
					values[a*awKept+figure], values[b*awKept+figure] = values[b*awKept+figure], values[a*awKept+figure]
				}
			}
			rows = append(rows, values)
		}
		s.runs = append(s.runs, rows)
	}
	return &s
}

// swappedModels exchanges the forecasts of two models.
func (d *awareData) swappedModels(a, b int) *awareData {
	s := *d
	s.trials = map[string][][]float64{}
	for net, rows := range d.trials {
		for _, values := range rows {
			values = slices.Clone(values)
			for figure := range trialKept {
				values[a*trialKept+figure], values[b*trialKept+figure] = values[b*trialKept+figure], values[a*trialKept+figure]
			}
			s.trials[net] = append(s.trials[net], values)
		}
	}
	return &s
}

func TestAwareVerdictsComeFromTheData(t *testing.T) {
	d := awareAs()
	held := verdicts(awareClaims(d))
	for id, verdict := range held {
		if verdict != Held {
			t.Errorf("%s is %s, want it held", id, verdict)
		}
	}
	for _, c := range []struct {
		data *awareData
		want map[string]Verdict
	}{
		{d.swapped(awareAJSM, plainMinMin), map[string]Verdict{
			"R1": NotHeld, "F1": NotHeld, "F2": NotHeld, "F3": NotHeld, "R2b": NotHeld, "R4": NotHeld, "S1c": Inconclusive, "S1d": Inconclusive, "R5b": NotHeld, "R8": NotHeld,
		}},
		{d.swapped(awareAJSM, plainMGA), map[string]Verdict{"R1": NotHeld, "F1": NotHeld, "F2": NotHeld, "F3": NotHeld, "R4": NotHeld, "S1": Inconclusive, "S1b": Inconclusive, "R8": NotHeld}},
		{d.swapped(plainMGA, plainMinMin), map[string]Verdict{"M1": NotHeld}},
		{d.swapped(plainMinMin, fairMinMin), map[string]Verdict{"R1": NotHeld, "R5": NotHeld, "R4": NotHeld}},
		{d.swapped(awareAJSM, fairMGA), map[string]Verdict{"R5b": NotHeld, "R1": Held}},
		{d.swappedModels(byARIMA, byLast), map[string]Verdict{"R6": NotHeld}},
		{d.swappedModels(byARIMA, byMean), map[string]Verdict{"R6": NotHeld}},
	} {
		got := verdicts(awareClaims(c.data))
		for id, want := range c.want {
			if got[id] != want {
				t.Errorf("%s is %s with data swapped, want %s", id, got[id], want)
			}
		}
	}
}

// Claims about the course over loads and periods, about lateness and about
// transfers follow their figures alone.
func TestAwareVerdictsFollowTheirFigures(t *testing.T) {
	change := func(figure int, of func(s awareSetting, x float64) float64) map[string]Verdict {
		d := awareAs()
		for i, s := range d.settings {
			for _, values := range d.runs[i] {
				for m := range s.matchers() {
					values[m*awKept+figure] = of(s, values[m*awKept+figure])
				}
			}
		}
		return verdicts(awareClaims(d))
	}
	if got := change(awRejected, func(s awareSetting, x float64) float64 { return x - float64(s.jobs)/100 }); got["R2"] != NotHeld {
		t.Errorf("R2 is %s although fewer are rejected of more", got["R2"])
	}
	if got := change(awRejected, func(s awareSetting, x float64) float64 { return x + float64(s.periods)/20 }); got["R3"] != NotHeld {
		t.Errorf("R3 is %s although 120 periods reject more", got["R3"])
	}
	if got := change(awLate, func(_ awareSetting, x float64) float64 { return x + 3 }); got["D1"] != NotHeld {
		t.Errorf("D1 is %s with 3 %% late", got["D1"])
	}
	for less, want := range map[float64][2]Verdict{4: {Held, Held}, 24: {Held, WithinTolerance}, 30: {NotHeld, WithinTolerance}, 45: {NotHeld, NotHeld}} {
		got := change(awNear, func(_ awareSetting, x float64) float64 { return x - less })
		if got["T4"] != want[0] || got["T4's numbers"] != want[1] {
			t.Errorf("T4 is %s and its numbers %s with %v %%, want %s", got["T4"], got["T4's numbers"], 75-less, want)
		}
	}
	if got := change(awRejected, func(s awareSetting, x float64) float64 {
		if s.jobs == crowdedJobs {
			return 60
		}
		return x
	}); got["R7"] != Held {
		t.Errorf("R7 is %s where AJSM and MGA are alike", got["R7"])
	}
	d := awareAs()
	for i := range d.runs[3] { // 5,000 jobs over 60 periods
		d.runs[3][i][plainMGA*awKept+awRejected] += 6
	}
	if got := verdicts(awareClaims(d))["R7"]; d.settings[3].jobs != crowdedJobs || got != NotHeld {
		t.Errorf("R7 is %s where MGA rejects 6 points more", got)
	}
}

// One repetition gives no interval, and nothing is testable.
func TestAwareNeedsRepetitions(t *testing.T) {
	d := awareAs()
	for i := range d.runs {
		d.runs[i] = d.runs[i][:1]
	}
	for net := range d.trials {
		d.trials[net] = d.trials[net][:1]
	}
	for id, verdict := range verdicts(awareClaims(d)) {
		if verdict != NotTestable {
			t.Errorf("%s is %s", id, verdict)
		}
	}
}

// Table 2 has the sum of nodes that the paper states, and equations 3 to 5 the
// values of spec 5, a, in thousandths.
func TestGridOfTable2(t *testing.T) {
	sum := berth.Count(0)
	for _, s := range awareGrid[:10] {
		sum += s.nodes
	}
	if sum != 74626 || len(awareGrid) != 20 {
		t.Errorf("%d nodes at GC1 to GC10 of %d sites", sum, len(awareGrid))
	}
	speeds := map[int][2]berth.Speed{1: {1465, 273}, 2: {2200, 840}, 3: {1330, 1000}, 5: {242, 1406}, 11: {1500, 0}}
	for k, want := range speeds {
		if s := &awareGrid[k-1]; s.speed() != want[0] || s.manycore() != want[1] {
			t.Errorf("GC%d has the speeds %d and %d, want %d", k, s.speed(), s.manycore(), want)
		}
	}
	for _, c := range []struct {
		site         int
		accelerators int
		standard     berth.Duration
		want         float64 // of the paper's tables, exactly
	}{{2, 1, 17890, 21296.1}, {3, 1, 17890, 17890}, {1, 0, 2737, 1868.3}, {2, 0, 2737, 1244.1}, {11, 0, 2737, 1824.7}} {
		site := awareGrid[c.site-1].site(c.site-1, 1)
		run := site.Pools[0].SpeedFor(&berth.Requirements{Accelerators: c.accelerators}).Scale(c.standard)
		if math.Abs(float64(run)-c.want) > 2 { // speeds are in thousandths, times in seconds
			t.Errorf("%d s take %d s at GC%d, want %v", c.standard, run, c.site, c.want)
		}
	}
}

// Nearly every job has a site with its program, as the specification wants; sites
// have as many as Table 2 says; others leave what their class says.
func TestWorldIsTheOneOfTheSpecification(t *testing.T) {
	source := madeSource(t)
	w := newAwareWorld(1, syntheticNet, 60)
	jobs := w.jobs(source.records, 4000, 60, printedDemands)
	found := 0
	for i := range jobs {
		r := &jobs[i]
		var asked, given int
		if _, err := fmt.Sscanf(r.Version, "1.%d", &asked); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(w.sites, func(s berth.Site) bool {
			return slices.ContainsFunc(s.Software, func(p berth.Software) bool {
				_, err := fmt.Sscanf(p.Version, "1.%d", &given)
				return err == nil && p.Name == r.Software && given >= asked && p.Licences >= r.Licences
			})
		}) {
			found++
		}
		run := r.Parts[0].Variants[0].Duration
		if factor := float64(r.Deadline-r.Arrival) / float64(run); factor < leastFactor-0.01 || factor > printedDemands.mostFactor || r.StorageMB < leastMB || r.StorageMB > mostMB || run < leastRun {
			t.Fatalf("job %+v", r)
		}
	}
	if part := float64(found) / float64(len(jobs)); part < 0.93 || part > 0.99 {
		t.Errorf("%.3f of the jobs have a site", part)
	}
	for k := range w.sites {
		if n := len(w.sites[k].Software); n != awareGrid[k].software {
			t.Errorf("GC%d has %d programs", k+1, n)
		}
		nodes, share := float64(awareGrid[k].nodes), awareShares[awareGrid[k].free]
		for point := range 20 {
			free := float64(w.free(k, point))
			if free < max(1, math.Floor(nodes*share[0]/1000)) || free > max(1, nodes*share[1]/1000) {
				t.Errorf("GC%d has %v of %v nodes free", k+1, free, nodes)
			}
		}
	}
}

// madeSource is where jobs come from without anybody's data.
func madeSource(t *testing.T) *awareSource {
	t.Helper()
	source, err := awareSources(&session{Options: Options{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// The independent validator accepts the schedule of every matcher: nodes beside
// what others use, programs, licences, storage, transfers. The figures of AJSM
// follow from its lines.
func TestAwareSchedulesAreTrue(t *testing.T) {
	oneGoroutine(t)
	source := madeSource(t)
	const periods = 6
	w := newAwareWorld(2, syntheticNet, periods)
	jobs := w.jobs(source.records, 200, periods, printedDemands)
	byName := map[string]*berth.Site{}
	for k := range w.sites {
		byName[w.sites[k].Name] = &w.sites[k]
	}
	options := check.Options{
		Sizes: func(site, _ string) (berth.Count, bool) { return byName[site].Pools[0].PEs, true },
		Speed: func(site, _ string, accelerated bool) berth.Speed {
			need := berth.Requirements{}
			if accelerated {
				need.Accelerators = 1
			}
			return byName[site].Pools[0].SpeedFor(&need)
		},
		Software: func(site string) []berth.Software { return byName[site].Software },
		Storage:  func(site string) (int64, bool) { return byName[site].StorageMB, true },
	}
	for i := range awareMatchers {
		m := &awareMatchers[i]
		lines, err := w.replay(t.Context(), m, jobs, periods)
		if err != nil {
			t.Fatal(m.name, err)
		}
		var file bytes.Buffer
		out := json.NewEncoder(&file)
		for k := range lines {
			if err := out.Encode(&lines[k]); err != nil {
				t.Fatal(err)
			}
		}
		report, err := check.File(&file, m.name, options)
		if err != nil {
			t.Fatal(err)
		}
		if !report.Valid() || report.Accepted == 0 {
			t.Errorf("%s: %d accepted, %d violations, such as %v", m.name, report.Accepted, len(report.Violations), report.Violations[:min(3, len(report.Violations))])
		}
		kinds := map[berth.Kind]int{}
		for k := range lines {
			kinds[lines[k].Kind]++
			if l := &lines[k]; k < len(jobs) && l.Accepted == (l.Reason != "") {
				t.Fatalf("%s leaves %s undecided", m.name, l.ID)
			} else if k < len(jobs) && l.ActualEnd != nil {
				t.Fatalf("others take the nodes of %s, which ends at %d", l.ID, *l.ActualEnd)
			}
		}
		if kinds[berth.KindOutage] < 20*periods/2 || kinds[berth.KindStaging] == 0 {
			t.Errorf("%s: %v", m.name, kinds)
		}
		o := w.outcome(jobs, lines[:len(jobs)], lines[:len(jobs)])
		if want := 100 - 100*float64(report.Accepted)/float64(len(jobs)); math.Abs(o[awRejected]-want) > 1e-9 || math.Abs(o[awShared]+o[awRejected]-100) > 1e-9 || o[awAPT] != o[awSharedAPT] {
			t.Errorf("%s: figures %v, %v rejected", m.name, o, want)
		}
	}
}

// Figures worked by hand: three jobs, of which AJSM accepts two, one of them the
// other matcher too.
func TestAwareOutcome(t *testing.T) {
	w := newAwareWorld(1, syntheticNet, 1)
	w.links[1] = newAwareLink(5, slices.Repeat([]float64{10}, 2000)) // GC2 gets 10 MB/s
	job := func(id string, mb int64) berth.Request {
		r := berth.Rigid(id, 10, 10, 4000, 1, 2200)
		r.StorageMB = mb
		return r
	}
	jobs := []berth.Request{job("a", 1000), job("b", 500), job("c", 100)}
	line := func(id string, accepted bool, start, end berth.Time) berth.Line {
		l := berth.Line{ID: id, Arrival: 10, Deadline: 1400, Accepted: accepted, Site: "GC2"}
		if accepted {
			l.Start, l.End = &start, &end
		} else {
			l.Reason = berth.NoSoftware
		}
		return l
	}
	// At GC2 each runs for 1,000 s; a's data take 100 s and b's 50 s.
	ajsm := []berth.Line{line("a", true, 240, 1335), line("b", true, 240, 1290), line("c", false, 0, 0)}
	other := []berth.Line{line("a", false, 0, 0), line("b", true, 480, 1380), line("c", false, 0, 0)}
	other[1].Deadline, *other[1].End = 1529, 1500 // 20 s foreseen, so it really ends at 1530
	got := w.outcome(jobs, other, ajsm)
	want := []float64{
		awRejected: 200.0 / 3, awSoftware: 200.0 / 3, awAPT: 1490, awAPTAll: 1490.0 / 3, awTPT: 0.00149, awMakespan: 1490, awLate: 100,
		awNear: 0, awError: 60, awShared: 100.0 / 3, awSharedAPT: 1490, awSharedAPTOfAJSM: 1280, awSharedMakespan: 1490, awSharedMakespanOfAJSM: 1280,
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*(1+math.Abs(a)) }
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	got = w.outcome(jobs, ajsm, ajsm)
	if !near(got[awNear], 100) || !near(got[awError], 2.5) || !near(got[awLate], 0) || !near(got[awMakespan], 1325) {
		t.Errorf("AJSM's figures are %v", got)
	}
}

// A transfer takes what a walk over the link's rates says, and a forecast of a
// constant link is exact.
func TestLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := make([]float64, history+50)
		for i := range rates {
			rates[i] = float64(rapid.IntRange(1, 9).Draw(t, "rate"))
		}
		l := newAwareLink(5, rates)
		from := 5 * rapid.IntRange(0, 40).Draw(t, "period")
		megabytes := rapid.Int64Range(0, 4000).Draw(t, "megabytes")
		left, want := float64(megabytes), 0.0
		for i := history + from/5; left > 0; i++ {
			rate := rates[i%len(rates)]
			step := min(5, left/rate)
			want += step
			left -= step * rate
		}
		if got := l.takes(berth.Time(from), megabytes); math.Abs(got-want) > 1e-6 {
			t.Fatalf("%v s, want %v", got, want)
		}
	})
	l := newAwareLink(5, slices.Repeat([]float64{50}, history+10))
	entry, _ := forecast.ModelNamed("arima")
	f := l.foresee(entry, 10, "GC2")
	if f.From != 10 || f.Period != 5 || f.Kilobytes[0] != 250_000 || f.Kilobytes[1] != 500_000 {
		t.Errorf("forecast %+v of 50 MB/s", f)
	}
	rates := make([]float64, 7)
	toAndFro(rates, []float64{1, 2, 3}, newRand(stream.New(1, "place").Source()))
	for i := 1; i < len(rates); i++ {
		if math.Abs(rates[i]-rates[i-1]) != 1 {
			t.Errorf("%v jumps", rates)
		}
	}
}

// Others get the highest PEs that nobody uses, and less where there are too few.
func TestHighestUnused(t *testing.T) {
	for _, c := range []struct {
		used string
		n    berth.Count
		want string
	}{{"", 3, "7-9"}, {"", 0, ""}, {"8", 3, "6-7,9"}, {"2-4,8", 20, "0-1,5-7,9"}, {"0-9", 2, ""}, {"0-1", -1, ""}} {
		used, err := berth.ParsePESet(c.used)
		if err != nil {
			t.Fatal(err)
		}
		if got := highest(10, used, c.n).String(); got != c.want {
			t.Errorf("%d beside %q: %q, want %q", c.n, c.used, got, c.want)
		}
	}
}

// A run gives the same figures whatever was measured before it, and the jobs of a
// smaller count are among those of a larger one.
func TestAwareRunsRepeat(t *testing.T) {
	oneGoroutine(t)
	source := madeSource(t)
	measure := func(seed uint64) []float64 {
		w := newAwareWorld(seed, syntheticNet, 4)
		values, err := w.measure(t.Context(), &awareSetting{netSynthetic, 4, 60, printedDemands}, w.jobs(source.records, 60, 4, printedDemands))
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	first := measure(3)
	if diff := cmp.Diff(first, measure(3), cmp.Comparer(same)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(first, measure(4), cmp.Comparer(same)) {
		t.Error("the seed does not matter")
	}
	if len(first) != len(awareNames(fairMinMin+1)) {
		t.Errorf("%d values", len(first))
	}
	w := newAwareWorld(3, syntheticNet, 4)
	few, many := w.jobs(source.records, 50, 60, printedDemands), w.jobs(source.records, 60, 60, printedDemands)
	for i := range few {
		if !slices.ContainsFunc(many, func(r berth.Request) bool {
			return r.Arrival == few[i].Arrival && r.Deadline == few[i].Deadline && r.StorageMB == few[i].StorageMB && r.Software == few[i].Software
		}) {
			t.Errorf("%s is not among more jobs", few[i].ID)
		}
	}
}

// same compares values, of which NaN is one.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// What stands in for absent data is said by name, and what is drawn is named.
func TestAwareReportSaysWhatIsSynthetic(t *testing.T) {
	without := strings.Join(awareNotes(madeSource(t)), "\n")
	for _, words := range []string{hpc2n.file + ".swf.gz was not there", "Lublin-Feitelson", measuredFile, "R8 is not testable", "Bandwidths (synthetic)", "Programs (synthetic)", "Free nodes (synthetic)"} {
		if !strings.Contains(without, words) {
			t.Errorf("the notes do not say %q", words)
		}
	}
	with := &awareSource{measured: madeMeasured.measured, log: &openLog{archiveLog: &hpc2n}}
	if notes := strings.Join(awareNotes(with), "\n"); strings.Contains(notes, "not there") || !strings.Contains(notes, hpc2n.thanks) {
		t.Errorf("notes with all data: %s", notes)
	}
	e := newAwareWorld(1, syntheticNet, 1).config(&awareMatchers[plainMGA])
	if !e.Unaware || e.Match != "mga" || e.Staging != engine.StagingHold || e.Trigger != engine.TriggerOnPeriod || e.Period != awarePeriod {
		t.Errorf("%+v", e)
	}
}
