// Command simbench measures berth sim as a whole process, from the file to the result: time by the clock, CPU time and peak memory, the
// lowest of some runs of each command. It reads logs of the Parallel Workloads Archive from the folder of -logs, and leaves out rows
// whose log is not there. It prints one table, which -record puts into docs/performance too; make bench-sim runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/internal/performance"
)

func main() {
	b := bench{}
	flag.StringVar(&b.berth, "berth", filepath.Join("bin", "berth"), "the program to measure")
	flag.StringVar(&b.logs, "logs", filepath.Join(os.Getenv("BERTH_DATA"), "swf"), "the folder of logs")
	flag.IntVar(&b.runs, "runs", 3, "how often each command is run")
	only := flag.String("row", "", "only rows whose name contains this")
	record := flag.Bool("record", false, "put the rows into docs/performance of the module in which it runs")
	flag.Parse()
	if err := b.table(context.Background(), *only, *record); err != nil {
		fmt.Fprintln(os.Stderr, "simbench:", err)
		os.Exit(1)
	}
}

// row is a command and its goals, which are those of issue 22.
type row struct {
	name, goal string
	log        string // a file of the archive; empty for a model
	args       string
}

var rows = []row{
	{"HPC2N, early, first-fit", "0.6 s, 150 MB", "HPC2N-2002-2.2-cln.swf.gz", "--bind early --policy first-fit"},
	{"HPC2N, early, pe-worst", "0.8 s", "HPC2N-2002-2.2-cln.swf.gz", "--bind early --policy pe-worst"},
	{"SDSC-BLUE as jobs, late, EASY", "0.4 s, 150 MB", "SDSC-BLUE-2000-4.2-cln.swf.gz", "--as jobs --bind late --backfill easy"},
	{"SDSC-BLUE as jobs, late, conservative", "0.7 s, 150 MB", "SDSC-BLUE-2000-4.2-cln.swf.gz", "--as jobs --bind late --backfill conservative"},
	{"300,000 jobs of the model on 93,312 PEs, early, first-fit", "2 s, 300 MB", "", "--workload lublin:typeless --jobs 300000 --pes 93312 --bind early --policy first-fit"},
	{"300,000 jobs of the model on 93,312 PEs, early, pe-worst", "3 s, 300 MB", "", "--workload lublin:typeless --jobs 300000 --pes 93312 --bind early --policy pe-worst"},
}

// recorded is the table of docs/performance.md.
var recorded = performance.Table{
	Name: "simulation-whole", Columns: []string{"berth sim", "reach", "by the clock", "CPU", "peak memory"},
	Packages: []string{".", "calendar", "policy", "engine/...", "workload", "measure", "sim", "scenario", "cmd/berth"},
}

// bench is how commands are measured.
type bench struct {
	berth, logs string
	runs        int
}

func (b *bench) table(ctx context.Context, only string, record bool) error {
	fmt.Printf("%s, %s, %d processors, the lowest of %d runs\n", runtime.Version(), cputime.Processor(), runtime.NumCPU(), b.runs)
	var cells [][]string
	for i := range rows {
		r := &rows[i]
		if !strings.Contains(r.name, only) {
			continue
		}
		args := append([]string{"sim"}, strings.Fields(r.args)...)
		if r.log != "" {
			file := filepath.Join(b.logs, r.log)
			if _, err := os.Stat(file); err != nil {
				fmt.Printf("%s: left out: %v\n", r.name, err)
				continue
			}
			args = append(args, "--workload", file)
		}
		least, err := b.measure(ctx, args)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		line := []string{r.name, r.goal, seconds(least.wall), seconds(least.cpu), megabytes(least.peak)}
		fmt.Println("| " + strings.Join(line, " | ") + " |")
		cells = append(cells, line)
	}
	if !record || len(cells) == 0 {
		return nil
	}
	return performance.Put(ctx, ".", &recorded, cells)
}

// used is what a process used.
type used struct {
	wall, cpu time.Duration
	peak      int64 // bytes; 0 if the system does not tell
}

// measure runs a command some times and returns the least of each.
func (b *bench) measure(ctx context.Context, args []string) (used, error) {
	var least used
	for i := range b.runs {
		command := exec.CommandContext(ctx, b.berth, args...)
		began := time.Now()
		if out, err := command.CombinedOutput(); err != nil {
			return used{}, fmt.Errorf("%w: %s", err, out)
		}
		got := used{time.Since(began), command.ProcessState.UserTime() + command.ProcessState.SystemTime(), peak(command.ProcessState)}
		if i == 0 {
			least = got
		}
		least = used{min(least.wall, got.wall), min(least.cpu, got.cpu), min(least.peak, got.peak)}
	}
	return least, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func megabytes(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}
