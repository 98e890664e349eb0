package workflow

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// Scaled returns the workflow with every sequential time multiplied by factor:
// above 1 the estimates of a careful user, who would rather reserve too long
// than be cut off. Code Invalid: factor is not a positive number, or the times
// get too long.
func (w *Workflow) Scaled(factor float64) (*Workflow, error) {
	if !(factor > 0) || math.IsInf(factor, 1) {
		return nil, berth.Errorf(berth.Invalid, "factor", "%v; want a positive number", factor)
	}
	scaled := *w
	scaled.tasks = make([]Task, len(w.tasks))
	total := 0.0
	for i, t := range w.tasks {
		t.Sequential = float64(t.Sequential * factor)
		t.Measured = slices.Clone(t.Measured)
		for k := range t.Measured {
			t.Measured[k].Seconds = float64(t.Measured[k].Seconds * factor)
		}
		if total += max(t.Sequential, t.Time(1)) + 1; total >= berth.TimeLimit {
			return nil, berth.Errorf(berth.Invalid, "factor", "%v makes all tasks together %.4g s long; less than 2^42 s can be planned", factor, total)
		}
		scaled.tasks[i] = t
	}
	return &scaled, nil
}

// Outcome is how a plan went when its tasks took their actual times.
type Outcome struct {
	Turnaround         berth.Duration // from now to the last end of a task that ran
	ReservedCPUSeconds int64
	UsedCPUSeconds     int64 // of them, until the tasks ended or were cut off
	Finished           int   // tasks that ended within their reservation
	CutOff             []int // tasks that had not ended when their reservation did
	Lost               []int // tasks that could not run, for a task before them was cut off
}

// Replay runs a plan made at now on this workflow, whose times are the actual
// ones, while the plan may have been made on estimates. Each task starts as
// reserved and uses its PEs until it ends, or until its reservation does, which
// cuts it off; nothing behind it in the workflow can run then. Cost: O(n + e).
func (w *Workflow) Replay(plan *Plan, now berth.Time) Outcome {
	if len(plan.Tasks) != w.Len() {
		panic("workflow: a plan of another workflow")
	}
	var o Outcome
	failed := make([]bool, w.Len())
	for _, i := range w.topological {
		at := &plan.Tasks[i]
		reserved := at.End.Sub(at.Start)
		o.ReservedCPUSeconds += berth.Area(at.NPE, reserved)
		if w.behind(int(i), failed) {
			failed[i] = true
			continue
		}
		used := w.tasks[i].Duration(at.NPE)
		failed[i] = used > reserved
		used = min(used, reserved)
		o.UsedCPUSeconds += berth.Area(at.NPE, used)
		o.Turnaround = max(o.Turnaround, at.Start.Add(used).Sub(now))
	}
	for i, f := range failed {
		switch {
		case !f:
			o.Finished++
		case w.behind(i, failed):
			o.Lost = append(o.Lost, i)
		default:
			o.CutOff = append(o.CutOff, i)
		}
	}
	return o
}

// behind reports whether a parent of task i is in the set.
func (w *Workflow) behind(i int, set []bool) bool {
	for _, parent := range w.Parents(i) {
		if set[parent] {
			return true
		}
	}
	return false
}
