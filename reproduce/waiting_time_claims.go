package reproduce

import (
	"fmt"
	"math"

	"github.com/berth-hpc/berth/workload"
)

// tellable is the difference of utilisation, in points, from which on eager
// counts as better or worse than sequential (spec 4, c); the interval must also
// exclude 0.
const tellable = 0.2

// nearlyAll and atLeastMost are the parts of the settings that "nearly all"
// means, and that is still within tolerance.
const (
	nearlyAll   = 0.95
	atLeastMost = 0.90
)

// waitingClaims judges the data.
func waitingClaims(d *waitingData) []Claim {
	return []Claim{claimTheorem(d), claimOpen(d), claimLimits(d), claimWide(d), claimUtilization(d)}
}

// fulfils reports whether the theorem's conditions hold: P(A) > ½ for
// A = {⌊m·K1⌋, …, ⌊m·(1−K2)⌋}, and 2·K1 > 1−K2.
func (s *waitingSetting) fulfils() bool {
	return s.bandShare() > 0.5 && 2*s.k1 > 1000-s.k2
}

// bandShare is P(A).
func (s *waitingSetting) bandShare() float64 {
	law, ok := workload.SizeLawNamed(s.law)
	if !ok {
		return 0
	}
	_, m := s.pes()
	shares := law.Shares(m, s.k1, s.k2)
	sum := 0.0
	for j := max(1, int64(m)*s.k1/1000); j <= int64(m)*(1000-s.k2)/1000; j++ {
		sum += shares[j-1]
	}
	return sum
}

// gain is what eager utilises more, in points.
func (c *comparison) gain() sample { return c.eager.utilization.minus(c.sequential.utilization) }

// tally counts in how many settings eager utilises more, less, or neither.
type tally struct {
	better, worse, equal int
	best, least          float64 // mean differences
}

func tallyOf(search []comparison) tally {
	t := tally{best: math.Inf(-1), least: math.Inf(1)}
	for i := range search {
		e, _ := search[i].gain().estimate()
		if e.Mean == nil {
			continue
		}
		t.best, t.least = max(t.best, *e.Mean), min(t.least, *e.Mean)
		switch {
		case e.CI95 != nil && e.CI95[0] > 0 && *e.Mean > tellable:
			t.better++
		case e.CI95 != nil && e.CI95[1] < 0 && *e.Mean < -tellable:
			t.worse++
		default:
			t.equal++
		}
	}
	return t
}

// testable returns how many settings can be told apart: none without repetition.
func testable(search []comparison) int {
	if len(search) == 0 || len(search[0].eager.utilization) < 2 {
		return 0
	}
	return len(search)
}

func (t *tally) String() string {
	return fmt.Sprintf("better in %d, worse in %d, equal in %d of %d settings, from %s to %s points",
		t.better, t.worse, t.equal, t.better+t.worse+t.equal, short(t.least), short(t.best))
}

// gains returns the mean gain over the settings, by repetition.
func gains(search []comparison) sample {
	all := make([]sample, len(search))
	for i := range search {
		all[i] = search[i].gain()
	}
	return meanOf(all)
}

func claimTheorem(d *waitingData) Claim {
	var fulfilling []comparison
	for i := range d.search {
		if d.search[i].setting.fulfils() {
			fulfilling = append(fulfilling, d.search[i])
		}
	}
	t, gain, n := tallyOf(fulfilling), gains(fulfilling), testable(fulfilling)
	return Claim{
		ID: "T", Source: "section 7, theorem", Figure: "search",
		Paper: "if P(A) > 1/2 and 2 K1 > 1 - K2, eager utilises more than sequential in the long run",
		Ours:  fmt.Sprintf("eager %s; on average %s points", &t, gain),
		Parts: []Part{
			counted("settings fulfilling the conditions in which eager utilises more", "settings", t.better, n, n, n),
			part("utilisation, eager - sequential, mean of these settings", "points", gain, above()),
		},
	}
}

func claimOpen(d *waitingData) Claim {
	n := len(d.open.filtered)
	same := func(changed []bool) (equal int) {
		for _, c := range changed {
			if !c {
				equal++
			}
		}
		return equal
	}
	one, zero, filtered := same(d.open.k2One), same(d.open.k1Zero), same(d.open.filtered)
	return Claim{
		ID: "E1", Kind: Check, Source: "section 6, procedure C",
		Paper: "K2 = 1 (or K1 = 0) refuses nothing: eager is then sequential",
		Ours: fmt.Sprintf("same decisions in %d of %d runs with K2 = 1, %d with K1 = 0; a filter that is on changes %d",
			one, n, zero, n-filtered),
		Parts: []Part{
			counted("runs with the decisions of sequential, K2 = 1", "runs", one, n, n, n),
			counted("runs with the decisions of sequential, K1 = 0", "runs", zero, n, n, n),
			counted("runs that a filter of 0 < K1 and K2 < 1 changes", "runs", n-filtered, n, 1, 1),
		},
	}
}

// limitTolerance is how far the acceptance may fall, in points, from one
// waiting limit to the next.
const limitTolerance = 0.5

func claimLimits(d *waitingData) Claim {
	c := Claim{
		ID: "E2", Kind: Check, Source: "section 2, the limit ω", Figure: "acceptance-by-limit",
		Paper: "the longer jobs may wait, the more are accepted",
	}
	first, last := &d.waits[0], &d.waits[len(d.waits)-1]
	for _, policy := range []struct {
		name string
		of   func(*comparison) sample
	}{
		{"sequential", func(c *comparison) sample { return c.sequential.acceptance }},
		{"eager", func(c *comparison) sample { return c.eager.acceptance }},
	} {
		for i := 1; i < len(d.waits); i++ {
			what := fmt.Sprintf("acceptance, %s, limit %s - limit %s", policy.name,
				short(d.waits[i].setting.limit), short(d.waits[i-1].setting.limit))
			c.Parts = append(c.Parts, part(what, "points", policy.of(&d.waits[i]).minus(policy.of(&d.waits[i-1])), notBelow(limitTolerance)))
		}
		whole := policy.of(last).minus(policy.of(first))
		c.Parts = append(c.Parts, part(fmt.Sprintf("acceptance, %s, longest limit - none", policy.name), "points", whole, above()))
		if c.Ours != "" {
			c.Ours += "; "
		}
		c.Ours += fmt.Sprintf("%s accepts %s %% without waiting, %s %% with limits of %s run times",
			policy.name, policy.of(first), policy.of(last), short(last.setting.limit))
	}
	return c
}

// wideTolerance is how far the acceptance of wide requests may fall, in points.
const wideTolerance = 0.5

func claimWide(d *waitingData) Claim {
	c := Claim{
		ID: "E3", Kind: Own, Source: "section 6", Figure: "acceptance-by-load",
		Paper: "eager refuses narrow jobs at busy sites for the sake of wide ones: clearly fewer narrow, as many or more wide",
	}
	for i := range d.loads {
		at := &d.loads[i]
		narrow, wide := at.eager.narrow.minus(at.sequential.narrow), at.eager.wide.minus(at.sequential.wide)
		load := short(at.setting.load)
		c.Parts = append(
			c.Parts,
			part("acceptance of narrow requests, eager - sequential, load "+load, "points", narrow, below()),
			part("acceptance of wide requests, eager - sequential, load "+load, "points", wide, notBelow(wideTolerance)),
		)
		if i > 0 {
			c.Ours += "; "
		}
		c.Ours += fmt.Sprintf("load %s: narrow %s, wide %s points", load, narrow, wide)
	}
	if least, most, ok := wideInSearch(d.search); ok {
		c.Ours += fmt.Sprintf("; in the settings of the theorem's search wide from %s to %s", short(least), short(most))
	}
	return c
}

// wideInSearch returns the least and the most that eager gains in the
// acceptance of wide requests over the settings of the search, in points.
func wideInSearch(search []comparison) (least, most float64, ok bool) {
	least, most = math.Inf(1), math.Inf(-1)
	for i := range search {
		if e, _ := search[i].eager.wide.minus(search[i].sequential.wide).estimate(); e.Mean != nil {
			least, most, ok = min(least, *e.Mean), max(most, *e.Mean), true
		}
	}
	return least, most, ok
}

func claimUtilization(d *waitingData) Claim {
	t, n := tallyOf(d.search), testable(d.search)
	enough, some := int(math.Ceil(nearlyAll*float64(n))), int(math.Ceil(atLeastMost*float64(n)))
	return Claim{
		ID: "E4", Kind: Own, Source: "against section 7 (spec 4, c)", Figure: "search",
		Paper: "contrary to the theorem, eager utilises no more than sequential in nearly all settings",
		Ours:  fmt.Sprintf("not more in %d of %d settings; eager %s", t.worse+t.equal, len(d.search), &t),
		Parts: []Part{
			counted("settings in which eager does not utilise more", "settings", t.worse+t.equal, n, enough, some),
			part("utilisation, eager - sequential, mean of all settings", "points", gains(d.search), below()),
		},
	}
}
