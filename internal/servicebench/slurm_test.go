//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/user"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// timed runs Slurm's commands and measures the time in which at least one of them
// runs: Slurm's own time.
type timed struct {
	mu      sync.Mutex
	running int
	since   time.Time // of the first that runs
	took    time.Duration
	times   int
}

func (e *timed) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	e.mark(1)
	defer e.mark(-1)
	return slurm.Host{}.Run(ctx, c)
}

// mark notes that a command begins, or ends.
func (e *timed) mark(by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running == 0 {
		e.since = time.Now()
	}
	if e.running += by; e.running == 0 {
		e.took += time.Since(e.since)
	}
	e.times += max(0, by)
}

func (e *timed) total() (time.Duration, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.took, e.times
}

// front is a service in front of a private cluster of nodes that never run
// anything, which is looked at every five seconds.
type front struct {
	t        *testing.T
	cluster  *slurmtest.Cluster
	exec     *timed
	host     *service.Host
	store    *sqlite.Store
	by       service.Ask
	imported spent
}

func newFront(t *testing.T, nodes int) *front {
	t.Helper()
	return newFrontOf(t, slurmtest.Start(t, slurmtest.Options{Nodes: nodes, Cloud: true}), nodes)
}

func newFrontOf(t *testing.T, cluster *slurmtest.Cluster, nodes int) *front {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	f := &front{t: t, cluster: cluster, exec: &timed{}}
	f.by.By = service.Principal{User: me.Username, Role: service.Operator}
	watch := stopwatch()
	adapter := slurm.New(slurm.Options{Site: "lab", Conf: f.cluster.Conf, Exec: f.exec, WholeNodes: true})
	description, err := adapter.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, layout, err := site.Import("lab", description, site.UnitNode, berth.Early)
	if err != nil {
		t.Fatal(err)
	}
	f.imported = watch()
	if n := int(s.Pools[0].PEs); len(s.Pools) != 1 || n != nodes {
		t.Fatalf("imported are %d PEs, want %d", n, nodes)
	}
	f.store = openStore(t, t.TempDir())
	f.host, err = service.Open(t.Context(), service.Options{
		Config: engine.Config{Sites: []berth.Site{s}}, Journal: f.store, Version: "bench",
		Managers: map[string]service.Manager{"lab": {Kind: "slurm", Adapter: adapter, Layout: layout, Horizon: 400 * 86_400}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.until("it is looked at", func() bool {
		views, err := f.host.Sites(t.Context(), f.by.By)
		return err == nil && views[0].Reachable
	})
	return f
}

func (f *front) close() {
	f.t.Helper()
	if err := errors.Join(f.host.Close(), f.store.Close()); err != nil {
		f.t.Fatal(err)
	}
}

// until waits for a condition without a signal.
func (f *front) until(what string, holds func() bool) {
	f.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			f.t.Fatalf("in vain: %s", what)
		}
	}
}

// imports: what a cluster is, is read from Slurm and made a site; then the
// service looks at it every five seconds while nothing happens.
func imports(t *testing.T, size *sizes, lines *table) {
	debug.FreeOSMemory() // what earlier rows left is not the agent's
	f := newFront(t, size.nodes)
	idle := max(size.watch, 100*time.Millisecond)
	watch := stopwatch()
	<-time.After(idle)
	used := watch()
	f.close()
	lines.add(fmt.Sprintf("import of a Slurm cluster of %d nodes", size.nodes), "2 s", "%s, and %.2f s of Slurm's commands", f.imported, f.imported.children.Seconds())
	lines.add("  its idle agent", "1 % of a core", "%.2f %%, and %.2f %% in Slurm's commands, over %.0f s",
		100*used.cpu.Seconds()/used.wall.Seconds(), 100*used.children.Seconds()/used.wall.Seconds(), used.wall.Seconds())
}

// mixNodes is the cluster behind the mix: each request is for all of it.
const mixNodes = 16

// mixAskers is how many ask at a time.
const mixAskers = 8

// mixes: requests for the whole cluster for an hour, by several at a time, through
// `scontrol create reservation` alone and through Berth in front of it, until
// all are answered and until all that was accepted is in Slurm. In the first mix
// ten ask for each hour, in a random order, of whom one gets it; in the second,
// of a fifth of the requests, no two ask for the same.
func mixes(t *testing.T, size *sizes, lines *table) {
	for _, mix := range []struct {
		name, goal string
		requests   int
		same       int // requests for one hour
	}{{"1 in 10 accepted", "20 times", size.mix, 10}, {"all accepted", "0.8 times", size.mix / 5, 1}} {
		hours := make([]int, mix.requests)
		for i := range hours {
			hours[i] = i / mix.same
		}
		r := rand.New(rand.NewPCG(5, uint64(mix.same)))
		r.Shuffle(len(hours), func(i, j int) { hours[i], hours[j] = hours[j], hours[i] })
		want := mix.requests / mix.same
		alone, made := scontrolAlone(t, hours)
		if made != want {
			t.Fatalf("%s: scontrol alone made %d reservations, want %d", mix.name, made, want)
		}
		f := newFront(t, mixNodes)
		all := f.throughBerth(hours, want)
		slurms, times := f.exec.total()
		f.close()
		work := fmt.Sprintf("%d requests in front of Slurm, %s", mix.requests, mix.name)
		lines.add(work, mix.goal, "%.1f times until all are answered, %.1f until all are in Slurm (scontrol alone %.2f s, with Berth %.2f s and %.2f s)",
			alone.wall.Seconds()/all.answered.Seconds(), alone.wall.Seconds()/all.made.wall.Seconds(),
			alone.wall.Seconds(), all.answered.Seconds(), all.made.wall.Seconds())
		beyond := (all.made.wall - all.slurm).Seconds() * 1000 / float64(want)
		lines.add("  per accepted booking beyond Slurm's own time", "5 ms", "%.1f ms on the clock, %.1f ms of CPU (%d commands took %.2f s)",
			beyond, all.made.cpu.Seconds()*1000/float64(want), times, slurms.Seconds())
	}
}

// scontrolAlone asks Slurm for every hour, and returns how many it made.
func scontrolAlone(t *testing.T, hours []int) (used spent, made int) {
	t.Helper()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: mixNodes, Cloud: true})
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(time.Hour).Truncate(time.Second)
	nodes := strings.Join(cluster.Nodes(), ",")
	var count atomic.Int64
	watch := stopwatch()
	crowd(t, mixAskers, len(hours), 0, func(_ context.Context, _ *rand.Rand, i int) error {
		at := from.Add(time.Duration(hours[i]) * time.Hour)
		out, err := cluster.Command("scontrol", "create", "reservation", "ReservationName=mix"+strconv.Itoa(i),
			"StartTime="+at.Format("2006-01-02T15:04:05"), "EndTime="+at.Add(time.Hour).Format("2006-01-02T15:04:05"),
			"Nodes="+nodes, "Users="+me.Username)
		switch {
		case err == nil:
			count.Add(1)
		case !strings.Contains(out, "overlaps"):
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	return watch(), int(count.Load())
}

// berthTook is what the requests took through Berth.
type berthTook struct {
	answered time.Duration
	made     spent         // until all that was accepted is in Slurm
	slurm    time.Duration // of it in Slurm's commands
}

// throughBerth asks the service for every hour.
func (f *front) throughBerth(hours []int, want int) (took berthTook) {
	f.t.Helper()
	before, _ := f.exec.total()
	from := f.host.Now() + 3600
	var mu sync.Mutex
	var ids []string
	watch := stopwatch()
	crowd(f.t, mixAskers, len(hours), 0, func(ctx context.Context, _ *rand.Rand, i int) error {
		at := from + berth.Time(hours[i])*3600
		a, err := f.host.Submit(ctx, f.by, berth.Rigid("", 0, at, at+3600, mixNodes, 3600))
		if err == nil && a.Reservation.State == service.Confirmed {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, a.Reservation.ID)
		}
		return err
	})
	took.answered = watch().wall
	if len(ids) != want {
		f.t.Fatalf("accepted are %d, want %d", len(ids), want)
	}
	f.until("all are in Slurm", func() bool {
		for len(ids) > 0 {
			r, err := f.host.Get(f.t.Context(), f.by.By, ids[0])
			if err != nil {
				f.t.Fatal(err)
			}
			if !r.Sites[0].Made {
				return false
			}
			ids = ids[1:]
		}
		return true
	})
	took.made = watch()
	after, _ := f.exec.total()
	took.slurm = after - before
	out, err := f.cluster.Command("scontrol", "--oneliner", "show", "reservation")
	if n := strings.Count(out, "ReservationName="); err != nil || n != want {
		f.t.Fatalf("%d reservations in Slurm, want %d; %v", n, want, err)
	}
	return took
}
