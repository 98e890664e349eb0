package state

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// What is promised to a user over time is what an array of seconds keeps, in as few steps
// as can be, whatever stretches they are kept in.
func TestPromisedEqualsSeconds(t *testing.T) {
	for name, size := range map[string]struct{ end, changes, longest int }{"few": {24, 40, 24}, "many": {900, 700, 40}, "long": {900, 500, 900}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { promisedEqualsSeconds(t, size.end, size.changes, size.longest) })
		})
	}
}

func promisedEqualsSeconds(t *rapid.T, end, changes, longest int) {
	p := new(Promised)
	seconds := make([]berth.Count, end+1) // the last is everything behind
	type block struct {
		from, to int
		n        berth.Count
	}
	var there []block
	draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	out := rapid.IntRange(1, 9).Draw(t, "of 10 are taken out in the end")
	n := rapid.IntRange(1, changes).Draw(t, "changes")
	for i := range n {
		b := block{from: draw.IntN(end), n: berth.Count(1 + draw.IntN(3))}
		b.to = min(b.from+1+draw.IntN(longest), end)
		sign, share := berth.Count(1), 3
		if i > n/2 {
			share = out
		}
		if len(there) > 0 && draw.IntN(10) < share {
			i := draw.IntN(len(there))
			b, sign = there[i], -1
			there = slices.Delete(there, i, i+1)
		} else {
			there = append(there, b)
		}
		for i := b.from; i < b.to; i++ {
			seconds[i] += sign * b.n
		}
		before := p
		if i%50 == 49 { // a copy is written, and what it is of stays
			was := slices.Collect(p.Steps(0))
			p = p.Clone()
			defer func() {
				if is := slices.Collect(before.Steps(0)); !slices.Equal(is, was) {
					t.Fatalf("a change of a copy wrote what it was of: %v; want %v", is, was)
				}
			}()
		}
		p.Add(berth.Time(b.from), berth.Time(b.to), sign*b.n)
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
	}
	var want []PromisedFrom
	last := berth.Count(0)
	for i, n := range seconds {
		if n != last {
			want, last = append(want, PromisedFrom{berth.Time(i), n}), n
		}
	}
	for name, p := range map[string]*Promised{"changed": p, "made": promisedOf(want)} {
		if got := slices.Collect(p.Steps(-1)); !slices.Equal(got, want) {
			t.Fatalf("%s: %v; want %v", name, got, want)
		}
		if p.Empty() != (len(want) == 0) {
			t.Fatalf("%s: empty: %v", name, p.Empty())
		}
		for i := range seconds {
			if p.At(berth.Time(i)) != seconds[i] {
				t.Fatalf("%s: %d at %d; want %d", name, p.At(berth.Time(i)), i, seconds[i])
			}
		}
		for range 30 {
			from := draw.IntN(end)
			to := min(from+1+draw.IntN(longest), end)
			most := slices.Max(seconds[from:to])
			when := from
			if most > 0 {
				when = from + slices.Index(seconds[from:to], most)
			}
			if got, at := p.Peak(berth.Time(from), berth.Time(to)); got != most || at != berth.Time(when) {
				t.Fatalf("%s: a peak of %d at %d in [%d, %d); want %d at %d", name, got, at, from, to, most, when)
			}
			allowed, start := berth.Count(draw.IntN(int(slices.Max(seconds))+1)), from
			for start < end && slices.Max(seconds[start:min(start+to-from, end+1)]) > allowed {
				start++
			}
			if got := p.From(berth.Time(from), allowed, berth.Duration(to-from)); got != berth.Time(start) {
				t.Fatalf("%s: at most %d for %d from %d on at %d; want %d", name, allowed, to-from, from, got, start)
			}
		}
	}
}
