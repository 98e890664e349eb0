package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// bookings is how many reservations Slurm should have.
func (l *lab) bookings() int {
	l.t.Helper()
	list, _, err := l.host.List(l.t.Context(), l.by.By, service.Filter{States: []service.State{service.Confirmed, service.Active, service.Degraded}})
	if err != nil {
		l.t.Fatal(err)
	}
	return len(list) + l.others
}

// move modifies a promise so that it starts so long after another time.
func (l *lab) move(id string, npe berth.Count, from berth.Time, by, length berth.Duration) {
	l.t.Helper()
	start := from.Add(by)
	a, err := l.host.Modify(l.t.Context(), l.by, id, berth.Rigid(id, 0, start, start.Add(length), npe, length))
	if err != nil || a.Refusal != nil {
		l.t.Fatalf("%s cannot be moved: %+v, %v", id, a.Refusal, err)
	}
}

// administer runs scontrol as an administrator does beside the service.
func (l *lab) administer(args ...string) {
	l.t.Helper()
	if out, err := l.cluster.Command("scontrol", args...); err != nil {
		l.t.Fatal(err, out)
	}
}

// queueLabs runs a test on clusters of both units.
func queueLabs(t *testing.T, test func(t *testing.T, l *lab, few, whole berth.Count)) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	for _, unit := range []site.Unit{site.UnitNode, site.UnitCore} {
		t.Run(string(unit), func(t *testing.T) {
			few, whole := berth.Count(1), berth.Count(4)
			if unit == site.UnitCore {
				few, whole = 3, 16 // a part of a node
			}
			test(t, newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), unit, false), few, whole)
		})
	}
}

// A job that waits in a reservation goes where its promise is moved, however soon
// after it was submitted that is.
func TestQueuedJobGoesWithAModifiedPromise(t *testing.T) {
	queueLabs(t, func(t *testing.T, l *lab, few, whole berth.Count) {
		for _, to := range []struct {
			id string
			in berth.Duration
		}{{"near", 300}, {"far", 2 * horizon}} {
			l.reserve(to.id, few, 400, 60)
			l.made(to.id)
			l.looked()
			job := l.sbatch(to.id)
			l.move(to.id, few+1, l.host.Now(), to.in, 120) // no look has seen the job yet
			l.waits(to.id, job)
			l.move(to.id, few, l.host.Now(), to.in+200, 60)
			l.waits(to.id, job)
		}
	})
}

// looked waits for a look at the site that nothing but time is the reason for.
func (l *lab) looked() {
	l.t.Helper()
	from := l.host.Now()
	l.until("the site is looked at", func() bool {
		views, err := l.host.Sites(l.t.Context(), l.by.By)
		return err == nil && views[0].Seen > from
	})
}

// Two promises that change places, each with a job, both have theirs afterwards.
func TestQueuedJobsOfPromisesThatChangePlaces(t *testing.T) {
	queueLabs(t, func(t *testing.T, l *lab, few, whole berth.Count) {
		from := l.host.Now()
		l.reserve("a", whole, 400, 60)
		l.reserve("b", whole, 500, 60)
		ofA, ofB := l.sbatch("a"), l.sbatch("b")
		l.move("a", whole, from, 700, 60)
		l.move("b", whole, from, 400, 60)
		l.move("a", whole, from, 500, 60)
		l.waits("a", ofA)
		l.waits("b", ofB)
	})
}

// Nodes that go out of use under a promise, for whatever cause, take no job from it;
// nor does a restart of the service.
func TestQueuedJobStaysWhenItsNodesGo(t *testing.T) {
	queueLabs(t, func(t *testing.T, l *lab, few, whole berth.Count) {
		l.reserve("a", few, 400, 60)
		job := l.sbatch("a")
		node := l.nodes("a")
		drained := node
		l.administer("update", "NodeName="+node, "State=DRAIN", "Reason=disk")
		l.until("a has another node", func() bool { return l.nodes("a") != node })
		l.waits("a", job)

		node = l.nodes("a")
		l.administer("create", "reservation", "ReservationName=maintenance", "StartTime=now+2minutes", "Duration=60", "Nodes="+node, "Users=root", "Flags=MAINT,IGNORE_JOBS")
		l.others++
		l.until("a has another node", func() bool { return l.nodes("a") != node })
		l.waits("a", job)

		node = l.nodes("a")
		of := string(l.batch("sleep 1000", "-N1", "--exclusive", "-w"+node, "-t2"))
		l.until("a job of others runs on its node", func() bool { return strings.Contains(l.shown("job", of), "JobState=RUNNING") })
		l.looked()
		if l.nodes("a") != node {
			t.Errorf("a job that ends before has moved a to %s", l.nodes("a"))
		}
		l.administer("update", "JobId="+of, "TimeLimit=60")
		l.until("a has another node", func() bool { return l.nodes("a") != node })
		l.waits("a", job)

		l.administer("update", "NodeName="+drained, "State=RESUME") // else there is no other
		node = l.nodes("a")
		if err := l.host.Close(); err != nil {
			t.Fatal(err)
		}
		l.administer("update", "NodeName="+node, "State=DRAIN", "Reason=disk")
		l.open()
		l.until("a has another node", func() bool { return l.nodes("a") != node })
		l.waits("a", job)
	})
}

// A job that is cancelled before it runs does not make its reservation a used one.
func TestJobThatNeverRanIsNoUse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.reserve("a", 1, 3, 600)
	never := l.sbatch("a", "--hold")
	l.until("a starts", func() bool { return l.get("a").State == service.Active })
	if out, err := l.cluster.Command("scancel", never); err != nil {
		t.Fatal(err, out)
	}
	l.until("the job is over", func() bool { return strings.Contains(l.shown("job", never), "JobState=CANCELLED") })
	l.looked()
	l.looked()
	if l.get("a").CheckedIn {
		t.Error("it counts as used")
	}
	l.sbatch("a")
	l.until("a job that runs is use", func() bool { return l.get("a").CheckedIn })
}
