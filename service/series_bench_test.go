package service_test

import (
	"fmt"
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

// besideLive measures something of a service with live reservations, in a pool of 1,024 PEs.
func besideLive(b *testing.B, measure func(b *testing.B, h *service.Host, daily berth.Series)) {
	for _, c := range []struct{ live, occurrences int }{{1000, 200}, {100_000, 200}, {100_000, 1300}, {100_000, berth.MaxOccurrences}} {
		live := c.live
		b.Run(fmt.Sprintf("live=%d/occurrences=%d", live, c.occurrences), func(b *testing.B) {
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
			span := int64(live)*7230*32/1024/7*10 + 100_000
			var wg sync.WaitGroup
			var next atomic.Int64
			for client := range 64 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(client), 23))
					for next.Add(1) <= int64(live) {
						ready, d := now+3600+berth.Time(r.Int64N(span)), berth.Duration(60+r.Int64N(14_341))
						if _, err := h.Submit(b.Context(), ann, berth.Rigid("", 0, ready, ready.Add(8*d), berth.Count(1)<<r.IntN(8), d)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			s := berth.Series{Rule: "daily", Zone: "UTC", Least: c.occurrences, Request: berth.Rigid("", 0, 0, 1, 8, 3600)}
			for i := range c.occurrences {
				ready := now + 7200 + berth.Time(86_400*i)
				s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready + 86_400})
			}
			measure(b, h, s)
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// promised submits a series.
func promised(b *testing.B, h *service.Host, s berth.Series) (id string) {
	b.Helper()
	a, err := h.SubmitSeries(b.Context(), ann, s)
	if err != nil || a.Series.Refused || len(a.Series.Unfit) > 0 {
		b.Fatalf("%v, %d occurrences cannot be", err, len(a.Series.Unfit))
	}
	return a.Series.Series.ID
}

// BenchmarkSubmitSeries makes durable series beside live reservations. An occurrence wants 8 of 1,024 PEs
// for an hour within a day. Each series is given back afterwards, which is not measured.
func BenchmarkSubmitSeries(b *testing.B) {
	besideLive(b, func(b *testing.B, h *service.Host, daily berth.Series) {
		for b.Loop() {
			id := promised(b, h, daily)
			b.StopTimer()
			if _, err := h.CancelSeries(b.Context(), ann, id, 0, 0); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

// BenchmarkModifySeries moves all occurrences of such a series by an hour, and back.
func BenchmarkModifySeries(b *testing.B) {
	besideLive(b, func(b *testing.B, h *service.Host, daily berth.Series) {
		id, by := promised(b, h, daily), berth.Duration(3600)
		for b.Loop() {
			a, err := h.ModifySeries(b.Context(), ann, id, service.SeriesEdit{By: by})
			if err != nil || len(a.Refusals) > 0 {
				b.Fatalf("%v, %d occurrences cannot change", err, len(a.Refusals))
			}
			by = -by
		}
	})
}
