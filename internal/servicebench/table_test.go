//go:build unix

// Package servicebench measures the service against its goals: rows of work, each
// on a real journal in a folder of its own, with the clients in the same
// process. Every row checks the answers, and a small size of each runs with the
// tests. The whole table, which takes half an hour:
//
//	go test -v ./internal/servicebench -run Table -servicebench.full -timeout 60m
//
// -run Table/offers is one row. Figures are of the wall clock and of the CPU time
// of the process, which includes the clients.
package servicebench

import (
	"cmp"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/performance"
)

var (
	full   = flag.Bool("servicebench.full", false, "measure at full size and print the table")
	record = flag.Bool("servicebench.record", false, "with -servicebench.full: put the rows into docs/performance too")
)

// recorded is the table of docs/performance.md.
var recorded = performance.Table{
	Name: "service", Packages: []string{"calendar", "engine/...", "journal/...", "service", "api/...", "site/slurm"}, Columns: []string{"work", "goal", "measured"},
}

// sizes is how much work the rows are.
type sizes struct {
	pes      int // of the cluster
	live     int // reservations that there are
	requests int // timed
	offers   int // asked for, timed
	journal  int // reservations to restart with
	tail     int // of those, behind the newest snapshot
	watch    time.Duration
	nodes    int // of the Slurm cluster that is imported
	mix      int // requests in front of Slurm
	queue    int // jobs in the queue of a large one
	fleet    int // its nodes
	soon     int // promises that are asked for there
	keyed    int // requests of each half of a pair
	notices  int // in the outbox
	paced    int // requests while another server stands by, of 4,000 a second

	flowPEs    int // of the cluster on which workflows are promised
	flowLive   int // reservations that there are
	flowTasks  int // of a workflow
	flows      int // promised one after the other in a round
	flowRounds int

	ranFlows   int            // workflows that run at once
	ranTasks   int            // of each
	ranLongest berth.Duration // a task of them, on one PE
}

var (
	small = sizes{
		pes: 1024, live: 500, requests: 200, offers: 40, journal: 600, tail: 200, watch: 50 * time.Millisecond, nodes: 8, mix: 20, keyed: 64, queue: 60, fleet: 10, soon: 20, notices: 1000, paced: 400,
		flowPEs: 1152, flowLive: 200, flowTasks: 20, flows: 2, flowRounds: 1,
		ranFlows: 3, ranTasks: 4, ranLongest: 3,
	}
	large = sizes{
		pes: 1024, live: 100_000, requests: 40_000, offers: 20_000, journal: 1_000_000, tail: 199_000, watch: 20 * time.Second, nodes: 1000, mix: 1000, keyed: 4000, queue: 50_000, fleet: 5000, soon: 2000, notices: 100_000, paced: 120_000,
		flowPEs: 1152, flowLive: 10_000, flowTasks: 100, flows: 16, flowRounds: 2,
		ranFlows: 200, ranTasks: 100, ranLongest: 120,
	}
)

// line is a line of the table.
type line struct{ work, goal, got string }

// table collects lines.
type table []line

func (t *table) add(work, goal, format string, args ...any) {
	*t = append(*t, line{work, goal, fmt.Sprintf(format, args...)})
}

func (t table) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %d processors\n%-62s %-16s %s\n", runtime.Version(), runtime.NumCPU(), "work", "goal", "measured")
	for _, l := range t {
		fmt.Fprintf(&text, "%-62s %-16s %s\n", l.work, l.goal, l.got)
	}
	return text.String()
}

// TestTable runs every row, at full size if that is asked for.
func TestTable(t *testing.T) {
	size := small
	if *full {
		size = large
	} else if testing.Short() {
		t.Skip("starts clusters and services")
	}
	var lines table
	for _, row := range []struct {
		name string
		run  func(*testing.T, *sizes, *table)
	}{
		{"reservations", reservations},
		{"postgres", reservationsInPostgreSQL},
		{"offers", offers},
		{"keyed", keyed},
		{"notices", notices},
		{"restart", restart},
		{"restart-postgres", restartOnPostgreSQL},
		{"standby", standsBy},
		{"import", imports},
		{"mix", mixes},
		{"queue", queues},
		{"workflows", workflows},
		{"running", running},
	} {
		t.Run(row.name, func(t *testing.T) {
			runtime.GC() // what the row before has left
			had := len(lines)
			if row.run(t, &size, &lines); len(lines) == had {
				t.Error("nothing was measured")
			}
			if *full {
				fmt.Printf("--- %s\n%s", row.name, lines[had:])
			}
		})
	}
	if *full {
		fmt.Print(lines)
	}
	if *full && *record && !t.Failed() {
		if err := performance.Put(t.Context(), filepath.Join("..", ".."), &recorded, lines.cells()); err != nil {
			t.Fatal(err)
		}
	}
}

// cells returns the lines as the page shows them. A line that belongs to the one above it, which
// begins with spaces, is named with that.
func (t table) cells() [][]string {
	var cells [][]string
	above := ""
	for _, l := range t {
		work, belongs := strings.CutPrefix(l.work, "  ")
		if belongs {
			work = above + ": " + work
		} else {
			above = work
		}
		cells = append(cells, []string{work, l.goal, l.got})
	}
	return cells
}

func TestLinesForThePage(t *testing.T) {
	lines := table{{"offers", "1/s", "2/s"}, {"  without the API", "", "3/s"}, {"restart", "5 s", "4 s"}}
	want := [][]string{{"offers", "1/s", "2/s"}, {"offers: without the API", "", "3/s"}, {"restart", "5 s", "4 s"}}
	if got := lines.cells(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}

// spent is time since a moment: of the wall clock, of the processors, and of the
// processes that were started and have ended.
type spent struct{ wall, cpu, children time.Duration }

func (s spent) String() string {
	return fmt.Sprintf("%.2f s, %.2f s of CPU", s.wall.Seconds(), s.cpu.Seconds())
}

// stopwatch begins to measure; what it returns tells what was spent since.
func stopwatch() func() spent {
	used := func(who int) time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			panic("servicebench: " + err.Error())
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began, cpu, children := time.Now(), used(syscall.RUSAGE_SELF), used(syscall.RUSAGE_CHILDREN)
	return func() spent {
		return spent{time.Since(began), used(syscall.RUSAGE_SELF) - cpu, used(syscall.RUSAGE_CHILDREN) - children}
	}
}

// latencies are how long answers took.
type latencies []time.Duration

// at returns the latency that a number of a thousand stay within.
func (l latencies) at(perMille int) time.Duration {
	slices.Sort(l)
	return l[min(len(l)-1, len(l)*perMille/1000)]
}

func (l latencies) String() string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, longest %.1f ms", ms(l.at(500)), ms(l.at(990)), ms(l.at(1000)))
}

// spread tells the median and what lies on both sides of it.
func (l latencies) spread() string {
	return fmt.Sprintf("median %.2f s, %.2f to %.2f s", l.at(500).Seconds(), l.at(0).Seconds(), l.at(1000).Seconds())
}

// perSecond is a rate.
func perSecond(n int, in time.Duration) string {
	return fmt.Sprintf("%.0f/s", float64(n)/cmp.Or(in, 1).Seconds())
}
