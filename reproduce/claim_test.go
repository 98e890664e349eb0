package reproduce

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// judged returns the verdict on a claim of these parts.
func judged(parts []Part) Verdict {
	c := Claim{Parts: parts}
	c.settle()
	return c.Verdict
}

func TestSamples(t *testing.T) {
	nan := math.NaN()
	a, b := sample{5, 7, nan}, sample{1, 2, 3}
	if e, n := a.estimate(); n != 2 || *e.Mean != 6 {
		t.Errorf("mean %v of %d; a repetition without a value does not count", *e.Mean, n)
	}
	if diff := cmp.Diff(a.minus(b)[:2], sample{4, 5}); diff != "" || !math.IsNaN(a.minus(b)[2]) {
		t.Errorf("differences %v", a.minus(b))
	}
	if diff := cmp.Diff(meanOf([]sample{b, {3, 4, 9}}), sample{2, 3, 6}); diff != "" {
		t.Error(diff)
	}
	if got := b.times(-2); !cmp.Equal(got, sample{-2, -4, -6}) {
		t.Errorf("twice, negative: %v", got)
	}
	if meanOf(nil) != nil {
		t.Error("a mean over nothing")
	}
	// Three values 1, 2, 3: t(0.975, 2) = 4.3027, s = 1.
	if got := b.String(); got != "2 [-0.484, 4.48]" {
		t.Errorf("written as %s", got)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct {
		x    float64
		want string
	}{
		{0, "0"},
		{-0.0001, "0"},
		{0.25, "0.25"},
		{1.005, "1"},
		{-1.5, "-1.5"},
		{12.34, "12.3"},
		{99.96, "100"},
		{1234.5, "1234"},
		{-7253.6, "-7254"},
		{10, "10"},
		{100, "100"},
	} {
		if got := short(c.x); got != c.want {
			t.Errorf("%v is written %s, want %s", c.x, got, c.want)
		}
	}
	for x, want := range map[float64]string{0.1 + 0.2: "0.3", 1234567: "1.23457e+06", math.Copysign(0, -1): "0", 215: "215"} {
		if got := digits(x); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
}
