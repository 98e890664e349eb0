package api_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/service"
)

// BenchmarkGantt is the feed of the harbour: bars up to 50,000, cells of more, packed and
// plain. The bars are random, which packs worst.
func BenchmarkGantt(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000, 200_000} {
		for _, coding := range []string{"plain", "gzip"} {
			b.Run(fmt.Sprintf("bars=%d/coding=%s", n, coding), func(b *testing.B) {
				w := newWorld(b, api.Options{Limits: unlimited})
				r := rand.New(rand.NewPCG(1, uint64(n)))
				p := &service.Picture{PEs: 1024, Bars: make([]service.Bar, n)}
				for i := range p.Bars {
					first := i * 1024 / n
					p.Bars[i] = service.Bar{
						Start: start + berth.Time(r.IntN(7*86_400)), First: berth.PE(first), PEs: berth.Count(1 + r.IntN(min(8, 1024-first))), Number: uint32(r.IntN(n) + 1), Class: service.Class(1 + r.IntN(3)),
					}
					p.Bars[i].End = p.Bars[i].Start + berth.Time(60+r.IntN(20_000))
				}
				w.fake.picture = p
				headers := []string{}
				if coding == "gzip" {
					headers = []string{"Accept-Encoding", "gzip"}
				}
				const week = "/v1/gantt?site=cm5&pool=batch&from=2026-11-21T12:00:00Z&to=2026-11-28T12:00:00Z"
				bytes := 0
				for b.Loop() {
					a := w.do("vera", "GET", week, "", headers...)
					if bytes = len(a.text); a.Code != 200 {
						b.Fatal(a.Code)
					}
				}
				b.ReportMetric(float64(bytes), "bytes/answer")
			})
		}
	}
}
