package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of tests in front of Slurm says which tests there are, and on which versions they run. That is so if a test
// is where `make slurms` runs it too.

const slurmTable = "docs/sites/slurm-tests.md"

var (
	testName     = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
)

// onAllSlurms reports whether make slurms runs a test of a file.
func onAllSlurms(makefile, file, name string) bool {
	switch dir := path.Dir(file); dir {
	case "site/slurm", "sites/adapters":
		return strings.Contains(makefile, " ./"+dir+" ")
	case "service":
		return strings.Contains(path.Base(file), "slurm")
	default:
		return regexp.MustCompile(` \./` + dir + ` -run '[^']*\b` + name + `\b`).MatchString(makefile)
	}
}

// tableFaultsOfSlurm reports the tests that a table names and that are not there, or not on the versions that it says. files
// are the names of tests by file.
func tableFaultsOfSlurm(table, makefile string, files map[string][]string) []string {
	var faults []string
	for i, line := range strings.Split(table, "\n") {
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 || !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		versions := strings.TrimSpace(cells[len(cells)-1])
		known := slices.Contains([]string{"all", "none", "22.05", "26.05", "22.05, 24.11"}, versions)
		if len(cells) != 3 || !known {
			faults = append(faults, fmt.Sprintf("%s:%d: want three cells, the last all, none or versions, not %q", slurmTable, i+1, versions))
			continue
		}
		for _, name := range names {
			var in []string
			for file, tests := range files {
				if slices.Contains(tests, name[1]) {
					in = append(in, file)
				}
			}
			switch {
			case len(in) == 0:
				faults = append(faults, fmt.Sprintf("%s:%d: there is no test %s", slurmTable, i+1, name[1]))
			case versions == "all" && !slices.ContainsFunc(in, func(file string) bool { return onAllSlurms(makefile, file, name[1]) }):
				faults = append(faults, fmt.Sprintf("%s:%d: make slurms does not run %s of %s", slurmTable, i+1, name[1], in[0]))
			}
		}
	}
	return faults
}

func TestTestsInFrontOfSlurmAreThoseOfTheTable(t *testing.T) {
	files := map[string][]string{}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range testFunction.FindAllStringSubmatch(string(read(t, name)), -1) {
				files[name] = append(files[name], m[1])
			}
		}
	}
	table := string(read(t, slurmTable))
	if n := len(testName.FindAllString(table, -1)); n < 100 {
		t.Errorf("the table names %d tests", n)
	}
	report(t, tableFaultsOfSlurm(table, string(read(t, "Makefile")), files))
}

func TestSlurmTableRuleSeesPlantedFaults(t *testing.T) {
	files := map[string][]string{
		"site/slurm/a_test.go": {"TestA"}, "service/b_slurm_test.go": {"TestB"}, "service/c_test.go": {"TestC"}, "cmd/berth/d_test.go": {"TestD", "TestE"},
	}
	const makefile = "go test ./site/slurm && go test ./cmd/berth -run '^(TestD)$$' "
	expect(t, tableFaultsOfSlurm("| x | `TestA`, `TestB`, `TestC` | all |\n| y | `TestD`, `TestE` | all |\n| z | `TestC`, `TestE` | none |", makefile, files),
		slurmTable+":1: make slurms does not run TestC of service/c_test.go", slurmTable+":2: make slurms does not run TestE of cmd/berth/d_test.go")
	expect(t, tableFaultsOfSlurm("| x | `TestF` | none |\n| y | `TestA` | some |\n`TestF` in prose", makefile, files),
		slurmTable+":1: there is no test TestF", slurmTable+":2: want three cells, the last all, none or versions, not \"some\"")
}
