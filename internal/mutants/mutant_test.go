package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/source"
)

// write makes a module of files in a folder of its own.
func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := fill(root, files); err != nil {
		t.Fatal(err)
	}
	return root
}

func fill(root string, files map[string]string) error {
	for name, content := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.org/m\n\ngo 1.26\n"), 0o600)
}

// mutants lists the mutants of one file of package p.
func mutants(t *testing.T, src string) (*source.Module, []*Mutant) {
	t.Helper()
	m, err := source.Open(t.Context(), write(t, map[string]string{"p/p.go": "package p\n" + src}), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Package("p")
	if err != nil {
		t.Fatal(err)
	}
	return m, mutantsOf(m.Fset, p)
}

func TestKindsOfMutants(t *testing.T) {
	for _, c := range []struct {
		src  string
		want string // kind: edit, one a line
	}{
		{`func f(a, b int) bool { return a < b }`, "relation: a < b → a <= b"},
		{`func f(a, b int) bool { return a <= b }`, "relation: a <= b → a < b"},
		{`func f(a, b int) bool { return a > b }`, "relation: a > b → a >= b"},
		{`func f(a, b int) bool { return a >= b }`, "relation: a >= b → a > b"},
		{`func f(a, b string) bool { return a == b }`, "relation: a == b → a != b"},
		{`func f(a, b string) bool { return a != b }`, "relation: a != b → a == b"},
		{`func f(a, b int) int { return a + b }`, "arithmetic: a + b → a - b"},
		{`func f(a, b float64) float64 { return a - b }`, "arithmetic: a - b → a + b"},
		{`func f(a string) string { return a + a }`, ""},
		{`func f(a int) (n int) { n += a; return n }`, "arithmetic: n += a → n -= a\ndrop: n += a → {}"},
		{`func f(a string) (n string) { n += a; return n }`, "drop: n += a → {}"},
		{`func f() (n int) { n++; return n }`, "arithmetic: n++ → n--\ndrop: n++ → {}"},
		{`func f(a, b bool) bool { return a && b }`, "logic: a && b → a || b"},
		{`func f(a, b bool) bool { return a || b }`, "logic: a || b → a && b"},
		{`func f(a bool) int { if a { panic(a) }; return len("") }`, "negate: a → !(a)"},
		{`func f(a bool) int { if !a { panic(a) }; return len("") }`, "negate: !a → a"},
		{`func f(a int) int { if a == a { panic(a) }; return a }`, "relation: a == a → a != a"},
		{`func f(a, b int) int { return min(a, b) }`, "minmax: min(a, b) → max(a, b)"},
		{`func f(a, b int) int { return max(a, b) }`, "minmax: max(a, b) → min(a, b)"},
		{`func f(a, b int) int { min := f; return min(a, b) }`, ""},
		{`func f(a int) (n int) { n = a; return n }`, "drop: n = a → {}"},
		{`func f(a int) { n := a; f(n) }`, "drop: f(n) → {}"},
		{`func f(a []int) { for range a { continue } }`, "drop: continue → {}"},
		{`func f(a []int) { for range a { break } }`, "drop: break → {}"},
		{`func f(a []int) { for range a { return }; return }`, "drop: return → {}"},
		{`func f(a bool) { if a { return } }`, "negate: a → !(a)\ndrop: return → {}"},
		{`func f(a int) { switch a { case a: return } }`, "element: case a: ... → {}\ndrop: return → {}"},
		{`func f(a []int) func() int { for range a { return func() int { return f(a)() } }; return nil }`, "drop: return func() int { return f(a)() } → {}"},
		{`func f(a bool) { if a { panic(a) } }`, "negate: a → !(a)"},
		{`func f(a int) int { if a = f(a); f(a) == a { return a }; for a = f(a); ; a = f(a) { } }`, "relation: f(a) == a → f(a) != a\ndrop: return a → {}"},
		{`func f() int { return 7 }`, "constant: return 7 → return 8\nconstant: return 7 → return 6"},
		{`func f() int { return -0x10 }`, "constant: -0x10 → -17\nconstant: -0x10 → -15"},
		{`func f(a []int) int { return a[0] }`, "constant: a[0] → a[1]\nconstant: a[0] → a[(-1)]"},
		{`const c = 2 + 3`, "constant: 2 + 3 → 3 + 3\nconstant: 2 + 3 → 1 + 3\nconstant: 2 + 3 → 2 + 4\nconstant: 2 + 3 → 2 + 2"},
		{`func f() (string, float64, rune) { return "1", 1.5, 'a' }`, ""},
		{`func f(a int) ([]int, map[int]int) { return make([]int, a, a+9), make(map[int]int, 9) }`, ""},
		{`func f(a int) []int { return make([]int, a+a) }`, "arithmetic: a+a → a-a"},
		{`func f() bool { return true }`, "boolean: return true → return false"},
		{`func f(a bool) { f(false) }`, "drop: f(false) → {}\nboolean: f(false) → f(true)"},
		{`var v = []string{"a", "b"}`, "element: \"a\" → {}\nelement: \"b\" → {}"},
		{`type s struct{ a, b string }; var v = s{a: "x", b: "y"}`, "element: a: \"x\" → {}\nelement: b: \"y\" → {}"},
		{`func f(a, b int) { switch a { case a, b: f(a, b) } }`, "element: a → {}\nelement: b → {}\ndrop: f(a, b) → {}"},
		{`type s [4]struct{ a [5]int }`, ""},
	} {
		t.Run(c.src, func(t *testing.T) {
			_, all := mutants(t, c.src)
			var got []string
			for _, m := range all {
				got = append(got, string(m.Kind)+": "+m.String())
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}

// Each edit leaves a file that parses and differs in the edit alone.
func TestSourcesOfMutants(t *testing.T) {
	const src = `
import "sort"

var table = []struct{ name string; n int }{
	{"a", 1}, // the first
	{
		name: "b",
	},
}

func f(list []int) (n int) {
	for i, v := range list {
		switch {
		case v > 3 && i < 2, v == -1:
			continue
		case v == 1:
			sort.Ints(list)
		}
		if n = max(n, v); n >= 9 {
			return n
		}
	}
	return n - 1
}
`
	_, all := mutants(t, src)
	if len(all) < 30 {
		t.Fatalf("%d mutants", len(all))
	}
	original, sources := "package p\n"+src, map[string]bool{"package p\n" + src: true}
	for _, m := range all {
		got := string(m.Source())
		if sources[got] {
			t.Errorf("%s: the same source as another, or the original", m.Key())
		}
		sources[got] = true
		if got[:m.Start] != original[:m.Start] || !strings.HasSuffix(got, original[m.End:]) {
			t.Errorf("%s: more than the edit differs", m.Key())
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", got, 0); err != nil {
			t.Errorf("%s: %v", m.Key(), err)
		}
		if line := strings.Split(original, "\n")[m.Line-1]; !strings.Contains(oneLine(line), strings.Fields(m.Old)[0]) {
			t.Errorf("%s: line %d is %q", m.Key(), m.Line, line)
		}
	}
}

// A key names one mutant, and still does when other declarations come and go.
func TestKeysOfMutants(t *testing.T) {
	const src = "func (t *T) f(a []int) int { if a[0] > 1 { return a[0] }; return a[0] }\ntype T int\n"
	_, all := mutants(t, src)
	_, moved := mutants(t, "\nvar x = []int{1, 2}\n"+strings.ReplaceAll(src, "; ", "\n\t\t"))
	keys := map[string]bool{}
	for _, m := range all {
		if keys[m.Key()] {
			t.Errorf("two mutants are %s", m.Key())
		}
		keys[m.Key()] = true
		if !slices.ContainsFunc(moved, func(o *Mutant) bool { return o.Key() == m.Key() }) {
			t.Errorf("in another place there is no %s", m.Key())
		}
	}
	if want := "p/p.go :: (*T).f :: constant 3 :: a[0] => a[1]"; !keys[want] {
		t.Errorf("no %q", want)
	}
}

func TestTestsAndGeneratedFilesAreNotMutated(t *testing.T) {
	m, err := source.Open(t.Context(), write(t, map[string]string{
		"p/p.go": "package p\n\nconst a = 1\n", "p/p_test.go": "package p\n\nconst b = 1\n",
		"p/g.go": "// Code generated by a tool. DO NOT EDIT.\n\npackage p\n\nconst c = 1\n",
	}), source.Options{Tests: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Package("p")
	if err != nil {
		t.Fatal(err)
	}
	if all := mutantsOf(m.Fset, p); len(all) != 2 || all[0].Within != "a" {
		t.Errorf("%d mutants, want the two of a", len(all))
	}
}
