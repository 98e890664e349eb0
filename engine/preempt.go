package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Preemption of ordinary jobs by promises, an option.
//
// Source: GridSim's reservation module, as Ahuja et al. use it (spec 3, b.2):
// jobs without a reservation run only while no reservation needs their PEs; at
// its start they go back to the queue. Deviations: a job keeps the work that it
// has done, in whole standard seconds, and its place in the order is that of a
// new arrival. Which jobs go is fixed when the promise is made: those that
// started last, and none more than needed.

// placed is place, as if no job ran if jobs are preempted.
func (e *Engine) placed(r *berth.Request) ([]berth.Allotment, *berth.Refusal) {
	if !e.config.Preempt {
		return e.place(r)
	}
	for i := range e.state.resources {
		e.state.calendar(e.state.resources[i].id) // prunes
	}
	running := e.runningJobs()
	each := func(do func(calendar.Calendar, calendar.Block) error) {
		for _, j := range running {
			a := &j.Allotments[0]
			must(do(e.state.calendarOf(a.Resource), blockOf(a, e.state.now)))
		}
	}
	each(calendar.Calendar.Remove)
	defer each(calendar.Calendar.Add)
	return e.place(r)
}

// runningJobs returns the jobs that run and are not over now, those that started
// last first.
func (e *Engine) runningJobs() []*entry {
	var running []*entry
	for _, entry := range e.state.ledger.live {
		if entry.Request.IsJob() && entry.State == berth.Active && entry.End() > e.state.now {
			running = append(running, entry)
		}
	}
	slices.SortFunc(running, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.Start(), a.Start()), cmp.Compare(b.Sequence, a.Sequence))
	})
	return running
}

// preempt cuts the jobs that are in the way of what is about to be promised, to
// the moment at which it begins.
func (e *Engine) preempt(allotments []berth.Allotment) {
	if !e.config.Preempt {
		return
	}
	running := e.runningJobs()
	for i := range allotments {
		a := &allotments[i]
		c := e.state.calendar(a.Resource)
		block := blockOf(a, a.Start)
		for _, j := range running {
			if canTake(c, block) {
				break
			}
			mine := &j.Allotments[0]
			inTheWay := mine.Resource == a.Resource && mine.End > a.Start && (c.Binding() == berth.Late || common(mine.PEs, a.PEs) > 0)
			if inTheWay {
				e.emit(Change{Kind: Shortened, ID: j.Request.ID, Until: max(a.Start, e.state.now), entry: j})
			}
		}
		must(c.Add(block)) // the next part is beside this one
	}
	for i := range allotments {
		must(e.state.calendar(allotments[i].Resource).Remove(blockOf(&allotments[i], allotments[i].Start)))
	}
}

// cut reports whether a job has reached a limit that is not its own, and what is
// left to do of it.
func (e *Engine) cut(entry *entry) (rest *berth.Request, cut bool) {
	if !e.config.Preempt || !entry.Request.IsJob() {
		return nil, false
	}
	a := &entry.Allotments[0]
	res := e.resourceOf(a.Resource)
	whole := entry.Request.Parts[0].Variants[0]
	ran := a.End.Sub(a.Start)
	if ran >= res.lasts(entry.Request, whole).Duration {
		return nil, false
	}
	left := *entry.Request
	left.Deadline = berth.Forever // it did start in time
	left.Parts = []berth.Part{{
		Variants: []berth.Variant{{NPE: whole.NPE, Duration: max(1, whole.Duration-res.pool.SpeedFor(&left.Requirements).Work(ran))}},
		Eligible: left.Parts[0].Eligible,
	}}
	return &left, true
}

// resourceOf returns the resource of that name, which there is.
func (e *Engine) resourceOf(id berth.ResourceID) *resource {
	for i := range e.state.resources {
		if e.state.resources[i].id == id {
			return &e.state.resources[i]
		}
	}
	panic(fmt.Sprintf("engine: no resource %v", id))
}

// meanwhile returns where a job can run from now on until a promise needs its
// PEs, for the longest time of any resource, the first of equals.
func (t *trial) meanwhile(j *job) (best berth.Allotment, found bool) {
	e := t.engine
	part := &j.request.Parts[0]
	for _, candidate := range e.ranked(j.request, part) {
		res := &e.state.resources[candidate.Index]
		v := res.lasts(j.request, j.variant())
		for low, high := berth.Duration(0), v.Duration; high-low > 1; {
			d := low + (high-low)/2
			q := e.query(j.request, part, berth.Variant{NPE: v.NPE, Duration: d}, res)
			q.Deadline = e.state.now.Add(d)
			fit, ok := calendar.Earliest(t.draft.Calendar(res.id), q)
			if !ok {
				high = d
				continue
			}
			if low = d; !found || d > best.End.Sub(best.Start) {
				o := offer{res: res, variant: v, fit: fit}
				best, found = o.allotment(), true
			}
		}
	}
	return best, found
}

// shorten folds Shortened: a job that runs has to go earlier.
func (s *state) shorten(e *entry, until berth.Time) error {
	a := &e.Allotments[0]
	if e.State != berth.Active || len(e.Allotments) > 1 || until < s.now || until >= a.End {
		return fmt.Errorf("reservation %q cannot be shortened to %d", e.Request.ID, until)
	}
	s.timers.drop(&e.first)
	gone := *a
	gone.Start = until
	if err := s.unbook(&gone, until); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	a.End = until // the allotments are the entry's own since it has started
	s.timers.add(endTimer(e, 0))
	return nil
}
