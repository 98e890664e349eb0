package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
)

func opened(b testing.TB) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// typical returns records of the size that an accepted reservation has.
func typical(after journal.Position, n int) []journal.Record {
	rng := rand.New(rand.NewPCG(3, after.Number))
	records := make([]journal.Record, n)
	for i := range records {
		r := &records[i]
		r.At, r.Version = 1_700_000_000, "v0.5.0"
		r.Event, r.Changes, r.Effects = make([]byte, 60), make([]byte, 170), make([]byte, 30)
		for _, p := range [][]byte{r.Event, r.Changes, r.Effects} {
			for k := range p {
				p[k] = byte(rng.Uint32())
			}
		}
		after = r.Seal(after)
	}
	return records
}

// BenchmarkAppend measures durable records: sealed, checked, written, synced.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			s := opened(b)
			records := typical(journal.Position{}, batch)
			var last journal.Position
			for b.Loop() {
				for i := range records {
					last = records[i].Seal(last)
				}
				if err := s.Append(context.Background(), records...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkWriter measures clients that each wait for their own record.
func BenchmarkWriter(b *testing.B) {
	for _, clients := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := opened(b)
			w := journal.NewWriter(s, nil)
			template := typical(journal.Position{}, 1)[0]
			var mu sync.Mutex
			var last journal.Position
			var took []time.Duration
			work := make(chan struct{})
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					answer := make(chan error)
					for range work {
						r := template
						begun := time.Now()
						mu.Lock()
						last = r.Seal(last)
						w.Add(r, func(err error) { answer <- err })
						mu.Unlock()
						if err := <-answer; err != nil {
							b.Error(err)
						}
						mu.Lock()
						took = append(took, time.Since(begun))
						mu.Unlock()
					}
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			s := opened(b)
			var last journal.Position
			for at := 0; at < n; at += 1000 {
				records := typical(last, 1000)
				last = records[999].Position()
				if err := s.Append(context.Background(), records...); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				end, _, err := journal.Verify(context.Background(), s, 1, nil)
				if err != nil || end != last {
					b.Fatal(end.Number, err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, mb := range []int{1, 10, 100} {
		data := make([]byte, mb<<20)
		b.Run(fmt.Sprintf("save/mb=%d", mb), func(b *testing.B) {
			s := opened(b)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				records := typical(last(b, s), 1)
				if err := s.Append(context.Background(), records...); err != nil {
					b.Fatal(err)
				}
				if err := s.SaveSnapshot(context.Background(), records[0].Position(), data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("load/mb=%d", mb), func(b *testing.B) {
			s := opened(b)
			if err := s.SaveSnapshot(context.Background(), journal.Position{}, data); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				got, err := s.Snapshot(context.Background(), 0)
				if err != nil || len(got.Data) != len(data) {
					b.Fatal(len(got.Data), err)
				}
			}
		})
	}
}

func last(b *testing.B, s journal.Log) journal.Position {
	b.Helper()
	p, err := s.Last(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return p
}
