package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/source"
)

// list writes a list and returns its path.
func list(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestListOfNamedMutants(t *testing.T) {
	got, err := readNamed(list(t, "# a comment\n\nA1 :: p/p.go :: (*T).f :: a  <\tb => a <= b :: what for\nA2 :: p/p.go :: g :: h() => {} :: x\n"))
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, error %v", got, err)
	}
	if want := (named{3, "A1", "p/p.go", "(*T).f", "a < b", "a <= b", "what for"}); got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	for content, want := range map[string]string{
		"A1 :: p/p.go :: f :: a => b\n":                            ":1: 4 fields",
		"\nA1 :: p/p.go :: f :: a :: why\n":                        ":2: the edit \"a\"",
		"A1 :: p :: f :: a => b :: y\nA1 :: p :: f :: c => d :: y": ":2: A1 is there twice",
	} {
		if _, err := readNamed(list(t, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", content, err, want)
		}
	}
	if _, err := readNamed("no/such/file"); err == nil {
		t.Error("an absent list is no error")
	}
}

func TestListOfArguments(t *testing.T) {
	got, err := readArgued(list(t, "# a comment\np/p.go :: f :: relation 2 :: a < b => a <= b :: they differ\n"))
	if err != nil || len(got) != 1 || got[0] != (argued{2, "p/p.go :: f :: relation 2 :: a < b => a <= b"}) {
		t.Fatalf("%v, error %v", got, err)
	}
	for content, want := range map[string]string{
		"p/p.go :: f :: relation :: a < b => a <= b\n":                               ":1: give file",
		"p/p.go :: f :: relation :: a < b => a <= b :: \n":                           ":1: give file",
		"p/p.go :: f :: drop :: a => {} :: x\np/p.go :: f :: drop :: a => {} :: y\n": ":2: the mutant is there twice",
	} {
		if _, err := readArgued(list(t, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", content, err, want)
		}
	}
	if _, err := readArgued("no/such/file"); err == nil {
		t.Error("an absent list is no error")
	}
}

func TestNamedMutantsMatchExactlyOnce(t *testing.T) {
	m, err := source.Open(t.Context(), write(t, map[string]string{"p/p.go": `package p

func f(a, b int) int {
	if a < b &&
		b < 9 {
		return a
	}
	return a
}

func (t *T) g() { f(1, 2) }

type T struct{}
`}), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Package("p")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n       named
		changed string // what is in the mutant's source; or
		err     string
	}{
		{named{within: "f", old: "a < b && b < 9", new: "b < 9"}, "\tif b < 9 {\n", ""},
		{named{within: "(*T).g", old: "f(1, 2)", new: "{}"}, "g() { {} }", ""},
		{named{within: "f", old: "return a", new: "return b"}, "", `"return a" is 2 times in f of p/p.go, not once`},
		{named{within: "f", old: "b < 8", new: "b"}, "", `"b < 8" is 0 times in f`},
		{named{within: "h", old: "a", new: "b"}, "", "p/p.go has no declaration h"},
		{named{file: "p/q.go", within: "f", old: "a", new: "b"}, "", "there is no file p/q.go"},
	} {
		c.n.name = "N"
		if c.n.file == "" {
			c.n.file = "p/p.go"
		}
		got, err := c.n.mutant(m.Fset, p)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "N: ") {
				t.Errorf("%+v gives error %v, want %s", c.n, err, c.err)
			}
		case err != nil:
			t.Errorf("%+v: %v", c.n, err)
		case !strings.Contains(string(got.Source()), c.changed):
			t.Errorf("%+v gives\n%s", c.n, got.Source())
		}
	}
}
