package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// grid is a round of many jobs and pools with a few numbers for each, so that
// it fits in memory where a table would not, and answers that take a division.
type grid struct {
	policy.Round
	work, data   []int64  // of jobs: standard seconds, MB
	software     []uint64 // of jobs: the bit of what they ask for
	speed, rates []int64  // of pools: percent, MB/s
	has          []uint64
}

// newGrid draws pools as different as those of Tang and Liao's table 2 and
// jobs with their deadlines, of 1.1 to 1.5 times the standard run time. Every
// second pool has each software. crowded is how many times over the jobs ask
// for the free PEs.
func newGrid(jobs, pools, crowded int) *grid {
	rng := rand.New(rand.NewPCG(5, uint64(jobs)))
	g := &grid{Round: policy.Round{Now: 1000, Stocks: make([][]int64, pools)}}
	asked := int64(0)
	for range jobs {
		npe, work := berth.Count(1)<<rng.IntN(8), 60+rng.Int64N(20_000)
		asked += int64(npe)
		g.Jobs = append(g.Jobs, policy.BatchJob{
			NPE: npe, Deadline: 1000 + berth.Time(work*(110+rng.Int64N(40))/100), Needs: []policy.Need{{Amount: 100 + rng.Int64N(20_000)}},
		})
		g.work, g.data = append(g.work, work), append(g.data, 100+rng.Int64N(20_000))
		g.software = append(g.software, 1<<rng.IntN(64))
	}
	share := max(128, asked/int64(pools*crowded))
	for pool := range pools {
		free := berth.Count(share/2 + rng.Int64N(share))
		g.Pools = append(g.Pools, policy.BatchPool{PEs: 4 * free, Free: free, Site: pool})
		g.Stocks[pool] = []int64{100_000_000}
		g.speed, g.rates = append(g.speed, 90+rng.Int64N(150)), append(g.rates, 12+rng.Int64N(1000))
		g.has = append(g.has, rng.Uint64())
	}
	g.Run = func(job, pool int) berth.Duration {
		return berth.Duration((g.work[job]*100 + g.speed[pool] - 1) / g.speed[pool])
	}
	g.Stage = func(job, pool int) berth.Duration {
		return berth.Duration((g.data[job] + g.rates[pool] - 1) / g.rates[pool])
	}
	g.Serves = func(job, pool int) bool { return g.has[pool]&g.software[job] != 0 }
	g.Draw = func(i int) uint64 { return mix(uint64(i)) }
	return g
}

// alike makes all jobs want the same pools in the same order, each as long as
// the others, which is the worst for jobs that look again when a pool fills.
func (g *grid) alike() {
	for job := range g.Jobs {
		g.Jobs[job].NPE, g.Jobs[job].Deadline = 16, berth.Forever
		g.work[job], g.data[job] = 5000, 1000
		g.software[job] = 1 << 63
	}
	for pool := range g.has {
		g.has[pool] |= 1 << 63
	}
}

type gridSize struct{ jobs, pools int }

// benchmarkBatch runs a matcher; the answer must be as long as the first.
func benchmarkBatch(b *testing.B, g *grid, name string, aware bool) {
	row, _ := policy.BatchNamed(name)
	m := row.New(policy.BatchOptions{Aware: aware})
	var out []policy.Assignment
	want := len(m.Assign(&g.Round, nil))
	if want == 0 {
		b.Fatal("nothing is assigned")
	}
	b.ReportAllocs()
	for b.Loop() {
		if out = m.Assign(&g.Round, out[:0]); len(out) != want {
			b.Fatal("another round")
		}
	}
	b.ReportMetric(float64(want), "assigned")
}

// BenchmarkBatch is one round of each matcher, half of whose jobs find room, at
// the sizes of the paper's experiment: what arrives in one of its periods, and
// all its jobs at once.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []gridSize{{50, 20}, {2880, 20}} {
		for _, row := range policy.Batches {
			for _, aware := range []bool{true, false} {
				b.Run(fmt.Sprintf("matcher=%s/aware=%v/jobs=%d/pools=%d", row.Name, aware, size.jobs, size.pools), func(b *testing.B) {
					benchmarkBatch(b, newGrid(size.jobs, size.pools, 2), row.Name, aware)
				})
			}
		}
	}
}

// BenchmarkBatchPlain is ajsm by the paper's double loop.
func BenchmarkBatchPlain(b *testing.B) {
	for _, size := range []gridSize{{50, 20}, {2880, 20}} {
		b.Run(fmt.Sprintf("matcher=ajsm/aware=true/jobs=%d/pools=%d", size.jobs, size.pools), func(b *testing.B) {
			g := newGrid(size.jobs, size.pools, 2)
			want := batch("ajsm", &g.Round, true)
			for b.Loop() {
				if !slices.Equal(plainBatch("ajsm", &g.Round, true), want) {
					b.Fatal("another round")
				}
			}
		})
	}
}

// BenchmarkBatchScale grows the round in steps of ten.
func BenchmarkBatchScale(b *testing.B) {
	for _, name := range []string{"ajsm", "max-min", "sufferage", "mct"} {
		for _, size := range []gridSize{{1000, 1000}, {10_000, 1000}, {100_000, 1000}} {
			for _, crowd := range []string{"half", "tenth", "alike"} {
				if crowd == "alike" && size.jobs > 10_000 {
					continue
				}
				b.Run(fmt.Sprintf("matcher=%s/room=%s/jobs=%d/pools=%d", name, crowd, size.jobs, size.pools), func(b *testing.B) {
					g := newGrid(size.jobs, size.pools, map[string]int{"half": 2, "tenth": 10, "alike": 1}[crowd])
					if crowd == "alike" {
						g.alike()
					}
					benchmarkBatch(b, g, name, true)
				})
			}
		}
	}
}

// The smallest of the benchmarks' rounds, so that they stay right.
func TestGrid(t *testing.T) {
	g := newGrid(50, 20, 2)
	for _, name := range greedy {
		for _, aware := range []bool{true, false} {
			want := plainBatch(name, &g.Round, aware)
			if len(want) == 0 {
				t.Errorf("%s assigns nothing", name)
			}
			expectBatch(t, name, &g.Round, aware, want)
		}
	}
	g.alike()
	expectBatch(t, "ajsm", &g.Round, true, plainBatch("ajsm", &g.Round, true))
}
