package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/slurm/accounting"
)

// What a history has of tasks becomes runs as the report counts them: of two runs of one job, of one that was put back, forgotten, or runs, and
// none of another site.
func TestCountedRuns(t *testing.T) {
	happening := func(what, job, state string, at, start, end int64) form.Happening {
		h := form.Happening{At: form.Time(at), What: what, Task: &form.TaskReport{Job: job, Site: "lab", State: state, Start: form.Time(start), End: form.Time(end)}}
		h.NPE = 2
		return h
	}
	elsewhere := happening("task_started", "9", "running", 10, 10, 0)
	elsewhere.Task.Site = "other"
	unknown := happening("task_ended", "2", "unknown", 31, 10, 30)
	unknown.NPE = 0 // as in old records
	got := countedRuns([]form.Happening{
		{What: "accepted"},
		happening("task_started", "1", "running", 10, 10, 0), elsewhere, happening("task_requeued", "3", "waiting", 11, 0, 0),
		happening("task_requeued", "1", "waiting", 25, 0, 0), happening("task_started", "1", "running", 40, 40, 0), happening("task_ended", "1", "completed", 51, 40, 50),
		happening("task_started", "2", "running", 10, 10, 0), unknown, happening("task_started", "4", "running", 60, 60, 0),
	}, "lab", 99)
	want := []accounting.Run{
		{Job: "1", PEs: 2, Start: 10, End: 25, Ending: accounting.Requeued},
		{Job: "1", PEs: 2, Start: 40, End: 50},
		{Job: "2", PEs: 2, Start: 10, End: 30, Ending: accounting.Forgotten},
		{Job: "4", PEs: 2, Start: 60, End: 99, Ending: accounting.Running},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each reason is said in words.
func TestReasonsAreSaid(t *testing.T) {
	for _, r := range []accounting.Reason{
		accounting.PutBack, accounting.Unlisted, accounting.Runs, accounting.Killed, accounting.Unaccounted, accounting.Uncounted, accounting.Unexplained,
	} {
		if whyDiffers[r] == "" {
			t.Errorf("%s has no words", r)
		}
	}
}
