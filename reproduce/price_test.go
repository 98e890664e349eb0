package reproduce

import (
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

var priceSegments = flag.Int("price.segments", 6, "segments of each log that -update measures for docs/results/price-of-promises.md, spread evenly; 0 writes the page from those on record")

var delaySegments = flag.Int("price.delays", 6, "the same for the limit on delays")

// What docs/results/price-of-promises.md states.
const (
	priceJobs  = 2000
	priceTuned = 3
	priceBound = 10.0 // percent by which p95 may grow
)

// priceSetting is a row of the tables: the base but for one thing. The last rows are the rule.
type priceSetting struct {
	name   string
	change func(m *workload.Mix, c *engine.Config)
}

// priceRuledBy bounds the share of the PEs that may be promised at any time, unless it is all, and what
// each promise may delay any job that waits, as foreseen, unless it is 0; 1 s is no delay.
func priceRuledBy(share policy.Permille, delay berth.Duration, estimates bool) func(*workload.Mix, *engine.Config) {
	return func(m *workload.Mix, c *engine.Config) {
		m.Reserve, m.Estimates = 0.4, estimates
		if share < 1000 {
			c.Ahead = policy.Ahead{{Beyond: 1, Share: share}}
		}
		if delay > 0 {
			c.Limits = policy.Limits{{Name: policy.LimitDelay, Value: int64(delay)}}
		}
	}
}

var priceSettings = []priceSetting{
	{"base", func(*workload.Mix, *engine.Config) {}},
	{"share 10 %", func(m *workload.Mix, _ *engine.Config) { m.Reserve = 0.1 }},
	{"share 40 %", func(m *workload.Mix, _ *engine.Config) { m.Reserve = 0.4 }},
	{"no notice", func(m *workload.Mix, _ *engine.Config) { m.ArtimeFactor = 0 }},
	{"notice 1", func(m *workload.Mix, _ *engine.Config) { m.ArtimeFactor = 1 }},
	{"notice 10", func(m *workload.Mix, _ *engine.Config) { m.ArtimeFactor = 10 }},
	{"no laxity", func(m *workload.Mix, _ *engine.Config) { m.DeadlineFactor = 0 }},
	{"laxity 1", func(m *workload.Mix, _ *engine.Config) { m.DeadlineFactor = 1 }},
	{"laxity 10", func(m *workload.Mix, _ *engine.Config) { m.DeadlineFactor = 10 }},
	{"conservative", func(_ *workload.Mix, c *engine.Config) { c.Jobs = "conservative" }},
	{"users' estimates", func(m *workload.Mix, _ *engine.Config) { m.Estimates = true }},
	{"ahead 5 %", priceRuledBy(50, 0, false)},
	{"ahead 10 %", priceRuledBy(100, 0, false)},
	{"ahead 20 %", priceRuledBy(200, 0, false)},
	{"ahead 30 %", priceRuledBy(300, 0, false)},
}

// These have to foresee delays, which takes several times the work.
var delaySettings = []priceSetting{
	{"share 40 %", priceRuledBy(1000, 0, false)},
	{"delay 0", priceRuledBy(1000, 1, false)},
	{"delay 10 min", priceRuledBy(1000, 600, false)},
	{"delay 1 h", priceRuledBy(1000, 3600, false)},
	{"delay 4 h", priceRuledBy(1000, 4*3600, false)},
	{"share 40 %, users' estimates", priceRuledBy(1000, 0, true)},
	{"delay 0, users' estimates", priceRuledBy(1000, 1, true)},
	{"delay 10 min, users' estimates", priceRuledBy(1000, 600, true)},
	{"delay 1 h, users' estimates", priceRuledBy(1000, 3600, true)},
	{"delay 4 h, users' estimates", priceRuledBy(1000, 4*3600, true)},
}

// priceRule is a rule of admission: its settings, the strictest first. The last one is without the rule.
type priceRule struct {
	name string
	rows []int
}

// pricePart is a part of the page, with what it is made of.
type pricePart struct {
	file     string
	segments *int // that -update measures; 0 is those on record
	settings []priceSetting
	shown    int   // of the settings, in a table of each log
	again    []int // settings whose first segments every test measures
	rules    []priceRule
}

var priceParts = []pricePart{
	{"segments.csv", priceSegments, priceSettings, 11, []int{0, 11}, []priceRule{
		{"What may be promised at any time (`ahead`), run times known", []int{11, 12, 13, 14, 2}},
	}},
	{"delays.csv", delaySegments, delaySettings, 0, []int{2}, []priceRule{
		{"What each promise may delay any job that waits (`delay`), run times known", []int{1, 2, 3, 4, 0}},
		{"The same, run times estimated by users", []int{6, 7, 8, 9, 5}},
	}},
}

// The figures of a segment.
const (
	priceAccepted = iota // percent of the requests
	pricePromised        // PE-hours
	priceMean            // waits of the ordinary jobs, in hours, and of the same jobs without promises
	priceMeanWithout
	priceP95
	priceP95Without
	priceNarrow // how much more they wait on average, in hours: up to an eighth of the machine
	priceWide   // and beyond
	priceCost   // PE-hours that they wait more in all
	priceKept
)

var priceHeader = []string{"log", "setting", "segment", "accepted", "promised", "mean", "mean_without", "p95", "p95_without", "narrow", "wide", "cost"}

// priceSegment measures one setting on one segment, from 0: ordinary jobs beside promises, and beside
// the same work without promises: what was accepted waits in the queue then, from when it is ready, and
// what was refused is in neither.
func priceSegment(t *testing.T, l *archiveLog, records []workload.Record, setting *priceSetting, segment, segments int) []string {
	t.Helper()
	from := (len(records) - priceJobs) * segment / max(1, segments-1)
	mix := workload.NewMix(uint64(segment + 1))
	mix.Reserve = 0.2
	config := engine.Config{Sites: sim.OnePool(l.pes, berth.Early)}
	preset, _ := engine.PresetNamed("easy")
	preset.Apply(&config)
	setting.change(&mix, &config)
	plain, runs, err := mix.Plain(records[from:from+priceJobs], true, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := sim.Replay(t.Context(), config, sim.Workload{Plain: plain, Runs: runs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	queued := slices.Clone(plain)
	asked, accepted, promised := 0, 0, int64(0)
	for i := range queued {
		p := &queued[i]
		if !p.Job {
			asked++
			if !lines[i].Accepted {
				continue
			}
			accepted, promised = accepted+1, promised+int64(p.NPE)*int64(p.Duration)
			p.Job, p.Arrival, p.Deadline = true, p.Ready, berth.Forever
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(queued[i].Arrival, queued[k].Arrival) })
	var other sim.Workload
	for _, i := range order {
		other.Plain = append(other.Plain, queued[i])
		if runs != nil {
			other.Runs = append(other.Runs, runs[i])
		}
	}
	config.Ahead, config.Limits = nil, nil
	without, err := sim.Replay(t.Context(), config, other, nil)
	if err != nil {
		t.Fatal(err)
	}
	var waits, waitsWithout, narrow, wide []float64
	cost := 0.0
	for k, i := range order {
		p := &plain[i]
		if !p.Job || lines[i].Start == nil || without[k].Start == nil {
			continue
		}
		w, wo := float64(*lines[i].Start-p.Arrival)/3600, float64(*without[k].Start-p.Arrival)/3600
		waits, waitsWithout = append(waits, w), append(waitsWithout, wo)
		cost += float64((w - wo) * float64(p.NPE))
		if 8*int64(p.NPE) <= int64(l.pes) {
			narrow = append(narrow, w-wo)
		} else {
			wide = append(wide, w-wo)
		}
	}
	figures := [priceKept]float64{
		share(100*int64(accepted), int64(asked)), float64(promised) / 3600, averageOf(waits), averageOf(waitsWithout), p95Of(waits), p95Of(waitsWithout), averageOf(narrow), averageOf(wide), cost,
	}
	row := []string{l.name, setting.name, strconv.Itoa(segment + 1)}
	for _, x := range figures {
		row = append(row, strconv.FormatFloat(x, 'f', 4, 64))
	}
	return row
}

func averageOf(s []float64) float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s)) // NaN of none
}

// p95Of returns the least value that 95 of 100 do not exceed.
func p95Of(s []float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	slices.Sort(s)
	return s[(95*len(s)+99)/100-1]
}

// The numbers of the page are those on record, and those are what is measured: some settings are measured
// again on the first segment of each log, all with -update.
func TestPriceOfPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("whole simulations in one goroutine")
	}
	logs := bestLogs()
	for i := range priceParts {
		part := &priceParts[i]
		file := filepath.Join("..", "docs", "results", "price-of-promises", part.file)
		if *update && *part.segments > 0 {
			rows := [][]string{priceHeader}
			for i := range logs {
				rows = append(rows, priceLog(t, &logs[i], part, *part.segments, func(int, int) bool { return true })...)
				t.Logf("%s is measured", logs[i].name)
			}
			writeRows(t, file, rows)
		}
		rows := readRows(t, file)
		segments := len(rows) / len(logs) / len(part.settings)
		if !*update {
			var want, got [][]string
			for k, row := range rows {
				if row[2] == "1" && slices.Contains(part.again, k/segments%len(part.settings)) {
					want = append(want, row)
				}
			}
			for i := range logs {
				got = append(got, priceLog(t, &logs[i], part, segments, func(setting, segment int) bool {
					return segment == 0 && slices.Contains(part.again, setting)
				})...)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-) is not what is measured (+):\n%s", part.file, diff)
			}
		}
		begins := "<!-- from " + part.file + "; go test ./reproduce -run PriceOfPromises -update writes it -->\n"
		ends := "<!-- end of " + part.file + " -->\n"
		pageHolds(t, filepath.Join("..", "docs", "results", "price-of-promises.md"), begins, ends, priceTables(t, logs, part, rows))
	}
}

// priceLog measures some settings of a part on some segments of a log.
func priceLog(t *testing.T, l *archiveLog, part *pricePart, segments int, wanted func(setting, segment int) bool) (rows [][]string) {
	t.Helper()
	log, err := l.open(realdata.File(t, "swf", l.file+".swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for k := range part.settings {
		for segment := range segments {
			if wanted(k, segment) {
				rows = append(rows, priceSegment(t, l, log.Records, &part.settings[k], segment, segments))
			}
		}
	}
	return rows
}

// writeRows keeps rows as a file, readRows returns those of a file but for its header.
func writeRows(t *testing.T, file string, rows [][]string) {
	t.Helper()
	var text strings.Builder
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func readRows(t *testing.T, file string) [][]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(string(fileAt(t, file)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[1:]
}

// gained writes the mean of differences with what its interval at 95 % is wide to either side.
func gained(s sample) string {
	e, _ := s.estimate()
	return fmt.Sprintf("%+.2f ± %.2f", *e.Mean, (e.CI95[1]-e.CI95[0])/2)
}

// pageHolds requires that a page has a text between two marks; with -update it is written there.
func pageHolds(t *testing.T, page, begins, ends, want string) {
	t.Helper()
	head, rest, first := strings.Cut(string(fileAt(t, page)), begins)
	old, tail, last := strings.Cut(rest, ends)
	if !first || !last {
		t.Fatalf("%s has no table between the comments that mark it", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begins+want+ends+tail), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(old, want); diff != "" {
		t.Errorf("the page (-) does not show what is on record (+):\n%s", diff)
	}
}

func pricedMean(s sample) float64 {
	e, _ := s.estimate()
	if e.Mean == nil {
		return math.NaN()
	}
	return *e.Mean
}

func intervalOf(s sample) string {
	e, _ := s.estimate()
	if e.Mean == nil || e.CI95 == nil {
		return "–"
	}
	return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", *e.Mean, e.CI95[0], e.CI95[1])
}

// priceTables writes a table of each log, and what the rules keep.
func priceTables(t *testing.T, logs []archiveLog, part *pricePart, rows [][]string) string {
	t.Helper()
	settings := part.settings
	segments := len(rows) / len(logs) / len(settings)
	at := func(log, setting, figure int) sample {
		var s sample
		for segment := range segments {
			s = append(s, bestFigure(t, rows[(log*len(settings)+setting)*segments+segment][3+figure]))
		}
		return s
	}
	// growth is by how much p95 grows, in percent of what it is without promises, and the ends of its
	// interval.
	growth := func(log, setting int) (percent, low, high float64) {
		e, _ := at(log, setting, priceP95).minus(at(log, setting, priceP95Without)).estimate()
		base := pricedMean(at(log, setting, priceP95Without))
		if base == 0 && *e.Mean == 0 {
			return 0, 0, 0 // else it is infinite
		}
		return 100 * *e.Mean / base, 100 * e.CI95[0] / base, 100 * e.CI95[1] / base
	}
	var text strings.Builder
	for i := range logs {
		if part.shown == 0 {
			break
		}
		fmt.Fprintf(&text, "\n**%s**, %d segments\n\n| setting | accepted, %% | mean wait more, h | narrow jobs | wide jobs | p95, h | p95 more, h | PE-hours of waiting for each promised |\n|---|---|---|---|---|---|---|---|\n", logs[i].name, segments)
		for k := range part.shown {
			cost := at(i, k, priceCost)
			for s, promised := range at(i, k, pricePromised) {
				cost[s] /= promised
			}
			fmt.Fprintf(&text, "| %s | %.1f | %s | %+.2f | %+.2f | %.2f | %s | %s |\n", settings[k].name, pricedMean(at(i, k, priceAccepted)),
				intervalOf(at(i, k, priceMean).minus(at(i, k, priceMeanWithout))), pricedMean(at(i, k, priceNarrow)), pricedMean(at(i, k, priceWide)),
				pricedMean(at(i, k, priceP95)), intervalOf(at(i, k, priceP95).minus(at(i, k, priceP95Without))), intervalOf(cost))
		}
	}
	for r := range part.rules {
		rule := &part.rules[r]
		unruled := rule.rows[len(rule.rows)-1]
		fmt.Fprintf(&text, "\n**%s**: growth of p95 in percent, and accepted requests in percent, where 40 %% of the jobs ask, over %d segments\n\n| log |", rule.name, segments)
		for _, k := range rule.rows {
			fmt.Fprintf(&text, " %s |", strings.TrimSuffix(settings[k].name, ", users' estimates"))
		}
		text.WriteString("\n|---|" + strings.Repeat("---|", len(rule.rows)) + "\n")
		chosen := -1
		for _, k := range rule.rows {
			keeps := true
			for i := range priceTuned {
				if percent, _, _ := growth(i, k); percent > priceBound {
					keeps = false
				}
			}
			if !keeps {
				break
			}
			chosen = k
		}
		kept, surely, within := 0, 0, 0
		for i := range logs {
			if i == priceTuned {
				text.WriteString("| *not tuned on:* |" + strings.Repeat(" |", len(rule.rows)) + "\n")
			}
			fmt.Fprintf(&text, "| %s |", logs[i].name)
			for _, k := range rule.rows {
				percent, low, high := growth(i, k)
				fmt.Fprintf(&text, " %+.1f (%+.1f to %+.1f), %.1f |", percent, low, high, pricedMean(at(i, k, priceAccepted)))
				switch {
				case i < priceTuned:
				case k == chosen && high <= priceBound:
					kept, surely = kept+1, surely+1
				case k == chosen && percent <= priceBound:
					kept++
				}
				if i >= priceTuned && k == unruled && percent <= priceBound {
					within++
				}
			}
			text.WriteString("\n")
		}
		others := len(logs) - priceTuned
		if chosen < 0 {
			fmt.Fprintf(&text, "\nNo value that was tried keeps p95 within %.0f %% on the logs that it is tuned on.\n", priceBound)
		} else {
			fmt.Fprintf(&text, "\nTuned: **%s**. On the logs that it was not tuned on it keeps p95 within %.0f %% by the means on **%d of %d**, and by the upper ends of the intervals on %d; without the rule it is %d by the means.\n",
				settings[chosen].name, priceBound, kept, others, surely, within)
		}
	}
	text.WriteString("\n")
	return text.String()
}
