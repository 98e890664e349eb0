package sim_test

import (
	"context"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// The whole log of SDSC-BLUE as ordinary jobs with the users' estimates.
func BenchmarkJobs(b *testing.B) {
	for _, pass := range []string{"fcfs", "easy", "conservative"} {
		b.Run("log=SDSC-BLUE/pass="+pass, func(b *testing.B) {
			log := openPeerLog(b, "SDSC-BLUE-2000-4.2-cln", 0)
			config := engine.Config{Sites: sim.OnePool(log.pes, berth.Late), Jobs: pass, Compress: true}
			ran := 0
			for b.Loop() {
				lines, err := sim.Replay(context.Background(), config, log.workload, nil)
				if err != nil {
					b.Fatal(err)
				}
				ran += len(lines)
			}
			b.ReportMetric(float64(ran)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
