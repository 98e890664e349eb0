package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// blind starts a service that looks at its cluster so rarely that what happens there is not seen.
func blind(t *testing.T, nodes int) *lab {
	t.Helper()
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Nodes: nodes}), site.UnitNode, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Every = 60 * time.Second
	l.open()
	l.until("it is looked at", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && views[0].Reachable
	})
	return l
}

// taken has a job run on a node.
func (l *lab) taken(node string) {
	l.t.Helper()
	job := string(l.batch("sleep 1000", "-N1", "--exclusive", "-t4", "-w"+node))
	l.until("a job runs", func() bool { return strings.Contains(l.shown("job", job), "JobState=RUNNING") })
}

// inSlurm returns what Slurm has of a promise.
func (l *lab) inSlurm(id string) string {
	l.t.Helper()
	return l.shown("reservation", string(l.get(id).Sites[0].Name))
}

func slurmTime(at berth.Time) string {
	return time.Unix(int64(at), 0).UTC().Format("2006-01-02T15:04:05")
}

// An extension of what runs is answered when Slurm has made it. If Slurm refuses, since the administrator has
// reserved the node for then, the answer says so and the promise is as it was.
func TestExtensionIsAskedOfSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := blind(t, 2)
	from := l.host.Now()
	submit(t, l.host, l.by, berth.Rigid("a", 0, from, from+900, 1, 600))
	l.until("it begins", func() bool { return l.get("a").State == service.Active && l.get("a").Sites[0].Made })
	end := l.get("a").Allotments[0].End
	if a, err := l.host.Extend(t.Context(), l.by, "a", end+300); err != nil || a.Refusal != nil || a.Reservation.Allotments[0].End != end+300 {
		t.Fatalf("%+v, %v", a, err)
	}
	if at := l.inSlurm("a"); !strings.Contains(at, "EndTime="+slurmTime(end+300)) {
		t.Errorf("answered is an extension that Slurm does not have:\n%s", at)
	}
	end += 300
	node := l.get("a").Nodes[0][0]
	if out, err := l.cluster.Command("scontrol", "create", "reservation", "ReservationName=course", "StartTime="+slurmTime(end+60), "Duration=60", "Nodes="+node, "Users="+l.by.By.User); err != nil {
		t.Fatal(out, err)
	}
	before := l.get("a")
	a, err := l.host.Extend(t.Context(), l.by, "a", end+600)
	if err != nil || a.Refusal == nil || a.Reservation.Allotments[0].End != end {
		t.Fatalf("what Slurm refuses is %+v, %v", a, err)
	}
	if is := l.get("a"); is.Allotments[0].End != end || is.State != service.Active || is.Sites[0].Name != before.Sites[0].Name || is.Missing != 0 {
		t.Errorf("the promise was %+v and is %+v", before, is)
	}
	if at := l.inSlurm("a"); !strings.Contains(at, "EndTime="+slurmTime(end)) {
		t.Errorf("the reservation is not as it was:\n%s", at)
	}
	if a, err := l.host.Extend(t.Context(), l.by, "a", end+60); err != nil || a.Refusal != nil || !strings.Contains(l.inSlurm("a"), "EndTime="+slurmTime(end+60)) {
		t.Errorf("what has room is %+v, %v", a, err)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A promise that is modified so that it begins now is answered when Slurm has it there, on nodes that
// jobs have not taken meanwhile; if there are none the promise is as it was, in Slurm too.
func TestModificationToNowIsAskedOfSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	for _, late := range []berth.Duration{15, horizon + 1800} { // in Slurm already, and not yet
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			l := blind(t, 4)
			from := l.host.Now().Add(late + 3600)
			if late < horizon {
				from = l.host.Now().Add(horizon * 3 / 4)
			}
			for _, id := range []string{"a", "b"} {
				if r := submit(t, l.host, l.by, berth.Rigid(id, 0, from, from+3600, 2, 3600)).Reservation; r.State != service.Confirmed {
					t.Fatalf("%+v", r)
				}
			}
			if late < horizon {
				l.until("they are in Slurm", func() bool { return l.get("a").Sites[0].Made && l.get("b").Sites[0].Made })
			}
			before := l.get("a")
			l.taken("n1")
			// All four from now on, which the service believes to be free.
			now := l.host.Now()
			a, err := l.host.Modify(t.Context(), l.by, "a", berth.Rigid("a", 0, now, now+60, 4, 60))
			if err != nil || a.Refusal == nil || !strings.Contains(a.Refusal.Words, "busy") && a.Refusal.Reason != berth.NoCapacity {
				t.Fatalf("what has no room is %+v, %v", a, err)
			}
			if is := l.get("a"); is.State != service.Confirmed || is.Allotments[0].Start != from || fmt.Sprint(is.Nodes) != fmt.Sprint(before.Nodes) {
				t.Errorf("it was %+v and is %+v", before, is)
			}
			if late < horizon {
				if at := l.inSlurm("a"); !strings.Contains(at, "StartTime="+slurmTime(from)) {
					t.Errorf("the reservation is not as it was:\n%s", at)
				}
			}
			l.taken("n2")
			now = l.host.Now()
			a, err = l.host.Modify(t.Context(), l.by, "a", berth.Rigid("a", 0, now, now+60, 2, 60))
			if err != nil || a.Refusal != nil {
				t.Fatalf("what has room is %+v, %v", a, err)
			}
			is := l.get("a")
			if !isPromised(is) || strings.Join(is.Nodes[0], ",") != "n3,n4" || is.Allotments[0].Start > now+15 {
				t.Errorf("it is %+v", is)
			}
			if at := l.inSlurm("a"); !strings.Contains(at, "Nodes=n[3-4]") || !strings.Contains(at, "State=ACTIVE") {
				t.Errorf("answered is what Slurm does not have:\n%s", at)
			}
			if err := l.host.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// While Slurm does not answer a change that begins now is refused after a while and the promise stays as
// it was; a later change is decided at once.
func TestChangeIsGivenUpWhileSlurmIsSilent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	from := l.host.Now()
	submit(t, l.host, l.by, berth.Rigid("a", 0, from, from+900, 1, 600))
	from = l.host.Now() + 7200
	submit(t, l.host, l.by, berth.Rigid("later", 0, from, from+3600, 2, 3600))
	l.until("it begins", func() bool { return l.get("a").State == service.Active && l.get("a").Sites[0].Made })
	end := l.get("a").Allotments[0].End
	l.cluster.KillController()
	began := time.Now()
	if a, err := l.host.Modify(t.Context(), l.by, "later", berth.Rigid("later", 0, from+60, from+3660, 2, 3600)); err != nil || a.Refusal != nil || time.Since(began) > 5*time.Second {
		t.Errorf("a later change: %+v, %v after %s", a, err, time.Since(began))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if a, err := l.host.Extend(ctx, l.by, "a", end+300); codeOf(err) != berth.Unavailable || !strings.Contains(err.Error(), "stays as it was") {
		t.Errorf("want that it stays as it was: %+v, %v", a, err)
	}
	if is := l.get("a"); is.Allotments[0].End != end {
		t.Errorf("it is %+v", is)
	}
	l.cluster.StartController()
	l.until("it is there", func() bool { return strings.Contains(l.inSlurm("a"), "EndTime="+slurmTime(end)) })
}
