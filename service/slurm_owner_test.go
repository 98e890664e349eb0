package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A service that meets reservations which are not of its data leaves them and the
// jobs in them alone, promises nothing at the site and says why; the service whose
// they are goes on undisturbed. What is to be adopted is taken down.
func TestAServiceLeavesAloneWhatItNeverMade(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{})
	first := newLabOf(t, cluster, site.UnitNode, false)
	first.reserve("runs", 1, 2, 600)
	first.reserve("waits", 1, 400, 600)
	running, waiting := first.sbatch("runs"), first.sbatch("waits")
	first.until("the job runs", func() bool { return strings.Contains(first.shown("job", running), "JobState=RUNNING") })

	second := newLabOf(t, cluster, site.UnitNode, false)
	trouble := func() string {
		views, err := second.host.Sites(t.Context(), second.by.By)
		if err != nil {
			t.Fatal(err)
		}
		return views[0].Trouble
	}
	second.until("the second says why it does not serve", func() bool { return strings.Contains(trouble(), "not served") })
	for _, words := range []string{"2 reservations", string(first.get("runs").Sites[0].Name), "--adopt"} {
		if !strings.Contains(trouble(), words) {
			t.Errorf("want %q in %q", words, trouble())
		}
	}
	start := second.host.Now().Add(100)
	_, err := second.host.Submit(t.Context(), second.by, berth.Rigid("refused", 0, start, start+60, 1, 60))
	wantCode(t, err, berth.Unavailable)

	first.reserve("more", 1, 400, 600)
	first.made("more")
	second.looked()
	first.waits("waits", waiting)
	if at := first.shown("job", running); !strings.Contains(at, "JobState=RUNNING") {
		t.Errorf("want the job running:\n%s", at)
	}

	if err := second.host.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.host.Close(); err != nil {
		t.Fatal(err)
	}
	second.manager.Adopt = true
	second.open()
	second.until("all is taken down", func() bool { return !strings.Contains(second.shown("reservation"), "berth_lab_") })
	second.reserve("taken", 4, 300, 600)
	second.made("taken")
}

// Reservations of another service that appear while a site is served are planned
// around and left alone.
func TestReservationsOfAnotherServiceAreForeign(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.pass(10)
		other := string(site.NameOf("harbour", "of another service", 1))
		start := w.now() + 1000
		w.book(other, start, start+1000, "n1", "n2")
		w.pass(20)
		a := submit(t, w.host, ann, berth.Rigid("all", 0, start, start+500, 4, 500))
		if a.Reservation.State != service.Refused {
			t.Errorf("want a refusal, for two nodes are another's: %+v", a.Reservation)
		}
		w.reserve("two", 2, 1000, 500)
		w.pass(600)
		if at := w.get("two"); !at.Sites[0].Made || strings.Contains(strings.Join(at.Nodes[0], ","), "n1") {
			t.Errorf("want it made on other nodes: %+v", at)
		}
		if v := w.view(); v.Trouble != "" || len(v.Drift) > 0 {
			t.Errorf("trouble %q, drift %+v", v.Trouble, v.Drift)
		}
		if state := w.state(); len(state.Ours) != 2 {
			t.Errorf("want both there: %+v", state.Ours)
		}
	})
}
