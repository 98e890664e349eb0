//go:build unix

package servicebench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// looked runs the commands of a look, one after the other, and measures each.
type looked struct {
	exec  slurm.Exec
	mu    sync.Mutex
	bytes map[string]int
	cpu   map[string]time.Duration // of the command
	ctld  map[string]time.Duration // of slurmctld meanwhile
	of    *slurmtest.Cluster
}

// Run runs a command when no other runs.
func (e *looked) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	what := strings.Join(slices.DeleteFunc(slices.Clone(c.Argv), func(word string) bool { return strings.HasPrefix(word, "--Format") }), " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	written := 0
	if take := c.Take; take != nil {
		c.Take = func(p []byte) {
			written += len(p)
			take(p)
		}
	}
	before, watch := e.of.ControllerCPU(), stopwatch()
	result, err := e.exec.Run(ctx, c)
	e.cpu[what] += watch().children
	e.ctld[what] += e.of.ControllerCPU() - before
	e.bytes[what] = written + len(result.Stdout)
	return result, err
}

// startedPerNode is how many jobs of a large queue get onto a node.
const startedPerNode = 2

// restsWithin bounds how long slurmctld may take to start with a long queue and many nodes, and to start what has room.
const restsWithin = 30 * time.Minute

// newQueue is a cluster of many nodes with a long queue of separate jobs, each of half a node, when slurmctld has nothing
// more to do for it but what it does all the time. It is submitted while there is
// a hundredth of the nodes, since what slurmctld does for each submission grows with them.
func newQueue(t *testing.T, size *sizes, lines *table) *slurmtest.Cluster {
	t.Helper()
	pace := min(30, 1+size.queue/1000) // seconds from one look of its own at the queue to the next
	cluster := slurmtest.Start(t, slurmtest.Options{
		// As sites with long queues have it: a submission waits for no look at the queue, and slurmctld may start jobs for half a minute on end. All
		// nodes are powered up at once, and none comes up.
		Nodes: max(1, size.fleet/100), CPUs: 64, Cloud: true,
		Scheduler: fmt.Sprintf("defer,sched_interval=1,bf_interval=%d,bf_max_job_test=100,default_queue_depth=20000,max_sched_time=29", pace), // 29 of 60 s is the most
		Extra:     fmt.Sprintf("MaxJobCount=%d\nResumeTimeout=36000\nResumeRate=0\nMessageTimeout=60", 2*size.queue+1000),
	})
	watch := stopwatch()
	crowd(t, mixAskers, size.queue, 0, func(context.Context, *rand.Rand, int) error {
		out, err := cluster.Command("sbatch", "--parsable", "--nodes=1", "--ntasks=1", "--cpus-per-task=32", "--time=1-0", "--output=/dev/null", "--wrap=true")
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	submitted, watch := watch().wall, stopwatch()
	end := time.Now().Add(restsWithin)
	cluster.Grow(size.fleet, restsWithin)
	answered := watch().wall
	started, runs := 0, min(size.queue, startedPerNode*size.fleet)
	for tick := time.Tick(min(10*time.Second, 2*size.watch)); started < runs; <-tick { // seldom: nothing starts while squeue is answered
		out, err := cluster.Command("squeue", "--noheader", "--states=RUNNING,CONFIGURING", "--format=%A")
		if time.Now().After(end) { // squeue may have to wait for too long before that
			t.Fatalf("%d of %d jobs have started: %v", started, runs, err)
		}
		started = len(strings.Fields(out))
	}
	for span, busy := size.watch/2, true; busy && time.Now().Before(end); {
		before := cluster.ControllerCPU()
		<-time.After(span)
		busy = cluster.ControllerCPU()-before > span/2
	}
	lines.add(fmt.Sprintf("Slurm, %d nodes, %d jobs, %d of them started", size.fleet, size.queue, started), "", "submitted in %.0f s; slurmctld answers %.0f s after its new start, and is at rest after %.0f s",
		submitted.Seconds(), answered.Seconds(), watch().wall.Seconds())
	return cluster
}

// queues: what a look at a long queue costs, by its commands and as a whole, beside the shortest answer that squeue gives; then the service in
// front of it, at rest, and while promises are asked for one after the other.
func queues(t *testing.T, size *sizes, lines *table) {
	atQueue(t, newQueue(t, size, lines), size, lines)
}

// atQueue measures all of it at a queue.
func atQueue(t *testing.T, cluster *slurmtest.Cluster, size *sizes, lines *table) {
	t.Helper()
	e := &looked{exec: slurm.Host{}, of: cluster, bytes: map[string]int{}, cpu: map[string]time.Duration{}, ctld: map[string]time.Duration{}}
	cores := slurm.New(slurm.Options{Site: "lab", Conf: cluster.Conf, Exec: e})
	for range 2 { // the first asks which fields squeue knows
		clear(e.cpu)
		clear(e.ctld)
		if _, err := cores.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(e.cpu)) {
		lines.add("  "+what, "", "%.2f s of CPU, %.2f s of slurmctld, %.2f MB", e.cpu[what].Seconds(), e.ctld[what].Seconds(), float64(e.bytes[what])/1e6)
	}
	s := slurm.New(slurm.Options{Site: "lab", Conf: cluster.Conf, WholeNodes: true})
	const looks = 9
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
	lines.add(fmt.Sprintf("  a look, of %d", looks), "1 s", "%v; %.2f s of CPU of Berth, %.2f s of commands", walls.spread(), all.cpu.Seconds()/looks, all.children.Seconds()/looks)
	walls, all = nil, spent{}
	for range looks {
		watch := stopwatch()
		if out, err := cluster.Command("squeue", "--noheader", "--all", "--states=all", "--Format=JobID"); err != nil || len(strings.Fields(out)) != size.queue {
			t.Fatalf("%v: %.200s", err, out)
		}
		u := watch()
		walls = append(walls, u.wall)
		all.children += u.children
	}
	lines.add("  squeue with the numbers of jobs alone", "", "%v; %.2f s of CPU", walls.spread(), all.children.Seconds()/looks)

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
