package slurm_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A task in a reservation of nodes that the default partition does not have goes to one
// that has them.
func TestTaskGoesToAPartitionOfItsNodes(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Partitions: `
PartitionName=shut Nodes=n[3-4] State=DOWN
PartitionName=main Nodes=n[1-2] Default=YES State=UP
PartitionName=gpu Nodes=n[3-4] State=UP`})
	s := slurm.New(options(cluster))
	c := slurm.NewClient(options(cluster))
	for n, at := range []string{"n1", "n3"} {
		want := []string{"Partition=main ", "Partition=gpu "}[n]
		r := far(t, n, at)
		r.Partition = ""
		mustReserve(t, s, r, site.Made)
		id, err := c.Submit(t.Context(), site.Task{Key: "at-" + at, Reservation: r.Name, User: r.Users[0], Command: []string{"true"}, Dir: t.TempDir(), Nodes: 1})
		if err != nil {
			t.Errorf("on %s: %v", at, err)
			continue
		}
		if out, err := cluster.Command("scontrol", "--oneliner", "show", "job", string(id)); err != nil || !strings.Contains(out, want) {
			t.Errorf("on %s: want %sin %s, %v", at, want, out, err)
		}
	}
}

// A task without a limit of its own may last to the end of its reservation, also of one that has begun a second ago: a limit is
// whole minutes, and one that was nearly whole is not lost.
func TestTaskMayLastToTheEndOfItsReservation(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s, c := slurm.New(options(cluster)), slurm.NewClient(options(cluster))
	for n, begun := range []berth.Time{0, 2, 45} {
		r := far(t, n, cluster.Nodes()[n])
		r.Start = now() - begun
		r.End = r.Start + 600
		mustReserve(t, s, r, site.Made)
		id, err := c.Submit(t.Context(), task(r, "sleep", "1000"))
		if err != nil {
			t.Fatal(err)
		}
		want := "TimeLimit=00:10:00 "
		if begun > 20 {
			want = "TimeLimit=00:09:00 "
		}
		if out, err := cluster.Command("scontrol", "--oneliner", "show", "job", string(id)); err != nil || !strings.Contains(out, want) {
			t.Errorf("begun %d s ago: want %sin %s, %v", begun, want, out, err)
		}
	}
}
