package bitset_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bitset"
)

// A Set behaves as an array of booleans does, across word borders.
func TestSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := berth.Count(rapid.SampledFrom([]int{1, 5, 63, 64, 65, 127, 128, 129, 200}).Draw(t, "size"))
		set := bitset.New(size)
		model := make([]bool, size)
		if rapid.Bool().Draw(t, "full") {
			set.Fill(size)
			for i := range model {
				model[i] = true
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			var runs []berth.Run
			for range rapid.IntRange(0, 3).Draw(t, "runs") {
				lo := rapid.IntRange(0, int(size)-1).Draw(t, "lo")
				hi := rapid.IntRange(lo+1, int(size)).Draw(t, "hi")
				runs = append(runs, berth.Run{Lo: berth.PE(lo), Hi: berth.PE(hi)})
			}
			pes := berth.NewPESet(runs...)
			step := rapid.IntRange(0, 2).Draw(t, "step")
			for pe := range model {
				in := pes.Contains(berth.PE(pe))
				switch step {
				case 0:
					model[pe] = model[pe] || in
				case 1:
					model[pe] = model[pe] && !in
				case 2:
					model[pe] = in
				}
			}
			switch step {
			case 0:
				set.Add(pes)
			case 1:
				set.Delete(pes)
			case 2:
				set.Put(pes)
			}
			var members []berth.PE
			for pe, in := range model {
				if in {
					members = append(members, berth.PE(pe))
				}
			}
			if int(set.Count()) != len(members) {
				t.Fatalf("%d members, want %d", set.Count(), len(members))
			}
			n := rapid.IntRange(0, int(size)).Draw(t, "lowest")
			if want := berth.PEsOf(members[:min(n, len(members))]...); !set.Lowest(berth.Count(n)).Equal(want) {
				t.Fatalf("the %d lowest are %s, want %s", n, set.Lowest(berth.Count(n)), want)
			}
		}
	})
}
