package slurm_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A reservation that ends with jobs waiting in it leaves them behind: each of them tells which it was, an array too. What has left
// them takes them along when it is released, although it is gone, and they can be carried into another.
func TestJobsLeftBehindByAReservation(t *testing.T) {
	t.Parallel()
	t.Run("commands", func(t *testing.T) {
		t.Parallel()
		cluster := slurmtest.Start(t, slurmtest.Options{})
		leavesJobsBehind(t, cluster, slurm.New(options(cluster)))
	})
	t.Run("rest", func(t *testing.T) {
		t.Parallel()
		cluster := slurmtest.Start(t, slurmtest.Options{REST: true})
		offersREST(t, cluster)
		leavesJobsBehind(t, cluster, slurm.New(overREST(cluster)))
	})
}

func leavesJobsBehind(t *testing.T, cluster *slurmtest.Cluster, s *slurm.Site) {
	t.Helper()
	name := func(n int) site.Name { return site.NameOf(siteName, t.Name()+strconv.Itoa(n), 1) }
	for i, node := range []string{"n1", "n2", "n3"} {
		r := far(t, i, node)
		if i < 2 {
			r.Start, r.End = now(), now()+5
		}
		mustReserve(t, s, r, site.Made)
	}
	waits := func(n int, words ...string) string {
		out, err := cluster.Command("sbatch", append([]string{"--parsable", "--reservation=" + string(name(n)), "--begin=now+600", "--time=1", "--output=/dev/null", "--wrap=true"}, words...)...)
		if err != nil {
			t.Fatal(out, err)
		}
		return strings.TrimSpace(out)
	}
	released, array, carried := waits(0), waits(0, "--array=3-5"), waits(1)
	mine, err := cluster.Command("sbatch", "--parsable", "--hold", "--time=1", "--output=/dev/null", "--wrap=true")
	if err != nil {
		t.Fatal(mine, err)
	}
	left := func() map[string]string {
		is := map[string]string{}
		for _, j := range observe(t, s).Pending {
			if is[string(j.ID)] = j.Left; j.Left != "" && (!j.Held || j.Reservation != "") {
				t.Errorf("%+v", j)
			}
		}
		return is
	}
	if !eventually(time.Minute, func() bool { return left()[released] != "" && left()[carried] != "" }) {
		t.Fatalf("nothing is left behind: %v", left())
	}
	is := left()
	if is[released] != string(name(0)) || is[array+"_[3-5]"] != string(name(0)) || is[carried] != string(name(1)) || is[strings.TrimSpace(mine)] != "" {
		t.Errorf("%v", is)
	}
	if err := s.Release(t.Context(), name(0)); err != nil {
		t.Error(err)
	}
	if err := s.Carry(t.Context(), name(1), name(2)); err != nil {
		t.Error(err)
	}
	freed := func(j site.Job) bool {
		return string(j.ID) == carried && j.Left == "" && j.Reservation == string(name(2)) && !j.Held
	}
	if !eventually(time.Minute, func() bool { return slices.ContainsFunc(observe(t, s).Pending, freed) }) {
		t.Errorf("%+v", observe(t, s).Pending)
	}
	if state := observe(t, s); len(state.Pending) != 2 {
		t.Errorf("%+v", state.Pending)
	}
}
