package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// narrowing returns what the user of a workflow may have if that narrows the plan, as a share of PEs
// and the longest reservation do; nil if it does not.
func (f *Finder) narrowing(w *berth.Workflow) *policy.Allowance {
	if w.User == "" || len(f.Limits) == 0 {
		return nil
	}
	allowed := f.Limits.Of(w.Role, w.User)
	for _, name := range []policy.LimitName{policy.LimitShare, policy.LimitLength} {
		if _, limited := allowed.Limit(name); limited {
			return &allowed
		}
	}
	return nil
}

// shareOf returns what of an allowance bounds where tasks are placed that have been planned: the share of
// PEs, which a plan keeps to without what is added to it, transfers and waits. nil allows everything.
func shareOf(allowed *policy.Allowance) (share policy.Allowance) {
	if allowed == nil {
		return share
	}
	return allowed.Only(policy.LimitShare)
}

// ShareLeft returns how many PEs of a pool the share of a user leaves them at a time; limited is
// false if they have all.
func (f *Finder) ShareLeft(w *berth.Workflow, pool berth.ResourceID, at berth.Time) (n berth.Count, limited bool) {
	a := shareOf(f.narrowing(w))
	most, limited := a.ShareOf(f.poolOf(pool).config.PEs)
	if !limited {
		return 0, false
	}
	return most - f.used(w.User, nil, pool, most).peak(at, at+1), true
}

// lengthOf returns how long a task may last of a user who may have so much, 0 for any length.
func lengthOf(allowed *policy.Allowance) berth.Duration {
	if allowed == nil {
		return 0
	}
	length, limited := allowed.Limit(policy.LimitLength)
	if !limited {
		return 0
	}
	return berth.Duration(length)
}

// overWorkflow returns the refusal of a limit that a plan exceeds beside what its user has;
// nil if it exceeds none. The eager filter is for single requests and is not asked.
func (f *Finder) overWorkflow(w *berth.Workflow, plan *WorkflowPlan) *berth.Refusal {
	if w.User == "" || len(f.Limits) == 0 {
		return nil
	}
	allowed := f.Limits.Of(w.Role, w.User)
	if allowed.Unlimited() {
		return nil
	}
	n, usage := len(plan.Tasks), f.state.Usage(w.User)
	over := cmp.Or(
		allowed.Exceeds(policy.LimitHold, int64(w.Hold)),
		allowed.Exceeds(policy.LimitReservations, int64(f.state.Open(w.User)+n)),
		allowed.Exceeds(policy.LimitActive, int64(usage.Reservations+n)),
		allowed.Exceeds(policy.LimitPESeconds, usage.PESeconds+plan.PESeconds),
	)
	wanted := berth.Count(1)
	resource := plan.Tasks[0].Place.Allotments[0].Resource
	for i := range plan.Tasks {
		if over != nil {
			break
		}
		a := &plan.Tasks[i].Place.Allotments[0]
		wanted, resource = a.NPE, a.Resource
		over = cmp.Or(
			allowed.Exceeds(policy.LimitLength, int64(a.End.Sub(a.Start))),
			allowed.Exceeds(policy.LimitLead, int64(a.Start.Sub(f.state.Now()))),
		)
	}
	if over == nil {
		over, resource = f.overShareOf(w, plan, &allowed)
	}
	if over == nil {
		return nil
	}
	return &berth.Refusal{Reason: berth.Quota, Resource: resource, Wanted: wanted, Exceeded: over}
}

// overShareOf says that a plan takes more PEs of a pool at once than its user may have there.
func (f *Finder) overShareOf(w *berth.Workflow, plan *WorkflowPlan, allowed *policy.Allowance) (*berth.Exceeded, berth.ResourceID) {
	seen := map[berth.ResourceID]bool{}
	for i := range plan.Tasks {
		id := plan.Tasks[i].Place.Allotments[0].Resource
		most, limited := allowed.ShareOf(f.poolOf(id).config.PEs)
		if seen[id] || !limited {
			continue
		}
		seen[id] = true
		s := f.used(w.User, nil, id, most)
		s.steps = slices.Clone(s.steps)
		for k := range plan.Tasks {
			if a := &plan.Tasks[k].Place.Allotments[0]; a.Resource == id {
				s.steps = s.steps.Add(a.Start, a.End, a.NPE)
			}
		}
		if peak := s.peak(f.state.Now(), berth.Forever); peak > most {
			return &berth.Exceeded{Limit: string(policy.LimitShare), Allowed: int64(most), Asked: int64(peak)}, id
		}
	}
	return nil, berth.ResourceID{}
}
