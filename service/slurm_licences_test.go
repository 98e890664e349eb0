package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// Licences that are promised are held in Slurm, where it counts them: others do not get
// them while the reservation lasts, and a task of its own does.
func TestPromisedLicencesAreHeld(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Extra: "Licenses=matlab:4"}), site.UnitNode, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.sites[0].Software = []berth.Software{{Name: "matlab", Licences: 4}, {Name: "unknown", Licences: 4}}
	l.open()
	ask := func(id, software string, licences berth.Count) {
		start := l.host.Now().Add(2)
		r := berth.Rigid(id, 0, start, start+600, 1, 600)
		r.Software, r.Licences = software, licences
		if a := submit(t, l.host, l.by, r); !isPromised(a.Reservation) {
			t.Fatalf("%+v", a.Reservation)
		}
	}
	ask("a", "matlab", 3)
	ask("b", "unknown", 2)
	name := l.made("a")
	if at := l.shown("reservation", name); !strings.Contains(at, "Licenses=matlab:3 ") {
		t.Errorf("want its licences in Slurm: %s", at)
	}
	l.made("b")
	l.until("a starts", func() bool {
		return l.get("a").State == service.Active && strings.Contains(l.shown("reservation", name), "State=ACTIVE")
	})
	other, err := l.cluster.Command("sbatch", "--parsable", "--licenses=matlab:2", "--time=1", "--output=/dev/null", "--wrap=sleep 1000")
	if err != nil {
		t.Fatal(err, other)
	}
	client := slurm.NewClient(slurm.Options{Site: "lab", Conf: l.cluster.Conf})
	id, err := client.Submit(t.Context(), site.Task{Key: "own", Reservation: site.Name(name), User: l.by.By.User, Command: []string{"sleep", "1000"}, Dir: t.TempDir(), Nodes: 1, Output: "/dev/null"})
	if err != nil {
		t.Fatal(err)
	}
	l.until("a task of its own runs", func() bool {
		at := l.shown("job", string(id))
		return strings.Contains(at, "JobState=RUNNING") && strings.Contains(at, "Licenses=matlab:3")
	})
	l.until("the licences are wanted by another", func() bool {
		return strings.Contains(l.shown("job", strings.TrimSpace(other)), "JobState=PENDING Reason=Licenses")
	})
	if _, err := l.host.Release(t.Context(), l.by, "a"); err != nil {
		t.Fatal(err)
	}
	l.until("the other has them", func() bool { return strings.Contains(l.shown("job", strings.TrimSpace(other)), "JobState=RUNNING") })
}
