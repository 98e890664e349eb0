package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// To place each task of a large workflow once more takes long, and mostly each gets the place that it
// was planned for. So a plan is followed where it is made, and where it is decided about, what all its
// tasks take together is compared with what is free. That is enough where a task takes counts of PEs
// and nothing else, and no more of them than Follow would look at.

// Ready is what Follow returned, to be used at another moment.
type Ready struct {
	Plan  *WorkflowPlan
	from  berth.Time // when the first task begins
	pools []taken
}

// taken is how many PEs of a pool a plan takes over time: from each time on as many, ascending.
type taken struct {
	pool  berth.ResourceID
	steps []state.PromisedFrom
}

// Ready returns the places of a workflow as Follow has them now; nil if some tasks are elsewhere than
// planned, or take more than counts of PEs, or a limit is exceeded.
func (f *Finder) Ready(w *berth.Workflow, planner string, places []berth.Allotment, turns []int) *Ready {
	if f.Preempt {
		return nil // what running jobs hold is free for some, and in no calendar
	}
	plan, over := f.Follow(w, planner, places, turns)
	if plan == nil || over != nil || plan.Moved > 0 {
		return nil
	}
	r := &Ready{Plan: plan, from: berth.Forever}
	steps := map[berth.ResourceID][]state.PromisedFrom{}
	for i := range plan.Tasks {
		at := &plan.Tasks[i].Place
		a := &at.Allotments[0]
		if len(at.Stocks)+len(at.Transfers) > 0 || !a.PEs.Empty() || plan.Tasks[i].Request.StorageMB > 0 {
			return nil // a transfer that takes no time now takes some with another forecast
		}
		r.from = min(r.from, a.Start)
		steps[a.Resource] = append(steps[a.Resource], state.PromisedFrom{At: a.Start, NPE: a.NPE}, state.PromisedFrom{At: a.End, NPE: -a.NPE})
	}
	for i := range f.pools {
		pool := f.pools[i].id
		list := steps[pool]
		slices.SortFunc(list, func(a, b state.PromisedFrom) int { return cmp.Compare(a.At, b.At) })
		n, sum := 0, berth.Count(0)
		for _, s := range list {
			if sum += s.NPE; n > 0 && list[n-1].At == s.At {
				list[n-1].NPE = sum
				continue
			}
			list[n] = state.PromisedFrom{At: s.At, NPE: sum}
			n++
		}
		r.pools = append(r.pools, taken{pool, list[:n]})
	}
	return r
}

// Holds reports whether Follow would return the same plan now, but for when its requests arrive, in
// the configuration that it was made in; and if so the refusal of a limit that it exceeds. Cost:
// O(records of its pools).
func (f *Finder) Holds(w *berth.Workflow, r *Ready) (bool, *berth.Refusal) {
	if r.from < f.state.Now() {
		return false, nil
	}
	for i := range r.pools {
		at, known := f.state.Index(r.pools[i].pool)
		if !known || !r.pools[i].fit(f.state.View(at)) {
			return false, nil
		}
	}
	return true, f.overWorkflow(w, r.Plan)
}

// fit reports whether all of it is free.
func (t *taken) fit(view state.View) bool {
	free, wanted, next := view.Size(), berth.Count(0), 0
	for record := range view.Records() {
		for ; next < len(t.steps) && t.steps[next].At < record.Time; next++ {
			if wanted = t.steps[next].NPE; wanted > free {
				return false
			}
		}
		if next == len(t.steps) {
			return true
		}
		// What is wanted from this time on may change with it.
		if t.steps[next].At == record.Time {
			wanted = t.steps[next].NPE
			next++
		}
		if free = record.Free; wanted > free {
			return false
		}
	}
	for ; next < len(t.steps); next++ {
		if t.steps[next].NPE > view.Size() {
			return false
		}
	}
	return true
}
