package sim_test

import (
	"context"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// Every log of the archive that we have, whole, as advance reservations with
// the paper's factors {3,3}: the independent validator accepts the schedule.
func TestRealLogsAreScheduledValidly(t *testing.T) {
	if testing.Short() {
		t.Skip("whole real logs are left out of short runs, such as those under the race detector")
	}
	for _, log := range []struct {
		name                    string
		jobs, firstFit, peWorst int // the last two: how many are accepted
	}{
		{"LANL-CM5-1994-4.1-cln", 122055, 94209, 102217},
		{"CTC-SP2-1996-3.1-cln", 77205, 68140, 71775},
		{"OSC-Clust-2000-3.1-cln", 35592, 35592, 35592},
		{"SDSC-BLUE-2000-4.2-cln", 232536, 204376, 214527},
		{"SDSC-DS-2004-2.1-cln", 84893, 77477, 79941},
		{"HPC2N-2002-2.2-cln", 202871, 187670, 195213},
	} {
		t.Run(log.name, func(t *testing.T) {
			t.Parallel()
			path := realdata.File(t, "swf", log.name+".swf.gz")
			w, err := workload.Open(path, workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			transform := workload.NewTransform(1)
			requests, err := transform.Requests(w.Records, false, &w.Report)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Report.FirstBad) > 0 {
				t.Fatalf("bad lines in an archive log: %v", w.Report.FirstBad[0])
			}
			pes := w.Header.PEs()
			for placement, want := range map[string]int{"first-fit": log.firstFit, "pe-worst": log.peWorst} {
				lines, err := sim.Run(context.Background(), machine(pes, berth.Early, placement), requests, nil)
				if err != nil {
					t.Fatal(err)
				}
				accepted(t, lines, pes)
				m := measure.Of(lines, pes)
				if m.Jobs != log.jobs || m.Accepted != want {
					t.Errorf("%s: %d of %d accepted, want %d of %d", placement, m.Accepted, m.Jobs, want, log.jobs)
				}
			}
		})
	}
}
