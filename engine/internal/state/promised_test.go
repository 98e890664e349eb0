package state

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// What is promised to a user over time is what an array of seconds keeps, in as few steps
// as can be.
func TestPromisedEqualsSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 24
		var p Promised
		var seconds [end + 1]berth.Count // the last is everything behind
		type block struct {
			from, to int
			n        berth.Count
		}
		var there []block
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			b := block{from: rapid.IntRange(0, end-1).Draw(t, "from"), n: berth.Count(rapid.IntRange(1, 3).Draw(t, "n"))}
			b.to = rapid.IntRange(b.from+1, end).Draw(t, "to")
			sign := berth.Count(1)
			if len(there) > 0 && rapid.Bool().Draw(t, "out") {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				b, sign = there[i], -1
				there = slices.Delete(there, i, i+1)
			} else {
				there = append(there, b)
			}
			for i := b.from; i < b.to; i++ {
				seconds[i] += sign * b.n
			}
			p = p.Add(berth.Time(b.from), berth.Time(b.to), sign*b.n)
			var want Promised
			last := berth.Count(0)
			for i, n := range seconds {
				if n != last {
					want, last = append(want, PromisedFrom{berth.Time(i), n}), n
				}
			}
			if !slices.Equal(p, want) {
				t.Fatalf("%v; want %v", p, want)
			}
			for i := range seconds {
				at := p.At(berth.Time(i))
				if at < 0 && seconds[i] != 0 || at >= 0 && p[at].NPE != seconds[i] {
					t.Fatalf("step %d is in force at %d; there %d are promised", at, i, seconds[i])
				}
			}
		}
	})
}
