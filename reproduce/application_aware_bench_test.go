package reproduce

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// point returns an engine in which n jobs wait for the scheduling point at
// 240 whose forecasts are there, and others use what they use.
func (w *awareWorld) point(tb testing.TB, m *awareMatcher, jobs []berth.Request) *engine.Engine {
	e, err := engine.New(w.config(m))
	if err != nil {
		tb.Fatal(err)
	}
	apply := func(now berth.Time, event engine.Event) {
		if _, _, err := e.Apply(now, event); err != nil {
			tb.Fatal(err)
		}
	}
	apply(1, engine.Wake())
	for i := range jobs {
		r := jobs[i]
		r.Deadline = r.Deadline - r.Arrival + awarePeriod
		r.Arrival, r.Ready = 1, 1
		apply(1, engine.Submit(&r))
	}
	monitor := &awareMonitor{world: w, last: 1, point: 1}
	for {
		at, more := monitor.Next(e)
		if !more || at > awarePeriod {
			return e
		}
		apply(at, monitor.Report(e))
	}
}

// BenchmarkPoint is one scheduling point in the engine, at the paper's size, with
// the forecasts made: what is free, what each job requires, the round, and the
// promises.
func BenchmarkPoint(b *testing.B) {
	source, err := awareSources(&session{Options: Options{Seed: 1}})
	if err != nil {
		b.Fatal(err)
	}
	w := newAwareWorld(1, syntheticNet, 1)
	jobs := w.jobs(source.records, 2880, 1, printedDemands)
	for i := range awareMatchers[:fairMinMin+1] {
		m := &awareMatchers[i]
		b.Run(fmt.Sprintf("matcher=%s/jobs=%d/sites=%d", m.name, len(jobs), len(w.sites)), func(b *testing.B) {
			decided := 0
			for b.Loop() {
				b.StopTimer()
				e := w.point(b, m, jobs)
				waiting := e.Live()
				b.StartTimer()
				changes, _, err := e.Apply(awarePeriod, engine.Wake())
				if err != nil || waiting != len(jobs) {
					b.Fatal(waiting, err)
				}
				for k := range changes {
					if changes[k].Kind == change.Accepted {
						decided++
					}
				}
			}
			if decided == 0 {
				b.Fatal("nothing is accepted")
			}
			b.ReportMetric(float64(decided)/float64(b.N), "accepted")
		})
	}
}
