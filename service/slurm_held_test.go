package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// Slurm takes a reservation down by itself when it is over, and keeps the jobs that wait in it
// from starting for good. They end with their promise, as where the service takes it down; where
// the promise is for later by then they go there, and start when it does. What another
// reservation has left, or its user has held, stays as it is.
func TestJobsThatSlurmLeftWaiting(t *testing.T) { testLeftWaiting(t, false) }

// A slurmctld that is killed before it has written a reservation to its disk, or whose file of them is lost,
// goes on with jobs that name one that is not there, and starts them never.
func TestJobsOfReservationsThatSlurmForgot(t *testing.T) { testLeftWaiting(t, true) }

func testLeftWaiting(t *testing.T, forgets bool) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Extra: "MinJobAge=7200"}), site.UnitNode, false)
	l.looked()
	from := l.host.Now()
	submit(t, l.host, l.by, berth.Rigid("over", 0, from, from+100, 1, 10))
	l.reserve("later", 1, 12, 10)
	ended, carried := l.sbatch("over", "--begin=now+600"), l.sbatch("later", "--begin=now+20")
	l.administer("create", "reservation", "ReservationName=ours", "StartTime=now", "Duration=1", "Nodes=n4", "Users=root")
	l.others++
	held := string(l.batch("sleep 1000", "--hold", "-t1"))
	other := string(l.batch("sleep 1000", "--reservation=ours", "--begin=now+600", "-t1", "--job-name=last"))

	l.until("Slurm has saved its jobs", func() bool { return l.cluster.SavedJob("last") })
	l.until("Slurm has saved its reservations", func() bool {
		return !slices.ContainsFunc([]string{string(l.get("over").Sites[0].Name), string(l.get("later").Sites[0].Name), "ours"}, func(name string) bool { return !l.cluster.Saved(name) })
	})
	l.cluster.KillController()
	if forgets {
		l.cluster.ForgetReservations()
	}
	l.move("later", 1, l.host.Now(), 60, 30) // its site knows nothing of that
	l.until("the promise is over", func() bool { return slices.Contains(l.happened("over"), string(change.Ended)) })
	<-time.After(time.Until(time.Unix(int64(from)+30, 0))) // the former end of the other
	l.cluster.RestartController()

	state := func(job string) string { return between(l.shown("job", job), "JobState=", " ") }
	l.untilIn("the job of the promise that is over is cancelled", time.Minute, func() bool { return state(ended) == "CANCELLED" })
	l.untilIn("the job of the other has gone with it", time.Minute, func() bool {
		return state(carried) == "PENDING" && strings.Contains(l.shown("job", carried), "Reservation="+string(l.get("later").Sites[0].Name)+" ")
	})
	l.untilIn("it runs in its promise", 2*time.Minute, func() bool { return state(carried) == "RUNNING" })
	if got := state(held); got != "PENDING" {
		t.Errorf("what its user holds is %s", got)
	}
	want := "RESV_DEL_HOLD"
	if forgets {
		want = "PENDING"
	}
	l.untilIn("a job of others is left behind as well", 2*time.Minute, func() bool { return state(other) == want })
	l.looked()
	l.looked()
	if got := state(other); got != want {
		t.Errorf("what a reservation of others has left is %s", got)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
