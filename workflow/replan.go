package workflow

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Replan repairs a plan that was made when the calendar was another: tasks whose
// PEs are gone get the earliest end within the bound of bd-cpar, and so do the
// tasks behind them that can no longer start in time or on their PEs. All others
// keep their reservations. It returns the repaired plan and the tasks that
// moved, ascending, or a refusal if it would end after the deadline, which may
// be Forever.
//
// Source: future work of Aida and Casanova, section 6. Tasks are looked at in
// the order of their starts; of two that no longer fit together the later one
// moves. What is neither moved nor behind a task that moves is settled first, so
// nothing takes its PEs.
func (in *Instance) Replan(plan *Plan, deadline berth.Time) (Plan, []int, *Refusal) {
	if len(plan.Tasks) != in.w.Len() {
		panic("workflow: a plan of another workflow")
	}
	in.know(berth.Forever)
	p := &in.room.profile
	p.reset(&in.room.steps)
	order := in.byStart(plan)
	gone, behind := make([]bool, in.w.Len()), make([]bool, in.w.Len())
	for _, i := range order {
		at := &plan.Tasks[i]
		for _, parent := range in.w.parents.of(i) {
			behind[i] = behind[i] || gone[parent] || behind[parent]
		}
		switch {
		case behind[i]:
		case at.Start < in.now || !p.fits(at.Start, at.End, at.NPE):
			gone[i] = true
		default:
			p.take(at.Start, at.End, at.NPE)
		}
	}
	repaired := Plan{Planner: plan.Planner, Tasks: slices.Clone(plan.Tasks), Lambda: plan.Lambda}
	bound := in.allot(cpar)
	var moved []int
	for _, i := range order {
		at := &repaired.Tasks[i]
		ready := in.ready(i, repaired.Tasks)
		switch {
		case !gone[i] && !behind[i]:
			continue
		case behind[i] && at.Start >= ready && p.fits(at.Start, at.End, at.NPE):
			p.take(at.Start, at.End, at.NPE)
			continue
		}
		to, ok := p.earliest(&in.curves[i], ready, max(bound[i], at.NPE))
		if !ok {
			return Plan{}, nil, in.noRepair(plan, deadline)
		}
		*at = to.of(i)
		p.take(to.start, to.end, to.npe)
		moved = append(moved, int(i))
	}
	repaired.sum(in.now)
	if repaired.End(in.now) > deadline {
		return Plan{}, nil, in.noRepair(plan, deadline)
	}
	slices.Sort(moved)
	return repaired, moved, nil
}

func (in *Instance) noRepair(plan *Plan, deadline berth.Time) *Refusal {
	anew, _ := PlannerNamed("bd-cpar")
	r := in.refuse(anew, deadline)
	r.Planner = plan.Planner
	return r
}

// byStart returns the tasks of a plan by start, ties in topological order.
func (in *Instance) byStart(plan *Plan) []int32 {
	order := slices.Clone(in.w.topological)
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(plan.Tasks[a].Start, plan.Tasks[b].Start)
	})
	return order
}

// BookOrReplan books a plan that was made earlier. If another booking was faster
// it repairs the plan on the draft's own calendar, see Replan, and books that.
// It returns what is booked and the tasks that moved, or a refusal, or an error;
// with these two nothing is booked. problem is what was planned; its calendar
// is not looked at.
func (p *Plan) BookOrReplan(d *calendar.Draft, id berth.ResourceID, problem Problem, deadline berth.Time) (Plan, []int, *Refusal, error) {
	err := p.Book(d, id)
	if err == nil {
		return *p, nil, nil, nil
	}
	var taken *berth.Error
	if !errors.As(err, &taken) || taken.Code != berth.Conflict {
		return Plan{}, nil, nil, err
	}
	problem.Calendar = d.Calendar(id)
	in, err := Prepare(problem)
	if err != nil {
		return Plan{}, nil, nil, err
	}
	repaired, moved, refusal := in.Replan(p, deadline)
	if refusal != nil {
		return Plan{}, nil, refusal, nil
	}
	return repaired, moved, nil, repaired.Book(d, id)
}
