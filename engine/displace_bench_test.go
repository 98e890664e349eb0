package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// BenchmarkDown takes PEs of a managed pool out of use on which many promises are
// booked, one after the other: all of them, where there is another pool and where
// there is none, and one PE that each promise has for a quarter of its own.
func BenchmarkDown(b *testing.B) {
	for _, c := range []struct {
		name     string
		out      berth.PESet
		promises int
		pools    int
		moved    change.Kind
	}{
		{"pool", berth.PEsOf(0, 1, 2, 3), 200, 1, change.Resized},
		{"pool", berth.PEsOf(0, 1, 2, 3), 2000, 1, change.Resized},
		{"pool-of-two", berth.PEsOf(0, 1, 2, 3), 200, 2, change.Moved},
		{"pool-of-two", berth.PEsOf(0, 1, 2, 3), 2000, 2, change.Moved},
		{"pe", berth.PEsOf(0), 200, 1, change.Resized},
		{"pe", berth.PEsOf(0), 2000, 1, change.Resized},
	} {
		b.Run(fmt.Sprintf("%s/promises=%d", c.name, c.promises), func(b *testing.B) {
			config := engine.Config{Sites: []berth.Site{{Name: "site", Managed: true}}}
			for i := range c.pools {
				config.Sites[0].Pools = append(config.Sites[0].Pools, berth.Pool{Name: fmt.Sprint(i), PEs: 4, Binding: berth.Early})
			}
			for b.Loop() {
				b.StopTimer()
				e, err := engine.New(config)
				if err != nil {
					b.Fatal(err)
				}
				for i := range c.promises {
					ready := berth.Time(10 * (i + 1))
					r := berth.Rigid(fmt.Sprint(i), 0, ready, ready.Add(10), 4, 10)
					r.Site, r.Pool = "site", "0"
					if c.pools > 1 {
						r.Pool = ""
					}
					if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				changes, _, err := e.Apply(1, engine.Down(berth.Outage{Resource: berth.PoolID("site", "0"), PEs: c.out}))
				if err != nil {
					b.Fatal(err)
				}
				told := 0
				for i := range changes {
					if changes[i].Kind == c.moved {
						told++
					}
				}
				if told != c.promises {
					b.Fatalf("%d of %d promises are %s", told, c.promises, c.moved)
				}
			}
		})
	}
}

// BenchmarkEndsBesideDegraded lets promises end one after the other, each at its limit,
// while those after it lack a PE that does not come back.
func BenchmarkEndsBesideDegraded(b *testing.B) {
	for _, promises := range []int{20, 200, 2000} {
		b.Run(fmt.Sprintf("promises=%d", promises), func(b *testing.B) {
			config := onePool(4, berth.Early)
			config.Sites[0].Managed = true
			for b.Loop() {
				b.StopTimer()
				e, err := engine.New(config)
				if err != nil {
					b.Fatal(err)
				}
				for i := range promises {
					ready := berth.Time(10 * (i + 1))
					r := berth.Rigid(fmt.Sprint(i), 0, ready, ready.Add(10), 4, 10)
					if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
						b.Fatal(err)
					}
				}
				if _, _, err := e.Apply(1, engine.Down(berth.Outage{Resource: berth.PoolID("cm5", "pool"), PEs: berth.PEsOf(0)})); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				changes, _, err := e.Apply(berth.Time(10*promises+20), engine.Wake())
				if err != nil {
					b.Fatal(err)
				}
				ended := 0
				for i := range changes {
					if changes[i].Kind == change.Ended {
						ended++
					}
				}
				if ended != promises {
					b.Fatalf("%d of %d promises end", ended, promises)
				}
			}
		})
	}
}
