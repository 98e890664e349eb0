package reproduce

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// What docs/results/least-pressure.md states: the logs, those that the placement was tuned on
// first, and how each is cut.
var pressureLogs = []archiveLog{
	{name: "LANL-CM5", file: "LANL-CM5-1994-4.1-cln", pes: 1024},
	{name: "CTC-SP2", file: "CTC-SP2-1996-3.1-cln", pes: 338},
	{name: "HPC2N", file: "HPC2N-2002-2.2-cln", pes: 240},
	{name: "OSC-Clust", file: "OSC-Clust-2000-3.1-cln", pes: 178},
	{name: "SDSC-BLUE", file: "SDSC-BLUE-2000-4.2-cln", pes: 1152},
	{name: "SDSC-DS", file: "SDSC-DS-2004-2.1-cln", pes: 1664},
}

const (
	pressureTuned    = 3
	pressureSegments = 10
	pressureJobs     = 5000
)

var (
	pressureLoads      = []float64{1, 1.5}
	pressurePlacements = []string{"first-fit", "pe-worst", "least-pressure"}
	pressureHeader     = []string{"log", "load", "segment", "placement", "requests", "work", "slowdown"}
)

const (
	pressureTableBegins = "<!-- from segments.csv; go test ./reproduce -run LeastPressure -update writes it -->\n"
	pressureTableEnds   = "<!-- end of segments.csv -->\n"
)

// segment measures the placements on one segment of a log, from 0.
func pressureSegment(t *testing.T, l *archiveLog, records []workload.Record, load float64, segment int) [][]string {
	t.Helper()
	from := (len(records) - pressureJobs) * segment / (pressureSegments - 1)
	transform := workload.NewTransform(uint64(segment + 1))
	transform.ArrivalFactor = load
	requests, err := transform.Requests(records[from:from+pressureJobs], true, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, place := range pressurePlacements {
		preset, _ := engine.PresetNamed("li")
		config := engine.Config{Sites: sim.OnePool(l.pes, berth.Early), Place: place}
		preset.Apply(&config)
		lines, err := sim.Run(t.Context(), config, requests, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := measure.Of(lines, l.pes)
		digits := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
		rows = append(rows, []string{
			l.name, fmt.Sprint(load), strconv.Itoa(segment + 1), place,
			digits(100 * *m.AcceptanceRate), digits(share(100*m.AcceptedPESeconds, m.RequestedPESeconds)), digits(*m.MeanSlowdown),
		})
	}
	return rows
}

// The numbers of the page are those of segments.csv, and those are what is measured: the first
// segment of each log and load is run again, all with -update.
func TestLeastPressure(t *testing.T) {
	if testing.Short() {
		t.Skip("whole simulations in one goroutine")
	}
	file := filepath.Join("..", "docs", "results", "least-pressure", "segments.csv")
	page := filepath.Join("..", "docs", "results", "least-pressure.md")
	var measured [][]string
	segments := 1
	if *update {
		segments = pressureSegments
	}
	for i := range pressureLogs {
		l := &pressureLogs[i]
		log, err := l.open(realdata.File(t, "swf", l.file+".swf.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range pressureLoads {
			for segment := range segments {
				measured = append(measured, pressureSegment(t, l, log.Records, load, segment)...)
			}
		}
	}
	if *update {
		writeRows(t, file, append([][]string{pressureHeader}, measured...))
	}
	kept := pressureRows(t, file)
	var first [][]string
	for _, row := range kept {
		if row[2] == "1" || *update {
			first = append(first, row)
		}
	}
	if diff := cmp.Diff(first, measured); diff != "" {
		t.Errorf("segments.csv (-) is not what is measured (+):\n%s", diff)
	}

	pageHolds(t, page, pressureTableBegins, pressureTableEnds, pressureTable(t, kept))
}

func pressureRows(t *testing.T, file string) [][]string {
	t.Helper()
	rows := readRows(t, file)
	if want := len(pressureLogs) * len(pressureLoads) * pressureSegments * len(pressurePlacements); len(rows) != want {
		t.Fatalf("%s has %d rows, want %d", file, len(rows), want)
	}
	return rows
}

// pressureTable writes the table of the page: for each log and load the means, what
// least-pressure gains on each of the others with its interval, and whether it wins.
func pressureTable(t *testing.T, rows [][]string) string {
	t.Helper()
	at := func(log, load, place, column int) sample {
		var s sample
		for segment := range pressureSegments {
			row := rows[((log*len(pressureLoads)+load)*pressureSegments+segment)*len(pressurePlacements)+place]
			x, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			s = append(s, x)
		}
		return s
	}
	var text strings.Builder
	text.WriteString("\n| log | load | requests, %: FF, PE_W, ours | gain on FF | gain on PE_W | work, %: FF, PE_W, ours | gain on FF | gain on PE_W | wins |\n|---|---|---|---|---|---|---|---|---|\n")
	for log := range pressureLogs {
		if log == pressureTuned {
			text.WriteString("| *not tuned on:* | | | | | | | | |\n")
		}
		for load := range pressureLoads {
			fmt.Fprintf(&text, "| %s | %g |", pressureLogs[log].name, pressureLoads[load])
			wins := "**yes**"
			for column := 4; column <= 5; column++ {
				ff, pew, ours := at(log, load, 0, column), at(log, load, 1, column), at(log, load, 2, column)
				fmt.Fprintf(&text, " %.2f, %.2f, %.2f | %s | %s |", pricedMean(ff), pricedMean(pew), pricedMean(ours), gained(ours.minus(ff)), gained(ours.minus(pew)))
				if pricedMean(ours) <= pricedMean(ff) || pricedMean(ours) <= pricedMean(pew) {
					wins = "no"
				}
			}
			fmt.Fprintf(&text, " %s |\n", wins)
		}
	}
	text.WriteString("\n")
	return text.String()
}
