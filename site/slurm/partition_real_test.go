package slurm_test

import (
	"strings"
	"testing"

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
