package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// The whole log of SDSC-BLUE as ordinary jobs with the users' estimates.
func BenchmarkJobs(b *testing.B) {
	log := openPeerLog(b, "SDSC-BLUE-2000-4.2-cln", 0)
	for _, pass := range []string{"fcfs", "easy", "conservative"} {
		b.Run("log=SDSC-BLUE/sites=1/pass="+pass, func(b *testing.B) {
			config := engine.Config{Sites: sim.OnePool(log.pes, berth.Late), Jobs: pass, Compress: true}
			benchmarkReplay(b, config, log.workload, "jobs/s")
		})
	}
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		b.Run(fmt.Sprintf("log=SDSC-BLUE/sites=20/binding=%s/pass=easy", binding), func(b *testing.B) {
			benchmarkReplay(b, engine.Config{Sites: split(20, log.pes, binding), Match: "earliest-finish"}, log.workload, "jobs/s")
		})
	}
}

// The whole log of SDSC-BLUE as reservations with the paper's factors {3,3}, on
// its machine split among 20 sites; the one with the earliest end is
// taken.
func BenchmarkSites(b *testing.B) {
	w, err := workload.Open(realdata.File(b, "swf", "SDSC-BLUE-2000-4.2-cln.swf.gz"), workload.Options{})
	if err != nil {
		b.Fatal(err)
	}
	transform := workload.NewTransform(1)
	requests, err := transform.Requests(w.Records, false, &w.Report)
	if err != nil {
		b.Fatal(err)
	}
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		b.Run(fmt.Sprintf("log=SDSC-BLUE/sites=20/binding=%s", binding), func(b *testing.B) {
			config := engine.Config{Sites: split(20, w.Header.PEs(), binding), Match: "earliest-finish"}
			preset, _ := engine.PresetNamed("li")
			preset.Apply(&config)
			benchmarkReplay(b, config, sim.Workload{Requests: requests}, "requests/s")
		})
	}
}

// split returns sites of one pool each with that many PEs together.
func split(sites int, pes berth.Count, binding berth.Binding) []berth.Site {
	list := make([]berth.Site, sites)
	for i := range list {
		n := pes*berth.Count(i+1)/berth.Count(sites) - pes*berth.Count(i)/berth.Count(sites)
		list[i] = berth.Site{
			Name:  fmt.Sprintf("site%02d", i+1),
			Pools: []berth.Pool{{Name: "pool", PEs: n, Binding: binding}},
		}
	}
	return list
}

func benchmarkReplay(b *testing.B, config engine.Config, w sim.Workload, unit string) {
	lines := 0
	for b.Loop() {
		schedule, err := sim.Replay(context.Background(), config, w, nil)
		if err != nil {
			b.Fatal(err)
		}
		lines += len(schedule)
	}
	b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), unit)
}
