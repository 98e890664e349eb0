package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// JobPass is a row of the table of passes for ordinary jobs. A pass runs when a
// job arrives and when PEs are released. It starts jobs beside the promises and
// the jobs that run, and none of them ever delays a promise: a job starts only
// if it fits until its limit, and it is ended there.
type JobPass struct {
	Name  string
	About string
	plans bool // every pending job has a plan
	// start returns the pending jobs that start now, in the order in which
	// they do, and where. nil for the pass that plans.
	start func(*Engine) []placed
	// quick starts the same jobs on one late-binding resource; nil if the pass
	// has no such form.
	quick func(*Engine)
}

// placed is a job and where it runs from now on.
type placed struct {
	job *job
	at  berth.Allotment
}

// JobPasses lists the passes for ordinary jobs; the first is the default.
var JobPasses = []JobPass{
	{Name: "easy", About: "in order; others start early if they do not delay the first of the queue", start: (*Engine).easy, quick: (*Engine).quickEASY},
	{Name: "conservative", About: "in order; others start early if they delay nobody ahead of them", plans: true},
	{Name: "fcfs", About: "strictly in order", start: (*Engine).fcfs, quick: (*Engine).quickFCFS},
	{Name: "lazy", About: "whatever is free goes to the widest waiting job that fits", start: (*Engine).lazy},
}

func jobPassNamed(name string) (JobPass, bool) {
	for _, row := range JobPasses {
		if row.Name == name {
			return row, true
		}
	}
	return JobPass{}, false
}

// look lets the pass see jobs that have just become pending.
func (e *Engine) look() {
	e.discardJobs()
	if e.settings.jobs.plans {
		e.replan()
		return
	}
	e.startJobs()
}

// discardJobs refuses what the order does not let wait.
func (e *Engine) discardJobs() {
	if rounds := e.state.jobs.rounds; rounds != nil {
		for p := range rounds.Discards(e.state.now) {
			e.emit(Change{Kind: Refused, ID: p.Request.ID, Request: p.Request, Refusal: overShare(p.Request)})
		}
	}
}

// released lets the pass see that PEs were given back, or that time has reached
// the end of somebody's limit.
func (e *Engine) released() {
	e.repair()
	if e.settings.batch != nil && e.state.queue.len() > 0 && e.settings.trigger != OnPeriod {
		e.schedule() // what is deferred may start now
	}
	if e.settings.jobs.plans {
		e.replan()
		if e.config.Compress {
			e.compress()
		}
		return
	}
	e.startJobs()
}

// expire drops a job whose waiting limit is over.
func (e *Engine) expire(j *job) {
	refusal := e.impossible(j.request, &j.request.Parts[0])
	e.emit(Change{Kind: Refused, ID: j.request.ID, Request: j.request, Refusal: refusal})
	e.released()
}

// startJobs runs the pass.
func (e *Engine) startJobs() {
	if e.state.jobs.len() == 0 {
		return
	}
	if e.state.profile != nil {
		e.settings.jobs.quick(e)
		return
	}
	for _, p := range e.settings.jobs.start(e) {
		e.run(p.job, p.at)
	}
}

// run makes a job a reservation that starts now.
func (e *Engine) run(j *job, at berth.Allotment) {
	r := &struct {
		berth.Reservation
		at    [1]berth.Allotment
		entry entry
	}{at: [1]berth.Allotment{at}}
	r.Request, r.State, r.Sequence, r.Allotments = j.request, berth.Confirmed, e.state.sequence+1, r.at[:]
	e.emit(Change{Kind: Accepted, ID: j.request.ID, job: j, entry: &r.entry, Reservation: &r.Reservation})
}

// fcfs starts the jobs at the front of the queue until one does not fit.
func (e *Engine) fcfs() []placed {
	t := e.newTrial(e.state.calendars)
	defer t.undo()
	started, _ := t.front()
	return started
}

// easy starts the jobs at the front of the queue until one does not fit, books
// that one at its earliest start, and then starts each further job, in order,
// that fits now beside all of these.
//
// Source: Lifka, "The ANL/IBM SP scheduling system" (1995), as pyss has it.
// Deviations: promises are obstacles like running jobs, so the first job's
// booking is not always where enough jobs have ended, but the earliest gap that
// is long enough. On several resources a job may run on any that could serve
// it; where the first of the queue would start earliest its booking is.
func (e *Engine) easy() []placed {
	t := e.newTrial(e.state.calendars)
	defer t.undo()
	started, first := t.front()
	if first == nil {
		return started
	}
	if at, ok := t.earliest(first); ok {
		t.book(&at)
	}
	behind := false
	for j := range e.state.jobs.round(e.state.now) {
		if !behind {
			behind = j == first
			continue
		}
		if at, ok := t.now(j); ok {
			t.book(&at)
			started = append(started, placed{j, at})
		}
	}
	return started
}

// lazy gives what is free to the job that fits now and takes the most PEs, the
// first of equals, again and again until none fits (Sahakyan and Petrosyan,
// section 4: lazy matching).
func (e *Engine) lazy() []placed {
	t := e.newTrial(e.state.calendars)
	defer t.undo()
	var started []placed
	taken := map[*job]bool{}
	for {
		var best placed
		for j := range e.state.jobs.round(e.state.now) {
			if taken[j] || (best.job != nil && j.variant().NPE <= best.at.NPE) {
				continue
			}
			if at, ok := t.now(j); ok {
				best = placed{j, at}
			}
		}
		if best.job == nil {
			return started
		}
		taken[best.job] = true
		t.book(&best.at)
		started = append(started, best)
	}
}

// trial is a draft on which jobs are placed.
type trial struct {
	engine *Engine
	draft  *calendar.Draft
	bare   calendar.Mark
}

func (e *Engine) newTrial(calendars map[berth.ResourceID]calendar.Calendar) trial {
	for _, c := range calendars {
		c.Prune(e.state.now) // nothing may prune under an open draft
	}
	draft := calendar.NewDraft(calendars)
	return trial{engine: e, draft: draft, bare: draft.Mark()}
}

func (t *trial) undo() { t.draft.Undo(t.bare) }

func (t *trial) book(a *berth.Allotment) {
	if err := t.draft.Book(a.Resource, blockOf(a, a.Start)); err != nil {
		panic("engine: what was found cannot be booked: " + err.Error())
	}
}

// front books jobs now, in order, until one does not fit. It returns those, and
// the one that does not.
func (t *trial) front() (started []placed, waiting *job) {
	for j := range t.engine.state.jobs.round(t.engine.state.now) {
		at, ok := t.now(j)
		if !ok {
			return started, j
		}
		t.book(&at)
		started = append(started, placed{j, at})
	}
	return started, nil
}

// now returns where a job can start now.
func (t *trial) now(j *job) (berth.Allotment, bool) {
	at, ok := t.earliestBy(j, func(d berth.Duration) berth.Time { return min(j.request.Deadline, t.engine.state.now.Add(d)) })
	if !ok && t.engine.config.Preempt {
		return t.meanwhile(j)
	}
	return at, ok
}

// earliest returns where a job can start earliest.
func (t *trial) earliest(j *job) (berth.Allotment, bool) {
	return t.earliestBy(j, func(berth.Duration) berth.Time { return j.request.Deadline })
}

// earliestBy returns where a job can start earliest, among the resources that
// could serve it, if it must end by the deadline for its duration there. Of
// equal starts the one ranked first by the match is taken; a match that
// compares fits compares them instead.
func (t *trial) earliestBy(j *job, deadline func(berth.Duration) berth.Time) (best berth.Allotment, found bool) {
	e := t.engine
	part := &j.request.Parts[0]
	var bestFit calendar.Fit
	for _, candidate := range e.ranked(j.request, part) {
		res := &e.state.resources[candidate.Index]
		v := res.lasts(j.request, j.variant())
		q := e.query(j.request, part, v, res)
		q.Deadline = deadline(v.Duration)
		fit, ok := calendar.Earliest(t.draft.Calendar(res.id), q)
		if ok && fit.End.Valid() && (!found || e.sooner(fit, bestFit)) {
			o := offer{res: res, variant: v, fit: fit}
			best, bestFit, found = o.allotment(), fit, true
		}
	}
	return best, found
}

func (e *Engine) sooner(a, b calendar.Fit) bool {
	if e.settings.compare != nil {
		return e.settings.compare.Better(a, b)
	}
	return a.Start < b.Start
}
