package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
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
