package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// An open series in front of Slurm: each occurrence is there from its turn on, also after a restart; one that maintenance keeps from its turn is
// not, until that is called off; and all of them are where they are moved to.
func TestOpenSeriesAndMaintenanceInSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), site.UnitNode, false)
	now := l.host.Now()
	s := berth.Series{Rule: "as needed", Zone: "UTC", Ahead: 400, Request: berth.Rigid("", 0, 0, 1, 1, 60)}
	for _, in := range []berth.Time{200, 410, 425} { // the others have their turns in 10 and 25 s
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: now + in, Deadline: now + in + 60})
	}
	keyed := l.by
	keyed.Key = "k"
	id := submitSeries(t, l.host, keyed, s).Series.Series.ID
	m := service.Maintenance{Name: "disks", Site: "lab", Times: []berth.Interval{{Start: now + 405, End: now + 420}}}
	if _, way, err := l.host.AddMaintenance(t.Context(), l.by, m, false); err != nil || len(way) > 0 {
		t.Fatalf("in its way are %q, %v", way, err)
	}
	is := func(want string) {
		t.Helper()
		l.untilIn("the series begins with "+want, 2*time.Minute, func() bool {
			s, err := l.host.GetSeries(t.Context(), l.by.By, id)
			return err == nil && strings.HasPrefix(states(&s), want)
		})
	}
	there := func(numbers ...int) {
		t.Helper()
		for _, n := range numbers {
			name := l.made(berth.OccurrenceID(id, n))
			start := time.Unix(int64(l.get(berth.OccurrenceID(id, n)).Allotments[0].Start), 0).UTC().Format("2006-01-02T15:04:05")
			l.until("Slurm has it at its time", func() bool { return strings.Contains(l.shown("reservation", name), "StartTime="+start) })
		}
		if shown := l.shown("reservation"); strings.Count(shown, "ReservationName=berth_") != len(numbers) {
			t.Errorf("want %d reservations:\n%s", len(numbers), shown)
		}
	}
	is("confirmed refused")
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.open()
	is("confirmed refused confirmed")
	there(1, 3)
	if err := l.host.RemoveMaintenance(t.Context(), l.by, "disks", 0); err != nil {
		t.Fatal(err)
	}
	is("confirmed confirmed confirmed") // a minute after its turn
	there(1, 2, 3)
	a, err := l.host.ModifySeries(t.Context(), l.by, id, service.SeriesEdit{By: 60})
	if err != nil || len(a.Refusals) > 0 {
		t.Fatalf("%v, %+v", err, a.Refusals)
	}
	if at := l.get(berth.OccurrenceID(id, 3)).Allotments[0].Start; at != now+485 {
		t.Errorf("the third is moved to %d, want %d", at, now+485)
	}
	there(1, 2, 3)
	if again := submitSeries(t, l.host, keyed, s); again.Series.Series.ID != id {
		t.Errorf("under its key it is %s, and was %s", again.Series.Series.ID, id)
	}
}
