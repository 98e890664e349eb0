package berth_test

import (
	"errors"
	"math"
	"testing"

	"github.com/berth-hpc/berth"
)

// The name says how much of the time until the deadline is left, and is written in one way.
func TestBestNamesItsSlack(t *testing.T) {
	for name, slack := range map[string]int{berth.BestAlgorithm: 0, "best-0": 0, "best-7": 7, "best-90": berth.MaxSlack} {
		if got, ok := berth.Best(name); !ok || got != slack {
			t.Errorf("%q: %d %t, want %d", name, got, ok, slack)
		}
	}
	for _, name := range []string{"", "bes", "best-", "best-91", "best--1", "best-07", "best-7 ", "best7", "best-1e1", "bd-cpar"} {
		if slack, ok := berth.Best(name); ok {
			t.Errorf("%q is taken for best with a slack of %d", name, slack)
		}
	}
	if slack, ok := berth.Best(berth.SlackAlgorithm); !ok || slack == 0 {
		t.Errorf("%s leaves %d", berth.SlackAlgorithm, slack)
	}
}

func TestValidateNamesTheFieldOfATask(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*berth.WorkflowTask)
		field  string // empty: valid
	}{
		{"as it is", func(*berth.WorkflowTask) {}, ""},
		{"no time", func(t *berth.WorkflowTask) { t.Seconds = 0 }, ""},
		{"less than none", func(t *berth.WorkflowTask) { t.Seconds = -1 }, "seconds"},
		{"a time that is no number", func(t *berth.WorkflowTask) { t.Seconds = math.NaN() }, "seconds"},
		{"endless", func(t *berth.WorkflowTask) { t.Seconds = berth.TimeLimit }, "seconds"},
		{"wholly parallel", func(t *berth.WorkflowTask) { t.Alpha = 0 }, ""},
		{"not parallel", func(t *berth.WorkflowTask) { t.Alpha = 1 }, ""},
		{"a part below none", func(t *berth.WorkflowTask) { t.Alpha = -0.1 }, "alpha"},
		{"more than all of it", func(t *berth.WorkflowTask) { t.Alpha = 1.1 }, "alpha"},
		{"a part that is no number", func(t *berth.WorkflowTask) { t.Alpha = math.NaN() }, "alpha"},
		{"tried as often as can be", func(t *berth.WorkflowTask) { t.Retries = berth.MaxRetries }, ""},
		{"tried too often", func(t *berth.WorkflowTask) { t.Retries = berth.MaxRetries + 1 }, "retries"},
		{"tried less than never", func(t *berth.WorkflowTask) { t.Tries = -1 }, "tries"},
		{"after itself", func(t *berth.WorkflowTask) { t.After = []int{1} }, "after"},
		{"after none of them", func(t *berth.WorkflowTask) { t.After = []int{2} }, "after"},
		{"reads of its parent", func(t *berth.WorkflowTask) { t.Reads = []int64{berth.MaxReads} }, ""},
		{"reads too much", func(t *berth.WorkflowTask) { t.Reads = []int64{berth.MaxReads + 1} }, "reads"},
		{"reads of two of one", func(t *berth.WorkflowTask) { t.Reads = []int64{1, 2} }, "reads"},
		{"no id", func(t *berth.WorkflowTask) { t.ID = "" }, "id"},
		{"moves data", func(t *berth.WorkflowTask) { t.StorageMB = 1 }, "storage_mb"},
	} {
		w := berth.Workflow{ID: "w", Deadline: berth.Forever, Repair: berth.Repairs()[0], Tasks: []berth.WorkflowTask{
			{ID: "a", Seconds: 10, Alpha: 0.5}, {ID: "b", Seconds: 10, Alpha: 0.5, After: []int{0}},
		}}
		c.change(&w.Tasks[1])
		err := w.Validate()
		var e *berth.Error
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &e) || e.Field != c.field || e.Code != berth.Invalid) {
			t.Errorf("%s: error %v, want one about %q", c.name, err, c.field)
		}
	}
}
