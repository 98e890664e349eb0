// Package bitset is sets of PE numbers as words of bits: the form in which
// calendars and the engine intersect and count them. It knows no time.
package bitset

import (
	"math/bits"

	"github.com/berth-hpc/berth"
)

// Set is a set of PEs as a bit set, PE i at bit i mod 64 of word i/64. All
// sets of one pool have the same number of words.
type Set []uint64

func wordsFor(size berth.Count) int { return int(size+63) / 64 }

// New returns an empty set with room for the PEs 0..size−1.
func New(size berth.Count) Set { return make(Set, wordsFor(size)) }

// Fill makes w the set of all PEs 0..size−1.
func (w Set) Fill(size berth.Count) {
	for i := range w {
		w[i] = ^uint64(0)
	}
	if tail := uint(size) % 64; tail != 0 {
		w[len(w)-1] = 1<<tail - 1
	}
}

// Put makes w hold exactly the PEs of s.
func (w Set) Put(s berth.PESet) {
	clear(w)
	w.Add(s)
}

// Count returns the number of PEs in w.
func (w Set) Count() berth.Count {
	n := 0
	for _, x := range w {
		n += bits.OnesCount64(x)
	}
	return berth.Count(n)
}

// Lowest returns the n lowest-numbered PEs of w, or all of them if it has fewer.
func (w Set) Lowest(n berth.Count) berth.PESet {
	var few [32]berth.Run // the set copies the runs, so most need no room of their own
	runs := few[:0]
	for i, x := range w {
		if n == 0 {
			break
		}
		base := berth.PE(i * 64)
		for x != 0 && n > 0 {
			lo := bits.TrailingZeros64(x)
			length := min(bits.TrailingZeros64(^(x >> lo)), int(n))
			run := berth.Run{Lo: base + berth.PE(lo), Hi: base + berth.PE(lo+length)}
			if k := len(runs); k > 0 && runs[k-1].Hi == run.Lo {
				runs[k-1].Hi = run.Hi
			} else {
				runs = append(runs, run)
			}
			n -= berth.Count(length)
			if lo+length == 64 {
				break
			}
			x &= ^uint64(0) << (lo + length)
		}
	}
	return berth.NewPESet(runs...)
}

// Add puts the PEs of s into w.
func (w Set) Add(s berth.PESet) {
	for _, run := range s.Runs() {
		w.each(run, func(i int, mask uint64) { w[i] |= mask })
	}
}

// Delete takes the PEs of s out of w.
func (w Set) Delete(s berth.PESet) {
	for _, run := range s.Runs() {
		w.each(run, func(i int, mask uint64) { w[i] &^= mask })
	}
}

// each calls f with every word the run touches and the run's bits in it.
func (w Set) each(run berth.Run, f func(i int, mask uint64)) {
	first, last := int(run.Lo)/64, int(run.Hi-1)/64
	for i := first; i <= last; i++ {
		mask := ^uint64(0)
		if i == first {
			mask &= ^uint64(0) << (uint(run.Lo) % 64)
		}
		if i == last {
			mask &= ^uint64(0) >> (63 - uint(run.Hi-1)%64)
		}
		f(i, mask)
	}
}
