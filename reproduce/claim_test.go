package reproduce

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRules(t *testing.T) {
	spread := func(mean float64) sample { return sample{mean - 1, mean, mean + 1} } // ± 2.48
	for _, c := range []struct {
		name string
		rule rule
		data sample
		want Verdict
	}{
		{"above, clearly", above(), spread(5), Held},
		{"above, not clearly", above(), spread(1), WithinTolerance},
		{"above, nothing", above(), sample{0, 0, 0}, NotHeld},
		{"above, the other way", above(), spread(-1), NotHeld},
		{"above, one repetition", above(), sample{5}, NotTestable},
		{"above, nothing measured", above(), sample{math.NaN(), math.NaN()}, NotTestable},
		{"below, clearly", below(), spread(-5), Held},
		{"below, not clearly", below(), spread(-1), WithinTolerance},
		{"below, the other way", below(), spread(5), NotHeld},
		{"below, no data", below(), nil, NotTestable},
		{"not below, above", notBelow(0), spread(5), Held},
		{"not below, nothing", notBelow(0), sample{0, 0, 0}, Held},
		{"not below, not clearly", notBelow(0), spread(-1), Held},
		{"not below, clearly by little", notBelow(4), spread(-3), WithinTolerance},
		{"not below, clearly by much", notBelow(4), spread(-5), NotHeld},
		{"not below, one repetition", notBelow(4), sample{1}, NotTestable},
		{"small", smaller(3), spread(0), Held},
		{"small, not clearly", smaller(3), spread(-2), WithinTolerance},
		{"small, too much", smaller(3), spread(4), NotHeld},
		{"small, too little", smaller(3), spread(-4), NotHeld},
		{"small, one repetition", smaller(3), sample{0}, NotTestable},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := part("it", "s", c.data, c.rule)
			if p.Verdict != c.want {
				t.Errorf("%s of %s is %s, want %s", p.Rule, interval(p.Value), p.Verdict, c.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		count, of, enough, some int
		want                    Verdict
		rule                    string
	}{
		{10, 10, 9, 8, Held, "at least 9 of 10, tolerance to 8"},
		{9, 10, 9, 8, Held, "at least 9 of 10, tolerance to 8"},
		{8, 10, 9, 8, WithinTolerance, "at least 9 of 10, tolerance to 8"},
		{7, 10, 9, 8, NotHeld, "at least 9 of 10, tolerance to 8"},
		{9, 10, 10, 10, NotHeld, "at least 10 of 10"},
		{0, 0, 0, 0, NotTestable, "at least 0 of 0"},
	} {
		p := counted("it", "runs", c.count, c.of, c.enough, c.some)
		if p.Verdict != c.want || p.Rule != c.rule {
			t.Errorf("%d of %d: %s, %q; want %s, %q", c.count, c.of, p.Verdict, p.Rule, c.want, c.rule)
		}
	}
}

func TestWorstVerdict(t *testing.T) {
	for _, c := range []struct {
		parts []Verdict
		want  Verdict
	}{
		{nil, NotTestable},
		{[]Verdict{Held, Held}, Held},
		{[]Verdict{Held, WithinTolerance, Held}, WithinTolerance},
		{[]Verdict{WithinTolerance, NotTestable}, NotTestable},
		{[]Verdict{NotTestable, NotHeld, Held}, NotHeld},
	} {
		var claim Claim
		for _, v := range c.parts {
			claim.Parts = append(claim.Parts, Part{What: string(v), Verdict: v})
		}
		claim.Verdict = worst(claim.Parts)
		if claim.Verdict != c.want {
			t.Errorf("%q: %s, want %s", c.parts, claim.Verdict, c.want)
		}
		if len(c.parts) > 0 && claim.Deciding().What != string(c.want) {
			t.Errorf("%q: %q decides", c.parts, claim.Deciding().What)
		}
	}
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
