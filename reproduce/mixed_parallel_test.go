package reproduce

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// allLogs are the logs as if they were there.
func allLogs() []*openLog {
	var logs []*openLog
	for i := range mixedLogs {
		logs = append(logs, &openLog{archiveLog: &mixedLogs[i], digest: "made"})
	}
	return logs
}

// madeScale is that of made data.
var madeScale = mixedScale{starts: 4, taggings: 1, workflows: 1, timed: 4, densities: ninths}

// mixedAs makes data in which every claim holds.
func mixedAs() *mixedData {
	d := &mixedData{
		schedules: mixedSchedules(allLogs()), kinds: mixedKinds(), starts: 4,
		logs: map[string][]float64{}, times: map[mixedKind][][]float64{},
	}
	for i := range mixedLogs {
		d.logs[mixedLogs[i].name] = []float64{1000, 300, []float64{50, 70, 30, 60}[i], 3, 1.5, 4, 2}
	}
	for i := range machineSizes {
		d.machines = append(d.machines, around(float64(100-10*i)))
	}
	for i := range d.schedules {
		var starts [][]float64
		for r := range 4 {
			var values []float64
			for k := range d.kinds {
				for figure, x := range madeFigures(&d.schedules[i], &d.kinds[k]) {
					values = append(values, x+[]float64{-1, 0, 1, 0}[r]*1e-3*float64(1+figure%3))
				}
			}
			starts = append(starts, append(values, 100, 80))
		}
		d.runs = append(d.runs, starts)
	}
	for _, kind := range madeScale.timedKinds() {
		n, density := 50.0, 0.5
		if kind.parameter == "tasks" {
			n = kind.value
		} else {
			density = kind.value
		}
		for r := range 4 {
			var row []float64
			for range timeForms {
				for _, name := range timedNames {
					ms := (n/10 + density) * (1 + 0.01*float64(r))
					if strings.HasPrefix(name, "dl-rc") {
						ms *= 10 + n
					}
					row = append(row, ms)
				}
			}
			d.times[kind] = append(d.times[kind], row)
		}
	}
	return d
}

// madeFigures are a scenario's figures, much as in the paper.
func madeFigures(m *mixedSchedule, k *mixedKind) []float64 {
	f := make([]float64, mixedKept)
	for y := range bdNames {
		for x, turnaround := range []float64{1000, 1000.5, 990, 985} {
			f[atBL+x*len(bdNames)+y] = turnaround
		}
	}
	copy(f[atTAT:], []float64{30, 25, 0.2, 0.4})
	f[atTAT+bdAll] += 10 * (0.2 - m.share)
	switch mixedLogs[m.log].name {
	case "blue":
		f[atTAT+bdAll] += 3
	case "osc":
		f[atTAT+bdAll] -= 3
	case "ds":
		f[atTAT+bdAll]--
	}
	if k.parameter == "width" {
		f[atTAT+bdAll] += 10 * (k.value - 0.5)
		if k.value == 0.1 {
			copy(f[atTAT:], []float64{0.02, 20, 0.3, 0.4})
		}
	}
	copy(f[atCPU:], []float64{40, 35, 1, 0})
	copy(f[at6Tight:], []float64{180, 6, 6.2, 13, 4})
	if m.share == 0.5 {
		f[at6Tight+rcCPAR] = 8
	}
	if k.parameter == "tasks" {
		f[at6Tight+rcCPAR] += 0.02 * (k.value - 50)
	}
	copy(f[at6CPU:], []float64{3500, 250, 230, 6, 0.2})
	copy(f[at7Tight:], []float64{11, 55, 4.7, 2.5})
	copy(f[at7CPU:], []float64{124, 1.5, 1.5, 1})
	copy(f[at7Kept:], []float64{124, 1.5, 24, 21})
	copy(f[atTight:], []float64{3000, 1000, 1001, 1150, 1015, 950, 940})
	copy(f[atHours:], []float64{9000, 600, 590, 60, 56, 122, 110})
	copy(f[atHours7:], []float64{600, 56, 56, 55})
	copy(f[atKept:], []float64{600, 56, 122, 110})
	return f
}

// swapped exchanges the data of two planners, each given by its places in
// bdNames or dlNames.
func (d *mixedData) swapped(names []string, a, b string) *mixedData {
	i, j := slices.Index(names, a), slices.Index(names, b)
	var pairs [][2]int
	if &names[0] == &bdNames[0] {
		pairs = [][2]int{{atTAT + i, atTAT + j}, {atCPU + i, atCPU + j}}
	} else {
		pairs = [][2]int{{atTight + i, atTight + j}, {atHours + i, atHours + j}}
		for _, of := range []struct {
			list  []int
			first []int
		}{{of6, []int{at6Tight, at6CPU}}, {of7, []int{at7Tight, at7CPU, at7Kept, atHours7, atKept}}} {
			x, y := slices.Index(of.list, i), slices.Index(of.list, j)
			if x >= 0 && y >= 0 {
				for _, first := range of.first {
					pairs = append(pairs, [2]int{first + x, first + y})
				}
			}
		}
	}
	s := *d
	s.runs = nil
	for _, starts := range d.runs {
		var rows [][]float64
		for _, row := range starts {
			row = slices.Clone(row)
			for k := range d.kinds {
				for _, p := range pairs {
					row[k*mixedKept+p[0]], row[k*mixedKept+p[1]] = row[k*mixedKept+p[1]], row[k*mixedKept+p[0]]
				}
			}
			rows = append(rows, row)
		}
		s.runs = append(s.runs, rows)
	}
	s.times = map[mixedKind][][]float64{}
	x, y := slices.Index(timedNames, a), slices.Index(timedNames, b)
	for kind, rows := range d.times {
		for _, row := range rows {
			row = slices.Clone(row)
			if x >= 0 && y >= 0 {
				row[x], row[y] = row[y], row[x]
			}
			s.times[kind] = append(s.times[kind], row)
		}
	}
	return &s
}

// A verdict is computed from the data: with the data of two planners exchanged,
// what the paper says of either no longer holds.
func TestMixedVerdictsComeFromTheData(t *testing.T) {
	d := mixedAs()
	claims := mixedClaims(d)
	for i := range claims {
		c := &claims[i]
		if got := judged(c.Parts); got != Held {
			c.Verdict = got
			t.Errorf("%s is %s: %s %s", c.ID, got, c.Deciding().What, interval(c.Deciding().Value))
		}
	}
	for _, c := range []struct {
		names []string
		a, b  string
		want  string
	}{
		{bdNames, "bd-all", "bd-cpar", "A1 A2 A3 A5 A11 A12 A12c"},
		{bdNames, "bd-cpa", "bd-cpar", "A2 A3"},
		{dlNames, "dl-bd-all", "dl-rc-cpar", "A6 A7 A9 A15 A10 A13"},
		{dlNames, "dl-bd-cpa", "dl-rc-cpar", "A6 A8 A9 A10 A13 A14"},
		{dlNames, "dl-bd-cpar", "dl-rc-cpar", "A6 A9 A10 A13"},
		{dlNames, "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda", "A8"},
		{dlNames, "dl-rc-cpar", "dl-rc-cpar-lambda", "A8 A14"},
	} {
		if got := flipped(claims, mixedClaims(d.swapped(c.names, c.a, c.b))); got != c.want {
			t.Errorf("%s and %s swapped: not held are %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// The claim about bottom levels follows their data.
func TestLevelVerdictsComeFromTheData(t *testing.T) {
	d := mixedAs()
	for _, starts := range d.runs {
		for _, row := range starts {
			for k := range d.kinds {
				for y := range bdNames {
					one, cpar := &row[k*mixedKept+atBL+y], &row[k*mixedKept+atBL+blCPAR*len(bdNames)+y]
					cpa, all := &row[k*mixedKept+atBL+blCPA*len(bdNames)+y], &row[k*mixedKept+atBL+blAll*len(bdNames)+y]
					*one, *cpar, *cpa, *all = *cpar, *one, *all, *cpa
				}
			}
		}
	}
	c := claimLevels(d)
	if got := judged(c.Parts); got != NotHeld || !strings.Contains(c.Ours, "ends first in 0 of 4320 cases, bl-1 in 4320") {
		t.Errorf("%s: %s", got, c.Ours)
	}
}

// Without any log nothing is testable, and it is said what is absent.
func TestMixedWithoutLogs(t *testing.T) {
	p, _ := PaperNamed("mixed-parallel")
	for _, c := range []struct{ data, words string }{
		{"", "missing; mixed-parallel is measured on logs"}, {t.TempDir(), "has none of the logs"}, {filepath.Join(t.TempDir(), "x"), "no such folder"},
	} {
		_, _, err := p.Run(t.Context(), Options{Data: c.data})
		if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Invalid || e.Field != "data" || !strings.Contains(e.Msg, c.words) {
			t.Errorf("error %v, want %s", err, c.words)
		}
	}
	// Where that is asked for, there is a report all the same.
	report, _, err := p.Run(t.Context(), Options{Untested: true})
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, report)
	if page := string(files["report.html"]); !strings.Contains(page, "17 claims. The paper&#39;s: 16 not testable; checks: 1 not testable.") || files["cells.jsonl"] != nil {
		t.Error("the page does not say that nothing is testable, or there are measurements")
	}
	d := mixedDataOf(nil, quickMixed, nil)
	claims := mixedClaims(d)
	for i := range claims {
		if judged(claims[i].Parts) != NotTestable || !strings.Contains(claims[i].Ours, "OSC-Clust-2000-3.1-cln.swf.gz") {
			t.Errorf("%s: %s, %s", claims[i].ID, judged(claims[i].Parts), claims[i].Ours)
		}
	}
	if len(claims) != 17 || mixedFigures(d) != nil || mixedTables(d) != nil {
		t.Errorf("%d claims", len(claims))
	}
}

func TestInstancesOfAScenario(t *testing.T) {
	for _, c := range []struct {
		instances, workflows int
		ok                   bool
	}{{0, 2, true}, {60, 1, true}, {120, 2, true}, {1200, 20, true}, {1260, 0, false}, {99, 0, false}, {-60, 0, false}} {
		m := fullMixed
		err := m.settle(c.instances)
		if (err == nil) != c.ok || c.ok && m.workflows != c.workflows {
			t.Errorf("%d instances: %d workflows, %v", c.instances, m.workflows, err)
		}
	}
}

// The kinds of workflows and schedules are the paper's 40 and 36.
func TestScenariosOfThePaper(t *testing.T) {
	kinds, schedules := mixedKinds(), mixedSchedules(allLogs())
	if len(kinds) != 40 || len(schedules) != 36 || len(mixedSchedules(allLogs()[:1])) != 9 {
		t.Errorf("%d kinds, %d schedules", len(kinds), len(schedules))
	}
	defaults := 0
	for i := range kinds {
		d := kinds[i].daggen()
		if d == workload.NewDaggen() {
			defaults++
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", &kinds[i], err)
		}
	}
	if defaults != 6 { // each parameter has its default among its values
		t.Errorf("%d kinds with all defaults", defaults)
	}
	if n := len(mixedNames()); n != 40*mixedKept+2 {
		t.Errorf("%d names for %d values", n, 40*mixedKept+2)
	}
}

// What one instance adds, by hand: a single task of 100 s without serial part on
// 4 empty PEs.
func TestInstanceByHand(t *testing.T) {
	w, err := workflow.New([]workflow.Task{{ID: "t", Sequential: 6000}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]runningMean, mixedKept)
	b := &booked{calendar: calendar.NewFast(4, berth.Late), free: 4}
	if err := instance(w, b, sums); err != nil {
		t.Fatal(err)
	}
	for figure, want := range map[int]float64{
		atBL: 1500, atBL + bdHalf: 3000, // on 4 PEs, and on half of them
		atTAT + bdAll: 0, atTAT + bdHalf: 100, atCPU + bdAll: 0, atCPU + bdHalf: 0, // 6000 PE-seconds either way
		atHours + dlAll: 6000.0 / 3600, atFailed + dlAll: 0, atHours7 + in7CPA: 6000.0 / 3600, atKept + in7Lambda: 6000.0 / 3600, at7Kept + in7RC: 0,
	} {
		if got := sums[figure].mean(); math.Abs(got-want) > 1e-5*(1+want) {
			t.Errorf("figure %d is %v, want %v", figure, got, want)
		}
	}
	if got := sums[atTight+dlAll].mean(); got < 1500 || got > 1560 {
		t.Errorf("tightest deadline %v, want 1500 to 1560", got)
	}
}

func TestDegradations(t *testing.T) {
	sums := make([]runningMean, 3)
	addDegradations(sums, []float64{2, 3, math.NaN()})
	addDegradations(sums, []float64{4, 2, math.NaN()})
	if a, b := sums[0].mean(), sums[1].mean(); a != 50 || b != 25 || !math.IsNaN(sums[2].mean()) {
		t.Errorf("%v, %v, %v", a, b, sums[2].mean())
	}
}

// Of the logs of Table 3 whose records are the paper's, the means of run times and
// waits are too: of SDSC-BLUE with all jobs, of SDSC-DS with those that completed
// in its partition 3.
func TestLogsAreThoseOfTable3(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs: it reads a quarter of a million records")
	}
	const run, wait = 3, 5
	for _, c := range []struct {
		log       string
		run, wait float64 // hours; 0 where the paper had another version of the log
	}{{"blue", 1.18, 0}, {"ds", 1.52, 4.41}} {
		i := slices.IndexFunc(mixedLogs, func(l archiveLog) bool { return l.name == c.log })
		s := &session{Options: Options{Data: filepath.Dir(realdata.File(t, "swf", mixedLogs[i].file+".swf.gz"))}}
		log, found, err := s.find(&mixedLogs[i])
		if err != nil || !found {
			t.Fatalf("%s: found %v, %v", c.log, found, err)
		}
		v := logValues(log)
		if math.Abs(v[run]-c.run) > .005 || c.wait > 0 && math.Abs(v[wait]-c.wait) > .005 {
			t.Errorf("%s: jobs run %.3f h and wait %.3f h, want %.2f and %.2f", c.log, v[run], v[wait], c.run, c.wait)
		}
	}
}

// Any row can be taken again alone, by its key, and gives the same values; its
// values say nothing that the planners' theory rules out.
func TestScenarioOfARealLogAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it plans hundreds of workflows")
	}
	path := realdata.File(t, "swf", "SDSC-DS-2004-2.1-cln.swf.gz")
	o := Options{Seed: 7, Repetitions: 2, Data: filepath.Dir(path)}
	p, _ := PaperNamed("mixed-parallel")
	_, e, _, err := p.plan(o)
	if err != nil {
		t.Fatal(err)
	}
	const key = "ds/0.2/expo/seed=8"
	at := slices.IndexFunc(e.cells, func(c sweep.Cell) bool { return c.Key == key })
	if at < 0 {
		t.Fatalf("no measurement %s", key)
	}
	want, err := e.cells[at].Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Only(t.Context(), o, key)
	if err != nil || len(got.Names) != len(want) {
		t.Fatalf("%d names, %v", len(got.Names), err)
	}
	for i := range want {
		if want[i] != got.Values[i] && !(math.IsNaN(want[i]) && math.IsNaN(got.Values[i])) {
			t.Errorf("%s: %v, then %v", got.Names[i], want[i], got.Values[i])
		}
	}
	for k := range mixedKinds() {
		f := want[k*mixedKept : (k+1)*mixedKept]
		if slices.Min(f[atTAT:atTAT+4]) != 0 || slices.Min(f[atTAT:at6CPU]) < 0 {
			t.Errorf("kind %d: no planner is the best in %v", k, f[atTAT:at6CPU])
		}
	}
	if cmp.Equal(want, e.values(t, "ds/0.2/expo/seed=7"), cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })) {
		t.Error("another seed gives the same values")
	}
}

// values takes a measurement by its key.
func (e *experiment) values(t *testing.T, key string) []float64 {
	t.Helper()
	for i := range e.cells {
		if e.cells[i].Key == key {
			v, err := e.cells[i].Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no measurement %s", key)
	return nil
}
