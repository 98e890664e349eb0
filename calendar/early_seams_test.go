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
	const span = 3000
	var s seams
	want := map[berth.Time]pieces{}
	set := func() pieces {
		pe := berth.PE(rng.IntN(5000))
		return appendPieces(nil, berth.NewPESet(berth.Run{Lo: pe, Hi: pe + 1 + berth.PE(rng.IntN(200))}))
	}
	most := 0
	for i := range 60_000 {
		at := berth.Time(rng.IntN(span))
		p := s.place(at)
		if _, there := want[at]; p.found != there {
			t.Fatalf("operation %d: a seam at %d: %t, want %t", i, at, p.found, there)
		}
		switch grow := i/10_000%2 == 0; {
		case rng.IntN(5) > 0 == grow:
			want[at] = set()
			s.put(p, at, want[at])
		case p.found:
			delete(want, at)
			s.drop(p)
		case rng.IntN(2000) == 0:
			s.prune(at / 4)
			for t := range want {
				if t <= at/4 {
					delete(want, t)
				}
			}
		}
		most = max(most, len(s.chunks))
		if i%50 == 0 {
			compareSeams(t, &s, want, span)
		}
		iv := berth.Interval{Start: at, End: at + 1 + berth.Time(rng.IntN(span/10))}
		other := set()
		from, to, first, ok := s.across(iv, other)
		for t := iv.Start + 1; t < iv.End && (!ok || first != t); t++ {
			if want[t].meets(other) {
				first, ok = -1, false
				break
			}
		}
		_, start := want[iv.Start]
		_, end := want[iv.End]
		if first == -1 || ok && !want[first].meets(other) || from.found != start || !ok && (to.found != end || s.place(iv.End) != to) {
			t.Fatalf("operation %d: across %s: %v %v %d %t", i, iv, from, to, first, ok)
		}
	}
	if most < 30 {
		t.Errorf("only %d chunks", most)
	}
}

func compareSeams(t *testing.T, s *seams, want map[berth.Time]pieces, span berth.Time) {
	n := 0
	for i, k := range s.chunks {
		if k.n < 1 || s.first[i] != k.times[0] {
			t.Fatalf("chunk %d has %d seams from %d, not %d", i, k.n, k.times[0], s.first[i])
		}
		for j, at := range k.times[:k.n] {
			if set, there := want[at]; !there || !set.within(k.sets[j]) || !k.sets[j].within(set) || k.marks[j] != set.mark() {
				t.Fatalf("seam %v at %d, want %v", k.sets[j], at, want[at])
			}
			n++
		}
	}
	if n != len(want) {
		t.Fatalf("%d seams, want %d of %d s", n, len(want), span)
	}
}

// The marks of sets that have a PE in common have a bit in common; those of other
// words and of other quarters of a word have none, up to 1,024 PEs.
func TestMarks(t *testing.T) {
	of := func(lo, hi berth.PE) uint64 {
		return appendPieces(nil, berth.NewPESet(berth.Run{Lo: lo, Hi: hi})).mark()
	}
	var all uint64
	for quarter := range berth.PE(64) {
		mark := of(quarter*16, quarter*16+16)
		for pe := quarter * 16; pe < quarter*16+16; pe++ {
			if of(pe, pe+1) != mark {
				t.Fatalf("PE %d has the mark %x, not %x", pe, of(pe, pe+1), mark)
			}
		}
		if mark == 0 || mark&(mark-1) != 0 || all&mark != 0 {
			t.Fatalf("quarter %d has the mark %x, earlier ones %x", quarter, mark, all)
		}
		all |= mark
	}
	if of(1000, 1100) != of(1000, 1024)|of(1024, 1100) || of(0, 1<<20) != all {
		t.Error("the mark of a set is not that of its parts")
	}
}
