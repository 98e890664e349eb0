package workload_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workload"
)

// The logs of the Parallel Workloads Archive, and two files in its format, read
// without a bad line. The counts were made with awk over the same files.
func TestRealLogsReadWhole(t *testing.T) {
	for _, c := range []struct {
		file                 []string
		pes                  berth.Count
		records              int
		noRunTime, noProcs   int
		sizeFromRequested    int
		noEstimate           int
		firstSubmit, maxSize int64
	}{
		{file: []string{"swf", "LANL-CM5-1994-4.1-cln.swf.gz"}, pes: 1024, records: 122_060, noRunTime: 2, noProcs: 3, noEstimate: 11_286, maxSize: 1024},
		{file: []string{"swf", "CTC-SP2-1996-3.1-cln.swf.gz"}, pes: 338, records: 77_222, noRunTime: 17, noEstimate: 6, maxSize: 336},
		{file: []string{"swf", "OSC-Clust-2000-3.1-cln.swf.gz"}, pes: 178, records: 36_097, noRunTime: 505, noEstimate: 35_592, maxSize: 32},
		{file: []string{"swf", "SDSC-BLUE-2000-4.2-cln.swf.gz"}, pes: 1152, records: 243_306, noRunTime: 10_770, sizeFromRequested: 8_899, firstSubmit: 430_593, maxSize: 1152},
		{file: []string{"swf", "SDSC-DS-2004-2.1-cln.swf.gz"}, pes: 1664, records: 96_069, noRunTime: 11_176, firstSubmit: 2_137_605, maxSize: 1480},
		{file: []string{"swf", "HPC2N-2002-2.2-cln.swf.gz"}, pes: 240, records: 202_871, firstSubmit: 342_072, maxSize: 200},
		{file: []string{"bookings", "blue-15days.swf.gz"}, records: 3_383, noRunTime: 299, maxSize: 1120},
		{file: []string{"swf-model", "lublin_256.swf.gz"}, records: 10_000, noEstimate: 10_000, firstSubmit: 5_094, maxSize: 256},
	} {
		t.Run(c.file[1], func(t *testing.T) {
			w, err := workload.Open(realdata.File(t, c.file...), workload.Options{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			r := &w.Report
			if r.Records != c.records || r.Skipped[workload.NoRunTime] != c.noRunTime || r.Skipped[workload.NoProcessors] != c.noProcs ||
				r.SkippedTotal() != c.noRunTime+c.noProcs || r.Bad != 0 || r.Usable != c.records-r.SkippedTotal() {
				t.Errorf("report: %s", r)
			}
			if w.PEs() != c.pes {
				t.Errorf("machine of %d PEs, want %d", w.PEs(), c.pes)
			}
			fallback, maxSize := 0, int64(0)
			for i := range w.Records {
				if w.Records[i].Procs <= 0 {
					fallback++
				}
				maxSize = max(maxSize, int64(w.Records[i].Size()))
			}
			if fallback != c.sizeFromRequested || maxSize != c.maxSize || int64(w.Records[0].Submit) != c.firstSubmit {
				t.Errorf("%d sizes from column 8, largest %d, first submit %d; want %d, %d, %d",
					fallback, maxSize, w.Records[0].Submit, c.sizeFromRequested, c.maxSize, c.firstSubmit)
			}
			transform := workload.NewTransform(1)
			transform.Estimates = true
			requests, err := transform.Requests(w.Records, true, r)
			if err != nil {
				t.Fatal(err)
			}
			if len(requests) != len(w.Records) || r.NoEstimate != c.noEstimate {
				t.Errorf("%d requests of %d records, %d without estimate, want %d", len(requests), len(w.Records), r.NoEstimate, c.noEstimate)
			}
			if !slices.IsSortedFunc(requests, func(a, b berth.Request) int { return int(a.Arrival - b.Arrival) }) {
				t.Error("requests are not in order of arrival")
			}
		})
	}
}

// The mixed-parallel paper uses partition 3 of SDSC DataStar, 224 processors.
// Some of its jobs are recorded with 256.
func TestDataStarPartition(t *testing.T) {
	w, err := workload.Open(realdata.File(t, "swf", "SDSC-DS-2004-2.1-cln.swf.gz"), workload.Options{
		PEs: 224, Keep: func(r *workload.Record) bool { return r.Partition == 3 },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &w.Report
	if r.Usable != 13_800 || r.Bad != 3 || r.Skipped[workload.NoRunTime] != 1_749 || r.Skipped[workload.Filtered] != 80_517 {
		t.Errorf("report: %s", r)
	}
}
