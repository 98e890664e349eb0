package reproduce

import (
	"fmt"
	"math"
	"strings"

	"github.com/berth-hpc/berth/measure"
)

// Verdict says what became of a claim.
type Verdict string

// The verdicts.
const (
	Held            Verdict = "held"
	WithinTolerance Verdict = "within tolerance"
	NotHeld         Verdict = "not held"
	NotTestable     Verdict = "not testable"
)

// Claim is something that a paper states, and what came of it.
type Claim struct {
	ID     string
	Source string // where the paper says so
	Paper  string // what it says, in one line
	Ours   string // what was found, in one line
	// Verdict is the worst of the parts.
	Verdict Verdict
	Parts   []Part
	Figure  string // by name; empty for none
}

// Part is one comparison that a claim comes down to.
type Part struct {
	What    string
	Rule    string // what has to be so, for example "above 0"
	Unit    string
	Value   measure.Estimate
	N       int // repetitions behind the value
	Verdict Verdict
}

// severity orders the verdicts from the best to the worst.
var severity = map[Verdict]int{Held: 0, WithinTolerance: 1, NotTestable: 2, NotHeld: 3}

// worst returns the worst verdict of the parts; a claim without parts is not
// testable.
func worst(parts []Part) Verdict {
	if len(parts) == 0 {
		return NotTestable
	}
	verdict := Held
	for i := range parts {
		if severity[parts[i].Verdict] > severity[verdict] {
			verdict = parts[i].Verdict
		}
	}
	return verdict
}

// Deciding returns the part on which the verdict rests: the first that has it.
func (c *Claim) Deciding() *Part {
	for i := range c.Parts {
		if c.Parts[i].Verdict == c.Verdict {
			return &c.Parts[i]
		}
	}
	return &Part{}
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

// rule judges an estimate.
type rule struct {
	words string
	judge func(e measure.Estimate) Verdict
}

// above says that a difference is more than 0: held if its whole 95 % interval
// is, within tolerance if only the mean is.
func above() rule {
	return rule{"above 0", func(e measure.Estimate) Verdict {
		switch {
		case e.CI95 == nil:
			return NotTestable
		case e.CI95[0] > 0:
			return Held
		case *e.Mean > 0:
			return WithinTolerance
		}
		return NotHeld
	}}
}

// below is above, mirrored.
func below() rule {
	return rule{"below 0", func(e measure.Estimate) Verdict { return above().judge(mirrored(e)) }}
}

// notBelow says that a difference is not less than 0: held unless its whole
// 95 % interval is, and within tolerance even then if the mean is off by at
// most the tolerance.
func notBelow(tolerance float64) rule {
	words := "not below 0"
	if tolerance > 0 {
		words = fmt.Sprintf("not below 0, tolerance %s", short(tolerance))
	}
	return rule{words, func(e measure.Estimate) Verdict {
		switch {
		case e.CI95 == nil:
			return NotTestable
		case e.CI95[1] >= 0:
			return Held
		case *e.Mean >= -tolerance:
			return WithinTolerance
		}
		return NotHeld
	}}
}

// smaller says that a difference is small, whichever way: held if its whole
// 95 % interval lies within the bound, within tolerance if only the mean does.
func smaller(bound float64) rule {
	return rule{"within ±" + short(bound), func(e measure.Estimate) Verdict {
		switch {
		case e.CI95 == nil:
			return NotTestable
		case e.CI95[0] >= -bound && e.CI95[1] <= bound:
			return Held
		case math.Abs(*e.Mean) <= bound:
			return WithinTolerance
		}
		return NotHeld
	}}
}

func mirrored(e measure.Estimate) measure.Estimate {
	if e.Mean == nil {
		return e
	}
	mean := -*e.Mean
	m := measure.Estimate{Mean: &mean}
	if e.CI95 != nil {
		m.CI95 = &[2]float64{-e.CI95[1], -e.CI95[0]}
	}
	return m
}

// part judges a sample by a rule.
func part(what, unit string, s sample, r rule) Part {
	e, n := s.estimate()
	return Part{What: what, Rule: r.words, Unit: unit, Value: e, N: n, Verdict: r.judge(e)}
}

// counted judges a count, such as of configurations, without an interval: held
// if it is at least enough, within tolerance if at least some.
func counted(what, unit string, count, of, enough, some int) Part {
	value := float64(count)
	verdict := NotHeld
	switch {
	case of == 0:
		verdict = NotTestable
	case count >= enough:
		verdict = Held
	case count >= some:
		verdict = WithinTolerance
	}
	words := fmt.Sprintf("at least %d of %d", enough, of)
	if some < enough {
		words += fmt.Sprintf(", tolerance to %d", some)
	}
	return Part{What: what, Rule: words, Unit: unit, Value: measure.Estimate{Mean: &value}, N: of, Verdict: verdict}
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
