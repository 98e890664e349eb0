package api_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/service"
)

// fullPool returns a picture of 500 PEs over 1,024 steps of 480 seconds with n bars. No two
// bars hold a PE at the same time.
func fullPool(n int) *service.Picture {
	const pes, window = 500, 1024 * 480
	r := rand.New(rand.NewPCG(1, uint64(n)))
	p := &service.Picture{PEs: pes, Pages: make([][]service.Bar, 250)}
	blocks := min(110, n)
	for block := range blocks {
		first, end := block*pes/blocks, (block+1)*pes/blocks
		count := (block+1)*n/blocks - block*n/blocks
		for i := range count {
			from := start + berth.Time(i*window/count)
			p.Pages[first/2] = append(p.Pages[first/2], service.Bar{
				Start: from, End: from + berth.Time(max(1, window/count-r.IntN(window/count/2+1))), First: berth.PE(first), PEs: berth.Count(end - first),
				Number: uint32(r.IntN(n) + 1), Class: service.Class(1 + r.IntN(3)),
			})
		}
	}
	return p
}

// BenchmarkGantt is the feed of the harbour: bars up to 50,000, cells of more, packed. Each
// picture is requested for the first time, after one bar has changed, and without changes.
func BenchmarkGantt(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000, 200_000} {
		for _, asked := range []string{"first", "changed", "again"} {
			b.Run(fmt.Sprintf("bars=%d/asked=%s", n, asked), func(b *testing.B) {
				w := newWorld(b, api.Options{Limits: unlimited})
				w.fake.picture = fullPool(n)
				bytes, most := 0, 50_000
				begin := cputime.Used()
				for b.Loop() {
					switch asked {
					case "first":
						w.fake.picture.Generation++
						if n > most-1000 && n != 50_000 {
							most-- // of a canvas that is kept less is drawn
						}
					case "changed":
						p := *w.fake.picture
						p.Generation++
						p.Pages = slices.Clone(p.Pages)
						page := slices.Clone(p.Pages[50])
						page[len(page)/2].Class = service.Class(1 + p.Generation%3)
						p.Pages[50] = page
						w.fake.picture = &p
					}
					a := w.do("vera", "GET", fmt.Sprintf("/v1/gantt?site=cm5&pool=batch&from=2026-11-21T12:00:00Z&to=2026-11-27T04:32:00Z&most=%d", most), "", "Accept-Encoding", "gzip")
					if bytes = len(a.text); a.Code != 200 {
						b.Fatal(a.Code, a.text)
					}
				}
				b.ReportMetric(float64((cputime.Used()-begin).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
				b.ReportMetric(float64(bytes), "bytes/answer")
			})
		}
	}
}
