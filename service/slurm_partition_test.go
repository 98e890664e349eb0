package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// What names no partition gets nodes of the default one, by its limits, so that a job
// which names none either runs there. What a partition that is down, or is not the
// user's, would be asked for is refused at once.
func TestPromisesAreOfPartitionsThatTheirJobsMayUse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Partitions: `
PartitionName=first Nodes=n[1-2] MaxTime=2-00:00:00 State=UP
PartitionName=main Nodes=n[2-4] MaxTime=1-00:00:00 MaxNodes=2 Default=YES State=UP
PartitionName=down Nodes=n[3-4] MaxTime=1-00:00:00 State=DOWN
PartitionName=few Nodes=n[3-4] MaxTime=1-00:00:00 AllowGroups=daemon State=UP`}), site.UnitNode, false)
	l.looked()
	l.reserve("two", 2, 3, 600)
	if at := l.nodes("two"); at != "n2,n3" {
		t.Errorf("two is on %s, want n2,n3 of the default partition", at)
	}
	job := l.sbatch("two", "--nodes=2", "--exclusive")
	l.until("a job that names no partition runs", func() bool { return strings.Contains(l.shown("job", job), "JobState=RUNNING") })

	from := l.host.Now()
	ask := func(npe berth.Count, length berth.Duration, user, partition string) (service.Answer, error) {
		from += 10_000
		r := berth.Rigid("", 0, from, from.Add(length), npe, length)
		r.User, r.Partition = user, partition
		return l.host.Submit(t.Context(), l.by, r)
	}
	for _, c := range []struct {
		about  string
		npe    berth.Count
		length berth.Duration
	}{{"more nodes than a job may have", 3, 600}, {"longer than a job may take", 1, 2 * 86400}} {
		a, err := ask(c.npe, c.length, "root", "")
		if err != nil || a.Refusal == nil && a.Reservation.Refusal == nil {
			t.Errorf("%s: %+v, %v, want a refusal", c.about, a, err)
		}
	}
	_, err := ask(1, 600, "root", "down")
	wantCode(t, err, berth.Unavailable)
	_, err = ask(1, 600, "nobody", "few")
	wantCode(t, err, berth.Denied)
	for _, user := range []string{"root", "daemon"} {
		if a, err := ask(1, 600, user, "few"); err != nil || a.Reservation.State != service.Confirmed {
			t.Errorf("%s: %+v, %v, want a promise", user, a, err)
		}
	}
	_, err = l.host.Offers(t.Context(), l.by, berth.Request{
		Deadline: l.host.Now() + 9000, Parts: []berth.Part{{Variants: []berth.Variant{{NPE: 1, Duration: 60}}}}, Requirements: berth.Requirements{Partition: "gpuu"},
	}, 3)
	if wantCode(t, err, berth.Invalid); !strings.Contains(err.Error(), `"down" "few" "first" "main"`) {
		t.Errorf("offers in a partition that does not exist: %v", err)
	}
	l.administer("update", "PartitionName=down", "State=UP")
	l.looked()
	l.looked()
	if a, err := ask(1, 600, "root", "down"); err != nil || a.Reservation.State != service.Confirmed {
		t.Errorf("%+v, %v, want a promise in a partition that is up again", a, err)
	}
}
