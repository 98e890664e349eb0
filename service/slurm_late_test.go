package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// newLateLab is a service in front of six nodes that names them so long before the start.
func newLateLab(t *testing.T, ahead berth.Duration) *lab {
	t.Helper()
	return newLabOf(t, slurmtest.Start(t, slurmtest.Options{Nodes: 6}), site.UnitNode, false, ahead)
}

// told returns what is on record about a promise.
func (l *lab) happened(id string) (what []string) {
	l.t.Helper()
	past, _, err := l.host.History(l.t.Context(), l.by.By, id)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, h := range past.List {
		what = append(what, string(h.What))
	}
	return what
}

// reservedNodes returns the nodes of a promise as Slurm has them.
func (l *lab) reservedNodes(id string) string {
	l.t.Helper()
	_, after, _ := strings.Cut(l.shown("reservation", string(l.get(id).Sites[0].Name)), " Nodes=")
	nodes, _, _ := strings.Cut(after, " ")
	return nodes
}

// Under late binding a promise of 3 of 6 nodes is a count until the horizon: nodes that are
// drained or die before that cost it nothing, and nothing is told of it. At the horizon Slurm
// has a reservation of just the nodes that it gets; one that dies then is replaced, and a job
// runs on what there is at the start.
func TestSlurmNamesNodesAtTheHorizon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLateLab(t, 20)
	l.looked()
	l.reserve("p", 3, 32, 600)
	l.administer("update", "NodeName=n1", "State=DOWN", "Reason=dead")
	l.administer("update", "NodeName=n3", "State=DRAIN", "Reason=tired")
	l.until("both are known to be out of use", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && slices.ContainsFunc(views[0].Nodes, func(n site.NodeState) bool { return n.Name == "n1" && n.Condition == site.Down }) &&
			slices.ContainsFunc(views[0].Nodes, func(n site.NodeState) bool { return n.Name == "n3" && n.Condition == site.Drained })
	})
	if r := l.get("p"); len(r.Nodes) > 0 || strings.Contains(l.shown("reservation"), "ReservationName=") || slices.Contains(l.happened("p"), "named") {
		t.Fatalf("it has nodes %v before the horizon, and %v is told; Slurm has %s", r.Nodes, l.happened("p"), l.shown("reservation"))
	}
	l.made("p")
	if got := l.reservedNodes("p"); got != "n[2,4-5]" || l.nodes("p") != "n2,n4,n5" {
		t.Errorf("it has %s, in Slurm %s; want the three lowest that are well", l.nodes("p"), got)
	}
	if got := strings.Join(l.happened("p"), " "); got != "queued accepted named made" {
		t.Errorf("its history is %s", got)
	}
	job := l.sbatch("p", "--nodes=3")
	l.administer("update", "NodeName=n4", "State=DOWN", "Reason=dead")
	l.until("another node takes the place of the dead one", func() bool { return l.nodes("p") == "n2,n5,n6" })
	l.waits("p", job)
	if got := l.reservedNodes("p"); got != "n[2,5-6]" {
		t.Errorf("in Slurm it has %s", got)
	}
	l.until("the job runs on the nodes of the promise", func() bool {
		shown := l.shown("job", job)
		return strings.Contains(shown, "JobState=RUNNING") && strings.Contains(shown, "NodeList=n[2,5-6]")
	})
	l.until("it has begun for the service too", func() bool { return l.get("p").State == service.Active }) // Slurm may be some milliseconds earlier
	if r := l.get("p"); r.Missing != 0 || slices.Contains(l.happened("p"), "moved") || slices.Contains(l.happened("p"), "resized") {
		t.Errorf("it lacks %d; told is %v", r.Missing, l.happened("p"))
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Late binding beside the rest of what there is: what starts at once, what is held, extended,
// cancelled, or has several parts, and what is moved beyond the horizon while a job waits in it.
func TestSlurmLateBindingBesideTheRest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLateLab(t, 30)
	l.looked()
	now := l.host.Now()
	if r := submit(t, l.host, l.by, berth.Rigid("now", 0, now, now+3600, 1, 20)).Reservation; !isPromised(r) || !l.get("now").Sites[0].Made {
		t.Errorf("what starts at once is %+v", l.get("now"))
	}
	held := berth.Rigid("held", 0, now+60, now+660, 2, 600)
	held.Hold = 600
	if r := submit(t, l.host, l.by, held).Reservation; r.State != service.Held {
		t.Fatalf("%+v", r)
	}
	two := berth.Rigid("two", 0, now+60, now+120, 1, 60)
	two.User = "root"
	two.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: 2, Duration: 60}}}, {Variants: []berth.Variant{{NPE: 1, Duration: 60}}}}
	if r := submit(t, l.host, l.by, two).Reservation; r.State != service.Confirmed {
		t.Fatalf("%+v", r)
	}
	l.reserve("gone", 1, 60, 60)
	if _, err := l.host.Release(t.Context(), l.by, "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.host.Confirm(t.Context(), l.by, "held"); err != nil {
		t.Fatal(err)
	}
	if a, err := l.host.Extend(t.Context(), l.by, "held", now+700); err != nil || a.Refusal != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := l.host.Prepare(t.Context(), l.by, "held"); err == nil || !strings.Contains(err.Error(), "gets its nodes at") {
		t.Errorf("tasks before there are nodes: %v", err)
	}
	l.untilIn("held has its nodes, half a minute before it begins", time.Minute, func() bool { return l.get("held").Sites[0].Made })
	l.made("two")
	if r := l.get("two"); len(r.Nodes) != 2 || len(r.Nodes[0]) != 2 || len(r.Nodes[1]) != 1 || slices.Contains(r.Nodes[0], r.Nodes[1][0]) {
		t.Errorf("two parts have %v", r.Nodes)
	}
	job := l.sbatch("held", "--nodes=2")
	l.looked()
	l.move("held", 2, now, 900, 600)
	l.waits("held", job)
	if r := l.get("held"); len(r.Nodes[0]) != 2 || l.host.Now() > now+600 {
		t.Errorf("moved far ahead with a job that waits, it has %v", r.Nodes)
	}
	if got := l.happened("gone"); slices.Contains(got, "named") || strings.Count(l.shown("reservation"), "ReservationName=") != 2 {
		t.Errorf("what was cancelled before its time: %v", got)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Maintenance that others have announced and a job of others that runs over the start are
// counted before names are given, and names keep off their nodes.
func TestSlurmNamesKeepOffWhatIsTaken(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLateLab(t, 10)
	l.administer("create", "reservation", "ReservationName=maint", "StartTime=now+60", "Duration=60", "Nodes=n[1-2]", "Users=root", "Flags=MAINT,IGNORE_JOBS")
	l.others = 1
	job := string(l.batch("sleep 1000", "-N1", "--nodelist=n3", "--exclusive", "-t10"))
	l.until("a job of others runs", func() bool { return strings.Contains(l.shown("job", job), "JobState=RUNNING") })
	l.looked()
	l.looked()
	l.reserve("p", 3, 30, 120)
	from := l.host.Now().Add(30)
	if a := submit(t, l.host, l.by, berth.Rigid("more", 0, from, from+120, 1, 120)); a.Reservation.State != service.Refused {
		t.Errorf("a fourth node of three that are left is %+v", a.Reservation)
	}
	l.made("p")
	if got := l.reservedNodes("p"); got != "n[4-6]" {
		t.Errorf("it has %s, want none of those that are taken", got)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A service that is killed when nodes are named and Slurm does not have them yet makes just
// these when it is back.
func TestSlurmHasTheNamesAfterAKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLateLab(t, 20)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.mortal = &mortal{Store: l.store}
	l.open()
	l.looked()
	l.reserve("p", 3, 28, 600)
	l.cluster.KillController()
	l.until("its nodes have names", func() bool { return len(l.get("p").Nodes) > 0 })
	named := l.nodes("p")
	l.mortal.dead.Store(true)
	_ = l.host.Close() // it cannot say goodbye
	l.mortal = &mortal{Store: l.store}
	l.open()
	if got := l.nodes("p"); got != named {
		t.Errorf("after the kill it has %s, before %s", got, named)
	}
	l.cluster.StartController()
	l.made("p")
	if got := l.reservedNodes("p"); got != "n[1-3]" || named != "n1,n2,n3" {
		t.Errorf("Slurm has %s, named were %s", got, named)
	}
	if got := strings.Join(l.happened("p"), " "); got != "queued accepted named made" && got != "queued accepted named made started" && got != "queued accepted named started made" {
		t.Errorf("its history is %s", got)
	}
}

// What begins now by a modification or a confirmation under late binding is answered when Slurm has it, on nodes that jobs
// have not taken meanwhile, and what runs is extended over a later promise that gets other nodes.
func TestSlurmIsAskedUnderLateBinding(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLateLab(t, 900)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Every = time.Minute // so that the jobs are not seen
	l.open()
	l.until("it is looked at", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && views[0].Reachable
	})
	l.reserve("a", 2, 7200, 3600)
	now := l.host.Now()
	held := berth.Rigid("held", 0, now, now+3600, 1, 600)
	held.Hold = 600
	if r := submit(t, l.host, l.by, held).Reservation; r.State != service.Held {
		t.Fatalf("%+v", r)
	}
	l.taken("n1")
	now = l.host.Now()
	a, err := l.host.Modify(t.Context(), l.by, "a", berth.Rigid("a", 0, now, now+900, 2, 600))
	if err != nil || a.Refusal != nil {
		t.Fatalf("%+v, %+v, %v", a.Reservation, a.Refusal, err)
	}
	if got := l.reservedNodes("a"); got != "n[2-3]" || l.nodes("a") != "n2,n3" || !strings.Contains(l.shown("reservation", string(l.get("a").Sites[0].Name)), "State=ACTIVE") {
		t.Errorf("it has %s, in Slurm %s", l.nodes("a"), got)
	}
	l.taken("n4")
	if r, err := l.host.Confirm(t.Context(), l.by, "held"); err != nil || !isPromised(r) || l.nodes("held") != "n5" || l.reservedNodes("held") != "n5" {
		t.Errorf("%+v, %v; it has %s, in Slurm %s", r, err, l.nodes("held"), l.reservedNodes("held"))
	}
	end := l.get("a").Allotments[0].End
	from := end + 30
	if r := submit(t, l.host, l.by, berth.Rigid("later", 0, from, from+60, 4, 60)).Reservation; r.State != service.Confirmed {
		t.Fatalf("%+v", r)
	}
	l.made("later")
	was := l.nodes("later")
	if a, err := l.host.Extend(t.Context(), l.by, "a", end+60); err != nil || a.Refusal != nil {
		t.Errorf("%+v, %+v, %v", a.Reservation, a.Refusal, err)
	}
	if at := l.inSlurm("a"); !strings.Contains(at, "EndTime="+slurmTime(end+60)) || was != "n1,n2,n3,n4" || l.nodes("later") != "n1,n4,n5,n6" {
		t.Errorf("later was on %s and is on %s; Slurm has\n%s", was, l.nodes("later"), at)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
