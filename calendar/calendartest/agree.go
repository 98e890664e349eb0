package calendartest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// Agree compares a form with another one, the oracle, on calendars that are
// too large for the model: both must give the same answer to every question.
// The number of random cases is that of -rapid.checks.
func Agree(t *testing.T, form, oracle calendar.New) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(string(binding), func(t *testing.T) {
			t.Run("random", rapid.MakeCheck(func(t *rapid.T) {
				from := rapidChooser{t}
				newPair(from, form, oracle, binding).run(t, from, 5+from.pick("steps", 30))
			}))
			t.Run("fixed", func(t *testing.T) {
				for seed := range uint64(3) {
					from := &randomChooser{rand.New(rand.NewPCG(seed, 3))}
					newPair(from, form, oracle, binding).run(t, from, 300)
				}
			})
		})
	}
}

type randomChooser struct{ rng *rand.Rand }

func (c *randomChooser) pick(_ string, n int) int { return c.rng.IntN(n) }

// pair drives two forms with the same operations.
type pair struct {
	c, oracle calendar.Calendar
	live      []calendar.Block
	now       berth.Time
}

func newPair(from chooser, form, oracle calendar.New, binding berth.Binding) *pair {
	size := oneOf(from, "size", 1, 3, 64, 100, 640, 1000, berth.Count(4096))
	return &pair{c: form(size, binding), oracle: oracle(size, binding)}
}

func (p *pair) run(t rapid.TB, from chooser, steps int) {
	for range steps {
		p.step(t, from)
	}
	checkCanonical(t, p.c)
	wantRecords(t, p.c, recordsOf(p.oracle))
}

// step changes both calendars, mostly by booking what a placement finds, and
// asks both a query.
func (p *pair) step(t rapid.TB, from chooser) {
	switch from.pick("step", 14) {
	case 0, 1, 2:
		if len(p.live) > 0 {
			i := from.pick("which", len(p.live))
			b := p.live[i]
			p.live = slices.Delete(p.live, i, i+1)
			b.Start = max(b.Start, p.now)
			p.both(t, "Remove", func(c calendar.Calendar) error { return c.Remove(b) })
		}
	case 3:
		p.now += berth.Time(from.pick("seconds on", 500))
		p.c.Prune(p.now)
		p.oracle.Prune(p.now)
		p.live = slices.DeleteFunc(p.live, func(b calendar.Block) bool { return b.End <= p.now })
	case 4: // any block, which is usually refused
		b := calendar.Block{Start: p.now + berth.Time(from.pick("start", 5000)), NPE: 1 + berth.Count(from.pick("npe", int(p.c.Size())))}
		b.End = b.Start + 1 + berth.Time(from.pick("length", 2000))
		b.PEs = berth.NewPESet(berth.Run{Lo: berth.PE(p.c.Size() - b.NPE), Hi: berth.PE(p.c.Size())})
		if p.both(t, "Add", func(c calendar.Calendar) error { return c.Add(b) }) {
			p.live = append(p.live, b)
		}
	default:
		p.book(t, from)
	}
	p.ask(t, from)
}

// both applies a change to both calendars, which must agree on its outcome.
func (p *pair) both(t rapid.TB, what string, change func(calendar.Calendar) error) (done bool) {
	err, errOracle := change(p.c), change(p.oracle)
	code := berth.Code("")
	if errOracle != nil {
		code = berth.Invalid
		if e, ok := errOracle.(*berth.Error); ok { //nolint:errorlint // calendars return bare errors
			code = e.Code
		}
	}
	wantCode(t, what, err, code)
	return err == nil
}

func (p *pair) someQuery(from chooser) calendar.Query {
	size := int(p.c.Size())
	q := calendar.Query{
		Now: p.now, Ready: p.now + berth.Time(from.pick("ready", oneOf(from, "ready within", 1, 200, 4000))),
		Duration: 1 + berth.Duration(from.pick("duration", oneOf(from, "duration within", 10, 300, 2000))),
		NPE:      1 + berth.Count(from.pick("npe", oneOf(from, "at most", size, 1+size/8))),
		Horizon:  oneOf(from, "horizon", calendar.Capped, calendar.Unbounded),
		Deadline: berth.Forever,
	}
	if from.pick("deadline", 4) > 0 {
		q.Deadline = q.Ready.Add(q.Duration) + berth.Time(from.pick("slack", oneOf(from, "slack within", 1, 1000, 6000)))
	}
	if p.c.Binding() == berth.Early && from.pick("eligible", 5) == 1 {
		lo := berth.PE(from.pick("eligible from", size))
		q.Eligible = berth.NewPESet(berth.Run{Lo: lo, Hi: lo + 1 + berth.PE(from.pick("eligible PEs", size))})
	}
	return q
}

func (p *pair) book(t rapid.TB, from chooser) {
	q := p.someQuery(from)
	row := oneOf(from, "placement", policy.Placements...)
	fit, ok := p.oracle.Find(q, row.Placement)
	if !ok {
		return
	}
	b := calendar.Block{Start: fit.Start, End: fit.End, NPE: q.NPE, PEs: fit.PEs}
	if !p.both(t, "Add", func(c calendar.Calendar) error { return c.Add(b) }) {
		t.Fatalf("I5: %s found %+v for %+v, which is taken", row.Name, fit, q)
	}
	p.live = append(p.live, b)
}

// ask asks both calendars everything about one query, the form through a View.
func (p *pair) ask(t rapid.TB, from chooser) {
	q, view := p.someQuery(from), calendar.ViewOf(p.c)
	compare := func(what string, ask func(calendar.Reader) any) {
		if want, got := ask(p.oracle), ask(view); !cmp.Equal(want, got) {
			t.Fatalf("%s of %+v (-oracle +form):\n%s", what, q, cmp.Diff(want, got))
		}
	}
	type found struct {
		Fit calendar.Fit
		OK  bool
	}
	for _, row := range policy.Placements {
		compare(row.Name, func(c calendar.Reader) any {
			fit, ok := c.Find(q, row.Placement)
			return found{fit, ok}
		})
	}
	for _, rule := range unusualRules {
		compare("an unusual rule", func(c calendar.Reader) any {
			fit, ok := c.Find(q, rule)
			return found{fit, ok}
		})
	}
	compare("Earliest", func(c calendar.Reader) any {
		fit, ok := calendar.Earliest(c, q)
		if c == calendar.Reader(view) {
			fit, ok = view.Earliest(q)
		}
		return found{fit, ok}
	})
	compare("MostFree", func(c calendar.Reader) any {
		n, start := c.MostFree(q)
		return [2]int64{int64(n), int64(start)}
	})
	type shown struct {
		Rectangle berth.Rectangle
		PEs       berth.PESet
	}
	compare("Rectangles", func(c calendar.Reader) any {
		var list []shown
		for r, pes := range c.Rectangles(q) {
			list = append(list, shown{r, pes})
		}
		return list
	})
	compare("Size", func(c calendar.Reader) any { return c.Size() })
	compare("Binding", func(c calendar.Reader) any { return c.Binding() })
	compare("Records", func(c calendar.Reader) any { return slices.Collect(c.Records()) })
	for _, iv := range []berth.Interval{{Start: q.Ready, End: q.Ready.Add(q.Duration)}, {Start: q.Ready.Add(-q.Duration), End: q.Deadline}} {
		compare("Changes", func(c calendar.Reader) any { return slices.Collect(c.Changes(iv)) })
	}
	compare("Free", func(c calendar.Reader) any {
		n, pes := c.Free(berth.Interval{Start: q.Ready, End: q.Ready.Add(q.Duration)})
		return shown{berth.Rectangle{Free: n}, pes}
	})
}
