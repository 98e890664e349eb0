package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// batch submits a job that runs a command of the shell.
func (l *lab) batch(command string, words ...string) site.JobID {
	l.t.Helper()
	words = append([]string{"--parsable", "--output=/dev/null", "--wrap=" + command}, words...)
	out, err := l.cluster.Command("sbatch", words...)
	if err != nil {
		l.t.Fatal(err, out)
	}
	return site.JobID(strings.TrimSpace(out))
}

// A cluster that is only watched never has a reservation, and what would have
// been promised to its jobs is compared with what they did: those on the whole
// cluster one after the other, an array, one that is cancelled, one that is held
// and one that is too large. A job that ran before is left out, and its end shows.
func TestSlurmIsWatched(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{})
	over := filepath.Join(t.TempDir(), "over")
	out, err := cluster.Command("sbatch", "--parsable", "--output=/dev/null", "-t5", "--wrap=until [ -e "+over+" ]; do sleep 0.1; done")
	if err != nil {
		t.Fatal(err, out)
	}
	before := site.JobID(strings.TrimSpace(out))
	l := &lab{t: t, cluster: cluster}
	for tick, end := time.Tick(100*time.Millisecond), time.Now().Add(30*time.Second); !strings.Contains(l.shown("job", string(before)), "JobState=RUNNING"); <-tick {
		if time.Now().After(end) {
			t.Fatalf("it does not run: %s", l.shown("job"))
		}
	}
	l = newLabOf(t, cluster, site.UnitNode, true)
	var score service.Score
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v", score)
		}
	})
	look := func(holds func() bool) func() bool {
		return func() bool {
			if all := l.shown("reservation"); !strings.Contains(all, "No reservations in the system") {
				t.Fatalf("there is a reservation:\n%s", all)
			}
			var err error
			if score, err = l.host.Score(t.Context(), l.by.By, "lab", 100); err != nil {
				t.Fatal(err)
			}
			return holds()
		}
	}
	job := func(id site.JobID) (j service.ShadowJob) {
		for _, j := range score.Jobs {
			if j.Job == id {
				return j
			}
		}
		return j
	}
	l.until("it is looked at", look(func() bool { return score.Since > 0 }))
	l.until("the first is left out", look(func() bool { return score.LeftOut[service.LeftBefore] == 1 && job(before).Phase == service.JobRuns }))
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.until("its end shows", look(func() bool { return job(before).Phase == service.JobEnded }))
	// The first runs until all have been seen, so that the others wait meanwhile.
	seen := filepath.Join(t.TempDir(), "seen")
	first := l.batch("until [ -e "+seen+" ]; do sleep 0.1; done", "-N4", "--exclusive", "-t5")
	second := l.batch("sleep 2", "-N4", "--exclusive", "-t1")
	array := l.batch("sleep 1", "-N2", "--exclusive", "-t1", "--array=3-4")
	cancelled := l.batch("sleep 1", "-N4", "--exclusive", "-t1")
	held := l.batch("sleep 1", "-N1", "-t1", "--hold")
	small := l.batch("sleep 1", "-n1", "-t1", "--begin=now+1hour")
	l.until("all are asked for", look(func() bool { return score.Asked == 6 }))
	if err := os.WriteFile(seen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := l.cluster.Command("scancel", string(cancelled)); err != nil {
		t.Fatal(err, out)
	}
	l.until("all have ended", look(func() bool { return score.Ended == 4 && score.Cancelled == 1 }))

	a, b := job(first), job(second)
	if a.Promised != a.Asked || b.Partial || a.NPE != 4 || a.Limit != 300 || a.End < a.Start {
		t.Errorf("the first is %+v", a)
	}
	if b.Promised != a.Promised+300 || b.Start < a.End || b.Start > a.End+30 {
		t.Errorf("the second is %+v, behind %+v", b, a)
	}
	for _, id := range []site.JobID{array + "_3", array + "_4"} {
		if j := job(id); j.Promised != b.Promised+60 || j.NPE != 2 || j.Phase != service.JobEnded || j.Ending != site.Completed {
			t.Errorf("the element %s is %+v", id, j)
		}
	}
	if j := job(cancelled); j.Phase != service.JobCancelled || j.Promised != b.Promised+120 {
		t.Errorf("the cancelled one is %+v", j)
	}
	if j := job(held); j.ID != "" {
		t.Errorf("the held one is %+v", j)
	}
	if j := job(small); j.Phase != service.JobWaits || !j.Partial || j.Promised != j.Ready || j.Ready < j.Asked+3500 {
		t.Errorf("the small one is %+v", j)
	}
	// The second was promised 300 s behind the first and came after it at once, and
	// so did the array.
	if score.Compared != 4 || score.Same != 1 || score.Later != 3 || score.Promised != 6 || score.BeforeLimit != 4 || score.Moved != 0 {
		t.Errorf("%+v", score.Figures)
	}
	if n, err := l.host.Effects(t.Context()); err != nil || len(n) > 0 {
		t.Errorf("still to do: %+v, %v", n, err)
	}
	if _, err := l.host.Submit(t.Context(), l.by, berth.Rigid("mine", 0, 0, berth.TimeLimit-1, 1, 60)); err == nil {
		t.Error("something was promised")
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
