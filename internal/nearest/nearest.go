// Package nearest finds the name that was probably meant. It knows no
// names of its own.
package nearest

import (
	"strconv"
	"strings"
)

// longest is the most bytes of a word for which a name is looked for: more than any
// name has, so that nothing long costs anything.
const longest = 64

// Of returns the name most like word whatever their case, and false if none is
// close: at most a third of the letters, and always up to two, may be wrong,
// but never all. Ties go to the earlier name. To a word of more than 64 bytes none is
// close. Cost: O(len(word)·letters of names).
func Of(word string, names []string) (string, bool) {
	if len(word) > longest {
		return "", false
	}
	best, bestDistance := "", min(max(2, len(word)/3)+1, len(word))
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best, best != ""
}

// Hint returns " (did you mean NAME?)" for the nearest name, or "".
func Hint(word string, names []string) string {
	if name, ok := Of(word, names); ok {
		return " (did you mean " + name + "?)"
	}
	return ""
}

// distance returns how many bytes must be inserted, dropped, replaced or
// swapped with their neighbour to make b of a (the restricted distance of
// Damerau and Levenshtein).
func distance(a, b string) int {
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

// Completed is Of, but a word that begins exactly one name is near to it too.
func Completed(word string, names []string) (string, bool) {
	if name, ok := Of(word, names); ok {
		return name, true
	}
	found, begun := "", 0
	for _, name := range names {
		if strings.HasPrefix(name, strings.ToLower(word)) {
			found = name
			begun++
		}
	}
	if word == "" || begun != 1 {
		return "", false
	}
	return found, true
}

// Unknown says that a word is none of the names of something: the nearest one, and
// all of them.
func Unknown(what, word string, names []string) string {
	hint := ""
	if name, ok := Completed(word, names); ok {
		hint = " (did you mean " + name + "?)"
	}
	return "unknown " + what + " " + strconv.Quote(word) + hint + "; want " + OneOf(names)
}

// OneOf lists names as a choice: a, b or c.
func OneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
