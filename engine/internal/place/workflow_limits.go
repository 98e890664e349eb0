package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// narrows reports whether limits narrow the plan of a workflow, as a share of PEs and the longest reservation do, of
// any holder of a task.
func (f *Finder) narrows(w *berth.Workflow) bool {
	if !f.limits() {
		return false
	}
	if len(f.Ahead.For(f.state.PriorityOf(w.User))) > 0 {
		return true
	}
	does := func(of policy.Scope) bool {
		of.Role = w.Role
		a := f.allowedTo(of)
		_, share := a.By(policy.ByShare)
		_, length := a.By(policy.ByLength)
		return share || length
	}
	if w.User != "" && does(policy.Scope{User: w.User}) || w.Owner != "" && does(policy.Scope{User: w.Owner}) {
		return true
	}
	if slices.ContainsFunc(f.partitions, func(name string) bool { return does(policy.Scope{Partition: name}) }) {
		return true
	}
	var last berth.Sharing // that was looked at
	for i := range w.Tasks {
		s := w.SharingOf(i)
		if s.Account == last.Account && s.QOS == last.QOS || w.Tasks[i].Done {
			continue
		}
		if s.Account != "" && does(policy.Scope{Account: s.Account}) || s.QOS != "" && does(policy.Scope{QOS: s.QOS}) {
			return true
		}
		last = s
	}
	return false
}

// commonShares returns the shares of a pool of the holders that are those of all open tasks.
func (f *Finder) commonShares(w *berth.Workflow, p *pool) shares {
	var x search
	for i := range w.Tasks {
		if w.Tasks[i].Done {
			continue
		}
		now := f.state.Now()
		r := request(w, i, p, berth.Variant{NPE: 1, Duration: 1}, now, now)
		if x.r == nil {
			x = f.search(&r, nil)
			x.allowed = slices.DeleteFunc(f.sharesOf(&r), func(a allowance) bool { return len(a.ahead) > 0 || !x.in(p, &a) })
		} else {
			other := f.search(&r, nil)
			x.allowed = slices.DeleteFunc(x.allowed, func(a allowance) bool { return !other.in(p, &a) })
		}
		if len(x.allowed) == 0 {
			return nil
		}
	}
	return x.sharesIn(p)
}

// sharesOf returns what bounds where a task is placed that has been planned: the shares of PEs,
// which a plan keeps to without what is added to it, transfers and waits; and further limits by name.
func (f *Finder) sharesOf(r *berth.Request, further ...policy.LimitIndex) (list []allowance) {
	for _, a := range f.allowances(r) {
		if a.Allowance = a.Only(append(further, policy.ByShare)...); !a.Unlimited() || len(a.ahead) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// ShareLeft returns how many PEs of a pool the shares of a task's holders leave at a time; limited
// is false if they have all.
func (f *Finder) ShareLeft(r *berth.Request, pool berth.ResourceID, at berth.Time) (n berth.Count, limited bool) {
	x := f.search(r, nil)
	x.allowed = f.sharesOf(r)
	return x.sharesIn(f.poolOf(pool)).left(at, at+1)
}

// overWorkflow returns the refusal of a limit that a plan exceeds beside what its holders have;
// nil if it exceeds none. The eager filter is for single requests and is not asked.
func (f *Finder) overWorkflow(w *berth.Workflow, plan *WorkflowPlan) *berth.Refusal {
	if !f.limits() {
		return nil
	}
	var allowed, last []allowance
	for i := range plan.Tasks {
		list := f.allowances(&plan.Tasks[i].Request)
		if len(list) == len(last) && (len(list) == 0 || &list[0] == &last[0]) {
			continue // most tasks have the same holders
		}
		last = list
		for _, a := range list {
			if !slices.ContainsFunc(allowed, func(b allowance) bool { return a.of == b.of }) {
				allowed = append(allowed, a)
			}
		}
	}
	for i := range allowed {
		if no := f.overPlan(w, plan, &allowed[i]); no != nil {
			return no
		}
	}
	return nil
}

// overPlan is overWorkflow for one holder.
func (f *Finder) overPlan(w *berth.Workflow, plan *WorkflowPlan, a *allowance) *berth.Refusal {
	tasks, of := make([]*berth.Allotment, 0, len(plan.Tasks)), make([]int, 0, len(plan.Tasks)) // those of the holder, and which they are
	charges := make([]int64, 0, len(plan.Tasks))
	in := map[berth.ResourceID]*search{} // of one of them in each pool
	area, charge := int64(0), int64(0)
	for i := range plan.Tasks {
		place := &plan.Tasks[i].Place.Allotments[0]
		x := f.search(&plan.Tasks[i].Request, nil)
		if !x.in(f.poolOf(place.Resource), a) {
			continue
		}
		if in[place.Resource] == nil {
			in[place.Resource] = new(f.search(&plan.Tasks[i].Request, nil))
		}
		area = berth.AddAreas(area, berth.Area(place.NPE, place.End.Sub(place.Start)))
		tasks, of, charges = append(tasks, place), append(of, i), append(charges, x.priceAt(place))
		charge = state.AddCharges(charge, charges[len(charges)-1])
	}
	if len(tasks) == 0 {
		return nil
	}
	n, usage := len(tasks), f.state.Usage(a.of)
	over := cmp.Or(
		a.exceeds(policy.ByHold, int64(w.Hold)),
		a.exceeds(policy.ByReservations, int64(f.state.Open(a.of)+n)),
		a.exceeds(policy.ByActive, int64(usage.Reservations+n)),
		a.exceeds(policy.ByPESeconds, berth.AddAreas(usage.PESeconds, area)),
		f.overAlways(a, charge),
		f.overMonths(a, tasks, charges),
		f.overNoShow(a),
	)
	wanted, resource, name := berth.Count(1), tasks[0].Resource, "" // of the task that is beyond it by itself
	for i, task := range tasks {
		if over != nil {
			break
		}
		wanted, resource, name = task.NPE, task.Resource, plan.Tasks[of[i]].Request.Task.Task
		over = cmp.Or(
			a.exceeds(policy.ByLength, int64(task.End.Sub(task.Start))),
			a.exceeds(policy.ByLead, int64(task.Start.Sub(f.state.Now()))),
		)
	}
	if over == nil {
		name = ""
		over, resource = overShareOf(tasks, in, a)
	}
	if over == nil {
		return nil
	}
	return &berth.Refusal{Reason: berth.Quota, Resource: resource, Wanted: wanted, Exceeded: over, Task: name}
}

// overShareOf says that tasks take more PEs of a pool at once than their holder may have there. in has the search of one of them
// for each pool.
func overShareOf(tasks []*berth.Allotment, in map[berth.ResourceID]*search, a *allowance) (*berth.Exceeded, berth.ResourceID) {
	seen := map[berth.ResourceID]bool{}
	for _, task := range tasks {
		id := task.Resource
		if seen[id] {
			continue
		}
		seen[id] = true
		x := in[id]
		most, limited := x.shareOf(x.poolOf(id), a)
		if !limited {
			continue
		}
		s := x.used(a.of, nil, id, most)
		s.steps = s.steps.Clone()
		x.reserve(s, a)
		for _, other := range tasks {
			if other.Resource == id {
				s.steps.Add(other.Start, other.End, other.NPE)
			}
		}
		within := []berth.Interval{{Start: x.state.Now(), End: berth.Forever}}
		if len(a.ahead) > 0 { // when more is promised already than may be now, only the tasks count
			within = within[:0]
			for _, other := range tasks {
				if other.Resource == id {
					within = append(within, other.Interval())
				}
			}
		}
		for _, iv := range within {
			if peak, at := s.peakAt(iv.Start, iv.End); peak > most {
				return x.exceedsShare(a, most, peak, at), id
			}
		}
	}
	return nil, berth.ResourceID{}
}
