package sites

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

const nodesExample = "a node list such as node[01-16,20]"

// maxNodes bounds how many names a list may stand for.
const maxNodes = berth.MaxPEs

// nodeNames expands a list of node names as Slurm writes them: names parted by
// commas, with ranges in brackets, of which a name may have several, the last
// varying fastest. Numbers keep the width of the range's first: node[08-10] is
// node08, node09, node10. Names hold letters, digits, points, dashes and
// underscores. No name may come twice. Cost: O(letters of the result).
func nodeNames(text string) ([]string, error) {
	bad := func(what string) ([]string, error) {
		return nil, berth.Errorf(berth.Invalid, "", "%s; want %s", what, nodesExample)
	}
	var names []string
	for _, item := range splitOutside(text) {
		expanded := []string{""}
		for item != "" {
			plain, rest, hasRange := strings.Cut(item, "[")
			if strings.Trim(plain, nodeLetters) != "" {
				return bad("a letter that node names do not have")
			}
			suffixes := []string{plain}
			if hasRange {
				inside, behind, closed := strings.Cut(rest, "]")
				numbers, ok := nodeNumbers(inside)
				if !closed || !ok {
					return bad("a range that is not like [01-16,20], or names too many nodes")
				}
				suffixes = suffixes[:0]
				for _, n := range numbers {
					suffixes = append(suffixes, plain+n)
				}
				rest = behind
			}
			if len(expanded)*len(suffixes)+len(names) > maxNodes {
				return bad("more than " + strconv.Itoa(maxNodes) + " nodes")
			}
			product := make([]string, 0, len(expanded)*len(suffixes))
			for _, e := range expanded {
				for _, s := range suffixes {
					if len(e)+len(s) > maxName {
						return bad("a name longer than " + strconv.Itoa(maxName) + " letters")
					}
					product = append(product, e+s)
				}
			}
			expanded, item = product, rest
		}
		if expanded[0] == "" {
			return bad("an empty name")
		}
		names = append(names, expanded...)
	}
	if len(names) > maxNodes {
		return bad("more than " + strconv.Itoa(maxNodes) + " nodes")
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return bad("node " + name + " twice")
		}
		seen[name] = true
	}
	return names, nil
}

const nodeLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

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

// nodeNumbers expands what stands in brackets.
func nodeNumbers(text string) ([]string, bool) {
	var numbers []string
	for field := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(field, "-")
		if !isRange {
			last = first
		}
		if !isDigits(first) || !isDigits(last) || len(last) > 9 || len(first) > len(last) {
			return nil, false
		}
		low, _ := strconv.Atoi(first) // at most nine digits
		high, _ := strconv.Atoi(last)
		if low > high || high-low+1+len(numbers) > maxNodes {
			return nil, false
		}
		for n := low; n <= high; n++ {
			digits := strconv.Itoa(n)
			numbers = append(numbers, strings.Repeat("0", max(len(first)-len(digits), 0))+digits)
		}
	}
	return numbers, true
}
