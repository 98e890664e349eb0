package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Preemption of ordinary jobs by promises, an option.
//
// Source: GridSim's reservation module, as Ahuja et al. use it (spec 3, b.2): jobs
// without a reservation run only while no reservation needs their PEs; at its start
// they go back to the queue. Deviations: a job keeps the work that it has done, in
// whole standard seconds, and its place in the order is that of a new arrival. Which
// jobs go is fixed when the promise is made: those that started last, as few as are
// needed.

// preempt shortens the jobs that are in the way of a new promise, to the start of the
// promise, or of an outage, to where PEs are short first; where that is now, they are
// requeued at once.
func (e *Engine) preempt(allotments []berth.Allotment, outage bool) {
	if !e.config.Preempt {
		return
	}
	for _, y := range e.yielding(allotments, outage) {
		if y.until > e.state.Now() {
			e.shortened = true
			e.emitOf(y.job, change.Change{Kind: change.Shortened, Until: y.until})
			continue
		}
		e.yielded = true
		if rest, left := e.finder.Remainder(y.job, e.state.Now().Sub(y.job.Start())); left {
			e.emitOf(y.job, change.Change{Kind: change.Preempted, Request: rest})
		} else { // it has run beyond its limit
			e.emitOf(y.job, change.Change{Kind: change.Ended})
		}
	}
}

// yields is a running job, and when it has to stop.
type yields struct {
	job   *state.Entry
	until berth.Time
}

// yielding returns the running jobs that are in the way of allotments, those that
// started last first. They stop where an allotment begins; if whereShort is set, not
// before a pool of late binding is short of PEs for it.
func (e *Engine) yielding(allotments []berth.Allotment, whereShort bool) []yields {
	running := e.finder.RunningJobs()
	if len(running) == 0 {
		return nil
	}
	t := e.state.Try()
	defer t.Close()
	var list []yields
	for i := range allotments {
		a := &allotments[i]
		pool, _ := e.state.Index(a.Resource)
		view := t.View(pool)
		for k, j := range running {
			if view.Takes(a) {
				break
			}
			if j == nil {
				continue
			}
			until := max(a.Start, e.state.Now())
			if whereShort && view.Binding() == berth.Late {
				until = place.FirstShort(view, a)
			}
			mine := j.Part(0)
			inTheWay := mine.Resource == a.Resource && mine.End > until && (view.Binding() == berth.Late || mine.PEs.Overlap(a.PEs) > 0)
			if !inTheWay {
				continue
			}
			t.Shorten(&mine, until)
			list = append(list, yields{j, until})
			running[k] = nil
		}
		t.Book(a) // the next part is beside this one
	}
	slices.Reverse(list)
	list = slices.DeleteFunc(list, func(y yields) bool { // jobs that did not have to stop after all
		stays := y.job.Part(0)
		stays.Start = y.until
		pool, _ := e.state.Index(stays.Resource)
		if !t.View(pool).Takes(&stays) {
			return false
		}
		t.Book(&stays)
		return true
	})
	slices.Reverse(list)
	return list
}

// preemptedRemainder reports whether a job was stopped by a preemption, before its own
// limit, and returns the work that is left of it.
func (e *Engine) preemptedRemainder(d *state.Entry) (rest *berth.Request, cut bool) {
	if !e.config.Preempt || !d.Request().IsJob() {
		return nil, false
	}
	a := d.Part(0)
	return e.finder.Remainder(d, a.End.Sub(a.Start))
}
