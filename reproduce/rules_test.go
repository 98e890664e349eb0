package reproduce

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"testing"
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
		{"above, not clearly", above(), spread(1), Inconclusive},
		{"above, nothing", above(), sample{0, 0, 0}, NotHeld},
		{"above, perhaps the other way", above(), spread(-1), Inconclusive},
		{"above, the other way", above(), spread(-5), NotHeld},
		{"above, one repetition", above(), sample{5}, NotTestable},
		{"above, nothing measured", above(), sample{math.NaN(), math.NaN()}, NotTestable},
		{"below, clearly", below(), spread(-5), Held},
		{"below, not clearly", below(), spread(-1), Inconclusive},
		{"below, the other way", below(), spread(5), NotHeld},
		{"below, no data", below(), nil, NotTestable},
		{"not below, above", notBelow(0), spread(5), Held},
		{"not below, nothing", notBelow(0), sample{0, 0, 0}, Held},
		{"not below, perhaps", notBelow(0), spread(1), Inconclusive},
		{"not below, by less than the margin", notBelow(4), spread(-1), Held},
		{"not below, perhaps by more than the margin", notBelow(4), spread(-3), Inconclusive},
		{"not below, clearly by more", notBelow(4), spread(-7), NotHeld},
		{"not below, one repetition", notBelow(4), sample{1}, NotTestable},
		{"small", smaller(3), spread(0), Held},
		{"small, not clearly", smaller(3), spread(-2), Inconclusive},
		{"small, too much", smaller(3), spread(6), NotHeld},
		{"small, too little", smaller(3), spread(-6), NotHeld},
		{"small, one repetition", smaller(3), sample{0}, NotTestable},
		{"as printed", printed(40), spread(33), Held}, // 30 to 50
		{"nearly as printed", printed(40), spread(29), WithinTolerance},
		{"half of what is printed, perhaps", printed(40), spread(21), Inconclusive},
		{"less than half of what is printed", printed(40), spread(10), NotHeld},
		{"as little as is printed", printed(0.2), sample{1, 1, 1}, Held},
		{"much more than the little that is printed", printed(0.2), sample{5, 5, 5}, NotHeld},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := Claim{Parts: []Part{part("it", "s", c.data, c.rule)}}
			if got := judged(claim.Parts); got != c.want || claim.Parts[0].Verdict != c.want {
				t.Errorf("%s of %s is %s, want %s", c.rule.words, c.data, got, c.want)
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
		if got := judged([]Part{p}); got != c.want || p.Rule != c.rule {
			t.Errorf("%d of %d: %s, %q; want %s, %q", c.count, c.of, got, p.Rule, c.want, c.rule)
		}
	}
	p := sharePrinted("it", 30, 100, 78.4)
	if judged([]Part{p}) != NotTestable || p.Rule != "published 78.4, ±19.6, tolerance ±39.2" {
		t.Errorf("a printed number says nothing about words: %q", p.Rule)
	}
	c := Claim{Parts: []Part{p}}
	if c.settle(); c.Magnitude != NotHeld {
		t.Errorf("30 %% for 78.4 %% is %s", c.Magnitude)
	}
}

// A claim is as good as the worst of its parts, and of those that are as bad the one that is
// the farthest from holding decides.
func TestWorstPartDecides(t *testing.T) {
	at := func(what string, mean float64) Part {
		return part(what, "", sample{mean - 1, mean, mean + 1}, above())
	}
	none := part("nothing", "", nil, above())
	for _, c := range []struct {
		parts   []Part
		want    Verdict
		decides string
	}{
		{nil, NotTestable, ""},
		{[]Part{at("far", 9), at("close", 3), at("farther", 12)}, Held, "close"},
		{[]Part{at("far", 9), at("off", -1), at("nearly", 1)}, Inconclusive, "off"},
		{[]Part{at("nearly", 1), none}, NotTestable, "nothing"},
		{[]Part{none, at("far off", -30), at("off", -20), at("far", 9)}, NotHeld, "far off"},
	} {
		claim := Claim{Parts: c.parts}
		claim.settle()
		if claim.Verdict != c.want || claim.Deciding().What != c.decides {
			t.Errorf("%s by %q, want %s by %q", claim.Verdict, claim.Deciding().What, c.want, c.decides)
		}
	}
}

// What one comparison refutes, one of many does not: with forty, one is off so far by chance.
func TestRefutingIsCorrectedForTheNumberOfComparisons(t *testing.T) {
	off := part("off", "", sample{-4, -3, -2}, above()) // -3 ± 2.48
	if got := judged([]Part{off}); got != NotHeld {
		t.Errorf("alone it is %s", got)
	}
	many := Claim{Parts: []Part{off}}
	for range 39 {
		many.Parts = append(many.Parts, part("fine", "", sample{8, 9, 10}, above()))
	}
	if got := judged(many.Parts); got != Inconclusive {
		t.Errorf("among forty it is %s", got)
	}
	many.Parts[0] = part("far off", "", sample{-102, -101, -100}, above())
	if got := judged(many.Parts); got != NotHeld {
		t.Errorf("clearly off among forty it is %s", got)
	}
}

func TestDigestIsOfTheRules(t *testing.T) {
	text, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); RulesDigest() != hex.EncodeToString(sum[:]) {
		t.Error("it is of something else")
	}
}
