package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/cputime"
)

// BenchmarkLayOut lays out promises of late binding in a pool that is half full: all of them, and
// after one of them has changed.
func BenchmarkLayOut(b *testing.B) {
	for _, n := range []int{1000, 10_000, 30_000} {
		for _, how := range []string{"all", "changed"} {
			b.Run(fmt.Sprintf("promises=%d/%s", n, how), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				pool := &berth.Pool{PEs: 1024}
				var late []unbound
				for i := range n {
					start := berth.Time(r.IntN(n * 160))
					late = append(late, unbound{Bar{Start: start, End: start + berth.Time(600+r.IntN(7200)), PEs: berth.Count(1 + r.IntN(40)), Number: uint32(i), Class: ClassPromise}, uint64(i), 0})
				}
				slices.SortFunc(late, compareUnbound)
				legs := layOut(pool, nil, late, nil, nil)
				begin := cputime.Used()
				var took []time.Duration
				for b.Loop() {
					before := cputime.Used()
					if how == "all" {
						legs = layOut(pool, nil, late, nil, nil)
					} else {
						i := r.IntN(len(late))
						changed := noDifferences()
						changed.late(&late[i])
						late[i].End++
						changed.late(&late[i])
						legs = layOut(pool, nil, late, legs, changed)
					}
					took = append(took, cputime.Used()-before)
				}
				if len(legs) < n/legLength {
					b.Fatal(len(legs), "legs")
				}
				slices.Sort(took)
				b.ReportMetric(float64((cputime.Used()-begin).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
				b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-cpu-ms")
			})
		}
	}
}
