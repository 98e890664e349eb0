package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/cputime"
)

// unlike returns n sites as unlike each other as those of Tang and Liao's
// table 2, each with 50 of 200 programs, and jobs that each want one, data
// moved and a deadline of 1.1 to 1.5 times its run. The PEs suffice for a half.
func unlike(jobs, sites int) (engine.Config, []berth.Request) {
	rng := rand.New(rand.NewPCG(7, uint64(jobs)))
	var requests []berth.Request
	asked := int64(0)
	for i := range jobs {
		npe, run := berth.Count(1)<<rng.IntN(8), 60+rng.Int64N(20_000)
		asked += int64(npe)
		r := berth.Rigid(fmt.Sprint(i), 0, 0, berth.Time(run*(110+rng.Int64N(40))/100), npe, berth.Duration(run))
		r.Software, r.Version = fmt.Sprintf("program%d", rng.IntN(200)), fmt.Sprintf("%d.%d", 1+rng.IntN(3), rng.IntN(4))
		r.Licences, r.StorageMB = berth.Count(1+rng.IntN(3)), 100+rng.Int64N(20_000)
		requests = append(requests, r)
	}
	share := max(128, asked/int64(2*sites))
	config := engine.Config{Match: "ajsm", Staging: engine.StagingHold, Trigger: engine.TriggerOnPeriod, Period: 240}
	for i := range sites {
		site := berth.Site{
			Name:      fmt.Sprint(i),
			Pools:     []berth.Pool{{Name: "pool", PEs: berth.Count(min(share/2+rng.Int64N(share), berth.MaxPEs)), Speed: berth.Speed(900 + rng.IntN(1500)), Binding: berth.Late}},
			Link:      berth.Link{KilobytesPerSecond: 12_000 + rng.Int64N(1_000_000)},
			StorageMB: 100_000_000,
		}
		for _, program := range rng.Perm(200)[:50] {
			site.Software = append(site.Software, berth.Software{
				Name: fmt.Sprintf("program%d", program), Version: fmt.Sprintf("%d.%d", 1+rng.IntN(3), rng.IntN(4)), Licences: berth.Count(rng.IntN(8)),
			})
		}
		config.Sites = append(config.Sites, site)
	}
	return config, requests
}

// BenchmarkBatchPoint is one scheduling point of ajsm over all jobs at once: what
// is hopeless, what is free, the round and the promises.
func BenchmarkBatchPoint(b *testing.B) {
	for _, size := range []struct{ jobs, sites int }{{288, 20}, {2880, 20}, {2880, 200}, {28_800, 200}, {100_000, 1000}} {
		b.Run(fmt.Sprintf("jobs=%d/sites=%d", size.jobs, size.sites), func(b *testing.B) {
			config, requests := unlike(size.jobs, size.sites)
			accepted, cpu := 0, int64(0)
			for b.Loop() {
				b.StopTimer()
				e, err := engine.New(config)
				if err != nil {
					b.Fatal(err)
				}
				for i := range requests {
					if _, _, err := e.Apply(0, engine.Submit(&requests[i])); err != nil {
						b.Fatal(err)
					}
				}
				began := cputime.Used()
				b.StartTimer()
				changes, _, err := e.Apply(0, engine.Wake())
				if err != nil {
					b.Fatal(err)
				}
				cpu += int64(cputime.Used() - began)
				accepted = 0
				for i := range changes {
					if changes[i].Kind == change.Accepted {
						accepted++
					}
				}
			}
			if accepted == 0 {
				b.Fatal("nothing is accepted")
			}
			b.ReportMetric(float64(cpu)/float64(b.N)/1e6, "cpu-ms/op")
			b.ReportMetric(float64(accepted), "accepted")
		})
	}
}
