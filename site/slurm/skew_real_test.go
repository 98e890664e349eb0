package slurm

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A look tells by how much slurmctld's clock is ahead or behind.
func TestSkewOfTheController(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	s := New(Options{Site: "lab", Conf: cluster.Conf})
	for _, ahead := range []time.Duration{0, 40 * time.Second, -40 * time.Second} {
		s.now = func() time.Time { return time.Now().Add(-ahead) }
		state, err := s.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(state.Skew) * time.Second; (got - ahead).Abs() > time.Second {
			t.Errorf("%s ahead, want %s", got, ahead)
		}
	}
}
