package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/policy"
)

// BenchmarkClasses measures a request and a cancellation among 10,000 live promises: in a
// pool whose PEs are all alike, the same in a pool where it is one of three classes, and
// for PEs of any of the three. CPU time is that of the whole process, garbage collection included.
func BenchmarkClasses(b *testing.B) {
	const pes, live = 128, 10_000
	classes := make([]berth.Class, 3)
	for i := range classes {
		lo := berth.PE(i * pes)
		classes[i] = berth.Class{Name: fmt.Sprintf("k%d", i), PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: lo + pes})}
	}
	alike := berth.Pool{Name: "p", PEs: pes, Binding: berth.Early}
	mixed := berth.Pool{Name: "p", PEs: 3 * pes, Binding: berth.Early, Classes: classes}
	for _, bench := range []struct {
		name       string
		pool       berth.Pool
		constraint func(i int) string
	}{
		{"alike", alike, func(int) string { return "" }},
		{"one of three", mixed, func(i int) string { return classes[i%3].Name }},
		{"any of three", mixed, func(int) string { return "" }},
	} {
		for _, place := range policy.Placements {
			b.Run(bench.name+"/"+place.Name, func(b *testing.B) {
				e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{bench.pool}}}, Place: place.Name})
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				accepted, promised := 0, map[int]bool{}
				submit := func(i int) {
					ready := berth.Time(rng.IntN(40 * live * pes / int(bench.pool.PEs))) // equally full
					r := berth.Rigid(fmt.Sprint("r", i), 0, ready, ready+4000, berth.Count(1+rng.IntN(16)), berth.Duration(100+rng.IntN(900)))
					r.Constraint = bench.constraint(i)
					changes, _, err := e.Apply(0, engine.Submit(&r))
					if err != nil {
						b.Fatal(err)
					}
					if slices.ContainsFunc(changes, func(c change.Change) bool { return c.Kind == change.Accepted }) {
						accepted, promised[i] = accepted+1, true
					}
				}
				i := 0
				for ; i < live; i++ {
					submit(i)
				}
				before := cputime.Used()
				b.ResetTimer()
				for range b.N {
					submit(i)
					if promised[i-live] {
						if _, _, err := e.Apply(0, engine.Cancel(fmt.Sprint("r", i-live))); err != nil {
							b.Fatal(err)
						}
					}
					i++
				}
				b.ReportMetric(float64(cputime.Used()-before)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(100*float64(accepted)/float64(i), "%accepted")
			})
		}
	}
}
