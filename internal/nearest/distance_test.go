package nearest

import "testing"

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "ab", 2},
		{"abc", "abc", 0},
		{"abc", "axc", 1},
		{"abc", "ac", 1},
		{"abc", "acb", 1},
		{"ca", "abc", 3},
		{"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q it is %d, want %d", test.a, test.b, got, test.want)
		}
		if got := distance(test.b, test.a); got != test.want {
			t.Errorf("from %q to %q it is %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
