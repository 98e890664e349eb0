package service_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// lab is a service in front of a real cluster of four nodes.
type lab struct {
	t       *testing.T
	host    *service.Host
	store   *sqlite.Store
	cluster *slurmtest.Cluster
	manager service.Manager
	sites   []berth.Site
	others  int // reservations that others have made
	by      service.Ask
	log     heardlog.Log
	mortal  *mortal        // its journal; nil is store
	trigger engine.Trigger // of the engine
}

// newLab starts both. If the cluster is only watched, nothing is to be made real
// there.
func newLab(t *testing.T, watched bool) *lab {
	t.Helper()
	return newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), site.UnitNode, watched)
}

// newLabOf starts a service with an empty journal in front of a cluster, whose promises get
// their nodes when they are made or, if that is given, so long before they start.
func newLabOf(t *testing.T, cluster *slurmtest.Cluster, unit site.Unit, watched bool, ahead ...berth.Duration) *lab {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, cluster: cluster}
	l.by.By = service.Principal{User: me.Username, Role: service.Operator}
	adapter := slurm.New(slurm.Options{Site: "lab", Conf: l.cluster.Conf, Watch: watched})
	description, err := adapter.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	description.Together = true // as a service has it that begins
	binding := berth.Early
	if len(ahead) > 0 {
		binding = berth.Late
		description.Divide()
	}
	s, layout, err := site.Import("lab", description, unit, binding)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Pools {
		if len(ahead) > 0 {
			s.Pools[i].NameAhead = ahead[0]
		}
	}
	l.sites = []berth.Site{s}
	l.manager = service.Manager{Kind: "slurm", Adapter: adapter, Layout: layout, Every: time.Second, Horizon: horizon, Shadow: watched}
	if l.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	l.open()
	t.Cleanup(func() {
		if err := errors.Join(l.host.Close(), l.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// open starts the service on its journal.
func (l *lab) open() {
	l.t.Helper()
	var err error
	var log journal.Store = l.store
	if l.mortal != nil {
		log = l.mortal
	}
	config := engine.Config{Sites: l.sites, Trigger: l.trigger}
	if l.trigger == engine.TriggerOnPeriod {
		config.Period = 10
	}
	l.host, err = service.Open(l.t.Context(), service.Options{
		Config: config, Journal: log, Version: "test", Managers: map[string]service.Manager{"lab": l.manager},
		Log: slog.New(slog.NewTextHandler(&l.log, nil)),
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// sbatch submits a job into the reservation of a promise, and returns its id.
func (l *lab) sbatch(id string, args ...string) string {
	l.t.Helper()
	out, err := l.cluster.Command("sbatch", append([]string{"--parsable", "--reservation=" + l.made(id), "--time=1", "--output=/dev/null", "--wrap=sleep 1000"}, args...)...)
	if err != nil {
		l.t.Fatal(err, out)
	}
	return strings.TrimSpace(out)
}

// waits fails the test unless Slurm has a promise where it is, and a job waits in it.
func (l *lab) waits(id, job string) {
	l.t.Helper()
	l.until(id+" is where it is promised, and its job waits in it", func() bool {
		r := l.get(id)
		shown := l.shown("job", job)
		if !strings.Contains(shown, "JobState=PENDING") {
			l.t.Fatalf("the job of %s does not wait any more: %s", id, shown)
		}
		if !r.Sites[0].Made || !strings.Contains(shown, "Reservation="+string(r.Sites[0].Name)+" ") {
			return false
		}
		at := l.shown("reservation", string(r.Sites[0].Name))
		start := time.Unix(int64(r.Allotments[0].Start), 0).UTC().Format("2006-01-02T15:04:05")
		return strings.Contains(at, "StartTime="+start)
	})
	l.until("nothing else is there of "+id, func() bool { return strings.Count(l.shown("reservation"), "ReservationName=") == l.bookings() })
}

// reserve asks for nodes from a time from now on.
func (l *lab) reserve(id string, npe berth.Count, in, length berth.Duration) {
	l.t.Helper()
	start := l.host.Now().Add(in)
	if a := submit(l.t, l.host, l.by, berth.Rigid(id, 0, start, start.Add(length), npe, length)); !isPromised(a.Reservation) {
		l.t.Fatalf("%s is %+v", id, a.Reservation)
	}
}

func (l *lab) get(id string) service.Reservation {
	l.t.Helper()
	r, err := l.host.Get(l.t.Context(), l.by.By, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) nodes(id string) string { return strings.Join(l.get(id).Nodes[0], ",") }

// until waits for a condition without a signal.
func (l *lab) until(what string, holds func() bool) {
	l.t.Helper()
	l.untilIn(what, 30*time.Second, holds)
}

func (l *lab) untilIn(what string, within time.Duration, holds func() bool) {
	l.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !holds(); <-tick.C {
		if time.Now().After(end) {
			views, err := l.host.Sites(l.t.Context(), l.by.By)
			l.t.Fatalf("in vain: %s; %+v, %v", what, views, err)
		}
	}
}

// made waits until the site has a reservation as promised, and returns its name.
func (l *lab) made(id string) string {
	l.t.Helper()
	l.until(id+" is made real", func() bool { return l.get(id).Sites[0].Made })
	return string(l.get(id).Sites[0].Name)
}

// shown returns what Slurm shows of something.
func (l *lab) shown(what ...string) string {
	l.t.Helper()
	out, err := l.cluster.Command("scontrol", append([]string{"--oneliner", "show"}, what...)...)
	if err != nil {
		l.t.Fatal(err, out)
	}
	return out
}

// A reservation is in Slurm within the horizon and not before, a job of its owner
// runs in it, of a node that is drained under another one only that node is
// replaced, and what a killed slurmctld has forgotten is made again.
func TestPromisesAreKeptBySlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.forgotten()
	l.reserve("runs", 2, 3, 600)
	l.reserve("far", 1, 2*horizon, 600)
	name := l.made("runs")
	if all := l.shown("reservation"); !strings.Contains(all, name) || strings.Contains(all, string(l.get("far").Sites[0].Name)) {
		t.Errorf("want %s there and far not:\n%s", name, all)
	}
	l.until("runs starts", func() bool { return l.get("runs").State == service.Active })
	if out, err := l.cluster.Command("sbatch", "--reservation="+name, "--nodes=2", "--exclusive", "--time=5", "--output=/dev/null", "--wrap=sleep 1000"); err != nil {
		t.Fatal(err, out)
	}
	l.until("a job runs and shows", func() bool { return l.get("runs").CheckedIn })

	l.reserve("waits", 1, 500, 600)
	l.made("waits")
	runs, waits := l.nodes("runs"), l.nodes("waits")
	if err := l.host.Drain(t.Context(), l.by, "lab", waits, "tired"); err != nil {
		t.Fatal(err)
	}
	l.until("waits has another node", func() bool { return l.nodes("waits") != waits })
	after := l.made("waits")
	if at := l.shown("reservation", after); !strings.Contains(at, "Nodes="+l.nodes("waits")) {
		t.Errorf("want it on %s:\n%s", l.nodes("waits"), at)
	}
	if l.nodes("runs") != runs || string(l.get("runs").Sites[0].Name) != name || !strings.Contains(l.shown("job"), "JobState=RUNNING") {
		t.Errorf("runs was moved from %s to %s, or what runs in it ended:\n%s", runs, l.nodes("runs"), l.shown("job"))
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// forgotten kills slurmctld right after it has said that a reservation is made.
func (l *lab) forgotten() {
	l.t.Helper()
	// Usually the first is forgotten; a slow machine may save it in time.
	const attempts = 5
	for n := range attempts {
		id := fmt.Sprint("lost", n)
		l.reserve(id, 1, 100, 60)
		name := l.made(id)
		l.cluster.KillController()
		forgot := !l.cluster.Saved(name)
		l.until("the site is not reached", func() bool {
			views, err := l.host.Sites(l.t.Context(), l.by.By)
			return err == nil && !views[0].Reachable && views[0].Trouble != ""
		})
		l.cluster.StartController()
		if !forgot {
			continue
		}
		l.until("it is made again", func() bool {
			out, err := l.cluster.Command("scontrol", "--oneliner", "show", "reservation", name)
			return err == nil && strings.Contains(out, "Nodes="+l.nodes(id))
		})
		return
	}
	l.t.Fatalf("slurmctld has forgotten nothing in %d attempts", attempts)
}
