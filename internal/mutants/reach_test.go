package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/source"
)

// reached is a module whose functions are reached in different ways: by one test or another, by a
// process that ends, by one that is killed, by none.
func reached() map[string]string {
	return map[string]string{
		"p/p.go": `package p

var table = []int{4, 5}

// Kind has an edit in the expression of a case, which is in no block.
func Kind(n int) int {
	switch {
	case n > 2:
		return 1
	}
	return 0
}

// Later has an edit behind a function literal.
func Later(n int) int {
	return apply(func() int { return n * 2 }, n-1)
}

func apply(f func() int, more int) int { return f() + more }

// At looks something up.
func At(i int) int { return table[i] }

// Exits is reached by a process of its own that ends.
func Exits(n int) int { return n + 1 }

// Dies is reached by a process of its own that is killed.
func Dies(n int) int { return n + 2 }

// Never is reached by no test.
func Never(n int) int { return n + 3 }
`,
		"p/p_test.go": `package p_test

import (
	"os"
	"os/exec"
	"testing"

	"example.org/m/p"
)

func TestMain(m *testing.M) {
	switch os.Getenv("P") {
	case "exits":
		os.Exit(p.Exits(6))
	case "dies":
		os.Stdout.WriteString(string(rune('a' + p.Dies(0))))
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	os.Exit(m.Run())
}

func start(as string) (string, *os.ProcessState) {
	self, _ := os.Executable()
	c := exec.Command(self)
	c.Env = []string{"P=" + as}
	out, _ := c.Output()
	return string(out), c.ProcessState
}

func TestKind(t *testing.T) {
	if p.Kind(3) != 1 || p.Kind(2) != 0 {
		t.Error("wrong kind")
	}
}

func TestLater(t *testing.T) {
	if p.Later(3) != 8 {
		t.Error("not 8")
	}
}

func TestAt(t *testing.T) {
	if p.At(1) != 5 {
		t.Error("not 5")
	}
}

func TestExits(t *testing.T) {
	if _, state := start("exits"); state.ExitCode() != 7 {
		t.Error("not 7")
	}
}

func TestDies(t *testing.T) {
	if out, state := start("dies"); out != "c" || state.ExitCode() != -1 {
		t.Errorf("%q, %v", out, state)
	}
}
`,
	}
}

// mutantOf returns the mutant of a package whose key contains all of that.
func mutantOf(t *testing.T, m *source.Module, folder string, parts ...string) *Mutant {
	t.Helper()
	p, err := m.Package(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := mutantsOf(m.Fset, p)
	i := slices.IndexFunc(all, func(m *Mutant) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(m.Key(), part) })
	})
	if i < 0 {
		t.Fatalf("no mutant is %q", parts)
	}
	return all[i]
}

// A mutant meets the tests that reach it, each once, and comes out as it does where it meets every test.
func TestMutantsMeetTheTestsThatReachThem(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a dozen tests")
	}
	root := write(t, reached())
	m, err := source.Open(t.Context(), root, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	short := &judge{root: root, temp: t.TempDir(), slack: 5 * time.Second, remembered: t.TempDir()}
	plain := &judge{root: root, temp: t.TempDir(), slack: 5 * time.Second, remembered: short.remembered, plain: true}
	by := []tests{{"p", false}}
	for _, c := range []struct {
		key   []string
		tests string // that it meets; TestDies may reach anything
		want  Outcome
	}{
		{[]string{":: Kind ::", "n > 2 => n >= 2"}, "TestDies TestKind", Killed},
		{[]string{":: Later ::", "n-1 => n+1"}, "TestDies TestLater", Killed},
		{[]string{":: Later ::", "n * 2 => n * 3"}, "TestDies TestLater", Killed},
		{[]string{":: table ::"}, "TestAt TestDies TestExits TestKind TestLater", Killed},
		{[]string{":: Exits ::", "n + 1 => n - 1"}, "TestDies TestExits", Killed},
		{[]string{":: Dies ::", "n + 2 => n + 3"}, "TestDies", Killed},
		{[]string{":: Never ::", "n + 3 => n + 4"}, "TestDies", Survived},
	} {
		mutant := mutantOf(t, m, "p", c.key...)
		got, err := short.verdict(t.Context(), mutant, by)
		if err != nil {
			t.Fatal(err)
		}
		want, err := plain.verdict(t.Context(), mutant, by)
		if err != nil {
			t.Fatal(err)
		}
		got.Took, want.Took = 0, 0
		if got.Outcome != c.want || got != want {
			t.Errorf("%s: %+v, and by every test %+v; want %s", mutant.Key(), got, want, c.want)
		}
		var names []string
		for _, test := range short.of("p").reach[true].of(mutant) {
			names = append(names, test.Name)
		}
		slices.Sort(names)
		if met := strings.Join(names, " "); met != c.tests {
			t.Errorf("%s meets %s, want %s", mutant.Key(), met, c.tests)
		}
	}
	if kept, err := os.ReadDir(short.remembered); err != nil || len(kept) != 1 {
		t.Errorf("%d files remember what is reached, want 1, which both use: %v", len(kept), err)
	}
}

func TestQuickTestsComeFirst(t *testing.T) {
	list := func(took ...int) (all []reaching) {
		for _, ms := range took {
			all = append(all, reaching{Took: time.Duration(ms) * time.Millisecond})
		}
		return all
	}
	for _, c := range []struct {
		list []reaching
		want []int // how many tests the batches have
	}{
		{nil, nil},
		{list(1), []int{1}},
		{list(100, 200, 300, 400), []int{3, 1}},
		{list(500, 500, 500, 500, 500), []int{1, 1, 2, 1}},
		{list(10, 9000, 20000), []int{2, 1}},
	} {
		var got []int
		for _, b := range batches(c.list) {
			got = append(got, len(b))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: batches of %v, want %v", c.list, got, c.want)
		}
	}
}
