package calendar

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
)

// TestSeamsAreAMap treats seams like a map from times to sets, with many chunks that
// come, divide, are joined and go.
func TestSeamsAreAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const span, size = 1500, 6000
	var s seams
	want := map[berth.Time]pieces{}
	probe := make(words, wordsFor(size))
	set := func() pieces {
		pe := berth.PE(rng.IntN(5000))
		return appendPieces(nil, berth.NewPESet(berth.Run{Lo: pe, Hi: pe + 1 + berth.PE(rng.IntN(200))}))
	}
	flip := func(at berth.Time, set pieces) {
		s.flip(at, set)
		if want[at] = appendXor(nil, want[at], set); len(want[at]) == 0 {
			delete(want, at)
		}
	}
	most := 0
	covered := 0
	for i := range 60_000 {
		at := berth.Time(rng.IntN(span))
		switch grow := i/10_000%2 == 0; {
		case rng.IntN(5) > 0 == grow:
			flip(at, set())
		case rng.IntN(2000) == 0:
			s.prune(at / 4)
			for t := range want {
				if t <= at/4 {
					delete(want, t)
				}
			}
		default:
			flip(at, want[at])
		}
		most = max(most, len(s.chunks))
		if i%50 == 0 {
			compareSeams(t, &s, want)
		}
		part := set()
		if there := want[at]; len(there) > 0 && rng.IntN(2) == 0 {
			part = pieces{there[rng.IntN(len(there))]}
		}
		if got, want := s.covers(s.from(at), at, part), part.within(want[at]); got != want {
			t.Fatalf("operation %d: %v at %d: %t, want %t", i, part, at, got, want)
		} else if got {
			covered++
		}
		iv := berth.Interval{Start: at, End: at + 1 + berth.Time(rng.IntN(span/10))}
		probe.join(part)
		end, first, ok := s.across(iv, probe)
		probe.without(part)
		wantFirst, wantOK := berth.Time(0), false
		for t := iv.Start + 1; t < iv.End && !wantOK; t++ {
			if want[t].meets(part) {
				wantFirst, wantOK = t, true
			}
		}
		if first != wantFirst || ok != wantOK || !ok && !s.covers(end, iv.End, want[iv.End]) {
			t.Fatalf("operation %d: across %s: %v %d %t, want %d %t", i, iv, end, first, ok, wantFirst, wantOK)
		}
	}
	if most < 30 || covered < 1000 {
		t.Errorf("only %d chunks, %d sets found", most, covered)
	}
}

func compareSeams(t *testing.T, s *seams, want map[berth.Time]pieces) {
	t.Helper()
	n := 0
	for i, k := range s.chunks {
		if k.n < 1 || s.first[i] != k.times[0] {
			t.Fatalf("chunk %d has %d words from %d, not %d", i, k.n, k.times[0], s.first[i])
		}
		n += k.n
	}
	for at, set := range want {
		if !s.covers(s.from(at), at, set) {
			t.Fatalf("the seam at %d is not %v", at, set)
		}
		n -= len(set)
	}
	if n != 0 {
		t.Fatalf("%d words more than there should be", n)
	}
}

// within reports whether all PEs of s are in b.
func (s pieces) within(b pieces) bool {
	for _, p := range s {
		for len(b) > 0 && b[0].word < p.word {
			b = b[1:]
		}
		if len(b) == 0 || b[0].word != p.word || p.mask&^b[0].mask != 0 {
			return false
		}
	}
	return true
}
