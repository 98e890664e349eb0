package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A whole node beside some cores of another one is reserved with all of its cores, and
// the commands may stand in a folder of their own.
func TestWholeNodeBesideAPartOfOne(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	o := options(cluster)
	o.Bin = t.TempDir()
	for _, name := range []string{"scontrol", "sinfo", "squeue", "scancel"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(o.Bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := slurm.New(o)
	d, err := s.Describe(t.Context())
	if err != nil || !d.Rights.Reserve {
		t.Fatalf("want rights known by the commands in that folder: %+v, %v", d, err)
	}
	r := far(t, 0, "n1", "n2")
	r.Shares[1].Cores = berth.PEsOf(0, 1)
	got := mustReserve(t, s, r, site.Made)
	if got.Booking.Cores != 6 {
		t.Errorf("%d cores, want 4 of n1 and 2 of n2", got.Booking.Cores)
	}
	mustReserve(t, s, r, site.Already)
}

// A task that does not say on what it runs gets all cores of its reservation, and is the
// same task when it is handed in again.
func TestTaskGetsTheCoresOfItsReservation(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s, c := slurm.New(options(cluster)), slurm.NewClient(options(cluster))
	if _, err := s.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, shares := range [][]site.Share{
		{{Node: "n1", Cores: berth.PEsOf(0, 1)}},
		{{Node: "n2", Cores: berth.PEsOf(0)}},
		{{Node: "n3", Cores: berth.PEsOf(0, 1, 2)}, {Node: "n4", Cores: berth.PEsOf(0, 1, 2)}},
	} {
		r := far(t, n)
		r.Shares = shares
		mustReserve(t, s, r, site.Made)
		task := site.Task{Key: fmt.Sprint("cores", n), Reservation: r.Name, User: r.Users[0], Command: []string{"true"}, Dir: t.TempDir(), Nodes: berth.Count(n % 2)}
		id, err := c.Submit(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("NumCPUs=%d ", []int{2, 1, 6}[n])
		if out, err := cluster.Command("scontrol", "--oneliner", "show", "job", string(id)); err != nil || !strings.Contains(out, want) || strings.Contains(out, "OverSubscribe=NO Contiguous") {
			t.Errorf("want %sin %s, %v", want, out, err)
		}
		if again, err := c.Submit(t.Context(), task); err != nil || again != id {
			t.Errorf("again it is job %s, %v, want %s", again, err, id)
		}
	}
}
