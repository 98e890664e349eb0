package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A request gets nodes of several kinds in one reservation of Slurm, in which one job runs
// on all of them; what only some kinds have narrows that, and two parts are nodes of two
// kinds.
func TestSlurmServesNodesOfSeveralKinds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 6, GPUs: 2, Partitions: `
PartitionName=main Nodes=ALL MaxTime=1-00:00:00 Default=YES State=UP
PartitionName=fast Nodes=n[2-5] MaxTime=1-00:00:00 State=UP`})
	for nodes, features := range map[string]string{"n[1-2]": "rack1,ib", "n[3-6]": "rack2"} {
		if out, err := cluster.Command("scontrol", "update", "NodeName="+nodes, "AvailableFeatures="+features, "ActiveFeatures="+features); err != nil {
			t.Fatal(err, out)
		}
	}
	l := newLabOf(t, cluster, site.UnitNode, false)
	l.looked()
	if pool := l.sites[0].Pools[0]; len(l.sites[0].Pools) != 1 || pool.PEs != 6 || len(pool.Classes) != 3 {
		t.Fatalf("the cluster is %+v, want one pool of three classes", l.sites[0].Pools)
	}

	l.promise(berth.Requirements{Partition: "main"}, "all", "root", 3, 6)
	if nodes := l.nodes("all"); nodes != "n1,n2,n3,n4,n5,n6" {
		t.Errorf("all has %s", nodes)
	}
	job := l.sbatch("all", "--nodes=6")
	l.until("a job runs on nodes of three kinds", func() bool {
		shown := l.shown("job", job)
		return strings.Contains(shown, "JobState=RUNNING") && strings.Contains(shown, " NumNodes=6 ")
	})

	for id, want := range map[string]struct {
		needs berth.Requirements
		in    berth.Duration
		npe   berth.Count
		nodes string
	}{
		"gpus":    {berth.Requirements{Accelerators: 2}, 150, 2, "n5,n6"},
		"feature": {berth.Requirements{Constraint: "rack1&ib"}, 150, 2, "n1,n2"},
		"either":  {berth.Requirements{Constraint: "[rack1|rack2]"}, 300, 4, "n3,n4,n5,n6"},
		"overlap": {berth.Requirements{Partition: "fast", Constraint: "rack2"}, 450, 3, "n3,n4,n5"},
	} {
		l.promise(want.needs, id, "root", want.in, want.npe)
		if nodes := l.nodes(id); nodes != want.nodes {
			t.Errorf("%s has %s, want %s", id, nodes, want.nodes)
		}
		if name := l.made(id); !strings.Contains(l.shown("reservation", name), " NodeCnt="+string(rune('0'+want.npe))+" ") {
			t.Errorf("%s in Slurm: %s", id, l.shown("reservation", name))
		}
	}

	start := l.host.Now().Add(3000)
	two := berth.Rigid("two", 0, start, start.Add(60), 1, 60)
	two.User = "root"
	two.Parts = []berth.Part{
		{Variants: []berth.Variant{{NPE: 2, Duration: 60}}, Constraint: "rack2"},
		{Variants: []berth.Variant{{NPE: 1, Duration: 60}}, Constraint: "ib"},
	}
	if a := submit(l.t, l.host, l.by, two); a.Reservation.State != service.Confirmed {
		t.Fatalf("%+v", a.Reservation)
	}
	if r := l.get("two"); strings.Join(r.Nodes[0], ",") != "n3,n4" || strings.Join(r.Nodes[1], ",") != "n1" {
		t.Errorf("two has %v", r.Nodes)
	}

	five := berth.Rigid("five", 0, start, start.Add(60), 5, 60)
	five.User, five.Constraint = "root", "rack2"
	if a := submit(l.t, l.host, l.by, five); a.Reservation.Refusal == nil || a.Reservation.Refusal.Reason != berth.NoSuitableSite || a.Reservation.Refusal.Limit != 4 {
		t.Errorf("five of four nodes: %+v", a.Reservation)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
