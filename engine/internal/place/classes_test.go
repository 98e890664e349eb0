package place

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

func classedFinder(classes ...berth.Class) *Finder {
	return &Finder{pools: []pool{
		{config: &berth.Pool{Name: "p", PEs: 8, Classes: classes}},
		{config: &berth.Pool{Name: "q", PEs: 8, Features: []string{"b"}}},
	}}
}

// Each way is searched by itself, so there are no more of them than there are different sets of
// PEs that a part may use, however many alternatives a constraint lists.
func TestAlternativesThatMeanTheSameAreOneWay(t *testing.T) {
	f := classedFinder(berth.Class{Name: "a"}, berth.Class{Name: "b"}, berth.Class{Name: "c"})
	many := func(words ...string) string { return "[" + strings.Join(slices.Repeat(words, 40), "|") + "]" }
	for _, c := range []struct {
		request, part string
		want          int
	}{
		{"", "", 1},
		{"a", "", 1},
		{"[a|b|c]", "", 3},
		{many("a", "b", "none"), "", 2},
		{many("none", "nobody"), "", 1},
		{many("none"), many("nobody"), 1},
		{many("a", "b", "c"), many("a", "b", "c"), 3},
		{many("a", "p"), many("b", "p"), 3}, // a, b and all of p; no class has both
	} {
		r := berth.Rigid("r", 0, 0, 10, 1, 1)
		r.Constraint, r.Parts[0].Constraint = c.request, c.part
		x := f.search(&r, nil)
		if n := x.ways(0); n != c.want {
			t.Errorf("%.20q and %.20q: %d ways; want %d", c.request, c.part, n, c.want)
		}
	}
}

// The ways are the sets that the alternatives mean, each once, in the order in which they come.
func TestWaysAreTheSetsOfAlternatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		feature := rapid.SampledFrom([]string{"a", "b", "c", "x", "y"})
		var classes []berth.Class
		for i := range rapid.IntRange(0, 3).Draw(t, "classes") {
			classes = append(classes, berth.Class{Name: string(rune('a' + i)), PEs: berth.PEsOf(berth.PE(i)), Features: rapid.SliceOfN(feature, 0, 2).Draw(t, "features")})
		}
		f := classedFinder(classes...)
		term := rapid.Map(rapid.SliceOfN(feature, 1, 2), func(s []string) string { return "(" + strings.Join(s, "&") + ")" })
		constraint := rapid.Map(rapid.SliceOfN(term, 1, 5), func(s []string) string { return "[" + strings.Join(s, "|") + "]" })
		r := berth.Rigid("r", 0, 0, 10, 1, 1)
		r.Constraint, r.Parts[0].Constraint = constraint.Draw(t, "request"), constraint.Draw(t, "part")
		whole, part := parsed(r.Constraint), parsed(r.Parts[0].Constraint)
		kinds := []func(string) bool{}
		for i := range classes {
			kinds = append(kinds, func(feature string) bool { return classes[i].Has(feature) || feature == "p" })
		}
		if len(classes) == 0 {
			kinds = append(kinds, f.pools[0].config.Has)
		}
		kinds = append(kinds, f.pools[1].config.Has)
		told := func(met func(func(string) bool) bool) (set string) {
			for _, has := range kinds {
				set += map[bool]string{true: "1", false: "0"}[met(has)]
			}
			return set
		}
		var want []string
		for j := range part.Alternatives() {
			for i := range whole.Alternatives() {
				set := told(func(has func(string) bool) bool { return whole.Met(i, has) && part.Met(j, has) })
				if strings.Contains(set, "1") && !slices.Contains(want, set) {
					want = append(want, set)
				}
			}
		}
		x := f.search(&r, nil)
		var got []string
		for x.way = range x.ways(0) {
			if set := told(func(has func(string) bool) bool { return x.met(0, has) }); strings.Contains(set, "1") {
				got = append(got, set)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q and %q: the ways are %v; want %v", r.Constraint, r.Parts[0].Constraint, got, want)
		}
	})
}
