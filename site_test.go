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

func TestVersionsHaveComponentsWithDigits(t *testing.T) {
	for text, want := range map[string]bool{
		"2": true, "2.12": true, "2.12.0": true, "2023a": true, "1.1.1w": true, "v2.12": true, "R2023b": true, "12.2.0-rc1": true, "4.1+cuda12": true, "00.1": true,
		"": false, ".": false, "2.": false, ".2": false, "2..1": false, "latest": false, "2.x": false, "2.*": false, "2,9": false, "2.9 beta": false, " 2": false,
		"-1.5": false, "2.-1": false, ">=2": false, "2\n": false, "2.ä1": false, "²": false,
	} {
		if got := berth.ValidVersion(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
