package slurm

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/site"
)

// Jobs that wait are in the order of submission, and keep the place that squeue gives them, which is by priority.
func TestPendingJobsKeepThePlaceThatSqueueGivesThem(t *testing.T) {
	const mark = "#mark#"
	var text strings.Builder
	for _, id := range []string{"12", "7"} {
		for _, f := range lookFields {
			value := map[jobField]string{fieldID: id, fieldArray: id, fieldState: "PENDING", fieldLimit: "10:00", fieldNodeCount: "1", fieldCPUs: "4"}[f]
			text.WriteString(value + f.behind(mark))
		}
		text.WriteString("\n")
	}
	jobs, err := parseJobs(text.String(), mark, lookFields)
	if err != nil {
		t.Fatal(err)
	}
	var state site.State
	if err := sortInto(&state, jobs, nil, nil); err != nil {
		t.Fatal(err)
	}
	if p := state.Pending; len(p) != 2 || p[0].ID != "7" || p[0].Rank != 2 || p[1].ID != "12" || p[1].Rank != 1 {
		t.Errorf("pending are %+v", p)
	}
}
