package main

import (
	"fmt"
	"slices"
	"strings"
)

// suite says whose tests must kill the mutants of a package.
type suite struct {
	folder string // of the package
	by     []tests
}

// tests are the tests of a package: the mutant's own or one that depends on it.
type tests struct {
	folder string
	// whole says that the tests are run without -short too, where that is more.
	whole bool
}

// modes lists the ways to run the tests, by whether -short is set.
func (t tests) modes() []bool {
	if t.whole {
		return []bool{true, false}
	}
	return []bool{true}
}

// own are the tests of a package without a suite.
func own(folder string) []tests { return []tests{{folder, true}} }

// suites lists the packages that are mutated without -packages. What decides is
// there; what only carries out is proved in other ways.
var suites = []suite{
	{".", []tests{{".", false}, {"engine", true}}},
	{"calendar", []tests{{"calendar", false}, {"engine", true}}},
	{"policy", []tests{{"policy", true}, {"engine", true}}},
	// Without -short sim replays whole real logs for more than a minute.
	{"engine", []tests{{"engine", true}, {"sim", false}}},
	{"engine/internal/jobs", []tests{{"engine/internal/jobs", false}, {"engine", true}, {"sim", false}}},
	{"engine/internal/place", []tests{{"engine/internal/place", false}, {"engine", true}, {"sim", false}}},
	{"engine/internal/state", []tests{{"engine/internal/state", false}, {"engine", true}, {"sim", false}}},
	{"check", []tests{{"check", false}, {"sim", false}}},
	{"sim", []tests{{"sim", false}}},
}

// further lists packages that are mutated only where -packages names them. Their whole
// tests start clusters and wait for clocks, for minutes.
var further = []suite{
	{"service", []tests{{"service", false}, {"api", false}}},
	{"journal", []tests{{"journal", false}, {"journal/sqlite", false}, {"service", false}}},
	{"journal/sqlite", []tests{{"journal/sqlite", false}, {"service", false}}},
	{"api", []tests{{"api", false}}},
	{"site/local", []tests{{"site/local", false}}},
}

// chosen returns the suites of packages, divided by commas; none are all of the first
// table. A package without a suite is tested by its own tests alone.
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
		rows := slices.Concat(table, further)
		if i := slices.IndexFunc(rows, func(s suite) bool { return s.folder == folder }); i >= 0 {
			some = append(some, rows[i])
		} else {
			some = append(some, suite{folder, own(folder)})
		}
	}
	return some, nil
}

// judgedBy returns suites in which only tests in some folders judge, divided by commas; none are those of the
// suites.
func judgedBy(list []suite, by string) ([]suite, error) {
	if by == "" {
		return list, nil
	}
	var folders []string
	for folder := range strings.SplitSeq(by, ",") {
		folders = append(folders, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(folder), "./"), "/"))
	}
	list = slices.Clone(list)
	for i, s := range list {
		list[i].by = slices.DeleteFunc(slices.Clone(s.by), func(t tests) bool { return !slices.Contains(folders, t.folder) })
		if len(list[i].by) == 0 {
			return nil, fmt.Errorf("-by: no tests in %s judge mutants of %s; give some of those that do: %s", by, s.folder, s.foldersOfTests())
		}
	}
	return list, nil
}

// foldersOfTests lists the folders of the tests of a suite, divided by commas.
func (s suite) foldersOfTests() string {
	folders := make([]string, len(s.by))
	for i, t := range s.by {
		folders[i] = t.folder
	}
	return strings.Join(folders, ",")
}

// covered returns the folders of the packages whose mutants are judged by the tests in a folder.
func covered(list []suite) map[string][]string {
	folders := map[string][]string{}
	for _, s := range list {
		for _, t := range s.by {
			folders[t.folder] = append(folders[t.folder], s.folder)
		}
	}
	return folders
}
