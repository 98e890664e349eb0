package reproduce

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workload"
)

var crossedSegments = flag.Int("price.crossed", 3, "segments of each log that -update measures for the crossed settings of docs/results/price-of-promises.md, spread evenly; 0 writes the page from those on record")

// crossedFactor is something that is varied. Its levels are crossed with those of all others.
type crossedFactor struct {
	name   string
	levels []string
	change func(level int, m *workload.Mix, c *engine.Config)
}

var crossedFactors = []crossedFactor{
	{"share", []string{"10 %", "20 %", "40 %"}, func(level int, m *workload.Mix, _ *engine.Config) { m.Reserve = []float64{0.1, 0.2, 0.4}[level] }},
	{"notice", []string{"none", "3", "10"}, func(level int, m *workload.Mix, _ *engine.Config) { m.ArtimeFactor = []float64{0, 3, 10}[level] }},
	{"laxity", []string{"none", "3", "10"}, func(level int, m *workload.Mix, _ *engine.Config) { m.DeadlineFactor = []float64{0, 3, 10}[level] }},
	{"run times", []string{"known", "estimated"}, func(level int, m *workload.Mix, _ *engine.Config) { m.Estimates = level == 1 }},
}

// crossed returns the levels of each setting, one of each factor.
func crossed() [][]int {
	settings := [][]int{nil}
	for f := range crossedFactors {
		var longer [][]int
		for _, levels := range settings {
			for level := range crossedFactors[f].levels {
				longer = append(longer, append(slices.Clone(levels), level))
			}
		}
		settings = longer
	}
	return settings
}

// crossedName is the levels of a setting in words.
func crossedName(levels []int) string {
	words := make([]string, len(levels))
	for f, level := range levels {
		words[f] = crossedFactors[f].levels[level]
	}
	return strings.Join(words, " / ")
}

// crossedLog measures all settings on the segments of a log: for each factor, level and segment the mean
// over the settings with that level; and each setting as the mean over the segments.
func crossedLog(t *testing.T, l *archiveLog, records []workload.Record, only []int, segments int) [][]string {
	t.Helper()
	settings := crossed()
	figures := make([][][]float64, len(settings)) // by segment of only
	for k, levels := range settings {
		setting := priceSetting{crossedName(levels), func(m *workload.Mix, c *engine.Config) {
			for f, level := range levels {
				crossedFactors[f].change(level, m, c)
			}
		}}
		for _, segment := range only {
			var row []float64
			for _, text := range priceSegment(t, l, records, &setting, segment, segments)[3:] {
				row = append(row, bestFigure(t, text))
			}
			figures[k] = append(figures[k], row)
		}
	}
	row := func(name, segment string, of [][]float64) []string {
		row := []string{l.name, name, segment}
		for figure := range priceKept {
			var values []float64
			for _, one := range of {
				values = append(values, one[figure])
			}
			row = append(row, strconv.FormatFloat(averageOf(values), 'f', 4, 64))
		}
		return row
	}
	var rows [][]string
	for f := range crossedFactors {
		for level, name := range crossedFactors[f].levels {
			for i, segment := range only {
				var of [][]float64
				for k, levels := range settings {
					if levels[f] == level {
						of = append(of, figures[k][i])
					}
				}
				rows = append(rows, row(crossedFactors[f].name+" "+name, strconv.Itoa(segment+1), of))
			}
		}
	}
	for k, levels := range settings {
		rows = append(rows, row(crossedName(levels), "all", figures[k]))
	}
	return rows
}

// crossedRows is how many rows of levels there are for each segment of a log.
func crossedRows() int {
	n := 0
	for f := range crossedFactors {
		n += len(crossedFactors[f].levels)
	}
	return n
}

// The crossed tables of the page are those of crossed.csv, and the levels are measured again on the first
// segment of one log; all with -update.
func TestCrossedPrices(t *testing.T) {
	if testing.Short() {
		t.Skip("whole simulations in one goroutine")
	}
	const (
		begins = "<!-- from crossed.csv; go test ./reproduce -run CrossedPrices -update writes it -->\n"
		ends   = "<!-- end of crossed.csv -->\n"
		again  = 3 // the log with the smallest machine
	)
	file := filepath.Join("..", "docs", "results", "price-of-promises", "crossed.csv")
	logs := bestLogs()
	if *update && *crossedSegments > 0 {
		rows := [][]string{priceHeader}
		only := make([]int, *crossedSegments)
		for i := range only {
			only[i] = i
		}
		for i := range logs {
			log, err := logs[i].open(realdata.File(t, "swf", logs[i].file+".swf.gz"))
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, crossedLog(t, &logs[i], log.Records, only, len(only))...)
			t.Logf("%s is measured", logs[i].name)
		}
		writeRows(t, file, rows)
	}
	rows := readRows(t, file)
	each := len(rows) / len(logs)
	segments := (each - len(crossed())) / crossedRows()
	if !*update {
		log, err := logs[again].open(realdata.File(t, "swf", logs[again].file+".swf.gz"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got [][]string
		for _, row := range rows[again*each : (again+1)*each] {
			if row[2] == "1" {
				want = append(want, row)
			}
		}
		for _, row := range crossedLog(t, &logs[again], log.Records, []int{0}, segments) {
			if row[2] == "1" {
				got = append(got, row)
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("crossed.csv (-) is not what is measured (+):\n%s", diff)
		}
	}
	pageHolds(t, filepath.Join("..", "docs", "results", "price-of-promises.md"), begins, ends, crossedTables(t, logs, rows, segments))
}

// crossedTables writes a table of the levels for each log, and one of the cheapest and the dearest settings.
func crossedTables(t *testing.T, logs []archiveLog, rows [][]string, segments int) string {
	t.Helper()
	settings := crossed()
	each := len(rows) / len(logs)
	var text strings.Builder
	extremes := "\n| log | p95 more, h, explained by levels alone | least p95 more, h: setting | most p95 more, h: setting |\n|---|---|---|---|\n"
	for i := range logs {
		own := rows[i*each : (i+1)*each]
		fmt.Fprintf(&text, "\n**%s**, %d segments of %d settings\n\n| level | accepted, %% | mean wait more, h | narrow jobs | wide jobs | p95 more, h | PE-hours of waiting for each promised |\n|---|---|---|---|---|---|---|\n", logs[i].name, segments, len(settings))
		for from := 0; from < len(own)-len(settings); from += segments {
			at := func(figure int) sample {
				var s sample
				for _, row := range own[from : from+segments] {
					s = append(s, bestFigure(t, row[3+figure]))
				}
				return s
			}
			cost := at(priceCost)
			for s, promised := range at(pricePromised) {
				cost[s] /= promised
			}
			fmt.Fprintf(&text, "| %s | %.1f | %s | %+.2f | %+.2f | %s | %s |\n", own[from][1], pricedMean(at(priceAccepted)),
				intervalOf(at(priceMean).minus(at(priceMeanWithout))), pricedMean(at(priceNarrow)), pricedMean(at(priceWide)),
				intervalOf(at(priceP95).minus(at(priceP95Without))), intervalOf(cost))
		}
		growth := make([]float64, len(settings))
		least, most := 0, 0
		for k, row := range own[len(own)-len(settings):] {
			growth[k] = bestFigure(t, row[3+priceP95]) - bestFigure(t, row[3+priceP95Without])
			if growth[k] < growth[least] {
				least = k
			}
			if growth[k] > growth[most] {
				most = k
			}
		}
		extremes += fmt.Sprintf("| %s | %.0f %% | %+.2f: %s | %+.2f: %s |\n", logs[i].name, 100*additive(settings, growth),
			growth[least], crossedName(settings[least]), growth[most], crossedName(settings[most]))
	}
	return text.String() + extremes + "\n"
}

// additive returns which part of the variance of values over all settings the sums of an effect of each
// level explain. In a full cross the effect of a level is the mean of its settings, less that of all.
func additive(settings [][]int, values []float64) float64 {
	all := averageOf(values)
	effects := make([][]float64, len(crossedFactors))
	for f := range crossedFactors {
		for level := range crossedFactors[f].levels {
			var of []float64
			for k, levels := range settings {
				if levels[f] == level {
					of = append(of, values[k])
				}
			}
			effects[f] = append(effects[f], averageOf(of)-all)
		}
	}
	total, left := 0.0, 0.0
	for k, levels := range settings {
		sum := all
		for f, level := range levels {
			sum += effects[f][level]
		}
		total += (values[k] - all) * (values[k] - all)
		left += (values[k] - sum) * (values[k] - sum)
	}
	return 1 - left/total
}

// Effects that add up explain everything, and one that depends on another level does not.
func TestAdditive(t *testing.T) {
	settings := crossed()
	if len(settings) != 54 {
		t.Fatalf("%d settings; want 3·3·3·2", len(settings))
	}
	sums, products := make([]float64, len(settings)), make([]float64, len(settings))
	for k, levels := range settings {
		sums[k] = float64(levels[0]) + 10*float64(levels[1]*levels[1]) - 3*float64(levels[3])
		products[k] = float64((levels[0] - 1) * (2*levels[3] - 1))
	}
	if x := additive(settings, sums); math.Abs(x-1) > 1e-9 {
		t.Errorf("%g of sums is explained; want 1", x)
	}
	if x := additive(settings, products); math.Abs(x) > 1e-9 {
		t.Errorf("%g of products is explained; want 0", x)
	}
}
