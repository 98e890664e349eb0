package sim_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// peerLog is a log as the simulator pyss reads it: estimate = max(requested,
// run, 1), run = max(min(requested, run), 1), the size is that of the allotted
// processors, cut to the machine. A record that did not run becomes a job of
// one second. tiny says which jobs do not count: those, and those of one
// second's estimate on one processor.
type peerLog struct {
	pes      berth.Count
	workload sim.Workload
	tiny     []bool
}

// openPeerLog reads the first records of a log, all if records is 0.
func openPeerLog(t testing.TB, name string, records int) peerLog {
	file, err := os.Open(realdata.File(t, "swf", name+".swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var log peerLog
	for in := bufio.NewScanner(unzipped); in.Scan(); {
		line := in.Text()
		if pes, found := strings.CutPrefix(line, "; MaxProcs:"); found {
			n, err := strconv.Atoi(strings.Fields(pes)[0])
			if err != nil {
				t.Fatal(err)
			}
			log.pes = berth.Count(n)
		}
		fields := strings.Fields(line)
		if len(fields) != 18 || strings.HasPrefix(line, ";") {
			continue
		}
		column := func(i int) int64 {
			n, err := strconv.ParseFloat(fields[i-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(n)
		}
		run, procs, requested := column(4), column(5), column(9)
		estimate, actual := max(requested, run, 1), max(min(requested, run), 1)
		ran := run > 0 && procs > 0
		if !ran {
			estimate, actual = 1, 1
		}
		npe := max(1, min(berth.Count(procs), log.pes))
		job := berth.Job(fields[0], berth.Time(column(2)), npe, berth.Duration(estimate))
		log.workload.Requests = append(log.workload.Requests, job)
		log.workload.Runs = append(log.workload.Runs, berth.Duration(actual))
		log.tiny = append(log.tiny, !ran || (estimate == 1 && npe == 1))
		if len(log.tiny) == records {
			break
		}
	}
	return log
}

// near reports whether a figure is the published one, of four decimals.
func near(got, published float64) bool { return math.Abs(got-published) < 0.000_06 }

// accepted fails the test unless the independent validator accepts a schedule.
func accepted(t rapid.TB, lines []berth.Line, pes berth.Count) {
	t.Helper()
	if report := checked(t, lines, check.Options{PEs: pes}); !report.Valid() {
		t.Fatalf("%d violations, the first: %v", len(report.Violations), report.Violations[0])
	}
}

// checked returns what the independent validator says of a schedule.
func checked(t rapid.TB, lines []berth.Line, options check.Options) *check.Report {
	t.Helper()
	var file bytes.Buffer
	out := json.NewEncoder(&file)
	for i := range lines {
		if err := out.Encode(&lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	report, err := check.File(&file, "schedule", options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The mean wait and the mean bounded slowdown of EASY and of conservative
// backfilling on real logs are those of pyss under its rules.
func TestBackfillingAgreesWithPyss(t *testing.T) {
	if testing.Short() {
		t.Skip("real logs are left out of short runs")
	}
	for _, c := range []struct {
		log      string
		records  int
		jobs     string
		counted  int
		wait     float64 // minutes
		slowdown float64
	}{
		{"HPC2N-2002-2.2-cln", 20000, "easy", 19764, 78.6667, 45.9161},
		{"HPC2N-2002-2.2-cln", 20000, "conservative", 19764, 82.3182, 46.4554},
		{"CTC-SP2-1996-3.1-cln", 20000, "easy", 19758, 210.9579, 44.4449},
		{"CTC-SP2-1996-3.1-cln", 20000, "conservative", 19758, 255.8276, 54.6214},
		{"HPC2N-2002-2.2-cln", 0, "easy", 200840, 185.9219, 88.6604},
	} {
		name := c.log + "/" + c.jobs
		if c.records == 0 {
			name += "/whole"
		}
		t.Run(name, func(t *testing.T) {
			log := openPeerLog(t, c.log, c.records)
			config := engine.Config{
				Sites: sim.OnePool(log.pes, berth.Late), Jobs: c.jobs, Compress: true, Instant: engine.ArrivalsFirst(),
			}
			lines, err := sim.Replay(context.Background(), config, log.workload, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := measure.SteadyState(lines, func(line int) bool { return log.tiny[line] })
			if got.Jobs != c.counted || !near(*got.MeanWait/60, c.wait) || !near(*got.MeanBoundedSlowdown, c.slowdown) {
				t.Errorf("%d jobs, wait %.4f min, bounded slowdown %.4f; pyss has %d, %.4f, %.4f",
					got.Jobs, *got.MeanWait/60, *got.MeanBoundedSlowdown, c.counted, c.wait, c.slowdown)
			}
			accepted(t, lines, log.pes)
		})
	}
}
