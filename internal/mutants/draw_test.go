package main

import (
	"slices"
	"strings"
	"testing"
)

// drawable is a package with mutants of several kinds, some of them rare.
const drawable = `
func f(a, b, c int) int {
	if a < b && b < c {
		return 1 + 2 + 3 + a
	}
	n := min(a, b)
	n += 4
	f(n, 5, 6)
	return n
}
`

// sequence draws everything.
func sequence(seed uint64, folder string, all []*Mutant) []string {
	var keys []string
	for d := newDraws(seed, folder, all); ; {
		m := d.next()
		if m == nil {
			return keys
		}
		keys = append(keys, m.Key())
	}
}

func TestDrawsAreDecidedBySeedAndPackage(t *testing.T) {
	_, all := mutants(t, drawable)
	one := sequence(1, "p", all)
	if again := sequence(1, "p", all); !slices.Equal(one, again) {
		t.Error("the same seed draws another sequence")
	}
	if slices.Equal(one, sequence(2, "p", all)) || slices.Equal(one, sequence(0, "p", all)) {
		t.Error("another seed draws the same sequence")
	}
	if slices.Equal(one, sequence(1, "q", all)) {
		t.Error("another package draws the same sequence")
	}
	sorted := slices.Sorted(slices.Values(one))
	if len(one) != len(all) || len(slices.Compact(sorted)) != len(all) {
		t.Errorf("%d draws of %d mutants, some twice", len(one), len(all))
	}
}

// A kind of few places comes as often as one of many while it lasts.
func TestDrawsTakeKindsEvenly(t *testing.T) {
	_, all := mutants(t, drawable+strings.Repeat("const _ = 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9\n", 10))
	early := map[Kind]int{}
	for seed := range uint64(300) {
		early[newDraws(seed, "p", all).next().Kind]++
	}
	if len(early) < 6 {
		t.Fatalf("kinds of first draws: %v", early)
	}
	for k, n := range early {
		if fair := 300 / len(early); n < fair/2 || n > 2*fair {
			t.Errorf("%d of 300 first draws are of kind %s, one of %d", n, k, len(early))
		}
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		n     int
		sizes []int
		want  []int
	}{
		{10, []int{50, 30, 20}, []int{5, 3, 2}},
		{10, []int{1, 1, 1}, []int{1, 1, 1}},
		{10, []int{100, 100, 100}, []int{4, 3, 3}},
		{5, []int{1000, 1}, []int{4, 1}},
		{3, []int{0, 7}, []int{0, 3}},
		{0, []int{4}, []int{0}},
		{4, []int{0}, []int{0}},
		{1, []int{5, 5}, []int{1, 0}},
	} {
		if got := shares(c.n, c.sizes); !slices.Equal(got, c.want) {
			t.Errorf("%d over %v is %v, want %v", c.n, c.sizes, got, c.want)
		}
	}
}

func TestMutantsThatDoNotCompileAreRecognised(t *testing.T) {
	m, all := mutants(t, `
import "sort"

func f(a []int, s []string) string {
	sort.Ints(a)
	n := 0
	n = len(a)
	switch n {
	case 1:
	case 2:
	}
	return s[a[0]]
}

var array = [2]int{1: 3}
`)
	for _, c := range []struct {
		key string
		ok  bool
	}{
		{"f :: drop :: sort.Ints(a) => {}", false}, // nothing else uses the import
		{"f :: drop :: n = len(a) => {}", true},
		{"f :: constant :: 1 => 2", false}, // there is a case 2
		{"f :: constant :: 1 => 0", true},
		{"f :: constant :: a[0] => a[(-1)]", false},
		{"array :: constant :: 1: 3 => 2: 3", false},
		{"array :: constant :: 1: 3 => 0: 3", true},
	} {
		i := slices.IndexFunc(all, func(m *Mutant) bool { return m.Key() == "p/p.go :: "+c.key })
		if i < 0 {
			t.Errorf("no mutant %q", c.key)
			continue
		}
		if got := compiles(m, all[i]); got != c.ok {
			t.Errorf("%s: compiles is %v, want %v", c.key, got, c.ok)
		}
	}
	if p, err := m.Package("p"); err != nil || p.Files[0].Source == nil || mutantsOf(m.Fset, p)[0].Key() != all[0].Key() {
		t.Error("the check changed the package")
	}
}
