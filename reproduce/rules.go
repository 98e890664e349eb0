package reproduce

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/berth-hpc/berth/measure"
)

// How claims are judged. All of it stands in this file, whose digest is in every report, so
// that a reader can tell whether two reports were judged alike.
//
// A rule names the numbers with which a comparison holds, and, around them, those that are
// still tolerable. What was measured has a mean and an interval of 95 %:
//
//   - held: the whole interval holds;
//   - within tolerance: the whole interval is tolerable;
//   - not held: no number of the interval is even tolerable, and that interval is widened for
//     the number of comparisons of the claim (Bonferroni), for one of many is soon off by
//     chance alone;
//   - inconclusive: anything else. More repetitions would tell.
//
// A claim is as good as the worst of its comparisons. That needs no correction for their
// number where it holds: all of them have to (Berger's test of unions and intersections).
//
// What a paper says in words (more, less, alike, growing) gives the verdict of a claim; the
// numbers that it prints give another, its magnitude.

//go:embed rules.go
var rulesText []byte

// RulesDigest is the SHA-256 of the rules by which claims are judged, in hex.
func RulesDigest() string {
	sum := sha256.Sum256(rulesText)
	return hex.EncodeToString(sum[:])
}

// Verdict says what became of a claim.
type Verdict string

// The verdicts.
const (
	Held            Verdict = "held"
	WithinTolerance Verdict = "within tolerance"
	Inconclusive    Verdict = "inconclusive"
	NotTestable     Verdict = "not testable"
	NotHeld         Verdict = "not held"
)

// Verdicts lists the verdicts from the best to the worst: that a claim is contradicted is
// worse than that some of it could not be tested.
func Verdicts() []Verdict {
	return []Verdict{Held, WithinTolerance, Inconclusive, NotTestable, NotHeld}
}

// Kind says whose claim it is.
type Kind string

// The kinds of claims.
const (
	Published Kind = "paper" // a paper states it
	Own       Kind = "own"   // it is ours: a prediction, a variant, another log
	Check     Kind = "check" // it holds whatever the policies are called, and tells about the code or the workload
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Published, Own, Check} }

// span are the numbers from lo to hi; lo and hi themselves are among them unless it is open.
type span struct {
	lo, hi float64
	open   bool
}

func (s span) has(x float64) bool {
	if s.open {
		return s.lo < x && x < s.hi
	}
	return s.lo <= x && x <= s.hi
}

// holds reports whether the whole interval is in the span.
func (s span) holds(interval [2]float64) bool { return s.has(interval[0]) && s.has(interval[1]) }

// meets reports whether any of the interval is.
func (s span) meets(interval [2]float64) bool {
	if s.open {
		return interval[0] < s.hi && s.lo < interval[1]
	}
	return interval[0] <= s.hi && s.lo <= interval[1]
}

// depth returns how far inside a number is, from the nearer end; negative outside.
func (s span) depth(x float64) float64 { return min(x-s.lo, s.hi-x) }

// rule judges an estimate.
type rule struct {
	words      string
	held, near span // near has all of held
}

// above says that a difference is more than 0.
func above() rule {
	more := span{0, math.Inf(1), true}
	return rule{"above 0", more, more}
}

// below says that a difference is less than 0.
func below() rule {
	less := span{math.Inf(-1), 0, true}
	return rule{"below 0", less, less}
}

// notBelow says that a difference is not less than 0 by more than a margin: the test of
// non-inferiority.
func notBelow(margin float64) rule {
	words := "not below 0"
	if margin > 0 {
		words = fmt.Sprintf("not below 0 by more than %s", short(margin))
	}
	enough := span{lo: -margin, hi: math.Inf(1)}
	return rule{words, enough, enough}
}

// smaller says that a difference is small, whichever way: the test of equivalence.
func smaller(bound float64) rule {
	small := span{lo: -bound, hi: bound}
	return rule{"within ±" + short(bound), small, small}
}

// What is as large as a number that a paper prints: off by at most a quarter of it or two
// units, whichever is more; tolerable is twice that. Units are those that the paper prints,
// percent for the most part.
const (
	printedPart  = 0.25
	printedUnits = 2
)

// printed says that a figure is as large as a paper prints it.
func printed(value float64) rule {
	off := max(printedPart*math.Abs(value), printedUnits)
	return rule{
		fmt.Sprintf("published %s, ±%s, tolerance ±%s", short(value), short(off), short(2*off)),
		span{lo: value - off, hi: value + off},
		span{lo: value - 2*off, hi: value + 2*off},
	}
}

// atLeast says of a count that it is at least enough of all, and tolerable if at least some.
func atLeast(of, enough, some int) rule {
	words := fmt.Sprintf("at least %d of %d", enough, of)
	if some < enough {
		words += fmt.Sprintf(", tolerance to %d", some)
	}
	return rule{words, span{lo: float64(enough), hi: math.Inf(1)}, span{lo: float64(some), hi: math.Inf(1)}}
}

// judge returns the verdict on an estimate of n values, among that many comparisons. exact
// is that it is no sample but all there is.
func (r *rule) judge(e *measure.Estimate, n, comparisons int, exact bool) Verdict {
	interval, wide := e.CI95, e.Widened(n, comparisons)
	if exact && e.Mean != nil {
		interval = &[2]float64{*e.Mean, *e.Mean}
		wide = interval
	}
	switch {
	case interval == nil:
		return NotTestable
	case r.held.holds(*interval):
		return Held
	case r.near.holds(*interval):
		return WithinTolerance
	case !r.near.meets(*wide):
		return NotHeld
	}
	return Inconclusive
}

// margin returns how far an estimate is from the numbers that hold, in halves of its
// interval: 1 and more is held, less is worse. half is that of what has no interval.
func (r *rule) margin(e *measure.Estimate, half float64) float64 {
	if e.Mean == nil || e.CI95 == nil && half == 0 {
		return math.Inf(-1)
	}
	if e.CI95 != nil {
		half = (e.CI95[1] - e.CI95[0]) / 2
	}
	depth := r.held.depth(*e.Mean)
	if half == 0 {
		return math.Copysign(math.Inf(1), depth)
	}
	return depth / half
}

// settle judges every part of a claim, and the claim by its parts.
func (c *Claim) settle() {
	if c.Kind == "" {
		c.Kind = Published
	}
	said, numbers := c.apart()
	c.Verdict = settled(said)
	if len(numbers) > 0 {
		c.Magnitude = settled(numbers)
	}
}

// apart returns the parts about what is said in words, and those about printed numbers.
func (c *Claim) apart() (said, numbers []*Part) {
	for i := range c.Parts {
		if c.Parts[i].Printed {
			numbers = append(numbers, &c.Parts[i])
		} else {
			said = append(said, &c.Parts[i])
		}
	}
	return said, numbers
}

// settled judges parts and returns the worst verdict; of none it is that nothing is testable.
func settled(parts []*Part) Verdict {
	if len(parts) == 0 {
		return NotTestable
	}
	comparisons := 0
	for _, p := range parts {
		if p.exact == 0 {
			comparisons++
		}
	}
	verdict := Held
	for _, p := range parts {
		p.Verdict = p.rule.judge(&p.Value, p.N, comparisons, p.exact > 0)
		if slices.Index(Verdicts(), p.Verdict) > slices.Index(Verdicts(), verdict) {
			verdict = p.Verdict
		}
	}
	return verdict
}

// Deciding returns the part on which the verdict rests: of those that have it, the one that
// is the farthest from holding, which of a claim that holds is the closest call. It is an
// empty part if there is none.
func (c *Claim) Deciding() *Part {
	said, _ := c.apart()
	return deciding(said, c.Verdict)
}

// DecidingMagnitude is the same of the magnitude.
func (c *Claim) DecidingMagnitude() *Part {
	_, numbers := c.apart()
	return deciding(numbers, c.Magnitude)
}

func deciding(parts []*Part, verdict Verdict) *Part {
	least, at := math.Inf(1), &Part{}
	for _, p := range parts {
		if m := p.rule.margin(&p.Value, p.exact); p.Verdict == verdict && (m < least || at.What == "") {
			least, at = m, p
		}
	}
	return at
}
