package service_test

import (
	"strings"
	"testing"
	"time"
)

// A job that was to last to the end of its reservation lasts to the new one when that is
// extended; a job with a limit of its own keeps it.
func TestExtendedReservationExtendsItsJobs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.reserve("a", 2, 2, 600)
	whole, short := l.sbatch("a", "--time=10", "--nodes=1"), l.sbatch("a", "--time=3", "--nodes=1")
	for _, job := range []string{whole, short} {
		l.until("job "+job+" runs", func() bool { return strings.Contains(l.shown("job", job), "JobState=RUNNING") })
	}
	end := l.get("a").Allotments[0].End + 1800
	if a, err := l.host.Extend(t.Context(), l.by, "a", end); err != nil || a.Refusal != nil {
		t.Fatal(a, err)
	}
	l.until("the reservation lasts longer", func() bool {
		return strings.Contains(l.shown("reservation", l.made("a")), "EndTime="+time.Unix(int64(end), 0).UTC().Format("2006-01-02T15:04:05"))
	})
	l.until("the job lasts longer", func() bool { return strings.Contains(l.shown("job", whole), "TimeLimit=00:40:00") })
	if at := l.shown("job", short); !strings.Contains(at, "TimeLimit=00:03:00") {
		t.Errorf("want the limit of 3 minutes kept:\n%s", at)
	}
}
