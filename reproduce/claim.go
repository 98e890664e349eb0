package reproduce

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/measure"
)

// Claim is something that a paper states, or we do, and what came of it.
type Claim struct {
	ID     string
	Kind   Kind   // empty is Published, until it is judged
	Source string // where the paper says so
	Paper  string // what it says, in one line
	Ours   string // what was found, in one line
	Parts  []Part
	Figure string // by name; empty for none
	// Over says what the intervals are over, where that is not the repetitions, each with a
	// seed of its own.
	Over string
	// Revised says which reading of the paper was changed after a verdict had been seen; empty
	// for none.
	Revised string
	// Verdict is the worst of the parts about what is said in words; Magnitude that of the
	// parts about printed numbers, empty if there are none.
	Verdict, Magnitude Verdict
}

// Part is one comparison that a claim comes down to.
type Part struct {
	What    string
	Rule    string // what has to be so, for example "above 0"
	Unit    string
	Value   measure.Estimate
	N       int  // repetitions behind the value
	Printed bool // it is about a number that the paper prints
	Verdict Verdict

	rule  rule
	exact float64 // of a count of all, which has no interval: half of that of as many tosses of a coin; 0 for a sample
}

// about says whether a part is about what is said in words or about a printed number.
func (p *Part) about() string {
	if p.Printed {
		return "number"
	}
	return "words"
}

// over says what the intervals are over.
func (c *Claim) over() string {
	if c.Over != "" {
		return c.Over
	}
	return "repetitions"
}

// sample is one figure over the repetitions, in their order. NaN is a
// repetition in which there was nothing to measure.
type sample []float64

// estimate returns the mean and the interval of what could be measured.
func (s sample) estimate() (e measure.Estimate, n int) {
	values := make([]float64, 0, len(s))
	for _, v := range s {
		if !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return measure.EstimateOf(values), len(values)
}

// median returns the middle of what could be measured, NaN of nothing.
func (s sample) median() float64 {
	values := slices.DeleteFunc(slices.Clone(s), math.IsNaN)
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// minus returns the differences, repetition by repetition: both samples come
// from the same draws, so what the draws have in common cancels out.
func (s sample) minus(other sample) sample {
	differences := make(sample, len(s))
	for i := range s {
		differences[i] = s[i] - other[i]
	}
	return differences
}

// times returns the sample in another unit.
func (s sample) times(factor float64) sample {
	scaled := make(sample, len(s))
	for i := range s {
		scaled[i] = float64(s[i] * factor)
	}
	return scaled
}

// plus returns the sample moved by a number.
func (s sample) plus(x float64) sample {
	moved := make(sample, len(s))
	for i := range s {
		moved[i] = s[i] + x
	}
	return moved
}

// size returns the sample without signs.
func (s sample) size() sample {
	sizes := make(sample, len(s))
	for i := range s {
		sizes[i] = math.Abs(s[i])
	}
	return sizes
}

// mean returns the means of several samples, repetition by repetition.
func meanOf(samples []sample) sample {
	if len(samples) == 0 {
		return nil
	}
	means := make(sample, len(samples[0]))
	for r := range means {
		sum := 0.0
		for _, s := range samples {
			sum += s[r]
		}
		means[r] = sum / float64(len(samples))
	}
	return means
}

// part compares a sample by a rule.
func part(what, unit string, s sample, r rule) Part {
	e, n := s.estimate()
	return Part{What: what, Rule: r.words, Unit: unit, Value: e, N: n, rule: r}
}

// asPrinted compares a sample with a number that the paper prints.
func asPrinted(what, unit string, s sample, published float64) Part {
	p := part(what, unit, s, printed(published))
	p.Printed = true
	return p
}

// counted compares a count, such as of configurations.
func counted(what, unit string, count, of, enough, some int) Part {
	p := Part{What: what, Unit: unit, N: of, rule: atLeast(of, enough, some), exact: max(1, math.Sqrt(float64(of)))}
	p.Rule = p.rule.words
	if of > 0 {
		value := float64(count)
		p.Value.Mean = &value
	}
	return p
}

// sharePrinted compares a count, as a share of all, with the share that the paper prints.
func sharePrinted(what string, count, of int, published float64) Part {
	p := Part{What: what, Unit: "%", N: of, Printed: true, rule: printed(published), exact: 100 / max(1, math.Sqrt(float64(of)))}
	p.Rule = p.rule.words
	if of > 0 {
		share := 100 * float64(count) / float64(of)
		p.Value.Mean = &share
	}
	return p
}

// short writes a number for people, with three digits that matter.
func short(x float64) string {
	decimals := 3
	switch size := math.Abs(x); {
	case size >= 100:
		decimals = 0
	case size >= 10:
		decimals = 1
	case size >= 1:
		decimals = 2
	}
	text := fmt.Sprintf("%.*f", decimals, x)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

// interval writes an estimate as its mean and interval.
func interval(e measure.Estimate) string {
	switch {
	case e.Mean == nil:
		return "nothing"
	case e.CI95 == nil:
		return short(*e.Mean)
	}
	return fmt.Sprintf("%s [%s, %s]", short(*e.Mean), short(e.CI95[0]), short(e.CI95[1]))
}

// of writes a sample as its mean and interval.
func (s sample) String() string {
	e, _ := s.estimate()
	return interval(e)
}
