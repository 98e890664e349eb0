package performance_test

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/performance"
)

var update = flag.Bool("performance.update", false, "put the counts of allocations into the measurements instead of comparing them")

// measurements is the file of the repository.
var measurements = filepath.Join("..", "..", "docs", "performance", "measurements.json")

// work is something whose allocations are counted. Each call of its piece does the same number of operations.
type work struct {
	name  string
	per   string // what one operation is
	times int    // operations in a call
	begin func(t *testing.T) (call func())
}

// calls is how often a work is done: once to fill pools of memory that is used again, and then counted.
const calls = 4

// counted returns what an operation of a work allocates: the least of some calls, since what the runtime allocates by itself
// comes on top. With one processor and without garbage collection nothing empties the pools on the way, so what varies is only
// how maps with their random seeds are divided.
func counted(t *testing.T, w *work) performance.Count {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	call := w.begin(t)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var allocations, bytes []uint64
	for range calls {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call()
		runtime.ReadMemStats(&after)
		allocations = append(allocations, after.Mallocs-before.Mallocs)
		bytes = append(bytes, after.TotalAlloc-before.TotalAlloc)
	}
	rounded := func(n uint64) float64 { return float64((1000*n+uint64(w.times)/2)/uint64(w.times)) / 1000 }
	return performance.Count{
		Name: w.name, Per: w.per,
		Allocations: rounded(slices.Min(allocations[1:])), Bytes: rounded(slices.Min(bytes[1:])),
	}
}

// No operation on record allocates a tenth more than it did, and every one that is counted is on record.
func TestAllocationsAreThoseOnRecord(t *testing.T) {
	file, err := performance.Read(measurements)
	if err != nil {
		t.Fatal(err)
	}
	var all []performance.Count
	for _, w := range works() {
		now := counted(t, &w)
		t.Logf("%-72s %10.3f allocations, %12.3f bytes a %s", now.Name, now.Allocations, now.Bytes, now.Per)
		all = append(all, now)
		if *update {
			continue
		}
		had, ok := recorded(file, w.name)
		if !ok {
			t.Errorf("%s is not on record", w.name)
			continue
		}
		for _, fault := range now.Exceeds(had) {
			t.Errorf("%s with %s (now %s)", fault, file.Counts.Go, runtime.Version())
		}
	}
	if *update {
		file.Counts = performance.Counts{Go: runtime.Version(), Rows: all}
		if err := file.Write(measurements); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(file.Counts.Rows) != len(all) {
		t.Errorf("%d counts on record, %d are counted", len(file.Counts.Rows), len(all))
	}
	if t.Failed() {
		t.Log("where the growth is meant, and said in the commit: go test ./internal/performance -run Allocations -performance.update && go run ./internal/performance/page")
	}
}

func recorded(file *performance.File, name string) (*performance.Count, bool) {
	i := slices.IndexFunc(file.Counts.Rows, func(c performance.Count) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return &file.Counts.Rows[i], true
}

// wasteful is a monitor with nothing to report that allocates an object whenever it is asked, which is for every job.
type wasteful struct{ last *[4]int64 }

func (w *wasteful) Next(*engine.Engine) (berth.Time, bool) {
	w.last = new([4]int64)
	return 0, false
}

func (*wasteful) Report(*engine.Engine) engine.Event {
	panic("performance: there is nothing to report")
}

// One more object for each job is seen in every simulation.
func TestOneMoreAllocationPerJobIsSeen(t *testing.T) {
	file, err := performance.Read(measurements)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range simulations {
		w := s.work(&wasteful{})
		had, ok := recorded(file, w.name)
		if !ok {
			t.Fatalf("%s is not on record", w.name)
		}
		now := counted(t, &w)
		if faults := now.Exceeds(had); len(faults) == 0 || !strings.Contains(faults[0], "allocations") {
			t.Errorf("%s: %.3f allocations a job with one more for each, and %.3f on record: %q", w.name, now.Allocations, had.Allocations, faults)
		}
	}
}

func TestCountsAboveTenPercentAreFaults(t *testing.T) {
	had := &performance.Count{Name: "w", Per: "job", Allocations: 10, Bytes: 1000}
	for _, c := range []struct {
		allocations, bytes float64
		faults             int
	}{
		{10, 1000, 0}, {11, 1100, 0}, {11.1, 1000, 1}, {10, 1102, 1}, {12, 1200, 2}, {1, 1, 0},
	} {
		now := performance.Count{Name: "w", Per: "job", Allocations: c.allocations, Bytes: c.bytes}
		if got := now.Exceeds(had); len(got) != c.faults {
			t.Errorf("%v and %v are faults %q, want %d", c.allocations, c.bytes, got, c.faults)
		}
	}
	none := &performance.Count{Name: "w", Per: "job"}
	if got := (&performance.Count{Name: "w", Per: "job", Allocations: 1, Bytes: 16}).Exceeds(none); len(got) != 2 {
		t.Errorf("an allocation where there was none: %q", got)
	}
}

func TestMeasurementsAreWrittenAsTheyAreRead(t *testing.T) {
	text, err := os.ReadFile(measurements)
	if err != nil {
		t.Fatal(err)
	}
	file, err := performance.Read(measurements)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.json")
	if err := file.Write(again); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(again); err != nil || string(got) != string(text) {
		t.Errorf("%v: it is not as it is written; run go run ./internal/performance/page", err)
	}
}
