package engine

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// A task may begin later than its parents end because it waits for PEs or licences. Where those that
// it waits for are of its own workflow and are given back early, it comes forward, and then those
// that waited for its own place. What has room before it as planned stays where it is: a planner that
// goes backwards from the deadline wanted it there.

// waiting is a task that has not started, with the earliest time that its parents allow.
type waiting struct {
	task  int
	entry *state.Entry
	from  berth.Time
}

// bringForward lets tasks come forward that waited for nothing but what tasks of their workflow
// have given back, and tasks behind those, by start: what a task gives back itself
// begins when it would have begun, so it is of use only to those after it.
func (r *repair) bringForward() {
	if len(r.freed) == 0 { // as always under another repair
		return
	}
	e := r.engine
	var list []waiting
	for _, at := range r.f.Order() {
		i := int(at)
		d := e.waitingTask(r.f, i)
		if d == nil || d.Vacant() {
			continue
		}
		if r.moved[i] {
			r.came = append(r.came, d)
		}
		if d.State() != berth.Held && d.Missing() == 0 {
			list = append(list, waiting{task: i, entry: d})
		}
	}
	slices.SortStableFunc(list, func(a, b waiting) int { return cmp.Compare(a.entry.Start(), b.entry.Start()) })
	came := map[int]bool{} // forward, here
	for range forwardPasses {
		missed, again := false, false
		for _, w := range list {
			i, d := w.task, w.entry
			w.from = max(e.ready(r.f, i), e.state.Now())
			if w.from >= d.Start() || !r.waitedFor(w) && !r.behindOne(i, came) {
				continue
			}
			moved := r.moved[i]
			had, comes := r.comeForward(i, d, w.from)
			if !comes {
				missed = true
				continue
			}
			if !moved { // else it was where it had come itself
				r.given, r.came = append(r.given, had...), append(r.came, d)
			}
			came[i], again = true, again || missed
		}
		if !again {
			return
		}
	}
}

// forwardPasses bounds how often the tasks are gone through. A task that found no place may have one after
// a later task has come forward that stood in its way.
const forwardPasses = 8

// comeForward gives a task the earliest place from a time on that begins before its own, and returns what
// it held until then; comes is false if there is no such place.
func (r *repair) comeForward(i int, d *state.Entry, from berth.Time) (was []berth.Allotment, comes bool) {
	e := r.engine
	was = heldBy(d)
	// Tasks behind it start no earlier than its old end, so none of them is in its way.
	found, ok := e.finder.Again(r.f.Workflow(), i, d, from, d.Start()-1, nil, r.f.Site)
	if !ok {
		return nil, false
	}
	e.putTask(d, &found)
	r.freed = append(r.freed, was...)
	r.early, r.moved[i] = true, true
	r.count++
	return was, true
}

// behindOne reports whether a parent of a task is among some.
func (r *repair) behindOne(i int, some map[int]bool) bool {
	return slices.ContainsFunc(r.f.Task(i).After, func(parent int) bool { return some[parent] })
}

// heldBy returns what a task holds of PEs and of stocks.
func heldBy(d *state.Entry) []berth.Allotment {
	return slices.AppendSeq([]berth.Allotment{d.Part(0)}, d.Stocks())
}

// waitedFor reports whether a task could not begin a second before it does for want of something, and
// its workflow has given back some of that for a time at which it might begin earlier.
func (r *repair) waitedFor(w waiting) bool {
	for _, held := range heldBy(w.entry) {
		of := func(a berth.Allotment) bool {
			return a.Resource == held.Resource && a.Start < held.Start && a.End > w.from
		}
		if slices.ContainsFunc(r.freed, of) && (r.wasTaken(w.entry, &held) || r.wasBeyondShare(w.entry, &held)) {
			return true
		}
	}
	return false
}

// wasTaken reports whether a task could not begin a second before it does for want of what it holds, when
// its workflow held what it has given back since.
func (r *repair) wasTaken(d *state.Entry, held *berth.Allotment) bool {
	finder := r.engine.finder
	if !held.PEs.Empty() && !r.engine.state.NamesAhead(held.Resource) { // names are no bookings
		return !finder.CouldBegin(d, held.Start-1, r.given, r.came)
	}
	n := finder.FreeIn(held.Resource, berth.Interval{Start: held.Start - 1, End: held.Start})
	return r.asBefore(n, held) < held.NPE
}

// wasBeyondShare reports whether the shares of its user and its partition left less than a task holds in the second before that.
func (r *repair) wasBeyondShare(d *state.Entry, held *berth.Allotment) bool {
	if _, pool := r.engine.state.Index(held.Resource); !pool {
		return false
	}
	n, limited := r.engine.finder.ShareLeft(d.Request(), held.Resource, held.Start-1)
	return limited && r.asBefore(n, held) < held.NPE
}

// asBefore returns how many were free in the second before a task when its workflow held what it has
// given back since, if n are now.
func (r *repair) asBefore(n berth.Count, held *berth.Allotment) berth.Count {
	for i := range r.given {
		if before(&r.given[i], held) {
			n -= r.given[i].NPE
		}
	}
	for _, d := range r.came {
		for _, a := range heldBy(d) {
			if before(&a, held) {
				n += a.NPE
			}
		}
	}
	return n
}

// before reports whether a holds, or held, of the same in the second before b.
func before(a, b *berth.Allotment) bool {
	return a.Resource == b.Resource && a.Start < b.Start && a.End >= b.Start
}
