package main

import (
	"fmt"
	"slices"
	"strings"
)

// nearest returns the name most like word, and false if none is close: at most
// a third of the letters, and always up to two, may be wrong. Ties go to the
// earlier name. A word that begins exactly one name is near to it.
func nearest(word string, names []string) (string, bool) {
	word = strings.ToLower(word)
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, name := range names {
		if d := editDistance(word, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best != "" {
		return best, true
	}
	begun := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, word) })
	if word != "" && len(begun) == 1 {
		return begun[0], true
	}
	return "", false
}

// editDistance returns how many letters must be inserted, dropped, replaced or
// swapped with their neighbour to make b of a (the restricted distance of
// Damerau and Levenshtein, on bytes). Cost: O(len(a)·len(b)).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// unknown tells that word is none of names: the nearest one, and all of them.
func unknown(what, word string, names []string) string {
	hint := ""
	if name, ok := nearest(word, names); ok {
		hint = fmt.Sprintf(" (did you mean %s?)", name)
	}
	return fmt.Sprintf("unknown %s %q%s; want %s", what, word, hint, oneOf(names))
}

// oneOf lists names as a choice.
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
