package slurm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// The primary of two controllers is killed: the backup takes over, and what was promised, what runs and what waits
// is there as before. The doctor tells which of the two serves.
func TestBackupControllerTakesOver(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Backup: true})
	s := slurm.New(options(cluster))
	var pinged string
	if !eventually(time.Minute, func() bool {
		pinged, _ = cluster.Command("scontrol", "ping")
		return strings.Count(pinged, " is UP") == 2
	}) {
		t.Fatalf("the backup does not start: %s", pinged)
	}
	if f := finding(t, s, "controllers"); f.Level != site.Good || !strings.Contains(f.Text, "ctl1") || !strings.Contains(f.Text, "ctl2") {
		t.Errorf("%+v", f)
	}
	first, second := far(t, 1, "n1"), far(t, 2, "n2")
	mustReserve(t, s, first, site.Made)
	if out, err := cluster.Command("sbatch", "--wrap=sleep 300", "--nodelist=n3", "--output=/dev/null", "--time=10"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := cluster.Command("sbatch", "--wrap=sleep 300", "--reservation="+string(first.Name), "--job-name=waits", "--output=/dev/null", "--time=10"); err != nil {
		t.Fatal(out, err)
	}
	running := func() bool {
		state, err := s.Observe(t.Context())
		return err == nil && len(state.Running) == 1 && len(state.Pending) == 1 && len(state.Ours) == 1
	}
	// What is killed at once may not have saved what it was asked a moment ago.
	if !eventually(time.Minute, func() bool { return running() && cluster.Saved(string(first.Name)) && cluster.SavedJob("waits") }) {
		t.Fatal("the job does not start")
	}
	before := observe(t, s)
	cluster.KillController()
	if _, err := s.Observe(t.Context()); err == nil {
		t.Log("the backup was there at once")
	} else if site.KindOf(err) != site.Unreachable {
		t.Errorf("%v, a %v; want that no controller answers", err, site.KindOf(err))
	}
	if !eventually(2*time.Minute, running) {
		out, _ := cluster.Command("scontrol", "show", "job", "-o")
		t.Fatalf("the backup has not what there was: %s", out)
	}
	after := observe(t, s)
	if drift := site.FindDrift([]site.Reservation{first}, after); len(drift) > 0 || after.Running[0].ID != before.Running[0].ID || after.Running[0].Start != before.Running[0].Start {
		t.Errorf("%+v, jobs %+v", drift, after.Running)
	}
	if len(before.Silent) > 0 || !slices.Equal(after.Silent, []string{"ctl1"}) {
		t.Errorf("before %q did not answer, and now %q", before.Silent, after.Silent)
	}
	mustReserve(t, s, first, site.Already)
	mustReserve(t, s, second, site.Made)
	if f := finding(t, s, "controllers"); f.Level != site.Warning || !strings.Contains(f.Text, "ctl1 is DOWN") {
		t.Errorf("%+v", f)
	}
	// The primary comes back and takes over again, with what the backup was told.
	cluster.RestartController()
	if !eventually(time.Minute, func() bool { return finding(t, s, "controllers").Level == site.Good }) {
		t.Errorf("%+v", finding(t, s, "controllers"))
	}
	if drift := site.FindDrift([]site.Reservation{first, second}, observe(t, s)); len(drift) > 0 {
		t.Errorf("%+v", drift)
	}
}

// finding returns what the doctor finds in one check.
func finding(t *testing.T, s *slurm.Site, check string) site.Finding {
	t.Helper()
	for _, f := range s.Doctor(t.Context()) {
		if f.Check == check {
			return f
		}
	}
	return site.Finding{}
}
