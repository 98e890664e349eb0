package main

import (
	"fmt"
	"slices"
	"strings"
)

// suite says whose tests must kill the mutants of a package.
type suite struct {
	folder string // of the package; its own tests come first
	also   []tests
}

// tests are the tests of a package that depends on the mutant's.
type tests struct {
	folder string
	// whole says that the tests that -short leaves out are run too.
	whole bool
}

// modes lists the ways to run the tests, by whether -short is set.
func (t tests) modes() []bool {
	if t.whole {
		return []bool{true, false}
	}
	return []bool{true}
}

// suites lists the packages that are mutated without -packages. What decides is
// there; what only carries out is proved in other ways.
var suites = []suite{
	{".", []tests{{"engine", true}}},
	{"calendar", []tests{{"engine", true}}},
	{"policy", []tests{{"engine", true}}},
	// Without -short sim replays whole real logs for more than a minute.
	{"engine", []tests{{"sim", false}}},
	{"check", []tests{{"sim", false}}},
}

// chosen returns the suites of packages, divided by commas; none are all. A
// package without a suite is tested by its own tests alone.
func chosen(table []suite, packages string, folders []string) ([]suite, error) {
	if packages == "" {
		return table, nil
	}
	var some []suite
	for folder := range strings.SplitSeq(packages, ",") {
		folder = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(folder), "./"), "/")
		if !slices.Contains(folders, folder) {
			return nil, fmt.Errorf("-packages: no package %q; give folders such as policy, and . for the root", folder)
		}
		if i := slices.IndexFunc(table, func(s suite) bool { return s.folder == folder }); i >= 0 {
			some = append(some, table[i])
		} else {
			some = append(some, suite{folder: folder})
		}
	}
	return some, nil
}
