package calendar

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
)

// TestSeamsOfALeafAreAMap treats the seams of one leaf like a map from times to sets.
func TestSeamsOfALeafAreAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const span = 60
	l := newLeaf(wordsFor(6000))
	want := map[berth.Time]pieces{}
	set := func() pieces {
		pe := berth.PE(rng.IntN(5000))
		return appendPieces(nil, berth.NewPESet(berth.Run{Lo: pe, Hi: pe + 1 + berth.PE(rng.IntN(200))}))
	}
	flip := func(at berth.Time, set pieces) {
		l.flipSeam(at, set)
		if want[at] = appendXor(nil, want[at], set); len(want[at]) == 0 {
			delete(want, at)
		}
	}
	sewn, most := 0, 0
	for i := range 20_000 {
		at := berth.Time(rng.IntN(span))
		switch grow := i/1000%2 == 0; {
		case rng.IntN(5) > 0 == grow:
			flip(at, set())
		case rng.IntN(100) == 0:
			l.dropSeams(at / 4)
			for t := range want {
				if t <= at/4 {
					delete(want, t)
				}
			}
		default:
			flip(at, want[at])
		}
		most = max(most, len(l.seams))
		n := 0
		for at, set := range want {
			if !l.sewn(at, set) {
				t.Fatalf("operation %d: the seam at %d is not %v", i, at, set)
			}
			n += len(set)
		}
		if n != len(l.seams) {
			t.Fatalf("operation %d: %d words, want %d", i, len(l.seams), n)
		}
		part := set()
		if there := want[at]; len(there) > 0 && rng.IntN(2) == 0 {
			part = pieces{there[rng.IntN(len(there))]}
		}
		if got, want := l.sewn(at, part), len(appendMinus(nil, part, want[at])) == 0; got != want {
			t.Fatalf("operation %d: %v at %d: %t, want %t", i, part, at, got, want)
		} else if got {
			sewn++
		}
	}
	if sewn < 1000 || most < 100 {
		t.Errorf("only %d sets found, %d words at most", sewn, most)
	}
}
