package chance

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// A plan keeps what lies ahead: however much time passes without anything, and whatever was promised when, it stays as small.
func TestAPlanForgetsThePast(t *testing.T) {
	p := plan{pes: 10}
	for i := range berth.Time(5) {
		now := i * (berth.TimeLimit / 5 / slot * slot)
		p.add(now, berth.Interval{Start: now, End: now + 2*slot}, 4)
		p.add(now, berth.Interval{Start: now + slot, End: berth.Forever}, 1)
		if got := [3]int64{p.at(slotOf(now)), p.at(slotOf(now) + 1), p.at(slotOf(now) - 1)}; len(p.booked) > 2*ahead || got != [3]int64{4 * slot, 5 * slot, 0} {
			t.Errorf("at %d: %d slots are kept, %v are booked", now, len(p.booked), got)
		}
	}
}
