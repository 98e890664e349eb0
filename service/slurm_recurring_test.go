package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// Reservations of others that come again are planned around each time, however far ahead
// something is asked for, and so are those whose start floats.
func TestRecurringReservationsArePlannedAround(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	const day, minute = 86400, 60
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), site.UnitNode, false)
	l.administer("create", "reservation", "ReservationName=nightly", "StartTime=now+2hours", "Duration=20", "Nodes=n[1-3]", "Users=root", "Flags=DAILY,MAINT,IGNORE_JOBS")
	l.administer("create", "reservation", "ReservationName=course", "StartTime=now+3hours", "Duration=10", "Nodes=n2", "Users=root", "Flags=WEEKLY,FLEX,PURGE_COMP=00:30:00")
	l.administer("create", "reservation", "ReservationName=short_jobs", "StartTime=now+1hour", "Duration=UNLIMITED", "Nodes=n4", "Users=root", "Flags=TIME_FLOAT")
	l.others = 3
	l.looked()
	l.looked()
	nightly, course := l.host.Now()+2*3600, l.host.Now()+3*3600
	ask := func(from berth.Time, npe berth.Count, slack berth.Duration) service.Reservation {
		t.Helper()
		return submit(t, l.host, l.by, berth.Rigid("", 0, from, from+10*minute+berth.Time(slack), npe, 10*minute)).Reservation
	}
	for _, c := range []struct {
		about string
		from  berth.Time
		npe   berth.Count
		state service.State
	}{
		{"the first night", nightly + minute, 1, service.Refused},
		{"the next night", nightly + day + minute, 1, service.Refused},
		{"in a hundred days", nightly + 100*day + minute, 1, service.Refused},
		{"between two nights", nightly + day + 30*minute, 3, service.Confirmed},
		{"the course today", course - minute, 3, service.Refused},
		{"the course in a week", course + 7*day - minute, 3, service.Refused},
		{"the course in a year", course + 364*day - minute, 3, service.Refused},
		{"beside the course", course + 7*day - minute, 2, service.Confirmed},
		{"where the start floats", nightly + 2*day + 60*minute, 4, service.Refused},
	} {
		if got := ask(c.from, c.npe, 0); got.State != c.state {
			t.Errorf("%s: %s on %v, want %s", c.about, got.State, got.Allotments, c.state)
		}
	}
	got := ask(nightly+3*day+minute, 2, 3600)
	if end := nightly + 3*day + 20*minute; len(got.Allotments) == 0 || got.Allotments[0].Start < end-minute || got.Allotments[0].Start > end+minute {
		t.Errorf("%+v, want it when the night is over", got)
	}
	if shown := l.shown("reservation"); strings.Count(shown, "ReservationName=berth_") != 0 {
		t.Errorf("want nothing of ours there yet:\n%s", shown)
	}
	if _, err := l.host.Prepare(t.Context(), l.by, got.ID); err != nil {
		t.Errorf("Slurm does not take it: %v", err)
	}
}
