package calendar

import (
	"math/bits"

	"github.com/berth-hpc/berth"
)

// piece is the part of a set of PEs that lies within one word of 64.
type piece struct {
	mask uint64 // never 0
	word uint32
}

// pieces is a set of PEs as its non-empty words in ascending order: two or
// three for an ordinary booking, however large the machine.
type pieces []piece

// appendPieces appends the pieces of a set that starts behind those of dst.
// Cost: O(runs + words touched).
func appendPieces(dst pieces, set berth.PESet) pieces {
	for _, run := range set.Runs() {
		first, last := uint32(run.Lo)/64, uint32(run.Hi-1)/64
		mask := ^uint64(0) << (uint32(run.Lo) % 64)
		for word := first; word <= last; word++ {
			if word == last {
				mask &= ^uint64(0) >> (63 - uint32(run.Hi-1)%64)
			}
			if k := len(dst) - 1; k >= 0 && dst[k].word == word {
				dst[k].mask |= mask
			} else {
				dst = append(dst, piece{mask, word})
			}
			mask = ^uint64(0)
		}
	}
	return dst
}

// appendXor appends the PEs that are in exactly one of a and b.
func appendXor(dst, a, b pieces) pieces {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].word < b[0].word:
			dst = append(dst, a[0])
			a = a[1:]
		case a[0].word > b[0].word:
			dst = append(dst, b[0])
			b = b[1:]
		default:
			if mask := a[0].mask ^ b[0].mask; mask != 0 {
				dst = append(dst, piece{mask, a[0].word})
			}
			a, b = a[1:], b[1:]
		}
	}
	dst = append(dst, a...)
	return append(dst, b...)
}

// appendAnd appends the PEs that are in both a and b.
func appendAnd(dst, a, b pieces) pieces {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].word < b[0].word:
			a = a[1:]
		case a[0].word > b[0].word:
			b = b[1:]
		default:
			if mask := a[0].mask & b[0].mask; mask != 0 {
				dst = append(dst, piece{mask, a[0].word})
			}
			a, b = a[1:], b[1:]
		}
	}
	return dst
}

// appendMinus appends the PEs of a that are not in b.
func appendMinus(dst, a, b pieces) pieces {
	for _, p := range a {
		for len(b) > 0 && b[0].word < p.word {
			b = b[1:]
		}
		if len(b) > 0 && b[0].word == p.word {
			p.mask &^= b[0].mask
		}
		if p.mask != 0 {
			dst = append(dst, p)
		}
	}
	return dst
}

// meets reports whether a PE is in both s and b.
func (s pieces) meets(b pieces) bool {
	for len(s) > 0 && len(b) > 0 {
		switch {
		case s[0].word < b[0].word:
			s = s[1:]
		case s[0].word > b[0].word:
			b = b[1:]
		case s[0].mask&b[0].mask != 0:
			return true
		default:
			s, b = s[1:], b[1:]
		}
	}
	return false
}

// appendWords appends the set of w with the PEs of every piece flipped. It
// leaves w flipped.
func appendWords(dst pieces, w words, flips pieces) pieces {
	w.toggle(flips)
	for i, mask := range w {
		if mask != 0 {
			dst = append(dst, piece{mask, uint32(i)})
		}
	}
	return dst
}

func (s pieces) count() berth.Count {
	n := 0
	for i := range s {
		n += bits.OnesCount64(s[i].mask)
	}
	return berth.Count(n)
}

// toggle flips the PEs of every piece. The pieces of several records may stand
// one after the other.
func (w words) toggle(s pieces) {
	for i := range s {
		w[s[i].word] ^= s[i].mask
	}
}

// join adds the PEs of every piece.
func (w words) join(s pieces) {
	for i := range s {
		w[s[i].word] |= s[i].mask
	}
}

// without drops all PEs of the words that have a piece.
func (w words) without(s pieces) {
	for i := range s {
		w[s[i].word] = 0
	}
}

// meets reports whether a PE of some piece is in w.
func (w words) meets(s pieces) bool {
	var common uint64
	for i := range s {
		common |= w[s[i].word] & s[i].mask
	}
	return common != 0
}
