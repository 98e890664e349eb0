package slurm_test

import (
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// far is a reservation of nodes an hour hence.
func far(t *testing.T, n int, nodes ...string) site.Reservation {
	start := now() + 3600
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name()+strconv.Itoa(n), 1), Start: start, End: start + 1800, Users: []string{me(t)}, Partition: "main",
	}
	for _, node := range nodes {
		r.Shares = append(r.Shares, site.Share{Node: node})
	}
	return r
}

func mustReserve(t *testing.T, s *slurm.Site, r site.Reservation, want site.Verdict) site.Outcome {
	t.Helper()
	got, err := s.Reserve(t.Context(), r)
	if err != nil || got.Verdict != want {
		t.Fatalf("reserve: %+v %v, want it %s", got, err, want)
	}
	return got
}

func observe(t *testing.T, s *slurm.Site) *site.State {
	t.Helper()
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Slurm saves its reservations some time after it has said that they were made,
// and waits longer if it has just saved others.
func TestForgottenReservationIsMissedAndMadeAgain(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s := slurm.New(options(cluster))
	kept := far(t, 0, "n1")
	mustReserve(t, s, kept, site.Made)
	if !eventually(20*time.Second, func() bool { return cluster.Saved(string(kept.Name)) }) {
		t.Fatal("slurmctld saves nothing")
	}
	before := observe(t, s)
	// Usually the first is forgotten; a slow machine may save it in time.
	const attempts = 5
	var forgotten site.Reservation
	var after *site.State
	for n := 1; ; n++ {
		forgotten = far(t, n, "n2", "n3")
		mustReserve(t, s, forgotten, site.Made)
		cluster.KillController()
		cluster.StartController()
		if after = observe(t, s); len(after.Ours) == 1 {
			break
		}
		if n == attempts {
			t.Fatalf("slurmctld has forgotten nothing in %d attempts", n)
		}
		if err := s.Release(t.Context(), forgotten.Name); err != nil {
			t.Fatal(err)
		}
	}
	if after.Boot < before.Boot { // in whole seconds, and a start takes less
		t.Errorf("booted at %d, and before that at %d", after.Boot, before.Boot)
	}
	want := []site.Reservation{kept, forgotten}
	drift := site.FindDrift(want, after)
	if len(drift) != 1 || drift[0].Kind != site.Missing || drift[0].Name != forgotten.Name {
		t.Fatalf("drift %+v, want that %s is missing", drift, forgotten.Name)
	}
	mustReserve(t, s, forgotten, site.Made)
	if drift := site.FindDrift(want, observe(t, s)); len(drift) > 0 {
		t.Fatalf("drift %+v after the repair, want none", drift)
	}
}

func TestControllerDownIsUnreachable(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s := slurm.New(options(cluster))
	cluster.KillController()
	got, err := s.Reserve(t.Context(), far(t, 1, "n1"))
	if site.KindOf(err) != site.Unreachable || (got.Verdict != "" && got.Verdict != site.Doubt) {
		t.Errorf("reserve: %+v %v, want it unreachable", got, err)
	}
	found := s.Doctor(t.Context())
	if len(found) != 1 || found[0].Check != "reach" || found[0].Level != site.Bad || !strings.Contains(found[0].Hint, "slurmctld") {
		t.Errorf("doctor: %+v, want that it cannot be reached", found)
	}
}

// credential returns a user without rights; the test needs root to be them.
func credential(t *testing.T) *slurm.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to run commands as user daemon")
	}
	u, err := user.Lookup("daemon")
	if err != nil {
		t.Skipf("needs a user daemon: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers, on this system
	gid, _ := strconv.Atoi(u.Gid)
	return &slurm.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func TestWithoutRights(t *testing.T) {
	t.Parallel()
	daemon := credential(t)
	cluster := slurmtest.Start(t, slurmtest.Options{})
	o := options(cluster)
	root := slurm.New(o)
	o.Exec = slurm.Host{As: daemon}
	s, client := slurm.New(o), slurm.NewClient(o)

	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (site.Rights{As: "daemon", Submit: true}); d.Rights != want {
		t.Errorf("rights %+v, want %+v", d.Rights, want)
	}
	// Sites raise alarms when slurmctld speaks of security.
	log, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(cluster.Conf)), "log", "slurmctld.log"))
	if err != nil || len(log) == 0 || strings.Contains(string(log), "Security violation") {
		t.Errorf("%v; finding out about rights has left this in the log of slurmctld:\n%s", err, log)
	}
	r := far(t, 1, "n1")
	if got, err := s.Reserve(t.Context(), r); site.KindOf(err) != site.Denied || got.Verdict != "" || !strings.Contains(err.Error(), "operator") {
		t.Errorf("reserve: %+v %v, want it denied with a hint", got, err)
	}
	mustReserve(t, root, r, site.Made)
	longer := r
	longer.End += 60
	if got, err := s.Change(t.Context(), longer); site.KindOf(err) != site.Denied {
		t.Errorf("change: %+v %v, want it denied", got, err)
	}
	if err := s.Release(t.Context(), r.Name); site.KindOf(err) != site.Denied {
		t.Errorf("release: %v, want it denied", err)
	}
	if err := s.Drain(t.Context(), "n1", "x"); site.KindOf(err) != site.Denied {
		t.Errorf("drain: %v, want it denied", err)
	}
	if _, err := client.Submit(t.Context(), task(r, "/bin/true")); site.KindOf(err) != site.Denied {
		t.Errorf("submit into another's reservation: %v, want it denied", err)
	}
	if have := observe(t, s).Ours; len(have) != 1 || have[0].End != r.End {
		t.Errorf("reservations %+v, want the one as it was", have)
	}
	levels := map[string]site.Level{}
	for _, f := range s.Doctor(t.Context()) {
		levels[f.Check] = f.Level
	}
	if levels["rights"] != site.Bad || levels["state"] != site.Good || levels["version"] != site.Good || levels["clock"] != site.Good {
		t.Errorf("doctor: %v, want the rights bad and the rest well", levels)
	}
	unknown := r
	unknown.Name, unknown.Users, unknown.Shares = site.NameOf(siteName, "unknown", 1), []string{"no-such-user"}, []site.Share{{Node: "n2"}}
	if _, err := root.Reserve(t.Context(), unknown); site.KindOf(err) != site.Invalid {
		t.Errorf("for an unknown user: %v, want it invalid", err)
	}
}

func task(r site.Reservation, command ...string) site.Task {
	return site.Task{Key: "task-of-" + string(r.Name), Reservation: r.Name, Command: command, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Output: "/dev/null"}
}

// The user of a reservation need not be Berth.
func TestUserRunsInTheirReservation(t *testing.T) {
	t.Parallel()
	daemon := credential(t)
	cluster := slurmtest.Start(t, slurmtest.Options{})
	o := options(cluster)
	s := slurm.New(o)
	o.Exec = slurm.Host{As: daemon}
	client := slurm.NewClient(o)
	r := far(t, 1, "n2")
	r.Start, r.End, r.Users = now(), now()+120, []string{"daemon"}
	mustReserve(t, s, r, site.Made)
	script := task(r)
	script.Command, script.Args = nil, []string{"a b", "$c"}
	script.Script = "#!/bin/sh\n#SBATCH --comment=overridden\n[ \"$#,$1,$2\" = '2,a b,$c' ] || exit 4\n"
	id, err := client.Submit(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	var ended []site.Job
	if !eventually(20*time.Second, func() bool { ended = observe(t, s).Ended; return len(ended) == 1 }) {
		t.Fatalf("job %s does not end: %+v", id, observe(t, s))
	}
	job := ended[0]
	if job.ID != id || job.User != "daemon" || job.Key != script.Key || job.Result.Ending != site.Completed || job.Reservation != string(r.Name) ||
		len(job.Shares) != 1 || job.Shares[0].Node != "n2" {
		t.Errorf("job %+v, want %s completed by nobody on n2", job, id)
	}
}

// Slurm 22.05 gives whole nodes with cores that others hold, and fewer nodes than
// it was asked for.
func TestWhatSlurmDoesOtherwiseIsTakenBack(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s := slurm.New(options(cluster))
	cores := far(t, 1)
	cores.Shares = []site.Share{{Node: "n1", Cores: berth.PEsOf(0, 1)}, {Node: "n2", Cores: berth.PEsOf(0)}}
	mustReserve(t, s, cores, site.Made)
	got := mustReserve(t, s, far(t, 2, "n1"), site.Refused)
	if got.Reason != berth.NoCapacity || !strings.Contains(got.Words, string(cores.Name)) {
		t.Errorf("%+v, want no capacity because of %s", got, cores.Name)
	}
	if err := s.Drain(t.Context(), "n3", "test"); err != nil {
		t.Fatal(err)
	}
	many := far(t, 3)
	many.Nodes = 4
	mustReserve(t, s, many, site.Refused)
	moved := far(t, 4, "n4")
	mustReserve(t, s, moved, site.Made)
	onto := moved
	onto.Shares = []site.Share{{Node: "n2"}}
	if got, err := s.Change(t.Context(), onto); err != nil || got.Verdict != site.Refused {
		t.Errorf("change: %+v %v, want it refused", got, err)
	}
	state := observe(t, s)
	if drift := site.FindDrift([]site.Reservation{cores, moved}, state); len(drift) > 0 {
		t.Errorf("drift %+v, want the first and the last as they were and nothing else", drift)
	}
}

func TestNodeThatIsDown(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s := slurm.New(options(cluster))
	r := far(t, 1, "n2", "n3")
	mustReserve(t, s, r, site.Made)
	if out, err := cluster.Command("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=fire"); err != nil {
		t.Fatal(out, err)
	}
	state := observe(t, s)
	if n := state.Nodes[1]; n.Condition != site.Down || n.Reason != "fire" || n.Since < r.Start-3700 {
		t.Errorf("node %+v, want it down because of a fire since now", n)
	}
	if drift := site.FindDrift([]site.Reservation{r}, state); len(drift) > 0 {
		t.Errorf("drift %+v, want none: a reservation of named nodes keeps them", drift)
	}
	// Onto other nodes, as a promise is that lost one.
	r.Shares[0].Node = "n4"
	if got, err := s.Change(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v, want it made", got, err)
	}
	if err := s.Resume(t.Context(), "n2"); err != nil {
		t.Fatal(err)
	}
	if !eventually(10*time.Second, func() bool { return observe(t, s).Nodes[1].Condition == site.Up }) {
		t.Error("n2 does not come back")
	}
}

func TestRunningJobStandsInTheWay(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s := slurm.New(options(cluster))
	if out, err := cluster.Command("sbatch", "--time=120", "--nodelist=n4", "--output=/dev/null", "--wrap=sleep 1000"); err != nil {
		t.Fatal(out, err)
	}
	if !eventually(20*time.Second, func() bool { return len(observe(t, s).Running) == 1 }) {
		t.Fatal("it does not start")
	}
	job := observe(t, s).Running[0]
	if length := job.End - job.Start; length != 7200 || job.Cores != 1 || len(job.Shares) != 1 || job.Shares[0].Node != "n4" || job.Shares[0].Cores.String() != "0" {
		t.Errorf("job %+v, want 2 hours on core 0 of n4", job)
	}
	if busy := observe(t, s).Nodes[3].Busy; busy != 1 {
		t.Errorf("%d cores of n4 are busy, want 1", busy)
	}
	if got := mustReserve(t, s, far(t, 1, "n4"), site.Refused); got.Reason != berth.NoCapacity {
		t.Errorf("%+v, want no capacity", got)
	}
	after := far(t, 2, "n4")
	after.Start, after.End = job.End, job.End+600
	mustReserve(t, s, after, site.Made)
}

func TestDescriptionOfUnlikeNodes(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{
		Partitions: "PartitionName=batch Nodes=n[1-3] Default=YES MaxTime=1-12:00:00 MaxNodes=2 State=UP\n" +
			"PartitionName=all Nodes=ALL MaxTime=UNLIMITED State=UP\nPartitionName=empty State=DOWN",
	})
	s := slurm.New(options(cluster))
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Cluster != "lab" || d.Manager != "slurm" || !slices.ContainsFunc([]string{"22.05.", "24.11.", "26.05."}, func(v string) bool { return strings.HasPrefix(d.Version, v) }) || d.Zone != "Europe/Berlin" {
		t.Errorf("%+v", d)
	}
	want := []site.Partition{
		{Name: "batch", Nodes: []string{"n1", "n2", "n3"}, Default: true, Up: true, MaxTime: 36 * 3600, MaxNodes: 2},
		{Name: "all", Nodes: []string{"n1", "n2", "n3", "n4"}, Up: true},
		{Name: "empty", State: "DOWN"},
	}
	if !slices.EqualFunc(d.Partitions, want, func(a, b site.Partition) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("partitions %+v, want %+v", d.Partitions, want)
	}
	if got := d.Horizon([]string{"n1"}, 600); got != berth.Endless {
		t.Errorf("horizon %d, want forever: partition all has no limit", got)
	}
	var warned bool
	for _, f := range s.Doctor(t.Context()) {
		warned = warned || f.Check == "limits" && f.Level == site.Warning && strings.Contains(f.Text, "all")
	}
	if !warned {
		t.Error("no warning of a partition without limit")
	}
}

func TestImportOfAThousandNodes(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1000, CPUs: 64, Cloud: true})
	s := slurm.New(options(cluster))
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	imported, layout, err := site.Import(siteName, d, site.UnitNode, berth.Early)
	if err != nil {
		t.Fatal(err)
	}
	state := observe(t, s)
	took := time.Duration(math.MaxInt64)
	for try := 0; try < 3 && took > 2*time.Second; try++ { // others may need the processors meanwhile
		began := time.Now()
		d, err := s.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := site.Import(siteName, d, site.UnitNode, berth.Early); err != nil {
			t.Fatal(err)
		}
		observe(t, s)
		took = min(took, time.Since(began))
	}
	t.Logf("1000 nodes described, imported and observed in %s", took)
	if len(imported.Pools) != 1 || imported.Pools[0].PEs != 1000 || len(state.Nodes) != 1000 {
		t.Fatalf("%d pools, %d nodes in the state, want one pool of 1000", len(imported.Pools), len(state.Nodes))
	}
	shares, ok := layout.Shares(imported.Pools[0].Name, berth.NewPESet(berth.Run{Lo: 10, Hi: 20}))
	if !ok {
		t.Fatal("no such PEs")
	}
	r := far(t, 1, site.NodesOf(shares)...)
	mustReserve(t, s, r, site.Made)
	if took > 2*time.Second {
		t.Errorf("it took %s, want 2 s at most", took)
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			cluster := slurmtest.Start(b, slurmtest.Options{Nodes: nodes, CPUs: 64, Cloud: true})
			s := slurm.New(options(cluster))
			for b.Loop() {
				if _, err := s.Observe(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReserve compares booking through this package with scontrol alone.
func BenchmarkReserve(b *testing.B) {
	cluster := slurmtest.Start(b, slurmtest.Options{})
	s := slurm.New(options(cluster))
	serial := 0
	next := func() site.Reservation {
		serial++
		start := now() + 86400 + berth.Time(serial)*60
		return site.Reservation{
			Name: site.NameOf(siteName, "bench"+strconv.Itoa(serial), 1), Start: start, End: start + 60,
			Shares: []site.Share{{Node: "n1"}}, Users: []string{"root"},
		}
	}
	b.Run("by=scontrol", func(b *testing.B) {
		for b.Loop() {
			r := next()
			at := func(s berth.Time) string { return time.Unix(int64(s), 0).UTC().Format("2006-01-02T15:04:05") }
			if out, err := cluster.Command("scontrol", "create", "reservation", "ReservationName="+string(r.Name), "StartTime="+at(r.Start),
				"EndTime="+at(r.End), "Nodes=n1", "Users=root"); err != nil {
				b.Fatal(out, err)
			}
		}
	})
	b.Run("by=berth", func(b *testing.B) {
		for b.Loop() {
			if got, err := s.Reserve(b.Context(), next()); err != nil || got.Verdict != site.Made {
				b.Fatal(got, err)
			}
		}
	})
}
