package slurm_test

import (
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/sitetest"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

const siteName = "lab"

func options(c *slurmtest.Cluster) slurm.Options {
	return slurm.Options{Site: siteName, Conf: c.Conf, Zone: "Europe/Berlin"}
}

func now() berth.Time { return berth.Time(time.Now().Unix()) }

// eventually waits for a condition without a signal.
func eventually(most time.Duration, holds func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(most); time.Now().Before(end); <-tick.C {
		if holds() {
			return true
		}
	}
	return false
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

func TestConformance(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	conforms(t, cluster, options(cluster))
}

// conforms runs the conformance suite against a cluster that is reached in one way. Tasks are submitted by the commands
// of users.
func conforms(t *testing.T, cluster *slurmtest.Cluster, o slurm.Options) {
	t.Helper()
	s, client := slurm.New(o), slurm.NewClient(options(cluster))
	dir := t.TempDir()
	sitetest.Run(t, func(t *testing.T) *sitetest.Subject {
		return &sitetest.Subject{
			Name: siteName, Observer: s, Booker: s, Runner: client, Drainer: s, Now: now,
			Wait: func(most berth.Duration, until func() bool) bool {
				return eventually(time.Duration(most)*time.Second, until)
			},
			Places: [2]site.Share{{Node: "n1"}, {Node: "n2", Cores: berth.PEsOf(0, 1, 2)}},
			Count:  site.Reservation{Nodes: 2}, Partition: "main", User: me(t), Dir: dir, Settle: 20, LimitUnit: 60,
			Foreign: func(t *testing.T, start, end berth.Time, share site.Share) string {
				const name = "physics course"
				at := func(s berth.Time) string { return time.Unix(int64(s), 0).UTC().Format("2006-01-02T15:04:05") }
				if out, err := cluster.Command("scontrol", "create", "reservation", "ReservationName="+name, "StartTime="+at(start),
					"EndTime="+at(end), "Nodes="+share.Node, "Users="+me(t)); err != nil || !strings.Contains(out, "Reservation created") {
					t.Fatalf("%s %v", out, err)
				}
				t.Cleanup(func() { _, _ = cluster.Command("scontrol", "delete", "ReservationName="+name) })
				return name
			},
		}
	})
}
