package chance

import (
	"math/rand/v2"
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

// plainPlan adds each booking to each of its slots.
type plainPlan map[int64]int64

func (p plainPlan) add(base, now int64, iv berth.Interval, npe int64) {
	for s := max(base, slotOf(iv.Start)); s < slotOf(berth.Time(now))+ahead; s++ {
		part := min(int64(iv.End), (s+1)*slot) - max(int64(iv.Start), s*slot)
		if part <= 0 {
			return
		}
		p[s] += part * npe
	}
}

// A plan equals one that adds each booking to each slot: whatever is added, given back and looked at
// in between, near and far, and when what is over is forgotten.
func TestAPlanEqualsThePlainOne(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, plain, now := plan{pes: 64}, plainPlan{}, int64(r.IntN(50*slot))
		var kept []berth.Interval
		for step := range 100 {
			switch r.IntN(40) {
			case 0:
				now += r.Int64N(ahead * slot / 4)
			case 1:
				now += r.Int64N(3 * ahead * slot)
			default:
				now += r.Int64N(4 * slot)
			}
			longest := []int64{slot, 30 * slot, 3000 * slot, 2 * ahead * slot}[r.IntN(4)]
			start := now + r.Int64N(longest) - longest/4
			iv, npe := berth.Interval{Start: berth.Time(max(0, start)), End: berth.Time(max(0, start) + r.Int64N(longest))}, int64(1+r.IntN(20))
			if len(kept) > 0 && r.IntN(3) == 0 {
				iv, npe = kept[r.IntN(len(kept))], -npe
			}
			kept = append(kept, iv)
			p.add(berth.Time(now), iv, npe)
			plain.add(p.base, now, iv, npe)
			for range r.IntN(4) {
				s := slotOf(berth.Time(now)) + r.Int64N([]int64{4, 200, ahead + 10}[r.IntN(3)])
				if got := p.at(s); got != plain[s] {
					t.Fatalf("seed %d, step %d: %d is booked in slot %d, want %d", seed, step, got, s, plain[s])
				}
			}
		}
	}
}

// 20,000 bookings of a year and one look: the time that a service answers a user in.
func BenchmarkPlanOfLongBookings(b *testing.B) {
	for b.Loop() {
		p := plan{pes: 1 << 20}
		for i := range berth.Time(20_000) {
			p.add(i, berth.Interval{Start: i, End: i + 365*86400}, 1)
		}
		p.look(20_000, 20_000+7*86400, 64, 3600)
	}
}
