package sqlite_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// BenchmarkAppendWait measures how long an append of eight records takes where one follows the other,
// with checkpoints inline and beside, in turn: the operation is one append of each kind.
func BenchmarkAppendWait(b *testing.B) {
	type kind struct {
		name   string
		inline bool
		after  int
	}
	var kinds []kind
	for _, mb := range []int{1, 2, 4, 8} {
		if mb > 1 {
			kinds = append(kinds, kind{fmt.Sprintf("inline=%d", mb), true, mb << 20})
		}
		kinds = append(kinds, kind{fmt.Sprintf("beside=%d", mb), false, mb << 20})
	}
	const turn = 2000 // appends of a kind before those of the next
	for _, size := range []int{260, 2600} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			stores, lasts := make([]*sqlite.Store, len(kinds)), make([]journal.Position, len(kinds))
			took, own, cpu := make([][]time.Duration, len(kinds)), make([][]time.Duration, len(kinds)), make([]time.Duration, len(kinds))
			for i, k := range kinds {
				s, err := sqlite.Open(b.TempDir(), sqlite.Checkpoints("", k.inline, k.after))
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				stores[i] = s
			}
			records := typical(journal.Position{}, 8)
			for i := range records {
				records[i].Changes = slices.Repeat(records[i].Changes, size/260)
			}
			b.ResetTimer()
			for done := 0; done < b.N; done += turn {
				for i, s := range stores {
					used := cputime.Used()
					for range min(turn, b.N-done) {
						for r := range records {
							lasts[i] = records[r].Seal(lasts[i])
						}
						began := time.Now()
						own[i] = append(own[i], cputime.Of(func() {
							if err := s.Append(context.Background(), records...); err != nil {
								b.Fatal(err)
							}
						}))
						took[i] = append(took[i], time.Since(began))
					}
					cpu[i] += cputime.Used() - used
				}
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			for i, k := range kinds {
				slices.Sort(took[i])
				slices.Sort(own[i])
				n := len(took[i])
				for what, v := range map[string]float64{"p50-ms": ms(took[i][n/2]), "p99-ms": ms(took[i][n*99/100]), "p99.9-ms": ms(took[i][n*999/1000]), "max-ms": ms(took[i][n-1]), "own-p99.9-ms": ms(own[i][n*999/1000]), "own-max-ms": ms(own[i][n-1]), "cpu-µs": float64(cpu[i].Microseconds()) / float64(n)} {
					b.ReportMetric(v, k.name+":"+what)
				}
			}
		})
	}
}
