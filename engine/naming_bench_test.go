package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// BenchmarkNames is an outage of one PE, and its end, in a pool of 5,000 that names ahead,
// beside a number of promises with names, one of which gets another PE.
func BenchmarkNames(b *testing.B) {
	for _, named := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("named=%d", named), func(b *testing.B) {
			e, err := engine.New(ahead(5000, 1_000_000))
			if err != nil {
				b.Fatal(err)
			}
			for i := range named {
				start := berth.Time(1000 + 100*(i/40))
				r := berth.Rigid(fmt.Sprint(i), 0, start, start+100, 100, 100)
				if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
					b.Fatal(err)
				}
			}
			if _, _, err := e.Apply(0, engine.Wake()); err != nil {
				b.Fatal(err)
			}
			if r, _ := e.Reservation("0"); r.Allotments[0].PEs.Count() != 100 {
				b.Fatalf("it has %v", r.Allotments)
			}
			pool := berth.PoolID("cm5", "pool")
			for b.Loop() {
				_, _, _ = e.Apply(1, engine.Down(berth.Outage{Name: "n", Resource: pool, PEs: berth.PEsOf(7)}))
				_, _, _ = e.Apply(1, engine.UpNamed(pool, "n"))
			}
		})
	}
}
