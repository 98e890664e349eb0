package berth

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Run is the half-open run of consecutive PE numbers [Lo, Hi).
type Run struct{ Lo, Hi PE }

// PESet is a set of PE numbers held as sorted, disjoint, non-adjacent runs.
// The zero value is the empty set. A PESet is immutable once made and may be
// shared freely.
type PESet struct{ runs []Run }

// NewPESet returns the union of the runs; empty runs are dropped, order and
// overlap are free. It panics on a negative PE number, which only a broken
// caller can produce. Cost: O(r log r) for r runs, O(r) if they are sorted,
// disjoint and apart already.
func NewPESet(runs ...Run) PESet {
	if canonical(runs) {
		return PESet{runs: slices.Clone(runs)}
	}
	kept := make([]Run, 0, len(runs))
	for _, r := range runs {
		if r.Lo < 0 {
			panic("berth: negative PE number")
		}
		if r.Lo < r.Hi {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return PESet{}
	}
	slices.SortFunc(kept, func(a, b Run) int { return cmp.Compare(a.Lo, b.Lo) })
	merged := kept[:1]
	for _, r := range kept[1:] {
		if last := &merged[len(merged)-1]; r.Lo <= last.Hi {
			last.Hi = max(last.Hi, r.Hi)
		} else {
			merged = append(merged, r)
		}
	}
	return PESet{runs: merged}
}

// canonical reports whether there are runs, and they are those of a set.
func canonical(runs []Run) bool {
	last := PE(-1)
	for _, r := range runs {
		if r.Lo <= last || r.Lo >= r.Hi {
			return false
		}
		last = r.Hi
	}
	return len(runs) > 0
}

// PEsOf returns the set of the given PE numbers.
func PEsOf(pes ...PE) PESet {
	runs := make([]Run, len(pes))
	for i, pe := range pes {
		runs[i] = Run{pe, pe + 1}
	}
	return NewPESet(runs...)
}

// Runs returns the runs in ascending order. The slice belongs to the set.
func (s PESet) Runs() []Run { return s.runs }

// Empty reports whether the set has no PE.
func (s PESet) Empty() bool { return len(s.runs) == 0 }

// Count returns the number of PEs in the set. Cost: O(runs).
func (s PESet) Count() Count {
	var n Count
	for _, r := range s.runs {
		n += Count(r.Hi - r.Lo)
	}
	return n
}

// Contains reports whether pe is in the set. Cost: O(log runs).
func (s PESet) Contains(pe PE) bool {
	i, found := slices.BinarySearchFunc(s.runs, pe, func(r Run, pe PE) int { return cmp.Compare(r.Lo, pe) })
	if found {
		return true
	}
	return i > 0 && pe < s.runs[i-1].Hi
}

// Max returns the highest PE number, or -1 for the empty set.
func (s PESet) Max() PE {
	if s.Empty() {
		return -1
	}
	return s.runs[len(s.runs)-1].Hi - 1
}

// And returns the PEs that are in both sets. Cost: O(runs of both).
func (s PESet) And(o PESet) PESet {
	var runs []Run
	for a, b := s.runs, o.runs; len(a) > 0 && len(b) > 0; {
		if lo, hi := max(a[0].Lo, b[0].Lo), min(a[0].Hi, b[0].Hi); lo < hi {
			runs = append(runs, Run{lo, hi})
		}
		if a[0].Hi < b[0].Hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return PESet{runs: runs}
}

// Minus returns the PEs of s that are not in o. Cost: O(runs of both).
func (s PESet) Minus(o PESet) PESet {
	if s.Empty() || o.Empty() {
		return s
	}
	runs := make([]Run, 0, len(s.runs)+len(o.runs))
	cuts := o.runs
	for _, run := range s.runs {
		for len(cuts) > 0 && cuts[0].Hi <= run.Lo {
			cuts = cuts[1:]
		}
		for _, cut := range cuts {
			if cut.Lo >= run.Hi {
				break
			}
			if run.Lo < cut.Lo {
				runs = append(runs, Run{run.Lo, cut.Lo})
			}
			run.Lo = cut.Hi
		}
		if run.Lo < run.Hi {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return PESet{}
	}
	return PESet{runs: runs}
}

// Or returns the PEs that are in either set. Cost: O(r log r) for r runs of both.
func (s PESet) Or(o PESet) PESet {
	switch {
	case s.Empty():
		return o
	case o.Empty():
		return s
	}
	runs := make([]Run, 0, len(s.runs)+len(o.runs))
	return NewPESet(append(append(runs, s.runs...), o.runs...)...)
}

// Overlap returns how many PEs are in both sets. Cost: O(runs of both).
func (s PESet) Overlap(o PESet) Count {
	var n Count
	for a, b := s.runs, o.runs; len(a) > 0 && len(b) > 0; {
		if lo, hi := max(a[0].Lo, b[0].Lo), min(a[0].Hi, b[0].Hi); lo < hi {
			n += Count(hi - lo)
		}
		if a[0].Hi < b[0].Hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return n
}

// Lowest returns the n lowest-numbered PEs of the set: the whole set if it has
// no more, the empty set if n is not positive. Cost: O(runs).
func (s PESet) Lowest(n Count) PESet {
	if n <= 0 {
		return PESet{}
	}
	for i, run := range s.runs {
		switch size := Count(run.Hi - run.Lo); {
		case n == 0:
			return PESet{runs: s.runs[:i:i]}
		case size > n:
			runs := make([]Run, i+1)
			copy(runs, s.runs)
			runs[i] = Run{run.Lo, run.Lo + PE(n)}
			return PESet{runs: runs}
		default:
			n -= size
		}
	}
	return s
}

// Below returns how many PEs of the set have numbers below limit. Cost: O(runs).
func (s PESet) Below(limit Count) Count {
	var n Count
	for _, run := range s.runs {
		if hi := min(run.Hi, PE(limit)); run.Lo < hi {
			n += Count(hi - run.Lo)
		}
	}
	return n
}

// Equal reports whether both sets hold the same PEs.
func (s PESet) Equal(o PESet) bool { return slices.Equal(s.runs, o.runs) }

// String returns the set as an interval list with inclusive ends, such as
// "0-31,64-95,100"; the empty set is "".
func (s PESet) String() string { return string(s.append(nil)) }

func (s PESet) append(dst []byte) []byte {
	for i, r := range s.runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(r.Lo), 10)
		if r.Hi-1 > r.Lo {
			dst = append(dst, '-')
			dst = strconv.AppendInt(dst, int64(r.Hi-1), 10)
		}
	}
	return dst
}

// MarshalText writes the form of String.
func (s PESet) MarshalText() ([]byte, error) { return s.append(nil), nil }

// AppendText appends the form of String.
func (s PESet) AppendText(to []byte) ([]byte, error) { return s.append(to), nil }

// UnmarshalText reads the form of String.
func (s *PESet) UnmarshalText(text []byte) error {
	set, err := ParsePESet(string(text))
	if err != nil {
		return err
	}
	*s = set
	return nil
}

// ParsePESet reads an interval list such as "0-31,64-95,100". Runs may come in
// any order but must not overlap; a PE number is at most MaxPEs−1.
func ParsePESet(text string) (PESet, error) {
	bad := func(what string) (PESet, error) {
		return PESet{}, &Error{Code: Invalid, Field: "pes", Msg: what + " in " + strconv.Quote(text) +
			"; a PE list reads like 0-31,64-95,100"}
	}
	if text == "" {
		return PESet{}, nil
	}
	runs := make([]Run, 0, strings.Count(text, ",")+1)
	var total int64
	for rest, more := text, true; more; {
		var field string
		field, rest, more = strings.Cut(rest, ",")
		first, last, isRange := strings.Cut(field, "-")
		lo, errLo := parsePE(first)
		hi, errHi := lo, errLo
		if isRange {
			hi, errHi = parsePE(last)
		}
		switch {
		case errLo != nil || errHi != nil:
			return bad("bad PE number " + strconv.Quote(field))
		case hi < lo:
			return bad("descending range " + strconv.Quote(field))
		}
		runs = append(runs, Run{lo, hi + 1})
		total += int64(hi) - int64(lo) + 1
	}
	set := PESet{runs: runs}
	if !canonical(runs) {
		set = NewPESet(runs...)
	}
	if int64(set.Count()) != total {
		return bad("a PE named twice")
	}
	return set, nil
}

func parsePE(text string) (PE, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, err
	}
	if n >= MaxPEs {
		return 0, strconv.ErrRange
	}
	return PE(n), nil
}
