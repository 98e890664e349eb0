// Command workflowbench measures the planners of package workflow: how long they
// take, beside the paper's own steps in the same run (the plain form), and with
// -own how good the plans of our planner are beside the published ones. It reads
// logs of the Parallel Workloads Archive from the folder of -logs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/internal/hugepages"
	"github.com/berth-hpc/berth/internal/performance"
)

func main() {
	var m meter
	folder := flag.String("logs", filepath.Join(os.Getenv("BERTH_DATA"), "swf"), "the folder of logs")
	flag.StringVar(&m.only, "row", "", "only rows whose name contains this")
	flag.DurationVar(&m.least, "time", 500*time.Millisecond, "how long a form is run at least; the shortest time counts")
	flag.DurationVar(&m.patience, "cap", 20*time.Second, "the longest that the plain form may be expected to take for a row")
	own := flag.Bool("own", false, "compare the plans instead: turn-around, CPU-hours, tightest deadlines")
	flag.BoolVar(&m.record, "record", false, "put the rows into docs/performance of the module in which it runs")
	var e experiment
	flag.IntVar(&e.each, "instances", 5, "with -own: workflows and bookings drawn for each scenario")
	flag.IntVar(&e.stride, "every", 1, "with -own: take only every n-th scenario")
	flag.Uint64Var(&e.seed, "seed", 1, "with -own: of workflows, taggings and times")
	flag.StringVar(&e.files, "files", "", "with -own: plan the workflows of this folder rather than those of the paper")
	flag.Parse()
	hugepages.Advise(1 << 30) // as berth does
	runtime.GOMAXPROCS(1)
	run := func() error { return m.tables(*folder) }
	if *own {
		run = func() error { return e.print(*folder) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "workflowbench:", err)
		os.Exit(1)
	}
}

// meter measures and prints rows.
type meter struct {
	only            string
	least, patience time.Duration
	record          bool
}

// shortest returns the least CPU time of some runs.
func (m *meter) shortest(run func() error) (time.Duration, error) {
	best := time.Duration(0)
	for began, runs := cputime.Used(), 0; runs == 0 || runs < 1000 && cputime.Used()-began < m.least; runs++ {
		before := cputime.Used()
		if err := run(); err != nil {
			return 0, err
		}
		if took := cputime.Used() - before; runs == 0 || took < best {
			best = took
		}
	}
	return best, nil
}

// row measures one piece of work in both forms and returns the times, that of
// the plain form 0 if it was not run. guess is how often the fast form the plain
// one is thought to take; 0 leaves it out.
func (m *meter) row(guess int, work func(plain bool) error) (fast, plain time.Duration, err error) {
	fast, err = m.shortest(func() error { return work(false) })
	if err != nil || guess == 0 || fast*time.Duration(guess) > m.patience {
		return fast, 0, err
	}
	plain, err = m.shortest(func() error { return work(true) })
	return fast, plain, err
}

// put puts the rows of a table into docs/performance, if asked for.
func (m *meter) put(name string, columns []string, cells [][]string) error {
	if !m.record || len(cells) == 0 {
		return nil
	}
	return performance.Put(context.Background(), ".", &performance.Table{Name: name, Packages: []string{"calendar", "workflow"}, Columns: columns}, cells)
}

// printRow prints a line of a table.
func printRow(cells []string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

func (m *meter) tables(folder string) error {
	fmt.Printf("%s, %s, CPU time of the process in ms, the shortest of the runs of half a second; GOMAXPROCS=1\n", runtime.Version(), cputime.Processor())
	if err := m.goals(folder); err != nil {
		return err
	}
	return m.paperTables(folder)
}

// ms writes a time in milliseconds, nothing for one not taken.
func ms(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond))
}

// times writes how many times longer the second is.
func times(fast, plain time.Duration) string {
	if plain == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", float64(plain)/float64(fast))
}

func (m *meter) wanted(name string) bool { return strings.Contains(name, m.only) }
