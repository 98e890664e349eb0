// Package hostlist reads and writes lists of node names in the short form that
// resource managers use, such as node[01-16,20]. It knows no nodes.
package hostlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Max bounds how many names a list may stand for, and MaxName how long each may
// be: longer than any DNS name.
const (
	Max     = berth.MaxPEs
	MaxName = 255
)

const example = "a node list such as node[01-16,20]"

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// Expand returns the names that a list stands for, in its order: names parted
// by commas, with ranges in brackets; a name may have several, the
// last varying fastest. Numbers keep the width of the range's first: node[08-10]
// is node08, node09, node10. Names hold letters, digits, points, dashes and
// underscores, and begin with none of the last three. No name may come twice.
// Errors are of code Invalid without a field. Cost: O(letters of the result).
func Expand(text string) ([]string, error) {
	if ValidName(text) {
		return []string{text}, nil
	}
	var names []string
	for _, item := range splitOutside(text) {
		expanded, err := expandItem(item, Max-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, expanded...)
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return nil, bad("node " + name + " twice")
		}
		seen[name] = true
	}
	return names, nil
}

func bad(what string) error {
	return &berth.Error{Code: berth.Invalid, Msg: what + "; want " + example}
}

// expandItem expands one item into at most room names.
func expandItem(item string, room int) ([]string, error) {
	expanded := []string{""}
	for rest := item; rest != ""; {
		plain, behind, hasRange := strings.Cut(rest, "[")
		if strings.Trim(plain, letters) != "" {
			return nil, bad("a letter that node names do not have in " + strconv.Quote(plain))
		}
		suffixes := []string{plain}
		rest = ""
		if hasRange {
			inside, after, closed := strings.Cut(behind, "]")
			numbers, ok := numbers(inside)
			if !closed || !ok {
				return nil, bad("a range that is not like [01-16,20], or names too many nodes")
			}
			suffixes = suffixes[:0]
			for _, n := range numbers {
				suffixes = append(suffixes, plain+n)
			}
			rest = after
		}
		if len(expanded)*len(suffixes) > room {
			return nil, bad("more than " + strconv.Itoa(Max) + " nodes")
		}
		product := make([]string, 0, len(expanded)*len(suffixes))
		for _, e := range expanded {
			for _, s := range suffixes {
				if len(e)+len(s) > MaxName {
					return nil, bad("a name longer than " + strconv.Itoa(MaxName) + " letters")
				}
				product = append(product, e+s)
			}
		}
		expanded = product
	}
	if !ValidName(expanded[0]) {
		return nil, bad("no node name: " + strconv.Quote(item))
	}
	return expanded, nil
}

// ValidName reports whether name is one node name in plain form.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && strings.Trim(name, letters) == "" &&
		!strings.ContainsRune(".-_", rune(name[0]))
}

// splitOutside splits at the commas that are not in brackets.
func splitOutside(text string) []string {
	var items []string
	inside, start := false, 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				items = append(items, text[start:i])
				start = i + 1
			}
		}
	}
	return append(items, text[start:])
}

// numbers expands what stands in brackets.
func numbers(text string) ([]string, bool) {
	var expanded []string
	for field := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(field, "-")
		if !isRange {
			last = first
		}
		if !isDigits(first) || !isDigits(last) || len(last) > maxDigits || len(first) > len(last) {
			return nil, false
		}
		low, _ := strconv.Atoi(first) // at most nine digits
		high, _ := strconv.Atoi(last)
		if low > high || high-low+1+len(expanded) > Max {
			return nil, false
		}
		for n := low; n <= high; n++ {
			expanded = append(expanded, padded(n, len(first)))
		}
	}
	return expanded, true
}

// maxDigits is how long a number in a range may be: nine digits fit an int32.
const maxDigits = 9

func padded(n, width int) string {
	digits := strconv.Itoa(n)
	return strings.Repeat("0", max(width-len(digits), 0)) + digits
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// numbered is a name cut before and behind the number it ends in.
type numbered struct {
	name, prefix string
	width        int // of the number; 0 if there is none
	n            int
}

// Fold returns the short form of a list of valid names, sorted by prefix, width
// of the number and number: names that differ only in the number at their end
// share a bracket. A name that comes twice is written once. Expand gives the
// sorted names back. Cost: O(n log n) for n names.
func Fold(names []string) string {
	sorted := make([]numbered, len(names))
	for i, name := range names {
		sorted[i] = cut(name)
	}
	slices.SortFunc(sorted, func(a, b numbered) int {
		return cmp.Or(strings.Compare(a.prefix, b.prefix), cmp.Compare(a.width, b.width), cmp.Compare(a.n, b.n))
	})
	sorted = slices.CompactFunc(sorted, func(a, b numbered) bool { return a.name == b.name })
	var items []string
	for len(sorted) > 0 {
		group := 1
		for group < len(sorted) && sorted[group].prefix == sorted[0].prefix &&
			sorted[group].width == sorted[0].width && sorted[0].width > 0 {
			group++
		}
		items = append(items, foldGroup(sorted[:group]))
		sorted = sorted[group:]
	}
	return strings.Join(items, ",")
}

func cut(name string) numbered {
	prefix := strings.TrimRight(name, "0123456789")
	if over := len(name) - len(prefix) - maxDigits; over > 0 {
		prefix = name[:len(prefix)+over]
	}
	n, err := strconv.Atoi(name[len(prefix):])
	if err != nil || prefix == "" {
		return numbered{name: name, prefix: name}
	}
	return numbered{name: name, prefix: prefix, width: len(name) - len(prefix), n: n}
}

// foldGroup writes sorted names of one prefix and width.
func foldGroup(group []numbered) string {
	if len(group) == 1 {
		return group[0].name
	}
	prefix, width := group[0].prefix, group[0].width
	var ranges []string
	for len(group) > 0 {
		end := 1
		for end < len(group) && group[end].n == group[end-1].n+1 {
			end++
		}
		item := padded(group[0].n, width)
		if end > 1 {
			item += "-" + padded(group[end-1].n, width)
		}
		ranges = append(ranges, item)
		group = group[end:]
	}
	return prefix + "[" + strings.Join(ranges, ",") + "]"
}
