package client_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// BenchmarkReserve is durable reservations over loopback, client and service on
// the same cores: 1,024 PEs, requests of 1 to 8 PEs for up to an hour somewhere
// in the next ten weeks, so that nearly all are promised.
func BenchmarkReserve(b *testing.B) {
	for _, clients := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("pes=1024/clients=%d", clients), func(b *testing.B) {
			h := newHarbourOf(b, 1024)
			secret, _, err := h.tokens.Add(token.Wanted{User: "alice", Role: service.User}, noon)
			if err != nil {
				b.Fatal(err)
			}
			speaker, err := client.New(h.server.URL, secret, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}})
			if err != nil {
				b.Fatal(err)
			}
			var left, promised atomic.Int64
			left.Store(int64(b.N))
			took := make([][]time.Duration, clients)
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range clients {
				all.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(i)))
					for left.Add(-1) >= 0 {
						ready := form.Time(noon + random.IntN(70*86400))
						q := &form.Request{
							NPE: berth.Count(1 + random.IntN(8)), Duration: berth.Duration(60 + random.IntN(3540)), Ready: ready, Deadline: ready + 86400,
						}
						began := time.Now()
						answer, err := speaker.Request(b.Context(), q, client.Action{})
						if err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(began))
						if answer.Decision == form.Accepted {
							promised.Add(1)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			times := slices.Concat(took...)
			slices.Sort(times)
			b.ReportMetric(float64(promised.Load())/b.Elapsed().Seconds(), "promises/s")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
