// Command simbench measures berth sim as a whole process, from the file to the result: time by the clock, CPU time and peak memory, the
// lowest of some runs of each command. With -beside another program, such as that of an earlier commit, runs in turn with it, and the
// medians of the ratios of pairs are told too. It reads logs of the Parallel Workloads Archive from the folder of -logs, and leaves out rows
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
	"slices"
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
	flag.StringVar(&b.beside, "beside", "", "another program, which is run in turn with it: of commit c5c2760, whose conservative pass compresses if --compress says so")
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
	then       string // what -beside takes in addition
}

var rows = []row{
	{"HPC2N, early, first-fit", "0.6 s, 150 MB", "HPC2N-2002-2.2-cln.swf.gz", "--bind early --policy first-fit", ""},
	{"HPC2N, early, pe-worst", "0.8 s", "HPC2N-2002-2.2-cln.swf.gz", "--bind early --policy pe-worst", ""},
	{"SDSC-BLUE as jobs, late, EASY", "0.4 s, 150 MB", "SDSC-BLUE-2000-4.2-cln.swf.gz", "--as jobs --bind late --backfill easy", ""},
	{"SDSC-BLUE as jobs, late, conservative", "0.7 s, 150 MB", "SDSC-BLUE-2000-4.2-cln.swf.gz", "--as jobs --bind late --backfill conservative", "--compress"},
	{"300,000 jobs of the model on 93,312 PEs, early, first-fit", "2 s, 300 MB", "", "--workload lublin:typeless --jobs 300000 --pes 93312 --bind early --policy first-fit", ""},
	{"300,000 jobs of the model on 93,312 PEs, early, pe-worst", "3 s, 300 MB", "", "--workload lublin:typeless --jobs 300000 --pes 93312 --bind early --policy pe-worst", ""},
}

// recorded is the table of docs/performance.md.
var recorded = performance.Table{
	Name: "simulation-whole", Columns: []string{"berth sim", "reach", "by the clock", "CPU", "peak memory", "of c5c2760: clock; CPU; memory"},
	Packages: []string{".", "calendar", "policy", "engine/...", "workload", "measure", "sim", "scenario", "cmd/berth"},
}

// bench is how commands are measured.
type bench struct {
	berth, logs, beside string
	runs                int
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
		m, err := b.measure(ctx, args, slices.Concat(args, strings.Fields(r.then)))
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		line := []string{r.name, r.goal, seconds(m.least.wall), seconds(m.least.cpu), megabytes(m.least.peak), m.ratios()}
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

// measured is what runs of a program used at least, and each beside the run of another one after it.
type measured struct {
	least           used
	wall, cpu, peak []float64 // ratios
}

// measure runs a command some times, in turn with that of the other program if there is one.
func (b *bench) measure(ctx context.Context, args, then []string) (m measured, err error) {
	for i := range b.runs {
		got, err := run(ctx, b.berth, args)
		if err != nil {
			return m, err
		}
		if i == 0 {
			m.least = got
		}
		m.least = used{min(m.least.wall, got.wall), min(m.least.cpu, got.cpu), min(m.least.peak, got.peak)}
		if b.beside == "" {
			continue
		}
		other, err := run(ctx, b.beside, then)
		if err != nil {
			return m, err
		}
		m.wall = append(m.wall, float64(got.wall)/float64(other.wall))
		m.cpu = append(m.cpu, float64(got.cpu)/float64(other.cpu))
		m.peak = append(m.peak, float64(got.peak)/float64(max(1, other.peak)))
	}
	return m, nil
}

// ratios tells the medians.
func (m *measured) ratios() string {
	if len(m.wall) == 0 {
		return "–"
	}
	middle := func(list []float64) float64 {
		slices.Sort(list)
		return list[len(list)/2]
	}
	return fmt.Sprintf("%.2f; %.2f; %.2f", middle(m.wall), middle(m.cpu), middle(m.peak))
}

// run runs a command once.
func run(ctx context.Context, program string, args []string) (used, error) {
	command := exec.CommandContext(ctx, program, args...)
	began := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		return used{}, fmt.Errorf("%w: %s", err, out)
	}
	return used{time.Since(began), command.ProcessState.UserTime() + command.ProcessState.SystemTime(), peak(command.ProcessState)}, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func megabytes(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}
