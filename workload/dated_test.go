package workload_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/workload"
)

// The first jobs of a log in no order, some of them without a number of their own, are those that the whole log
// begins with; no more are held than twice as many.
func TestFirstJobsAreThoseOfTheWholeLog(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var sacct, gwf strings.Builder
	sacct.WriteString("JobID|User|Submit|ElapsedRaw|TimelimitRaw|AllocCPUS\n")
	const jobs = 5000
	for range jobs {
		id, at, run := rng.IntN(3*jobs), int64(1_700_000_000+rng.IntN(jobs)), 1+rng.IntN(1000)
		name := fmt.Sprint(id)
		if id%5 == 0 {
			name += "_1" // of an array
		}
		fmt.Fprintf(&sacct, "%s|u%d|%s|%d|60|4\n", name, id%7, time.Unix(at, 0).UTC().Format("2006-01-02T15:04:05"), run)
		fmt.Fprintf(&gwf, "%d %d 0 %d 4 -1 -1 4 60 -1 1 u%d%s\n", id, at, run, id%7, strings.Repeat(" -1", 17))
	}
	for form, text := range map[workload.Form]string{workload.Sacct: sacct.String(), workload.GWF: gwf.String()} {
		read := func(first int) *workload.Workload {
			t.Helper()
			w, err := workload.Read(strings.NewReader(text), "log."+string(form), workload.Options{Jobs: first, PEs: 64})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		whole := read(0)
		if len(whole.Records) != jobs {
			t.Fatalf("%s: %d jobs", form, len(whole.Records))
		}
		for _, first := range []int{1, 200, 511, 512, 1024, 3000, jobs, 1 << 62} {
			w := read(first)
			if diff := cmp.Diff(whole.Records[:min(first, jobs)], w.Records); diff != "" {
				t.Errorf("%s: the first %d: %s", form, first, diff)
			}
			if held := cap(w.Records); first < jobs && held > first {
				t.Errorf("%s: the first %d hold %d", form, first, held)
			}
			if w.Report.Usable != jobs {
				t.Errorf("%s: of the first %d: %d usable", form, first, w.Report.Usable)
			}
		}
	}
}
