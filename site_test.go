package berth_test

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// What asks for accelerators runs at the slower of both speeds.
func TestSpeedFor(t *testing.T) {
	for _, c := range []struct {
		pool, accelerator berth.Speed
		asked             int
		want              berth.Speed
	}{
		{0, 0, 1, 0},
		{2200, 0, 1, 2200},
		{2200, 840, 0, 2200},
		{2200, 840, 1, 840},
		{1330, 2000, 2, 1330},
		{0, 2000, 1, berth.StandardSpeed},
		{0, 500, 1, 500},
	} {
		pool := berth.Pool{Speed: c.pool, Node: berth.Node{AcceleratorSpeed: c.accelerator}}
		if got := pool.SpeedFor(&berth.Requirements{Accelerators: c.asked}); got != c.want {
			t.Errorf("pool %d, accelerators %d, %d asked: %d, want %d", c.pool, c.accelerator, c.asked, got, c.want)
		}
	}
}
