package main

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// usualVariables are those that a task gets by default: what programs need
// to run, to find the user's files, and to speak the user's language. Others may hold
// secrets, and the site keeps a task as long as it remembers it.
var usualVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR"}

// everyVariable asks for all of them.
const everyVariable = "all"

// environment returns the variables that a task gets: the usual ones and those that are
// asked for by name, where a star at the end stands for any rest, or all. The token is
// never among them. A name that is not set is an error of code Invalid.
func environment(all, asked []string) ([]string, error) {
	names := slices.Concat(usualVariables, asked)
	if slices.Contains(asked, everyVariable) {
		names = []string{"*"}
	}
	used := make([]bool, len(names))
	env := []string{}
	for _, e := range all {
		name, _, _ := strings.Cut(e, "=")
		wanted := false
		for i, pattern := range names {
			prefix, open := strings.CutSuffix(pattern, "*")
			if name == pattern || open && strings.HasPrefix(name, prefix) {
				used[i], wanted = true, true
			}
		}
		if wanted && name != tokenVar && name != "" {
			env = append(env, e)
		}
	}
	for i := len(usualVariables); i < len(names); i++ {
		if !used[i] {
			return nil, berth.Errorf(berth.Invalid, "env", "%q is not set; want names of variables that are, such as OMP_NUM_THREADS,LD_LIBRARY_PATH, or %s", names[i], everyVariable)
		}
	}
	return env, nil
}
