package service_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// BenchmarkSubmit makes durable reservations from 64 clients on 1,024 PEs beside
// live ones.
func BenchmarkSubmit(b *testing.B) {
	for _, c := range []struct {
		name string
		live int
	}{{"live=1000", 1000}, {"live=100000", 100_000}} {
		b.Run(c.name, func(b *testing.B) {
			store, err := sqlite.Open(b.TempDir(), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: berth.Late}}}}}
			h, err := service.Open(b.Context(), service.Options{Config: config, Journal: store, Version: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			now := berth.Time(time.Now().Unix())
			span := berth.Time(c.live)*7230*32/1024/7*10 + 100_000
			one := func(r *rand.Rand) berth.Request {
				ready := now + 3600 + berth.Time(r.Int64N(int64(span)))
				d := berth.Duration(60 + r.Int64N(14_341))
				return berth.Rigid("", 0, ready, ready.Add(8*d), berth.Count(1)<<r.IntN(8), d)
			}
			clients := func(n int) {
				var wg sync.WaitGroup
				var next atomic.Int64
				for client := range 64 {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(uint64(client), uint64(n)))
						for next.Add(1) <= int64(n) {
							if _, err := h.Submit(b.Context(), ann, one(r)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			}
			clients(c.live)
			b.ResetTimer()
			clients(b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reservations/s")
			b.StopTimer()
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
