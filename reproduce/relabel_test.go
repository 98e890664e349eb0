package reproduce

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/sweep"
)

var (
	relabellings = flag.Int("relabellings", 0, "how often the names of policies are exchanged at random, to see how easily claims hold")
	seeds        = flag.Int("seeds", 0, "under how many seeds every claim is judged")
	only         = flag.String("papers", "", "the papers of these tests, separated by commas; empty for all")
	kept         = flag.String("kept", "", "folder in which measurements of these tests are kept for the next time")
)

// mostHeld is the share of random relabellings in which a claim that compares policies may
// still hold, in percent.
const mostHeld = 5

// relabelledRepetitions are those of the papers that are measured more often than at quick
// scale: of three repetitions a jackknife (S9c) makes intervals that are too short.
var relabelledRepetitions = map[string]int{"availability": 6}

// permuted moves blocks of values, of a width, that stand one after another from a place on.
func permuted(values []float64, from, width int, order []int) {
	old := slices.Clone(values[from : from+width*len(order)])
	for to, of := range order {
		copy(values[from+to*width:from+(to+1)*width], old[of*width:(of+1)*width])
	}
}

// relabelled exchanges the placements at random, in each measurement by itself.
func (d *rectData) relabelled(r *rand.Rand) *rectData {
	s := &rectData{points: map[rectSetting]*rectPoint{}, log: d.log}
	for _, setting := range rectSettings(d.log) {
		point := d.points[setting]
		other := &rectPoint{bound: point.bound, figures: make([][][rectKept]sample, len(point.figures))}
		repetitions := len(point.bound[accepts])
		for v := range point.figures {
			other.figures[v] = make([][rectKept]sample, len(point.figures[v]))
		}
		for k := range repetitions {
			order := r.Perm(len(point.figures[0]))
			for v := range point.figures {
				for to, of := range order {
					for figure := range rectKept {
						other.figures[v][to][figure] = append(other.figures[v][to][figure], point.figures[v][of][figure][k])
					}
				}
			}
		}
		s.points[setting] = other
	}
	return s
}

// relabelled exchanges the planners at random, at each start by itself, and among those of
// each table by itself, for not every planner is in every table.
func (d *mixedData) relabelled(r *rand.Rand) *mixedData {
	s := *d
	s.runs = nil
	for _, starts := range d.runs {
		var rows [][]float64
		for _, row := range starts {
			row = slices.Clone(row)
			orders, bounds := r.Perm(len(blNames)), r.Perm(len(bdNames))
			six, seven, all := r.Perm(len(of6)), r.Perm(len(of7)), r.Perm(len(dlNames))
			for k := range d.kinds {
				f := row[k*mixedKept : (k+1)*mixedKept]
				permuted(f, atBL, len(bdNames), orders)
				for x := range blNames {
					permuted(f, atBL+x*len(bdNames), 1, bounds)
				}
				for _, first := range []int{atTAT, atCPU} {
					permuted(f, first, 1, bounds)
				}
				for _, first := range []int{at6Tight, at6CPU} {
					permuted(f, first, 1, six)
				}
				for _, first := range []int{at7Tight, at7CPU, at7Kept, atHours7, atKept} {
					permuted(f, first, 1, seven)
				}
				for _, first := range []int{atTight, atHours} {
					permuted(f, first, 1, all)
				}
			}
			rows = append(rows, row)
		}
		s.runs = append(s.runs, rows)
	}
	return &s
}

// relabelled exchanges the orders of reservation at random, in each measurement by itself.
func (d gridData) relabelled(r *rand.Rand) gridData {
	var s gridData
	for _, rows := range d {
		var names []string
		for i := range gridPolicies {
			if rows[gridPolicies[i].name] != nil {
				names = append(names, gridPolicies[i].name)
			}
		}
		other := gridRowsOf{}
		for _, name := range names {
			other[name] = make([]gridMeans, len(rows[name]))
		}
		for share := range rows[names[0]] {
			for k := range rows[names[0]][share].waiting {
				order := r.Perm(len(names))
				moved := r.Perm(2) // of the paper's two alone
				for to, of := range order {
					from := &rows[names[of]][share]
					o := gridOutcome{
						waiting: from.waiting[k], offset: from.offset[k], rejections: from.rejections[k], utilization: from.utilization[k],
						important: from.important[k], unimportant: from.unimportant[k], late: from.late[k], moved: rows[names[to]][share].moved[k],
					}
					if to < len(moved) {
						o.moved = rows[names[moved[to]]][share].moved[k]
					}
					other[names[to]][share].add(&o)
				}
			}
		}
		s = append(s, other)
	}
	return s
}

// relabelled exchanges sequential and eager at random, in each measurement by itself.
func (d *waitingData) relabelled(r *rand.Rand) *waitingData {
	s := &waitingData{open: d.open}
	for _, rows := range []struct{ from, to *[]comparison }{{&d.search, &s.search}, {&d.waits, &s.waits}, {&d.loads, &s.loads}} {
		for _, c := range *rows.from {
			other := comparison{setting: c.setting}
			for k := range c.sequential.utilization {
				a, b := &c.sequential, &c.eager
				if r.IntN(2) == 1 {
					a, b = b, a
				}
				other.sequential.take(a, k)
				other.eager.take(b, k)
			}
			*rows.to = append(*rows.to, other)
		}
	}
	return s
}

// take appends a repetition of another.
func (m *waitingMeans) take(other *waitingMeans, repetition int) {
	m.utilization = append(m.utilization, other.utilization[repetition])
	m.acceptance = append(m.acceptance, other.acceptance[repetition])
	m.narrow = append(m.narrow, other.narrow[repetition])
	m.wide = append(m.wide, other.wide[repetition])
}

// relabelled exchanges the matchers, and the models of forecasts, at random, in each
// measurement by itself.
func (d *awareData) relabelled(r *rand.Rand) *awareData {
	s := *d
	s.runs, s.trials = nil, map[string][][]float64{}
	for i := range d.settings {
		var rows [][]float64
		for _, values := range d.runs[i] {
			values = slices.Clone(values)
			permuted(values, 0, awKept, r.Perm(d.settings[i].matchers()))
			rows = append(rows, values)
		}
		s.runs = append(s.runs, rows)
	}
	var nets []string
	for net := range d.trials {
		nets = append(nets, net)
	}
	slices.Sort(nets)
	for _, net := range nets {
		for _, values := range d.trials[net] {
			values = slices.Clone(values)
			permuted(values, 0, trialKept, r.Perm(len(trialModels)))
			s.trials[net] = append(s.trials[net], values)
		}
	}
	return &s
}

// relabelled exchanges planners, and the repairs of each, at random, in each measurement by
// itself.
func (d *deviatingData) relabelled(r *rand.Rand) *deviatingData {
	s := *d
	s.values = nil
	width := len(berth.Repairs()) * deviatingKept
	for _, values := range d.values {
		values = slices.Clone(values)
		permuted(values, 0, width, r.Perm(len(deviatingPlanners)))
		repairs := r.Perm(len(berth.Repairs()))
		for p := range deviatingPlanners {
			permuted(values, p*width, deviatingKept, repairs)
		}
		s.values = append(s.values, values)
	}
	return &s
}

// quickly measures a paper at quick scale and returns how to judge its data, with random
// names if there is a stream to draw them from.
func quickly(t *testing.T, p *Paper, seed uint64, repetitions int, data string) func(names *rand.Rand) []Claim {
	t.Helper()
	s, e, plan, err := p.plan(Options{Scale: Quick, Seed: seed, Repetitions: repetitions, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	var options sweep.Options
	if *kept != "" {
		options.File = filepath.Join(*kept, fmt.Sprintf("%s-%d-%d.jsonl", p.Name, seed, s.repetitions))
	}
	results, err := sweep.Run(t.Context(), plan, options)
	if err != nil {
		t.Fatal(err)
	}
	values := valuesOf(results, e.cells)
	mixed, aware, deviating := quickMixed, quickAware, quickDeviating
	mixed.starts, aware.repetitions, deviating.repetitions = s.repetitions, s.repetitions, s.repetitions
	var logs []*openLog
	if p.Name == "mixed-parallel" || p.Name == "deviating-workflows" {
		for i := range mixedLogs {
			log, found, err := s.find(&mixedLogs[i])
			if err != nil || !found {
				t.Fatalf("the log %s: %v", mixedLogs[i].file, err)
			}
			logs = append(logs, log)
		}
	}
	var claims func(names *rand.Rand) []Claim
	switch p.Name {
	case "availability":
		d := rectDataOf(values, s.repetitions, true)
		claims = judging(d, d.relabelled, rectClaims)
	case "mixed-parallel":
		d := mixedDataOf(values, mixed, logs)
		claims = judging(d, d.relabelled, mixedClaims)
	case "dynamic-priority":
		d := gridDataOf(values, s.repetitions)
		claims = judging(d, d.relabelled, gridClaims)
	case "waiting-time":
		d := waitingDataOf(values, s.repetitions)
		claims = judging(d, d.relabelled, waitingClaims)
	case "application-aware":
		source, err := awareSources(s)
		if err != nil {
			t.Fatal(err)
		}
		d := awareDataOf(values, aware, source)
		claims = judging(d, d.relabelled, awareClaims)
	case "deviating-workflows":
		d := &deviatingData{scale: deviating, logs: logs, values: values}
		claims = judging(d, d.relabelled, deviatingClaims)
	default:
		t.Fatalf("how is %s judged?", p.Name)
	}
	return claims
}

// judging returns how data are judged, relabelled if there is a stream.
func judging[D any](d D, relabelled func(*rand.Rand) D, judge func(D) []Claim) func(*rand.Rand) []Claim {
	return func(names *rand.Rand) []Claim {
		data := d
		if names != nil {
			data = relabelled(names)
		}
		claims := judge(data)
		for i := range claims {
			claims[i].settle()
		}
		return claims
	}
}

// papersAsked are the papers of the flag.
func papersAsked(t *testing.T) []*Paper {
	t.Helper()
	var list []*Paper
	for i := range Papers {
		if *only == "" || slices.Contains(strings.Split(*only, ","), Papers[i].Name) {
			list = append(list, &Papers[i])
		}
	}
	if len(list) == 0 {
		t.Fatalf("-papers %q: want names such as %s", *only, Papers[0].Name)
	}
	return list
}

// verdictCounts counts the verdicts on claims, by id in the order of their first appearance.
type verdictCounts struct {
	ids    []string
	kinds  map[string]Kind
	counts map[string]map[Verdict]int
}

func (y *verdictCounts) add(claims []Claim) {
	if y.counts == nil {
		y.kinds, y.counts = map[string]Kind{}, map[string]map[Verdict]int{}
	}
	for i := range claims {
		id := claims[i].ID
		if y.counts[id] == nil {
			y.ids = append(y.ids, id)
			y.counts[id] = map[Verdict]int{}
		}
		y.kinds[id] = claims[i].Kind
		y.counts[id][claims[i].Verdict]++
	}
}

// table writes the counts, one claim a line; also is what else is known of a claim.
func (y *verdictCounts) table(title, also string, of func(id string) string) string {
	var text strings.Builder
	text.WriteString(title + "\n")
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "claim\tkind\t%s", also) // Flush tells
	for _, v := range Verdicts() {
		_, _ = fmt.Fprintf(w, "\t%s", v)
	}
	_, _ = fmt.Fprintln(w)
	for _, id := range y.ids {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s", id, y.kinds[id], of(id))
		for _, v := range Verdicts() {
			_, _ = fmt.Fprintf(w, "\t%d", y.counts[id][v])
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	return text.String()
}

// A claim that compares policies says something only if it would not hold of any. The names
// of the policies are exchanged at random, in each measurement by itself, and it is judged again:
// at most one of twenty relabellings may find it held. Checks are held under any names.
func TestClaimsDoNotHoldOfRelabelledData(t *testing.T) {
	if *relabellings == 0 {
		t.Skip("takes minutes: give -relabellings 200, as make test-long does")
	}
	data := filepath.Dir(filepath.Dir(realdata.File(t, "swf", cm5.file+".swf.gz")))
	for _, p := range papersAsked(t) {
		t.Run(p.Name, func(t *testing.T) {
			judge := quickly(t, p, 1, relabelledRepetitions[p.Name], data)
			true1 := map[string]Verdict{}
			for _, c := range judge(nil) {
				true1[c.ID] = c.Verdict
			}
			var counts verdictCounts
			names := rand.New(rand.NewPCG(19, 1))
			for range *relabellings {
				counts.add(judge(names))
			}
			t.Log(counts.table(fmt.Sprintf("%s, %d relabellings", p.Name, *relabellings), "as measured", func(id string) string { return string(true1[id]) }))
			for _, id := range counts.ids {
				held := counts.counts[id][Held]
				if counts.kinds[id] != Check && p.Name+"/"+id != clocked && 100*held > mostHeld**relabellings {
					t.Errorf("%s holds of %d of %d random relabellings: it is no evidence for a policy, but a check", id, held, *relabellings)
				}
			}
		})
	}
}

// Every claim is judged under many seeds, and the table says how often each verdict comes
// out. That a claim is held under one seed and refuted under another is a fault of the rule: what
// a seed can turn is inconclusive.
func TestVerdictsUnderSeeds(t *testing.T) {
	if *seeds == 0 {
		t.Skip("takes an hour: give -seeds 20, as make test-long does")
	}
	data := filepath.Dir(filepath.Dir(realdata.File(t, "swf", cm5.file+".swf.gz")))
	for _, p := range papersAsked(t) {
		t.Run(p.Name, func(t *testing.T) {
			var counts verdictCounts
			first := map[string]Verdict{}
			for i := range *seeds {
				claims := quickly(t, p, 1+uint64(i)*1000, 0, data)(nil)
				for _, c := range claims {
					if i == 0 {
						first[c.ID] = c.Verdict
					}
				}
				counts.add(claims)
			}
			t.Log(counts.table(fmt.Sprintf("%s, %d seeds", p.Name, *seeds), "seed 1", func(id string) string { return string(first[id]) }))
			for _, id := range counts.ids {
				if p.Name+"/"+id != clocked && counts.counts[id][Held] > 0 && counts.counts[id][NotHeld] > 0 {
					t.Errorf("%s is held under %d seeds and not held under %d", id, counts.counts[id][Held], counts.counts[id][NotHeld])
				}
			}
		})
	}
}

// Relabelling loses no figure and adds none, moves some, and is the same again from the same
// stream: else the table above would say nothing.
func TestRelabelledDataHaveTheSameFigures(t *testing.T) {
	waiting := func(d gridData) []float64 {
		var all []float64
		for _, rows := range d {
			for i := range gridPolicies {
				for _, m := range rows[gridPolicies[i].name] {
					all = append(all, m.waiting...)
				}
			}
		}
		return all
	}
	d := gridAs()
	before := waiting(d)
	after, again := waiting(d.relabelled(rand.New(rand.NewPCG(1, 1)))), waiting(d.relabelled(rand.New(rand.NewPCG(1, 1))))
	if cmp.Equal(before, after) {
		t.Error("nothing has moved")
	}
	if diff := cmp.Diff(after, again); diff != "" {
		t.Error("another draw of the same stream:", diff)
	}
	slices.Sort(before)
	slices.Sort(after)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}

	values := []float64{9, 1, 2, 3, 4, 5, 6, 9}
	permuted(values, 1, 2, []int{2, 0, 1})
	if diff := cmp.Diff(values, []float64{9, 5, 6, 1, 2, 3, 4, 9}); diff != "" {
		t.Error(diff)
	}
}
