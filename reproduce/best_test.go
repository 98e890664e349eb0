package reproduce

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/offline"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

var bestSegments = flag.Int("best.segments", 20, "segments of each log that -update measures for docs/results/best-possible.md, spread evenly")

// What docs/results/best-possible.md states. OSC-Clust has the nodes of its header, for 178 PEs
// are never short there.
const (
	bestJobs   = 1000
	bestRounds = 300000
	bestCells  = 2048
	bestSteps  = 3000
	bestWithin = 0.05 // points by which figures may differ from those on record
)

var bestMeasures = []string{"requests", "work"}

func bestLogs() []archiveLog {
	logs := append([]archiveLog(nil), pressureLogs...)
	for i := range logs {
		if logs[i].name == "OSC-Clust" {
			logs[i].pes = 57
		}
	}
	return logs
}

// bestSegment measures one segment of a log: a row for each measure with the bound, what the search
// reached, and what each placement accepts, in percent of what was asked. Without search the first two
// are left out.
func bestSegment(t *testing.T, l *archiveLog, records []workload.Record, segment, segments int, search bool) [][]string {
	t.Helper()
	from := (len(records) - bestJobs) * segment / max(1, segments-1)
	transform := workload.NewTransform(uint64(segment + 1))
	requests, err := transform.Requests(records[from:from+bestJobs], true, nil)
	if err != nil {
		t.Fatal(err)
	}
	plans := make([]offline.Plan, len(policy.Placements))
	for k := range policy.Placements {
		preset, _ := engine.PresetNamed("li")
		config := engine.Config{Sites: sim.OnePool(l.pes, berth.Early), Place: policy.Placements[k].Name}
		preset.Apply(&config)
		lines, err := sim.Run(t.Context(), config, requests, nil)
		if err != nil {
			t.Fatal(err)
		}
		plans[k] = make(offline.Plan, len(lines))
		for i := range lines {
			plans[k][i] = offline.Rejected
			if lines[i].Accepted {
				plans[k][i] = *lines[i].Start
			}
		}
	}
	var rows [][]string
	for by, measure := range bestMeasures {
		p := offline.Of(requests, l.pes, by)
		percent := func(x int64) string {
			return strconv.FormatFloat(100*float64(x)/float64(p.Worth()), 'f', 3, 64)
		}
		best, most := plans[0], int64(0)
		var accepted []string
		for k := range plans {
			value, possible := p.Value(plans[k])
			if !possible {
				t.Fatalf("%s, segment %d: the plan of %s breaks the rules of offline", l.name, segment+1, policy.Placements[k].Name)
			}
			if value > most {
				best, most = plans[k], value
			}
			accepted = append(accepted, percent(value))
		}
		row := []string{l.name, strconv.Itoa(segment + 1), measure, "", ""}
		if search {
			reached, possible := p.Value(p.Search(best, bestRounds, rand.New(rand.NewPCG(uint64(segment+1), 1))))
			bound := min(p.Bound(p.Price(bestCells, bestSteps)), p.Worth())
			if !possible || reached < most || bound < reached {
				t.Fatalf("%s, segment %d, %s: bound %d, reached %d (possible: %t), placements %d", l.name, segment+1, measure, bound, reached, possible, most)
			}
			row[3], row[4] = percent(bound), percent(reached)
		}
		rows = append(rows, append(row, accepted...))
	}
	return rows
}

// The numbers of the page are those of segments.csv, and those are what is measured: what the
// placements accept in the first segment of each log is measured again, with the bound and the search where
// that is quick; all with -update.
func TestBestPossible(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it searches for a minute")
	}
	const (
		begins = "<!-- from segments.csv; go test ./reproduce -run BestPossible -update writes it -->\n"
		ends   = "<!-- end of segments.csv -->\n"
		quick  = "HPC2N"
	)
	file := filepath.Join("..", "docs", "results", "best-possible", "segments.csv")
	page := filepath.Join("..", "docs", "results", "best-possible.md")
	header := []string{"log", "segment", "measure", "bound", "reached"}
	for k := range policy.Placements {
		header = append(header, policy.Placements[k].Name)
	}
	logs := bestLogs()
	var rows [][]string
	if !*update {
		all, err := csv.NewReader(strings.NewReader(string(fileAt(t, file)))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[0], header); diff != "" {
			t.Fatalf("the header of segments.csv (-), of today (+):\n%s", diff)
		}
		rows = all[1:]
	}
	segments := *bestSegments
	if !*update {
		segments = len(rows) / len(logs) / len(bestMeasures)
	}
	var measured [][]string
	for i := range logs {
		l := &logs[i]
		log, err := l.open(realdata.File(t, "swf", l.file+".swf.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for segment := range segments {
			if *update || segment == 0 {
				measured = append(measured, bestSegment(t, l, log.Records, segment, segments, *update || l.name == quick)...)
				t.Logf("%s %d: %v", l.name, segment+1, measured[len(measured)-len(bestMeasures):])
			}
		}
	}
	if *update {
		writeRows(t, file, append([][]string{header}, measured...))
		rows = measured
	}
	pageHolds(t, page, begins, ends, bestTable(t, logs, rows))
	for _, row := range measured {
		for _, kept := range rows {
			if kept[0] != row[0] || kept[1] != row[1] || kept[2] != row[2] {
				continue
			}
			for k := 3; k < len(row); k++ {
				if row[k] != "" && (bestFigure(t, kept[k])-bestFigure(t, row[k]) > bestWithin || bestFigure(t, row[k])-bestFigure(t, kept[k]) > bestWithin) {
					t.Errorf("%s, segment %s, %s, %s: %s, on record %s", row[0], row[1], row[2], header[k], row[k], kept[k])
				}
			}
		}
	}
}

func bestFigure(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// bestTable writes for each log the bounds, the gap between them, and each placement in percent of
// what the search reached, as means over the segments.
func bestTable(t *testing.T, logs []archiveLog, rows [][]string) string {
	t.Helper()
	var text strings.Builder
	segments := len(rows) / len(logs) / len(bestMeasures)
	for m, measure := range bestMeasures {
		fmt.Fprintf(&text, "\n**%s, %d segments of each log**\n\n| log | bound, %% | reached, %% | gap: mean, largest |", strings.ToUpper(measure[:1])+measure[1:], segments)
		for k := range policy.Placements {
			fmt.Fprintf(&text, " %s |", policy.Placements[k].Name)
		}
		text.WriteString("\n|---|---|---|---|" + strings.Repeat("---|", len(policy.Placements)) + "\n")
		for i := range logs {
			var bound, reached, gap sample
			shares := make([]sample, len(policy.Placements))
			widest := 0.0
			for s := range segments {
				row := rows[(i*segments+s)*len(bestMeasures)+m]
				b, r := bestFigure(t, row[3]), bestFigure(t, row[4])
				bound, reached, gap, widest = append(bound, b), append(reached, r), append(gap, b-r), max(widest, b-r)
				for k := range shares {
					shares[k] = append(shares[k], 100*bestFigure(t, row[5+k])/r)
				}
			}
			mean := func(s sample) float64 {
				e, _ := s.estimate()
				return *e.Mean
			}
			fmt.Fprintf(&text, "| %s | %.2f | %.2f | %.2f, %.2f |", logs[i].name, mean(bound), mean(reached), mean(gap), widest)
			for k := range shares {
				fmt.Fprintf(&text, " %.1f |", mean(shares[k]))
			}
			text.WriteString("\n")
		}
	}
	text.WriteString("\n")
	return text.String()
}
