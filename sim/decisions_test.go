package sim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

var (
	update    = flag.Bool("update", false, "write the decisions found to testdata")
	wholeLogs = flag.Bool("decisions.full", false, "compare the decisions on whole logs too")
	schedules = flag.String("decisions.schedules", "", "write the schedule of each row to this folder")
)

// decisionRow is a workload under a configuration.
type decisionRow struct {
	name   string
	config engine.Config
	// work returns the workload. A monitor is used up by its run, so each run
	// asks anew.
	work func() sim.Workload
}

// outcome is what became of a row.
type outcome struct {
	requests, accepted int
	// decisions is the decision hash, which covers requests alone: for ordinary
	// jobs it is that of an empty schedule.
	decisions string
	// schedule is a hash of every decided field of every line: it covers jobs,
	// pools, moved promises, early ends, outages and transfers too.
	schedule string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d of %d accepted, decisions %s, schedule %s", o.accepted, o.requests, o.decisions, o.schedule)
}

// hashDigits is how much of a hash a table keeps: of four billion changes one
// stays unseen.
const hashDigits = 8

// Every placement, pass, matcher, order and option decides on the first records of
// every log as testdata/decisions.csv says. An intended change of decisions
// rewrites the table: go test ./sim -run 'TestDecisions$' -update.
func TestDecisions(t *testing.T) {
	if testing.Short() {
		t.Skip("real logs are left out of short runs, such as those under the race detector")
	}
	compareDecisions(t, "decisions.csv", everyRow)
}

// The principal rows decide on whole logs as testdata/decisions-full.csv says.
func TestDecisionsOnWholeLogs(t *testing.T) {
	if !*wholeLogs {
		t.Skip("whole logs take minutes: -decisions.full runs them")
	}
	compareDecisions(t, "decisions-full.csv", principalRows)
}

// compareDecisions runs the rows of every log and compares them with a table.
func compareDecisions(t *testing.T, file string, rowsOf func(testing.TB, *decisionLog) []decisionRow) {
	path := filepath.Join("testdata", file)
	table := readDecisions(t, path)
	var mutex sync.Mutex
	names, found := map[string][]string{}, map[string]outcome{} // by log; by row
	t.Cleanup(func() {
		if *update {
			writeDecisions(t, path, table, names, found)
		}
	})
	for i := range decisionLogs {
		log := &decisionLogs[i]
		t.Run(log.name, func(t *testing.T) {
			t.Parallel()
			rows := rowsOf(t, log)
			all := make([]string, len(rows))
			for i := range rows {
				if all[i] = log.name + "/" + rows[i].name; slices.Contains(all[:i], all[i]) {
					t.Fatalf("two rows %s", all[i])
				}
			}
			mutex.Lock()
			names[log.name] = all
			mutex.Unlock()
			for i := range rows {
				t.Run(rows[i].name, func(t *testing.T) {
					got := decide(t, &rows[i], all[i])
					mutex.Lock()
					defer mutex.Unlock()
					found[all[i]] = got
					if !*update {
						compareOutcome(t, table, all[i], got)
					}
				})
			}
			if *update {
				return
			}
			for _, name := range table.names[log.name] {
				if !slices.Contains(all, name) {
					t.Errorf("%s has the row %s, which the test lacks; -update removes it", path, name)
				}
			}
		})
	}
}

// compareOutcome compares what was found with a row of the table.
func compareOutcome(t *testing.T, table *decisionTable, name string, got outcome) {
	t.Helper()
	switch want, known := table.rows[name]; {
	case !known:
		t.Errorf("%s; the table has no such row, -update adds it", got)
	case got.decisions != want.decisions || got.requests != want.requests || got.accepted != want.accepted:
		t.Errorf("decided differently: %s; want %s", got, want)
	case got != want:
		t.Errorf("requests decided alike; jobs, pools, moved promises, early ends, outages or transfers differ: %s; want %s", got, want)
	}
}

// decide replays a row.
func decide(t *testing.T, row *decisionRow, name string) outcome {
	t.Helper()
	work := row.work()
	lines, err := sim.Replay(t.Context(), row.config, work, nil)
	if err != nil {
		config, _ := json.Marshal(row.config)
		t.Fatalf("%v; configuration %s", err, config)
	}
	if *schedules != "" {
		writeSchedule(t, name, lines)
	}
	o := outcome{requests: len(work.Requests), decisions: measure.Hash(lines)[:hashDigits], schedule: scheduleHash(lines)}
	for i := range lines {
		if l := &lines[i]; l.Accepted && l.Part <= 1 && (l.Kind == berth.KindRequest || l.Kind == berth.KindJob) {
			o.accepted++
		}
	}
	return o
}

// scheduleHash returns a hash of what was decided of all lines, in their order.
func scheduleHash(lines []berth.Line) string {
	sum := sha256.New()
	var buf []byte
	for i := range lines {
		l := &lines[i]
		buf = buf[:0]
		for _, text := range []string{l.ID, string(l.Kind), l.Site, l.Pool, string(l.Reason), l.PEs.String()} {
			buf = append(append(buf, text...), '\t')
		}
		for _, n := range []int64{int64(l.Part), int64(l.Deadline), int64(l.Duration), int64(l.NPE), l.Kilobytes} {
			buf = append(strconv.AppendInt(buf, n, 10), '\t')
		}
		for _, at := range []*berth.Time{l.Start, l.End, l.PromisedStart, l.ActualEnd} {
			if at != nil {
				buf = strconv.AppendInt(buf, int64(*at), 10)
			}
			buf = append(buf, '\t')
		}
		sum.Write(append(strconv.AppendBool(buf, l.Accepted), '\n'))
	}
	return hex.EncodeToString(sum.Sum(nil))[:hashDigits]
}

// writeSchedule writes the schedule of a row, so that those of two versions can
// be compared line by line.
func writeSchedule(t *testing.T, name string, lines []berth.Line) {
	t.Helper()
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	for i := range lines {
		if err := out.Encode(&lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(*schedules, filepath.FromSlash(name)+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// decisionTable is a table as read.
type decisionTable struct {
	names map[string][]string // by log, in their order
	rows  map[string]outcome
}

var decisionHeader = []string{"row", "requests", "accepted", "decisions", "schedule"}

// readDecisions reads a table. A file that -update is to create is an empty one.
func readDecisions(t *testing.T, path string) *decisionTable {
	t.Helper()
	table := &decisionTable{names: map[string][]string{}, rows: map[string]outcome{}}
	text, err := os.ReadFile(path)
	if *update && errors.Is(err, fs.ErrNotExist) {
		return table
	}
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(records) == 0 {
		t.Fatalf("%s: %d rows: %v", path, len(records), err)
	}
	for _, record := range records[1:] {
		var o outcome
		for i, n := range []*int{&o.requests, &o.accepted} {
			if *n, err = strconv.Atoi(record[i+1]); err != nil {
				t.Fatalf("%s: %s: %v", path, record[0], err)
			}
		}
		o.decisions, o.schedule = record[3], record[4]
		log, _, _ := strings.Cut(record[0], "/")
		table.names[log], table.rows[record[0]] = append(table.names[log], record[0]), o
	}
	return table
}

// writeDecisions writes a table with the outcomes found. What did not run stays
// as it was.
func writeDecisions(t *testing.T, path string, table *decisionTable, names map[string][]string, found map[string]outcome) {
	t.Helper()
	records := [][]string{decisionHeader}
	for i := range decisionLogs {
		log := decisionLogs[i].name
		rows := names[log]
		if rows == nil {
			rows = table.names[log]
		}
		for _, name := range rows {
			o, ran := found[name]
			if !ran {
				if o, ran = table.rows[name]; !ran {
					continue
				}
			}
			records = append(records, []string{name, strconv.Itoa(o.requests), strconv.Itoa(o.accepted), o.decisions, o.schedule})
		}
	}
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(records); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}
