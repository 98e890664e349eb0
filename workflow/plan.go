package workflow

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Placement is one task's reservation: NPE PEs throughout [Start, End). Task is
// its index in the workflow.
type Placement struct {
	Task       int
	NPE        berth.Count
	Start, End berth.Time
}

// Interval returns [Start, End).
func (p *Placement) Interval() berth.Interval { return berth.Interval{Start: p.Start, End: p.End} }

// Plan is one reservation for each task of a workflow, in the order of the
// workflow: every task starts when its parents have ended, and all fit among
// the bookings of the calendar that was planned on.
type Plan struct {
	Planner    string
	Tasks      []Placement
	Turnaround berth.Duration // from now to the last end; 0 without tasks
	CPUSeconds int64          // PEs times seconds of all reservations

	// Lambda is, with a planner that widens its reserve step by step, the
	// step at which it succeeded: λ in twentieths.
	Lambda int
}

// End returns the end of the last reservation of a plan made at now.
func (p *Plan) End(now berth.Time) berth.Time { return now.Add(p.Turnaround) }

// Critical returns the tasks of the plan's critical path, in order of time: from
// the task that ends last back over tasks that end when the next one starts,
// parents before others and the first in the workflow before later ones, to a
// task that waits for no other, only for PEs that others hold, or for now.
func (p *Plan) Critical(w *Workflow) []int {
	var path []int
	for _, i := range critical(w, p.Tasks) {
		path = append(path, int(i))
	}
	slices.Reverse(path)
	return path
}

// critical returns the critical path, the last task first.
func critical(w *Workflow, out []Placement) []int32 {
	if len(out) == 0 {
		return nil
	}
	last := int32(0)
	for i := range out {
		if out[i].End > out[last].End {
			last = int32(i)
		}
	}
	var path []int32
	for last >= 0 {
		path = append(path, last)
		start := out[last].Start
		parents := w.parents.of(last)
		if k := slices.IndexFunc(parents, func(i int32) bool { return out[i].End == start }); k >= 0 {
			last = parents[k]
		} else {
			last = int32(slices.IndexFunc(out, func(p Placement) bool { return p.End == start }))
		}
	}
	return path
}

// sum fills in the figures of a plan made at now.
func (p *Plan) sum(now berth.Time) {
	p.Turnaround, p.CPUSeconds = 0, 0
	for _, t := range p.Tasks {
		p.Turnaround = max(p.Turnaround, t.End.Sub(now))
		p.CPUSeconds += berth.Area(t.NPE, t.End.Sub(t.Start))
	}
}

// Refusal is the answer to a deadline that the planner did not reach. It is no
// proof that nothing does: the planners are heuristics, and only a deadline
// before Bound is out of reach for certain.
type Refusal struct {
	Planner  string
	Reason   berth.Reason // DeadlineMissed before Bound, else NoCapacity
	Deadline berth.Time
	Bound    berth.Time // no plan ends earlier, even on an empty site

	// Tightest is the earliest deadline for which a plan was found, and
	// TightestBy the planner that found it. Forever and "" if there is none
	// within the reach of the search.
	Tightest   berth.Time
	TightestBy string
}

// String says what was refused and what could be had instead.
func (r *Refusal) String() string {
	why := "found no plan"
	if r.Reason == berth.DeadlineMissed {
		why = fmt.Sprintf("no plan can end before %d", r.Bound)
	}
	if r.TightestBy == "" {
		return fmt.Sprintf("%s: deadline %d: %s; no deadline was found that can be met", r.Planner, r.Deadline, why)
	}
	return fmt.Sprintf("%s: deadline %d: %s; the tightest deadline found is %d, by %s", r.Planner, r.Deadline, why, r.Tightest, r.TightestBy)
}

// Book books a whole plan on a draft, or nothing: on the first task that does
// not fit, everything of the plan is given back and the calendar's error
// returned (code Conflict if another booking was faster).
func (p *Plan) Book(d *calendar.Draft, id berth.ResourceID) error {
	mark := d.Mark()
	for _, t := range p.Tasks {
		if err := d.Book(id, calendar.Block{Start: t.Start, End: t.End, NPE: t.NPE}); err != nil {
			d.Undo(mark)
			return err
		}
	}
	return nil
}
