//go:build unix

package servicebench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// looked runs the commands of a look, and measures each.
type looked struct {
	exec  slurm.Exec
	bytes map[string]int
	cpu   map[string]time.Duration // of the command
	ctld  map[string]time.Duration // of slurmctld meanwhile
	of    *slurmtest.Cluster
}

// Run runs one command after the other, as a look does.
func (e *looked) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	what := strings.Join(slices.DeleteFunc(slices.Clone(c.Argv), func(word string) bool { return strings.HasPrefix(word, "--Format") }), " ")
	before, watch := e.of.ControllerCPU(), stopwatch()
	result, err := e.exec.Run(ctx, c)
	e.cpu[what] += watch().children
	e.ctld[what] += e.of.ControllerCPU() - before
	e.bytes[what] = len(result.Stdout)
	return result, err
}

// startedPerNode is how many jobs of a large queue get onto a node.
const startedPerNode = 2

// queues: a cluster of many nodes with a long queue of separate jobs, each of half a node. What a look costs, by its commands
// and as a whole; then the service in front of it, at rest, and while promises are asked for one after the other.
func queues(t *testing.T, size *sizes, lines *table) {
	cluster := slurmtest.Start(t, slurmtest.Options{
		// As sites with long queues have it: a submission waits for no look at the queue.
		Nodes: size.fleet, CPUs: 64, Cloud: true, Scheduler: "defer,sched_interval=5,bf_interval=30,bf_max_job_test=1000,default_queue_depth=20000", Extra: fmt.Sprintf("MaxJobCount=%d\nResumeTimeout=36000", 2*size.queue+1000),
	})
	watch := stopwatch()
	crowd(t, mixAskers, size.queue, 0, func(context.Context, *rand.Rand, int) error {
		out, err := cluster.Command("sbatch", "--parsable", "--nodes=1", "--ntasks=1", "--cpus-per-task=32", "--time=1-0", "--output=/dev/null", "--wrap=true")
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	submitted := watch().wall
	runs := min(size.queue, startedPerNode*size.fleet)
	started := 0
	for tick, end := time.Tick(time.Second), time.Now().Add(10*time.Minute); started < runs; <-tick {
		out, err := cluster.Command("squeue", "--noheader", "--states=RUNNING,CONFIGURING", "--format=%A")
		if err != nil || time.Now().After(end) {
			t.Fatalf("%d of %d jobs have started: %v", started, runs, err)
		}
		started = len(strings.Fields(out))
	}
	work := fmt.Sprintf("Slurm, %d nodes, %d jobs, %d of them started", size.fleet, size.queue, started)
	lines.add(work, "", "submitted in %.0f s", submitted.Seconds())

	e := &looked{exec: slurm.Host{}, of: cluster, bytes: map[string]int{}, cpu: map[string]time.Duration{}, ctld: map[string]time.Duration{}}
	for _, whole := range []bool{true, false} {
		s := slurm.New(slurm.Options{Site: "lab", Conf: cluster.Conf, Exec: e, WholeNodes: whole})
		if _, err := s.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if whole {
			clear(e.cpu)
			clear(e.ctld)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(e.cpu)) {
		lines.add("  "+what, "", "%.2f s of CPU, %.2f s of slurmctld, %.2f MB", e.cpu[what].Seconds(), e.ctld[what].Seconds(), float64(e.bytes[what])/1e6)
	}
	s := slurm.New(slurm.Options{Site: "lab", Conf: cluster.Conf, WholeNodes: true})
	const looks = 5
	var walls latencies
	var all spent
	for range looks {
		watch := stopwatch()
		state, err := s.Observe(t.Context())
		if err != nil || len(state.Nodes) != size.fleet || len(state.Running)+len(state.Pending) != size.queue {
			t.Fatalf("%v: a look shows %+v", err, len(state.Nodes))
		}
		u := watch()
		walls = append(walls, u.wall)
		all.cpu, all.children = all.cpu+u.cpu, all.children+u.children
	}
	lines.add("  a look, of 5", "1 s", "%v; %.2f s of CPU of Berth, %.2f s of commands", walls, all.cpu.Seconds()/looks, all.children.Seconds()/looks)

	f := newFrontOf(t, cluster, size.fleet)
	idle := max(3*size.watch, 100*time.Millisecond)
	before, watch := cluster.ControllerCPU(), stopwatch()
	<-time.After(idle)
	used, ctld := watch(), cluster.ControllerCPU()-before
	part := func(d time.Duration) float64 { return 100 * d.Seconds() / used.wall.Seconds() }
	lines.add("  at rest", "5 % of a core", "%.2f %%, and %.2f %% in Slurm's commands; slurmctld %.2f %%, over %.0f s", part(used.cpu), part(used.children), part(ctld), used.wall.Seconds())

	from, accepted := f.host.Now()+2*86_400, 0
	took := crowd(t, 1, size.soon, 16, func(ctx context.Context, r *rand.Rand, _ int) error {
		start := from.Add(berth.Duration(r.Int64N(5 * 86_400)))
		length := berth.Duration(600 + r.Int64N(13_800))
		a, err := f.host.Submit(ctx, f.by, berth.Rigid("", 0, start, start.Add(2*length), berth.Count(1)<<r.IntN(4), length))
		if err == nil && a.Reservation.State == service.Confirmed {
			accepted++
		}
		return err
	})
	if accepted < size.soon/2 {
		t.Errorf("%d of %d are promised", accepted, size.soon)
	}
	lines.add(fmt.Sprintf("  %d promises, one after the other, %d accepted", size.soon, accepted), "5 ms", "%v", took)
	f.close()
}
