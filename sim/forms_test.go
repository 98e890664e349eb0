package sim_test

import (
	"context"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// Which structure holds the bookings changes no decision: every real log,
// whole, has one decision hash under all forms of the calendar.
func TestFormsOfTheCalendarDecideAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("whole real logs are left out of short runs, such as those under the race detector")
	}
	for _, log := range []string{
		"LANL-CM5-1994-4.1-cln", "CTC-SP2-1996-3.1-cln", "OSC-Clust-2000-3.1-cln",
		"SDSC-BLUE-2000-4.2-cln", "SDSC-DS-2004-2.1-cln", "HPC2N-2002-2.2-cln",
	} {
		t.Run(log, func(t *testing.T) {
			t.Parallel()
			w, err := workload.Open(realdata.File(t, "swf", log+".swf.gz"), workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			transform := workload.NewTransform(1)
			requests, err := transform.Requests(w.Records, true, &w.Report)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range []struct {
				placement string
				binding   berth.Binding
			}{{"pe-worst", berth.Early}, {"first-fit", berth.Late}} {
				hashes := map[string]string{}
				for _, form := range calendar.Forms {
					config := machine(w.Header.PEs(), run.binding, run.placement)
					config.Calendar = form.Name
					lines, err := sim.Run(context.Background(), config, requests, nil)
					if err != nil {
						t.Fatal(err)
					}
					hashes[measure.Hash(lines)] = form.Name
				}
				if len(hashes) != 1 {
					t.Errorf("%s, %s: the forms decide otherwise: %v", run.placement, run.binding, hashes)
				}
			}
		})
	}
}
