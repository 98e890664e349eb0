package check

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// run is the half-open run of PE numbers [lo, hi).
type run struct{ lo, hi int32 }

// appendRuns reads a list of PEs such as "0-31,64-95,100" and appends its runs
// to dst, ascending and with gaps between them. The list may be in any order;
// the empty text is the empty list. field stands for it in errors.
func appendRuns(dst []run, field, text string) ([]run, error) {
	first := len(dst)
	ascending := true
	for i := 0; i < len(text); {
		lo, next, err := number(field, text, i)
		if err != nil {
			return dst, err
		}
		hi := lo
		if next < len(text) && text[next] == '-' {
			if hi, next, err = number(field, text, next+1); err != nil {
				return dst, err
			}
		}
		if hi < lo {
			return dst, badList(field, text, i, "a range that descends")
		}
		if next < len(text) {
			if text[next] != ',' || next+1 == len(text) {
				return dst, badList(field, text, next, "neither a range nor a further number")
			}
			next++
		}
		if last := len(dst) - 1; last >= first && lo < dst[last].hi {
			ascending = false
		}
		dst = append(dst, run{lo, hi + 1})
		i = next
	}
	list := dst[first:]
	if !ascending {
		slices.SortFunc(list, func(a, b run) int { return cmp.Compare(a.lo, b.lo) })
	}
	kept := 0
	for i, r := range list {
		switch {
		case i == 0:
		case r.lo < list[kept].hi:
			return dst, berth.Errorf(berth.Invalid, field, "PE %d is named twice in %s", r.lo, printable(text))
		case r.lo == list[kept].hi:
			list[kept].hi = r.hi
			continue
		default:
			kept++
		}
		list[kept] = r
	}
	if len(list) > 0 {
		dst = dst[:first+kept+1]
	}
	return dst, nil
}

// number reads the digits at text[i:] and returns the index behind them.
func number(field, text string, i int) (int32, int, error) {
	n, start := int32(0), i
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		if n = n*10 + int32(text[i]-'0'); n >= berth.MaxPEs {
			return 0, i, badList(field, text, start, "a PE number beyond the limit of 2^20")
		}
	}
	if i == start {
		return 0, i, badList(field, text, start, "no number")
	}
	return n, i, nil
}

func badList(field, text string, i int, what string) error {
	return berth.Errorf(berth.Invalid, field, "%s at character %d of %s; a PE list reads like 0-31,64-95,100",
		what, i+1, printable(text))
}

// countOf returns the number of PEs in the runs.
func countOf(runs []run) int64 {
	var n int64
	for _, r := range runs {
		n += int64(r.hi - r.lo)
	}
	return n
}

// common returns the first run that both lists share, and false if none; steps
// is the work done. Cost: O(s log l) for a shorter list of s and a longer one
// of l runs.
func common(a, b []run) (shared run, found bool, steps int) {
	for steps = 1; len(a) > 0 && len(b) > 0; steps++ {
		if a[0].lo > b[0].lo {
			a, b = b, a
		}
		if b[0].lo < a[0].hi {
			return run{b[0].lo, min(a[0].hi, b[0].hi)}, true, steps
		}
		var looked int
		a, looked = behind(a, b[0].lo)
		steps += looked
	}
	return run{}, false, steps
}

// behind returns the runs that end after pe, and in how many steps it found
// them: it doubles its stride until it is past them, then halves it.
func behind(list []run, pe int32) (rest []run, steps int) {
	stride := 1
	for stride < len(list) && list[stride].hi <= pe {
		stride *= 2
		steps++
	}
	lo, hi := stride/2, min(stride, len(list))
	for ; lo < hi; steps++ {
		if mid := lo + (hi-lo)/2; list[mid].hi <= pe {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return list[lo:], steps
}
