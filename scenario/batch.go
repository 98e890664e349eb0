package scenario

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// Run is one simulation to do.
type Run struct {
	Policy      string
	Bind        berth.Binding
	Backfill    string // empty where there are no ordinary jobs
	Replication int    // from 1
	Seed        uint64
}

// Runs lists the runs that the options ask for, in the order of the output: placement,
// binding, pass for jobs, replication. Passes are compared where there are ordinary jobs.
func (o *Options) Runs(jobs bool) []Run {
	passes := []string{""}
	if jobs && len(o.Backfills) > 0 {
		passes = o.Backfills
	}
	var runs []Run
	for _, name := range o.Policies {
		for _, bind := range o.Binds {
			for _, pass := range passes {
				for r := 1; r <= o.Replications; r++ {
					runs = append(runs, Run{Policy: name, Bind: berth.Binding(bind), Backfill: pass, Replication: r, Seed: o.seed(r)})
				}
			}
		}
	}
	return runs
}

// Alike reports whether the runs differ in the replication alone.
func (r *Run) Alike(o *Run) bool {
	return r.Policy == o.Policy && r.Bind == o.Bind && r.Backfill == o.Backfill
}

// Result is a finished run.
type Result struct {
	Run     Run
	Metrics measure.Metrics
	Hash    string // of the decisions
	// Flows is what became of the workflows.
	Flows *sim.FlowSummary // nil without
	Wall  time.Duration
}

// Batch is the simulations of a scenario.
type Batch struct {
	Runs     []Run // all replications of one configuration, then those of the next
	Scenario *Scenario
	Machine  *Machine
	Config   engine.Config // without the sites, the placement and the pass for jobs
	// First is the workload of the first replication, if it is made already; Do drops it
	// when its last run has ended. If there is no other replication Do sets Scenario.Work
	// to nil, so that what was read of a file is dropped too.
	First *sim.Workload
	// Simulate is sim.Play, or what a test puts in its place; nil is sim.Play.
	Simulate func(ctx context.Context, config engine.Config, work sim.Workload, progress func(done int)) (*sim.Result, error)
	// Progress, if not nil, is told of each run that begins how many requests it has, and
	// returns what is told how many of them are decided, or nil. Keep, if not nil, gets what
	// came out of run i on its sites; its error ends the batch. Both are called by several
	// goroutines.
	Progress func(requests int) func(done int)
	Keep     func(i int, result *sim.Result, sites []berth.Site) error

	works []*shared // by replication
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
		s.work, s.make = nil, nil
	}
}

// replications returns how many replications each configuration has.
func (b *Batch) replications() int {
	n := 0
	for n < len(b.Runs) && b.Runs[n].Alike(&b.Runs[0]) {
		n++
	}
	return n
}

// order returns the runs in the order in which they are started: all configurations
// of the first replication before the second, so that what is finished when
// the batch is stopped can be compared, and no more requests are in memory than are
// being worked on.
func (b *Batch) order() []int {
	replications := b.replications()
	order := make([]int, 0, len(b.Runs))
	for r := range replications {
		for i := r; i < len(b.Runs); i += replications {
			order = append(order, i)
		}
	}
	return order
}

// Do does the runs on all cores and returns the finished ones in the order of Runs: all
// of them, or fewer if ctx was cancelled. The first failure ends everything and is
// returned alone. What a run decides does not depend on the others, nor on the cores.
// Cost: that of the simulations, and the memory of a workload for each core.
func (b *Batch) Do(ctx context.Context) ([]*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replications := b.replications()
	for r := range replications {
		s := &shared{make: func() (*sim.Workload, error) { return b.Scenario.Work(r + 1) }}
		if first := b.First; r == 0 && first != nil {
			s.make = func() (*sim.Workload, error) { return first, nil }
			b.First = nil
			if replications == 1 {
				b.Scenario.Work = nil
			}
		}
		s.left.Store(int32(len(b.Runs) / replications))
		b.works = append(b.works, s)
	}
	var (
		results = make([]*Result, len(b.Runs))
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
			r, err := b.one(ctx, i, b.works[b.Runs[i].Replication-1])
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

// one simulates run i, keeps its schedule and measures it. Once the simulation has ended
// the rest is done even if ctx is cancelled meanwhile.
func (b *Batch) one(ctx context.Context, i int, share *shared) (*Result, error) {
	run := b.Runs[i]
	defer share.done()
	work, err := share.get()
	if err != nil {
		return nil, err
	}
	config := b.Config
	config.Sites, config.Place = b.Machine.Sites(b.Scenario.PEs, run.Bind), run.Policy
	if run.Backfill != "" {
		config.Jobs = run.Backfill
	}
	simulate, progress := b.Simulate, func(int) func(int) { return nil }
	if simulate == nil {
		simulate = sim.Play
	}
	if b.Progress != nil {
		progress = b.Progress
	}
	began := time.Now()
	result, err := simulate(ctx, config, *work, progress(work.Len()))
	wall := time.Since(began)
	if err != nil {
		return nil, err
	}
	if b.Keep != nil {
		if err := b.Keep(i, result, config.Sites); err != nil {
			return nil, err
		}
	}
	r := &Result{Run: run, Wall: wall, Flows: sim.SummarizeFlows(result.Flows)}
	var hashing sync.WaitGroup // a core is idle where a batch has fewer runs than there are cores
	hashing.Go(func() { r.Hash = measure.HashOf(result.All()) })
	asked := result.Schedule.All() // workflows are summed up by themselves
	r.Metrics = measure.OfRuns(asked, b.Scenario.PEs, sim.WantedRuns(work, config.Sites, asked))
	hashing.Wait()
	return r, nil
}
