package policy_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// tried is a variant with what was found for it.
type tried struct {
	variant berth.Variant
	fit     calendar.Fit
}

func try(npe berth.Count, duration berth.Duration, end berth.Time, key int64) tried {
	return tried{
		berth.Variant{NPE: npe, Duration: duration},
		calendar.Fit{Start: end - berth.Time(duration), End: end, Key: key},
	}
}

func better(c policy.Choice, a, b tried) bool { return c.Better(a.variant, a.fit, b.variant, b.fit) }

// Specification 1, d: the earliest finish, then the fewest PE-seconds, then the
// placement's key; the other choices put another figure first.
func TestChoiceBetter(t *testing.T) {
	rows := []struct {
		name string
		a, b tried
		want [3]bool // a is better, by earliest-finish, least-area, policy-key
	}{
		{"a wins in all", try(2, 10, 10, 1), try(4, 10, 20, 2), [3]bool{true, true, true}},
		{"a only ends earlier", try(4, 10, 10, 2), try(2, 10, 20, 1), [3]bool{true, false, false}},
		{"a only takes less", try(2, 10, 20, 2), try(4, 10, 10, 1), [3]bool{false, true, false}},
		{"a only has the smaller key", try(4, 10, 20, 1), try(2, 10, 10, 2), [3]bool{false, false, true}},
		{"same end, a takes less, greater key", try(2, 10, 20, 2), try(4, 10, 20, 1), [3]bool{true, true, false}},
		{"same area, a ends earlier, greater key", try(2, 20, 10, 2), try(4, 10, 20, 1), [3]bool{true, true, false}},
		{"same key, a ends earlier, takes more", try(4, 10, 10, 1), try(2, 10, 20, 1), [3]bool{true, false, true}},
		{"same end and area, a has the smaller key", try(2, 20, 20, 1), try(4, 10, 20, 2), [3]bool{true, true, true}},
		{"same end and key, a takes less", try(2, 10, 20, 1), try(4, 10, 20, 1), [3]bool{true, true, true}},
		{"same area and key, a ends earlier", try(2, 20, 10, 1), try(4, 10, 20, 1), [3]bool{true, true, true}},
		{"negative keys", try(2, 10, 20, -9), try(2, 10, 20, -8), [3]bool{true, true, true}},
		{"the same in all", try(2, 20, 20, 1), try(4, 10, 20, 1), [3]bool{false, false, false}},
	}
	choices := []policy.Choice{policy.EarliestFinish, policy.LeastArea, policy.PolicyKey}
	for _, row := range rows {
		for i, c := range choices {
			if got := better(c, row.a, row.b); got != row.want[i] {
				t.Errorf("%s: %s prefers a: %t, want %t", row.name, c, got, row.want[i])
			}
		}
	}
	if got := policy.Choices(); !slices.Equal(got, choices) {
		t.Errorf("Choices() = %v, want %v", got, choices)
	}
}

// Better is a strict weak order: nothing is better than itself, no two are
// better than each other, and both being better and being equal carry over.
func TestChoiceIsAStrictOrder(t *testing.T) {
	for _, c := range policy.Choices() {
		t.Run(string(c), rapid.MakeCheck(func(t *rapid.T) {
			small := func(label string) int { return rapid.IntRange(1, 3).Draw(t, label) }
			var x [3]tried
			for i := range x {
				x[i] = try(berth.Count(small("npe")), berth.Duration(small("duration")), berth.Time(small("end")), int64(small("key")))
			}
			equal := func(a, b tried) bool { return !better(c, a, b) && !better(c, b, a) }
			same := func(a, b tried) bool {
				return a.fit.End == b.fit.End && a.fit.Key == b.fit.Key && a.variant.Area() == b.variant.Area()
			}
			switch a, b, d := x[0], x[1], x[2]; {
			case better(c, a, a):
				t.Fatalf("%+v is better than itself", a)
			case better(c, a, b) && better(c, b, a):
				t.Fatalf("%+v and %+v are better than each other", a, b)
			case better(c, a, b) && better(c, b, d) && !better(c, a, d):
				t.Fatalf("%+v is better than %+v, that than %+v, but the first not than the last", a, b, d)
			case equal(a, b) != same(a, b):
				t.Fatalf("%+v and %+v tie: %t, want %t", a, b, equal(a, b), same(a, b))
			}
		}))
	}
}

func TestUndominated(t *testing.T) {
	v := func(npe berth.Count, duration berth.Duration) berth.Variant {
		return berth.Variant{NPE: npe, Duration: duration}
	}
	rows := []struct {
		name     string
		in, want []berth.Variant
	}{
		{"none", nil, nil},
		{"one", []berth.Variant{v(4, 10)}, []berth.Variant{v(4, 10)}},
		{"wider and shorter stay, in their order", []berth.Variant{v(4, 10), v(1, 40), v(2, 20)}, []berth.Variant{v(4, 10), v(1, 40), v(2, 20)}},
		{"wider and no shorter goes", []berth.Variant{v(4, 20), v(2, 20)}, []berth.Variant{v(2, 20)}},
		{"wider and longer goes", []berth.Variant{v(2, 20), v(4, 30)}, []berth.Variant{v(2, 20)}},
		{"as wide and longer goes", []berth.Variant{v(2, 30), v(2, 20)}, []berth.Variant{v(2, 20)}},
		{"of two equal ones the first stays", []berth.Variant{v(2, 20), v(1, 30), v(2, 20)}, []berth.Variant{v(2, 20), v(1, 30)}},
		{"a chain leaves its least", []berth.Variant{v(4, 40), v(3, 30), v(2, 20), v(1, 10)}, []berth.Variant{v(1, 10)}},
	}
	for _, row := range rows {
		in := slices.Clone(row.in)
		if got := policy.Undominated(row.in); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		if !slices.Equal(in, row.in) {
			t.Errorf("%s: the argument became %v", row.name, row.in)
		}
	}
}

// What is left is a subsequence in which nothing dominates anything, and all
// that was left out is dominated by something left.
func TestUndominatedIsTheFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		variant := rapid.Custom(func(t *rapid.T) berth.Variant {
			return berth.Variant{
				NPE:      berth.Count(rapid.IntRange(1, 5).Draw(t, "npe")),
				Duration: berth.Duration(rapid.IntRange(1, 5).Draw(t, "duration")),
			}
		})
		in := rapid.SliceOfN(variant, 0, 8).Draw(t, "variants")
		dominates := func(a, b berth.Variant) bool { return a.NPE <= b.NPE && a.Duration <= b.Duration }
		var want []berth.Variant
		for i, v := range in {
			others := slices.Concat(in[:i], slices.DeleteFunc(slices.Clone(in[i+1:]), func(o berth.Variant) bool { return o == v }))
			if !slices.ContainsFunc(others, func(o berth.Variant) bool { return dominates(o, v) }) {
				want = append(want, v)
			}
		}
		got := policy.Undominated(in)
		if !slices.Equal(got, want) {
			t.Fatalf("of %v stay %v, want %v", in, got, want)
		}
		for _, v := range in {
			if !slices.ContainsFunc(got, func(o berth.Variant) bool { return dominates(o, v) }) {
				t.Fatalf("%v of %v is dominated by none of %v", v, in, got)
			}
		}
	})
}
