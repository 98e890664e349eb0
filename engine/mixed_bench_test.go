package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/cputime"
)

// bench is an engine with promises that are made, changed and given up.
type bench struct {
	b       *testing.B
	engine  *engine.Engine
	rng     *rand.Rand
	span    int64
	widest  int64
	parts   int
	asked   int
	events  int
	refused int
	live    []berth.Request
}

// newBench returns an engine in which live requests of up to widest PEs in each part are promised, which hold
// 70 % of the PEs.
func newBench(b *testing.B, sites []berth.Site, live, parts int, widest berth.Count) *bench {
	b.Helper()
	e, err := engine.New(engine.Config{Sites: sites})
	if err != nil {
		b.Fatal(err)
	}
	var pes int64
	for i := range sites {
		pes += int64(sites[i].Pools[0].PEs)
	}
	m := &bench{b: b, engine: e, rng: rand.New(rand.NewPCG(1, 2)), parts: parts, widest: int64(widest)}
	m.span = int64(live) * int64(parts) * 7200 * m.widest / 2 * 10 / (7 * pes)
	for len(m.live) < live {
		m.ask(0)
	}
	return m
}

func (m *bench) apply(event engine.Event) []change.Change {
	changes, _, err := m.engine.Apply(0, event)
	if e, ours := errors.AsType[*berth.Error](err); err != nil && (!ours || e.Code != berth.NotFound) { // an outage may have ended it
		m.b.Fatal(err)
	}
	m.events++
	return changes
}

// ask asks for a reservation, held for a time if that is not 0, and returns whether it is promised.
func (m *bench) ask(hold berth.Duration) bool {
	ready, d := berth.Time(1+m.rng.Int64N(m.span)), berth.Duration(60+m.rng.IntN(14341))
	r := berth.Rigid(fmt.Sprint("r", m.asked), 0, ready, ready.Add(8*d), 1+berth.Count(m.rng.Int64N(m.widest)), d)
	for range m.parts - 1 {
		r.Parts = append(r.Parts, berth.Part{Variants: r.Parts[0].Variants})
	}
	r.Hold = hold
	m.asked++
	ok := slices.ContainsFunc(m.apply(engine.Submit(&r)), func(c change.Change) bool { return c.Kind == change.Accepted })
	if ok {
		m.live = append(m.live, r)
	} else {
		m.refused++
	}
	return ok
}

// giveUp cancels one of what is promised.
func (m *bench) giveUp() {
	i, last := m.rng.IntN(len(m.live)), len(m.live)-1
	m.apply(engine.Cancel(m.live[i].ID))
	m.live[i] = m.live[last]
	m.live = m.live[:last]
}

// BenchmarkMixed has one engine decide what users and operators ask of it, in one goroutine. A step is one of these,
// drawn with the weights in brackets:
//   - a promise is cancelled, and another one is asked for (42)
//   - the same, but the new one is held and then confirmed (20)
//   - a promise is changed to another number of PEs (20)
//   - a promise is extended (10)
//   - offers are asked for (6)
//   - an outage of 8 PEs for an hour is announced and called off (2)
//
// CPU time is that of the whole process, garbage collection included.
func BenchmarkMixed(b *testing.B) {
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		for _, live := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/live=%d", binding, live), func(b *testing.B) {
				pool := berth.Pool{Name: "p", PEs: 1024, Binding: binding}
				m := newBench(b, []berth.Site{{Name: "s", Pools: []berth.Pool{pool}}}, live, 1, 128)
				m.events, m.refused = 0, 0
				began := cputime.Used()
				for b.Loop() {
					m.step()
				}
				took := (cputime.Used() - began).Seconds()
				b.ReportMetric(float64(m.events)/took, "events/s")
				b.ReportMetric(float64(m.refused)/float64(m.events), "refused")
			})
		}
	}
}

func (m *bench) step() {
	switch what := m.rng.IntN(100); {
	case what < 42:
		m.giveUp()
		m.ask(0)
	case what < 62:
		m.giveUp()
		if m.ask(60) {
			m.apply(engine.Confirm(m.live[len(m.live)-1].ID))
		}
	case what < 82:
		r := m.live[m.rng.IntN(len(m.live))].Clone()
		r.Hold, r.Parts[0].Variants[0].NPE = 0, 1+berth.Count(m.rng.Int64N(m.widest))
		m.apply(engine.Modify(r))
	case what < 92:
		id := m.live[m.rng.IntN(len(m.live))].ID
		if r, ok := m.engine.Reservation(id); ok {
			m.apply(engine.Extend(id, r.Allotments[0].End.Add(600)))
		}
	case what < 98:
		r := m.live[m.rng.IntN(len(m.live))].Clone()
		r.ID = "offers"
		if _, err := m.engine.Offers(r, 3); err != nil {
			m.b.Fatal(err)
		}
		m.events++
	default:
		at := berth.Time(1 + m.rng.Int64N(m.span))
		pes := berth.NewPESet(berth.Run{Lo: 0, Hi: 8})
		m.apply(engine.Down(berth.Outage{Resource: berth.PoolID("s", "p"), PEs: pes, From: at, Until: at.Add(3600)}))
		m.apply(engine.Up(berth.PoolID("s", "p"), pes))
	}
}

// BenchmarkParts measures co-allocation at 20 sites, each with as many live promises as the name says. A step replaces a promise of
// eight parts by another, or eight promises of one part each by eight others. The CPU time is that of a step.
func BenchmarkParts(b *testing.B) {
	const sites, parts = 20, 8
	for _, each := range []int{1_000, 10_000, 100_000} {
		for _, together := range []int{parts, 1} {
			b.Run(fmt.Sprintf("each=%d/parts=%d", each, together), func(b *testing.B) {
				list := make([]berth.Site, sites)
				for i := range list {
					list[i] = berth.Site{Name: fmt.Sprintf("s%02d", i), Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: berth.Late}}}
				}
				m := newBench(b, list, sites*each/together, together, 128)
				m.refused = 0
				began, asked := cputime.Used(), m.asked
				for b.Loop() {
					for range parts / together {
						m.giveUp()
						for !m.ask(0) {
							continue
						}
					}
				}
				b.ReportMetric(float64((cputime.Used()-began).Microseconds())/float64(b.N), "µs/parts")
				b.ReportMetric(float64(m.refused)/float64(m.asked-asked), "refused")
			})
		}
	}
}
