package slurm_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// PrivateData=cloud shows more nodes than without it, so it alone is not warned of.
func TestDoctorWarnsOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	for private, want := range map[string]string{"cloud": "", "cloud,jobs": "PrivateData is jobs: "} {
		t.Run(private, func(t *testing.T) {
			t.Parallel()
			s := slurm.New(options(slurmtest.Start(t, slurmtest.Options{Nodes: 1, Extra: "PrivateData=" + private})))
			var got string
			for _, f := range s.Doctor(t.Context()) {
				if f.Check == "private" {
					got = f.Text
				}
			}
			if want == "" && got != "" || !strings.HasPrefix(got, want) {
				t.Errorf("the doctor says %q, want %q", got, want)
			}
		})
	}
}
