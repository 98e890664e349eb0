package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/sites"
)

// simulator is sim.Replay, or what a test puts in its place.
type simulator func(ctx context.Context, cfg engine.Config, work sim.Workload, progress func(done int)) ([]berth.Line, error)

// simRun is one simulation to do.
type simRun struct {
	policy      string
	bind        berth.Binding
	backfill    string // empty where there are no ordinary jobs
	replication int    // from 1
	seed        uint64
	schedule    string // file to write, or empty
	keepLines   bool   // the figure needs them
}

// fullTitle names all that was chosen for the run.
func (r *simRun) fullTitle() string {
	title := r.policy + ", " + string(r.bind) + " binding"
	if r.backfill != "" {
		title += ", " + r.backfill
	}
	return title
}

// title names the run among its fellows: the policy, and the binding and the
// pass for jobs if they vary.
func (r *simRun) title(flags *simFlags) string {
	title := r.policy
	if len(flags.binds) > 1 {
		title += ", " + string(r.bind)
	}
	if len(flags.backfills) > 1 && r.backfill != "" {
		title += ", " + r.backfill
	}
	return title
}

// queueTitle names the run by what matters to its jobs: the pass, and the rest
// if it varies.
func (r *simRun) queueTitle(flags *simFlags) string {
	title := r.backfill
	if len(flags.policies) > 1 {
		title += ", " + r.policy
	}
	if len(flags.binds) > 1 {
		title += ", " + string(r.bind)
	}
	return title
}

// alike reports whether the runs differ in the replication alone.
func (r *simRun) alike(o *simRun) bool {
	return r.policy == o.policy && r.bind == o.bind && r.backfill == o.backfill
}

// result is a finished run.
type result struct {
	run     simRun
	metrics measure.Metrics
	hash    string
	wall    time.Duration
	lines   []berth.Line // nil unless kept
}

// batch is all the simulations of one command.
type batch struct {
	runs    []simRun // in the order of the output: policy, binding, pass for jobs, replication
	pes     berth.Count
	machine *grid
	config  engine.Config // without the sites, the placement and the pass for jobs
	shared  []*shared     // by replication
}

// shared holds the workload of one replication, made when its first run starts
// and dropped when its last one has ended. Runs only read it.
type shared struct {
	make func() (*sim.Workload, error)
	left atomic.Int32 // runs that have not ended

	once sync.Once
	work *sim.Workload
	err  error
}

func (s *shared) get() (*sim.Workload, error) {
	s.once.Do(func() { s.work, s.err = s.make() })
	return s.work, s.err
}

func (s *shared) done() {
	if s.left.Add(-1) == 0 {
		s.work = nil
	}
}

// newBatch lists the runs that the flags ask for.
func newBatch(flags *simFlags, src *source, machine *grid, config engine.Config) *batch {
	b := &batch{pes: src.pes, machine: machine, config: config}
	b.runs = flags.runs(src.jobs)
	for r := range flags.replications {
		s := &shared{make: func() (*sim.Workload, error) { return src.work(r + 1) }}
		s.left.Store(int32(len(b.runs) / flags.replications))
		b.shared = append(b.shared, s)
	}
	return b
}

// runs lists the runs that the flags ask for, in the order of the output. Passes
// are compared where there are ordinary jobs.
func (flags *simFlags) runs(jobs bool) []simRun {
	passes := []string{""}
	if jobs && len(flags.backfills) > 0 {
		passes = flags.backfills
	}
	var runs []simRun
	for _, name := range flags.policies {
		for _, bind := range flags.binds {
			for _, pass := range passes {
				for r := 1; r <= flags.replications; r++ {
					run := simRun{
						policy: name, bind: berth.Binding(bind), backfill: pass, replication: r, seed: flags.seed + uint64(r) - 1,
						keepLines: flags.plot != "" && r == 1,
					}
					run.schedule = scheduleName(flags, &run)
					runs = append(runs, run)
				}
			}
		}
	}
	return runs
}

// scheduleNames returns the files that runs may write their schedules to, whether
// the workload has ordinary jobs or not.
func (flags *simFlags) scheduleNames() []string {
	var names []string
	for _, jobs := range []bool{false, true} {
		if jobs && len(flags.backfills) < 2 {
			break // the names would be the same
		}
		for _, run := range flags.runs(jobs) {
			names = append(names, run.schedule)
		}
	}
	return names
}

// scheduleName returns the file for a run's schedule: the name given, with
// what varies among the runs before its ending.
func scheduleName(flags *simFlags, run *simRun) string {
	if flags.schedule == "" {
		return ""
	}
	var suffix strings.Builder
	if len(flags.policies) > 1 {
		suffix.WriteString("-" + run.policy)
	}
	if len(flags.binds) > 1 {
		suffix.WriteString("-" + string(run.bind))
	}
	if len(flags.backfills) > 1 && run.backfill != "" {
		suffix.WriteString("-" + run.backfill)
	}
	if flags.replications > 1 {
		fmt.Fprintf(&suffix, "-r%d", run.replication)
	}
	return withSuffix(flags.schedule, suffix.String())
}

// writable finds out before anything is simulated whether the results can be
// kept.
func (b *batch) writable(flags *simFlags) error {
	for i := range b.runs {
		if name := b.runs[i].schedule; name != "" {
			if err := writable("schedule", name); err != nil {
				return err
			}
		}
	}
	if flags.plot != "" {
		return writable("plot", flags.plot)
	}
	return nil
}

// order returns the runs in the order in which they are started: all policies
// of the first replication before the second, so that what is finished when
// somebody stops can be compared, and no more requests are in memory than are
// being worked on.
func (b *batch) order() []int {
	configurations := len(b.runs) / len(b.shared)
	order := make([]int, 0, len(b.runs))
	for r := range b.shared {
		for c := range configurations {
			order = append(order, c*len(b.shared)+r)
		}
	}
	return order
}

// runAll does the runs on all cores and returns the finished ones in the order
// of the output: all of them, or fewer if ctx was cancelled. The first failure
// ends everything and is returned alone.
func (a *app) runAll(ctx context.Context, b *batch) ([]*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bar := a.newProgress(b)
	defer bar.end()

	var (
		results = make([]*result, len(b.runs))
		order   = b.order()
		next    atomic.Int64
		workers sync.WaitGroup
		failed  error
		failing sync.Once
	)
	work := func() {
		for ctx.Err() == nil {
			n := int(next.Add(1)) - 1
			if n >= len(order) {
				return
			}
			i := order[n]
			r, err := a.runOne(ctx, b, &b.runs[i], bar)
			switch {
			case err == nil:
				results[i] = r
			case errors.Is(err, context.Canceled):
				return
			default:
				failing.Do(func() { failed = err })
				cancel()
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		workers.Go(work)
	}
	workers.Wait()
	if failed != nil {
		return nil, failed
	}
	finished := results[:0]
	for _, r := range results {
		if r != nil {
			finished = append(finished, r)
		}
	}
	return finished, nil
}

// runOne simulates one run, keeps its schedule and measures it. Once the
// simulation has ended the rest is done even if ctx is cancelled meanwhile.
func (a *app) runOne(ctx context.Context, b *batch, run *simRun, bar *progress) (*result, error) {
	share := b.shared[run.replication-1]
	defer share.done()
	work, err := share.get()
	if err != nil {
		return nil, err
	}
	cfg := b.config
	cfg.Sites, cfg.Place = b.machine.sites(b.pes, run.bind), run.policy
	if run.backfill != "" {
		cfg.Jobs = run.backfill
	}
	began := time.Now()
	lines, err := a.simulate(ctx, cfg, *work, bar.of(len(work.Requests)))
	wall := time.Since(began)
	if err != nil {
		return nil, err
	}
	if run.schedule != "" {
		tellSizes(lines, cfg.Sites)
		if err := a.writeSchedule(run.schedule, lines); err != nil {
			return nil, err
		}
	}
	r := &result{run: *run, metrics: measure.OfRuns(lines, b.pes, sim.WantedRuns(work, cfg.Sites, lines)), hash: measure.Hash(lines), wall: wall}
	if run.keepLines {
		r.lines = lines
	}
	return r, nil
}

// writeSchedule writes a schedule file, compressed if its name ends in .gz.
func (a *app) writeSchedule(path string, lines []berth.Line) error {
	out, err := a.create("schedule", path)
	if err != nil {
		return err
	}
	defer out.drop()
	if err := encode(out, strings.HasSuffix(path, ".gz"), lines); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.keep()
}

// tellSizes notes the size of each pool on its first line, and of a machine of one
// pool on the first line of all.
func tellSizes(lines []berth.Line, on []berth.Site) {
	if len(lines) > 0 && len(on) == 1 && len(on[0].Pools) == 1 {
		lines[0].PoolPEs = on[0].Pools[0].PEs
		return
	}
	file := sites.File{Sites: on}
	told := map[berth.ResourceID]bool{}
	for i := range lines {
		line := &lines[i]
		at := berth.PoolID(line.Site, line.Pool)
		if line.Site == "" || line.Kind == berth.KindStaging || told[at] {
			continue
		}
		if pes, known := file.Size(line.Site, line.Pool); known {
			line.PoolPEs, told[at] = pes, true
		}
	}
}

func encode(w io.Writer, compress bool, lines []berth.Line) error {
	if compress {
		zip := gzip.NewWriter(w)
		if err := encode(zip, false, lines); err != nil {
			return err
		}
		return zip.Close()
	}
	buffer := bufio.NewWriterSize(w, 1<<16)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return buffer.Flush()
}
