package state

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
)

// plainTimers is the list of what is set, which is sorted whenever it is asked for something.
type plainTimers []*timer

func (p plainTimers) inOrder(ranks Ranks) []*timer {
	return slices.SortedFunc(slices.Values(p), func(a, b *timer) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(ranks[a.Class], ranks[b.Class]), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Part, b.Part))
	})
}

// Timers have the order of a list that is sorted, whatever is set, changed and dropped, and however far apart they are.
func TestTimersEqualPlain(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		ranks := Ranks{2, 0, 5, 1, 4, 3}
		ts, plain := timers{ranks: ranks, width: firstWidth}, plainTimers(nil)
		span := int64(1) << (4 + rng.IntN(38))
		at := func() berth.Time { return berth.Time(rng.Int64N(span)) }
		fresh := func(number uint64) timer {
			return timer{At: at(), Sequence: number % 40, Part: int(number), Class: Class(rng.IntN(Classes))}
		}
		steps := 300
		if seed%20 == 0 {
			steps = 12_000 // more buckets than there may be
		}
		for step := range uint64(steps) {
			what := rng.IntN(10)
			if steps > 300 {
				what = max(0, what-5)
			}
			switch one := rng.IntN(max(1, len(plain))); {
			case what < 5 || len(plain) == 0:
				x := fresh(step)
				plain = append(plain, &x)
				ts.add(&x)
			case what < 7:
				x := plain[one]
				ts.drop(x)
				ts.drop(x) // that changes nothing
				plain = slices.Delete(plain, one, one+1)
			case what < 8:
				ts.move(plain[one], at())
			case what < 9:
				near := plain[one].At + berth.Time(rng.IntN(100))
				ts.move(plain[one], near)
			default:
				ts.reset(plain[one], fresh(step))
			}
			if steps > 300 && step%1000 != 0 {
				continue
			}
			want := plain.inOrder(ranks)
			if got := ts.inOrder(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %d timers, want %d in another order", seed, step, len(got), len(want))
			}
			if len(want) > 0 && ts.buckets[0].heap[0].timer != want[0] {
				t.Fatalf("seed %d, step %d: another one is the first", seed, step)
			}
			from := at()
			until := from + berth.Time(rng.Int64N(span))
			within := slices.DeleteFunc(want, func(x *timer) bool { return x.At < from || x.At > until })
			got := plainTimers(slices.Collect(ts.between(from, until))).inOrder(ranks)
			if !slices.Equal(got, within) {
				t.Fatalf("seed %d, step %d: %d timers from %d until %d, want %d", seed, step, len(got), from, until, len(within))
			}
		}
		if len(ts.buckets) > mostBuckets {
			t.Fatalf("seed %d: %d buckets", seed, len(ts.buckets))
		}
	}
}
