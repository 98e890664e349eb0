package place

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"
)

// Versions in their order; those of one row are equal.
var versions = [][]string{
	{"", "0", "0.0"},
	{"0.1"},
	{"1.0~rc"},
	{"1.0~rc1"},
	{"1.0~rc2"},
	{"1", "1.0", "01"},
	{"1.1.1"},
	{"1.1.1v"},
	{"1.1.1w"},
	{"2.9", "2.9.0", "2.09"},
	{"2.12"},
	{"9b"},
	{"10"},
	{"2023a"},
	{"2023b"},
	{"2023b9"},
	{"2023b10"},
	{"99999999999999999999998"},
	{"99999999999999999999999"},
}

func TestVersionsHaveAnOrder(t *testing.T) {
	for i, equal := range versions {
		for j, others := range versions {
			for _, a := range equal {
				for _, b := range others {
					if got, want := compareVersions(a, b), cmp.Compare(i, j); got != want {
						t.Errorf("%q against %q: %d; want %d", a, b, got, want)
					}
				}
			}
		}
	}
	if compareVersions("R9", "R10") >= 0 {
		t.Error("R10 is not after R9")
	}
}

// Whatever is compared, the order is one.
func TestOrderOfVersionsIsTransitive(t *testing.T) {
	version := rapid.StringMatching(`([0-9]{0,3}[ab~]{0,2}[0-9]{0,2}\.){0,2}[0-9]{0,2}[ab~]{0,2}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := version.Draw(t, "a"), version.Draw(t, "b"), version.Draw(t, "c")
		if compareVersions(a, b) != -compareVersions(b, a) {
			t.Fatalf("%q against %q: %d, and back %d", a, b, compareVersions(a, b), compareVersions(b, a))
		}
		if compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0 && compareVersions(a, c) > 0 {
			t.Fatalf("%q, %q and %q go round", a, b, c)
		}
	})
}
