package jobs

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// The conservative pass: every pending job has a plan, the earliest place beside the
// promises, the running jobs and the plans there are already. A plan may move
// earlier, and nothing but a promise moves it later: a plan is no promise, so a
// request is decided as if no job waited, and what stands in the way of an accepted
// one is planned anew.
//
// Source: Mu'alem and Feitelson, "Utilization, predictability, workloads, and user
// runtime estimates" (2001); compression as pyss has it.
// Deviation: under early binding a plan names PEs, so it also keeps off jobs that would
// fit beside it by their number.

// Plan plans the jobs that have no plan, in order, if the pass plans. A plan for now
// comes true at once.
func (r *Runner) Plan() {
	backlog := r.state.Backlog()
	if !r.pass.Plans || backlog.Unplanned() == 0 {
		return
	}
	p := r.state.Profile()
	r.waiting = r.waiting[:0]
	if newest := backlog.Newest(); p != nil && backlog.Unplanned() == 1 && newest != nil && newest.PlannedStart() >= berth.Forever {
		r.waiting = append(r.waiting, newest)
	} else {
		for j := range backlog.Round(r.state.Now()) {
			if j.PlannedStart() >= berth.Forever {
				r.waiting = append(r.waiting, j)
			}
		}
	}
	if p != nil {
		r.planFlat(p, r.waiting)
		return
	}
	for _, j := range r.waiting {
		t := r.state.TryPlans()
		at, ok := r.finder.JobEarliest(j)
		t.Close()
		if ok {
			r.setPlan(j, &at)
		}
	}
}

// compressPlans moves each planned job, in order, to the earliest place beside
// everything else, if it starts earlier there.
func (r *Runner) compressPlans() {
	backlog := r.state.Backlog()
	if backlog.Len() == 0 {
		return
	}
	if p := r.state.Profile(); p != nil {
		r.compressFlat(p)
		return
	}
	if r.byRoom {
		r.compressByRoom()
		return
	}
	for _, j := range slices.Collect(backlog.Round(r.state.Now())) {
		start := j.PlannedStart()
		if start >= berth.Forever || start <= r.state.Now() {
			continue
		}
		t := r.state.TryPlans()
		t.Unplan(j)
		at, ok := r.finder.JobEarliest(j)
		t.Close()
		if ok && at.Start < start {
			r.setPlan(j, &at)
		}
	}
}

// compressByRoom decides as the loop of compressPlans does, where a job can move only into room that has grown since it was
// last looked at: jobs for which there is none are passed over, and others are looked for only there.
func (r *Runner) compressByRoom() {
	room := r.state.Room()
	room.Begin()
	defer room.End()
	if room.Nowhere() {
		return
	}
	now := r.state.Now()
	r.waiting = slices.AppendSeq(r.waiting[:0], r.state.Backlog().Round(now))
	for _, j := range r.waiting {
		if start := j.PlannedStart(); start >= berth.Forever || start <= now || !room.Offers(j) {
			continue
		}
		t := r.state.TryPlans()
		t.Unplan(j)
		at, ok := r.finder.JobEarlier(j, room)
		t.Close()
		if ok {
			r.setPlan(j, &at)
		}
	}
}

// setPlan gives a job a plan, or starts it if that is now.
func (r *Runner) setPlan(j *state.Job, at *berth.Allotment) {
	if at.Start <= r.state.Now() {
		r.Run(j, at)
		return
	}
	plan := r.out.Planned()
	*plan = *at
	r.plan(j, plan)
}

// plan notes the plan of a job, nil for none.
func (r *Runner) plan(j *state.Job, plan *berth.Allotment) {
	c := r.out.Room(change.Planned)
	c.ID, c.Plan = j.Request().ID, plan
	r.out.Fold(c, state.Ref{Job: j})
}

// MakeWay drops the plans of all jobs if one of them stands in the way of what is
// about to be promised.
func (r *Runner) MakeWay(allotments []berth.Allotment) {
	backlog := r.state.Backlog()
	if !backlog.Planned() || r.state.FitsBesidePlans(allotments) {
		return
	}
	for _, j := range slices.Collect(backlog.All()) {
		if j.PlannedStart() < berth.Forever {
			r.plan(j, nil)
		}
	}
}
