package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/nearest"
)

// nearestName returns the name most like word, and false if none is close. A
// word that begins exactly one name is near to it too.
func nearestName(word string, names []string) (string, bool) {
	if name, ok := nearest.Of(word, names); ok {
		return name, true
	}
	begun := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, strings.ToLower(word)) })
	if word != "" && len(begun) == 1 {
		return begun[0], true
	}
	return "", false
}

// unknown tells that word is none of names: the nearest one, and all of them.
func unknown(what, word string, names []string) string {
	hint := ""
	if name, ok := nearestName(word, names); ok {
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
