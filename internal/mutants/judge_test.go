package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/internal/source"
)

// small is a module in which every outcome has its mutant.
func small() map[string]string {
	return map[string]string{
		"low/low.go": `package low

// Double is tested here.
func Double(n int) int { return n + n }

// Half is tested by the package that imports this one.
func Half(n int) int { return n / 2 * 1 }

// Loop ends unless it is changed.
func Loop(n int) (turns int) {
	for n > 0 {
		n--
		turns++
	}
	return turns
}

// Long is tested without -short.
func Long(n int) bool { return n > 7 }

// Third is tested without -short here, and by the package that imports this one.
func Third(n int) int { return n / 3 }

// Same is the same whether or not it gets to the end of the list.
func Same() int {
	n := 1
	n = 1
	return n
}
`,
		"low/low_test.go": `package low

import "testing"

func TestDouble(t *testing.T) {
	if Double(2) != 4 {
		t.Error("not doubled")
	}
}

func TestLoop(t *testing.T) {
	if Loop(3) != 3 || Same() != 1 {
		t.Error("not 3")
	}
}

func TestLong(t *testing.T) {
	if !testing.Short() && (Long(7) || Third(9) != 3) {
		t.Error("not long")
	}
}

var _ = [1]int{}[limit-1]
`,
		"idle/idle.go":      "package idle\n\n// Untested is reached by no test.\nfunc Untested(n int) bool { return n > 3 }\n",
		"idle/idle_test.go": "package idle\n",
		"low/limit.go":      "package low\n\nconst limit = 1\n",
		"high/high.go":      "package high\n\nimport \"example.org/m/low\"\n\n// Quarter halves twice.\nfunc Quarter(n int) int { return low.Half(low.Half(n)) }\n",
		"high/high_test.go": `package high

import (
	"testing"

	"example.org/m/low"
)

func TestQuarter(t *testing.T) {
	if Quarter(12) != 3 {
		t.Error("not a quarter")
	}
}

func TestThird(t *testing.T) {
	if low.Third(9) != 3 {
		t.Error("not a third")
	}
}
`,
	}
}

// scratch is the folder of the judge that tests share; "" until there is one.
var scratch string

// shared is a judge of the small module, which compiles and measures its tests once for all that only judge.
var shared = sync.OnceValues(func() (*judge, error) {
	var err error
	if scratch, err = os.MkdirTemp("", "mutants-test-"); err != nil {
		return nil, err
	}
	j := &judge{root: filepath.Join(scratch, "root"), temp: filepath.Join(scratch, "temp"), slack: 2 * time.Second, covered: covered(smallSuites)}
	return j, errors.Join(os.Mkdir(j.temp, 0o700), fill(j.root, small()))
})

func TestMain(m *testing.M) {
	code := m.Run()
	if scratch != "" {
		_ = os.RemoveAll(scratch) // it is a temporary one
	}
	os.Exit(code)
}

var smallSuites = []suite{{"low", []tests{{"low", true}, {"high", true}}}, {"high", own("high")}, {"idle", own("idle")}}

// files returns the contents of a module.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		all[file] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a dozen tests")
	}
	j, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	root := j.root
	before := files(t, root)
	m, err := source.Open(t.Context(), root, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Package("low")
	if err != nil {
		t.Fatal(err)
	}
	all := mutantsOf(m.Fset, p)
	for _, c := range []struct {
		key  string
		want Verdict
	}{
		{"low/low.go :: Double :: arithmetic :: n + n => n - n", Verdict{Outcome: Killed, By: "low", Test: "TestDouble"}},
		{"low/low.go :: Half :: constant :: n / 2 => n / 3", Verdict{Outcome: Killed, By: "high", Test: "TestQuarter"}},
		{"low/low.go :: Long :: relation :: n > 7 => n >= 7", Verdict{Outcome: Killed, By: "low", Test: "TestLong"}},
		{"low/low.go :: Third :: constant :: n / 3 => n / 4", Verdict{Outcome: Killed, By: "high", Test: "TestThird"}},
		{"low/low.go :: Loop :: drop :: n-- => {}", Verdict{Outcome: TimedOut, By: "low"}},
		{"low/low.go :: Long :: constant :: n > 7 => n > 8", Verdict{Outcome: Survived, Note: "the compiled tests are the same as without it"}},
		{"low/low.go :: Same :: drop :: n = 1 => {}", Verdict{Outcome: Equivalent, Note: "the compiled package is the same as without it"}},
		{"low/low.go :: Loop :: relation :: n > 0 => n >= 0", Verdict{Outcome: Killed, By: "low", Test: "TestLoop"}},
		{"low/limit.go :: limit :: constant :: limit = 1 => limit = 2", Verdict{Outcome: Invalid, Note: "exit status 1: low/low_test.go:23:18: invalid argument: index 1 out of bounds [0:1]"}},
	} {
		t.Run(c.key, func(t *testing.T) {
			i := slices.IndexFunc(all, func(m *Mutant) bool { return m.Key() == c.key })
			if i < 0 {
				t.Fatal("no such mutant")
			}
			got, err := j.verdict(t.Context(), all[i], smallSuites[0].by)
			if err != nil {
				t.Fatal(err)
			}
			if got.Took <= 0 {
				t.Errorf("took %v", got.Took)
			}
			if got.Took = 0; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	after := files(t, root)
	for name, content := range after {
		if before[name] != content {
			t.Errorf("%s has changed", name)
		}
	}
	if j.spent() <= 0 {
		t.Error("no CPU time was counted")
	}
}

func TestTestsThatFailWithoutAMutantJudgeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles tests")
	}
	broken := small()
	broken["low/low_test.go"] = strings.Replace(broken["low/low_test.go"], "!= 4", "!= 5", 1)
	broken["bare/bare.go"] = "package bare\n"
	j := &judge{root: write(t, broken), temp: t.TempDir()}
	for folder, want := range map[string]string{"low": "the tests of low fail without a mutant: TestDouble", "bare": "bare has no tests"} {
		if _, err := j.measure(t.Context(), tests{folder, true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %s", folder, err, want)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for want, change := range map[string]func(*run){
		"-n: -1 is negative":                       func(r *run) { r.n = -1 },
		"-jobs: 0 is not positive":                 func(r *run) { r.jobs = 0 },
		"-only: no mutant's name is \"elsewhere\"": func(r *run) { r.only = "elsewhere" },
		"-packages: no package \"none\"":           func(r *run) { r.packages = "none" },
	} {
		r := run{root: write(t, map[string]string{"p/p.go": "package p\n"}), suites: []suite{{"p", own("p")}}, jobs: 1, named: list(t, ""), argued: list(t, "")}
		change(&r)
		if _, err := r.do(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// output runs the command over the small module.
func output(t *testing.T, j *judge, change func(*run)) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	r := run{
		root: j.root, j: j, suites: smallSuites, jobs: 2, seed: 1, named: list(t, ""), argued: list(t, ""), stdout: &out,
	}
	change(&r)
	passed, err := r.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), passed
}

func TestRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles dozens of tests")
	}
	const half = "H :: low/low.go :: Half :: n / 2 => n :: does not halve\n"
	j, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*run)
		passed bool
		want   []string
	}{
		{"a named mutant is killed", func(r *run) { r.named = list(t, half) }, true, []string{"H: n / 2 → n  [high TestQuarter]", "1 killed"}},
		{"a named mutant survives", func(r *run) {
			r.named = list(t, "U :: idle/idle.go :: Untested :: n > 3 => n > 4 :: off by one\n")
		}, false, []string{"U survived: off by one"}},
		{"a named mutant does not match", func(r *run) {
			r.named = list(t, half+"N :: low/low.go :: Half :: n / 4 => n :: x\n")
		}, false, []string{`list.txt:2: N: "n / 4" is 0 times in Half of low/low.go, not once`, "1 killed"}},
		{"a named mutant does not compile", func(r *run) {
			r.named = list(t, "N :: low/low.go :: Half :: n / 2 => m :: x\n")
		}, false, []string{"N is no mutant", "undefined: m"}},
		{"a named mutant of another package", func(r *run) { r.named, r.packages = list(t, half), "high" }, true, []string{"high "}},
		{"an argument holds", func(r *run) {
			r.argued = list(t, "idle/idle.go :: Untested :: relation :: n > 3 => n >= 3 :: it is not tested\n")
		}, true, []string{"1 survived"}},
		{"an argument is wrong", func(r *run) {
			r.argued = list(t, "low/low.go :: Double :: arithmetic :: n + n => n - n :: who cares\n")
		}, false, []string{"the argument is wrong, for it was killed: low/low.go :: Double"}},
		{"an argument is stale", func(r *run) {
			r.argued = list(t, "low/low.go :: Double :: arithmetic :: n + m => n - m :: gone\n")
		}, false, []string{"list.txt:1: there is no such mutant: low/low.go :: Double"}},
		{"an argument for nothing", func(r *run) {
			r.argued = list(t, "low/low.go :: Same :: drop :: n = 1 => {} :: the same\n")
		}, false, []string{"no argument is needed: low/low.go :: Same"}},
		{"too many survive", func(r *run) { r.n, r.packages = 99, "./idle" }, false, []string{
			"3 of 3 drawn mutants survived, more than 5 %", "Survivors", "idle/idle.go:4\n    idle/idle.go :: Untested :: relation :: n > 3 => n >= 3 :: \n",
		}},
		{"those argued about are not drawn", func(r *run) {
			r.n, r.packages = 99, "./idle"
			r.argued = list(t, "idle/idle.go :: Untested :: relation :: n > 3 => n >= 3 :: it is not tested\n")
		}, false, []string{"2 of 2 drawn mutants survived"}},
		{"one is chosen", func(r *run) { r.only = "Double :: arithmetic" }, true, []string{"Chosen mutants", "1 killed"}},
		{"a survivor is chosen", func(r *run) { r.only = "Untested :: relation" }, false, []string{"1 survived"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, passed := output(t, j, c.change)
			if passed != c.passed {
				t.Errorf("passed is %v, want %v", passed, c.passed)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q", want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// rows returns the verdicts of an output without their times.
func rows(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[1], "s") && strings.Contains(line, "[") {
			all = append(all, strings.Join(slices.Delete(fields, 1, 2), " "))
		}
	}
	return all
}

func TestRunsAreDecidedByTheSeed(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles dozens of tests")
	}
	j, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	n := effort.Cases(6)
	draw := func(jobs int) []string {
		out, _ := output(t, j, func(r *run) { r.n, r.seed, r.jobs = n, 4, jobs })
		return rows(out)
	}
	one, three := draw(1), draw(3)
	if len(one) < n || !slices.Equal(one, three) {
		t.Errorf("one at a time\n%s\nthree at a time\n%s", strings.Join(one, "\n"), strings.Join(three, "\n"))
	}
}

// Only chosen tests judge, by their names and by their folders.
func TestChosenTests(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles tests")
	}
	j, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	o, err := j.measure(t.Context(), tests{"low", true})
	if err != nil {
		t.Fatal(err)
	}
	some := &judge{root: j.root, temp: j.temp, tests: regexp.MustCompile("Lo|Do"), skip: regexp.MustCompile("ng$")}
	names, err := some.names(t.Context(), o, "low")
	if err != nil || !slices.Equal(names, []string{"TestDouble", "TestLoop"}) {
		t.Errorf("%q judge, error %v; want TestDouble and TestLoop", names, err)
	}
	key, err := some.key("low", o, true)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := j.key("low", o, true); err != nil || slices.Equal(all, key) {
		t.Errorf("what some tests reach is remembered as what all reach, error %v", err)
	}
}

func TestChosenFolders(t *testing.T) {
	for _, c := range []struct {
		by, want string // folders of the tests of low; or the error
	}{
		{"", "low,high"},
		{"./high/", "high"},
		{"high, low", "low,high"},
		{"idle", "-by: no tests in idle judge mutants of low; give some of those that do: low,high"},
	} {
		got, err := judgedBy(smallSuites[:1], c.by)
		if err != nil && err.Error() != c.want || err == nil && got[0].foldersOfTests() != c.want {
			t.Errorf("-by %q: %v, error %v; want %s", c.by, got, err, c.want)
		}
	}
	if smallSuites[0].foldersOfTests() != "low,high" {
		t.Errorf("the table has changed: %v", smallSuites[0])
	}
}

func TestChosenPackages(t *testing.T) {
	folders := []string{".", "low", "other"}
	got, err := chosen(smallSuites, "./low/, .,other", folders)
	if err != nil || len(got) != 3 || len(got[0].by) != 2 || got[1].folder != "." || len(got[2].by) != 1 {
		t.Errorf("%v, error %v", got, err)
	}
	if _, err := chosen(smallSuites, "low,none", folders); err == nil || !strings.Contains(err.Error(), `no package "none"`) {
		t.Errorf("an unknown package gives %v", err)
	}
	if got, err := chosen(smallSuites, "", folders); err != nil || len(got) != len(smallSuites) {
		t.Errorf("none chosen: %v, error %v", got, err)
	}
}

// The lists that are checked in match the program as it is.
func TestListsMatchTheProgram(t *testing.T) {
	m, err := source.Open(t.Context(), "../..", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := run{root: "../..", suites: suites, module: m, named: "named.txt", argued: "equivalent.txt", all: map[string][]*Mutant{}}
	find := func(list []suite) {
		for _, s := range list {
			p, err := m.Package(s.folder)
			if err != nil {
				t.Fatal(err)
			}
			r.all[s.folder] = mutantsOf(m.Fset, p)
		}
	}
	find(suites)
	named, err := r.findNamed()
	if err != nil {
		t.Fatal(err)
	}
	usual, err := r.findArgued() // without those that are judged only where they are named
	if err != nil {
		t.Fatal(err)
	}
	find(further)
	if all, err := r.findArgued(); err != nil || len(all) <= len(usual) {
		t.Errorf("%d arguments, %d of them about what is always judged: %v", len(all), len(usual), err)
	}
	for _, n := range named {
		if !compiles(m, n) {
			r.fault("%s does not compile", n.Name)
		}
	}
	for _, fault := range r.faults {
		t.Error(fault)
	}
	if len(named) == 0 {
		t.Error("no named mutants")
	}
}
