package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// The conservative pass: every pending job has a plan, the earliest place
// beside the promises, the running jobs and the plans there are already. A plan
// may move earlier, and nothing but a promise moves it later: a plan is no
// promise, so a request is decided as if no job waited, and what stands in the
// way of an accepted one is planned anew.
//
// Source: Mu'alem and Feitelson, "Utilization, predictability, workloads, and
// user runtime estimates" (2001); compression as pyss has it.

// replan plans the jobs that have no plan, in order. A plan for now comes true
// at once.
func (e *Engine) replan() {
	if !e.settings.jobs.plans || e.state.jobs.unplanned == 0 {
		return
	}
	q, jobs := &e.quick, &e.state.jobs
	q.started = q.started[:0]
	if newest := jobs.newest; e.state.flat && jobs.unplanned == 1 && newest != nil && newest.plan == nil {
		q.started = append(q.started, newest)
	} else {
		for j := range jobs.round(e.state.now) {
			if j.plan == nil {
				q.started = append(q.started, j)
			}
		}
	}
	if e.state.profile != nil {
		e.quickPlan(q.started)
		return
	}
	for _, j := range q.started {
		t := e.newTrial(e.state.plans)
		if at, ok := t.earliest(j); ok {
			e.settle(j, at)
		}
	}
}

// compress moves each planned job, in order, to the earliest place beside
// everything else, if it starts earlier there.
func (e *Engine) compress() {
	if e.state.jobs.len() == 0 {
		return
	}
	if e.state.profile != nil {
		e.quickCompress()
		return
	}
	for _, j := range slices.Collect(e.state.jobs.round(e.state.now)) {
		if j.plan == nil || j.plan.Start <= e.state.now {
			continue
		}
		t := e.newTrial(e.state.plans)
		c := t.draft.Calendar(j.plan.Resource)
		if err := c.Remove(blockOf(j.plan, j.plan.Start)); err != nil {
			panic("engine: a plan is not booked: " + err.Error())
		}
		at, ok := t.earliest(j)
		if err := c.Add(blockOf(j.plan, j.plan.Start)); err != nil {
			panic("engine: a plan cannot be booked again: " + err.Error())
		}
		if ok && at.Start < j.plan.Start {
			e.settle(j, at)
		}
	}
}

// settle gives a job a plan, or starts it if that is now.
func (e *Engine) settle(j *job, at berth.Allotment) {
	if at.Start <= e.state.now {
		e.run(j, at)
		return
	}
	e.plans = append(e.plans, at)
	e.emit(Change{Kind: Planned, ID: j.request.ID, job: j, Plan: &e.plans[len(e.plans)-1]})
}

// yield drops the plans of all jobs if one of them stands in the way of what is
// about to be promised.
func (e *Engine) yield(allotments []berth.Allotment) {
	if e.state.jobs.len() == e.state.jobs.unplanned {
		return
	}
	if e.state.profile == nil && e.planable(allotments) || e.state.profile != nil && e.quickPlanable(allotments) {
		return
	}
	for _, j := range slices.Collect(e.state.jobs.all()) {
		if j.plan != nil {
			e.emit(Change{Kind: Planned, ID: j.request.ID})
		}
	}
}

// planable reports whether allotments are free beside the plans.
func (e *Engine) planable(allotments []berth.Allotment) bool {
	t := e.newTrial(e.state.plans)
	defer t.undo()
	for i := range allotments {
		a := &allotments[i]
		if t.draft.Book(a.Resource, blockOf(a, a.Start)) != nil {
			return false
		}
	}
	return true
}
