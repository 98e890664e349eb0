package chance

import (
	"github.com/berth-hpc/berth"
)

// Entry is one thing that was asked for, and what became of it so far.
type Entry struct {
	Arrival, Ready, Deadline berth.Time
	Duration                 berth.Duration
	NPE                      berth.Count
	Job                      bool // an ordinary job, which has no window
	// Beside says that it is no case of its own: a further part of the entry before, or PEs out
	// of use. It takes PEs all the same.
	Beside bool

	Answered bool // it was accepted or refused; a job has started
	Accepted bool // it has, or had, a place
	// Promised is the place that it got first, and Place the one that it had last. Those of
	// a job are where it ran.
	Promised, Place berth.Interval
	// Freed is when it gave its PEs back; that is the end of its place unless it was before.
	Freed berth.Time
	Moved bool // its place was changed for a reason that its user does not have, or taken away
}

// FromLines returns what the lines of a schedule tell. The parts of one request stand one
// behind the other.
func FromLines(lines []berth.Line) []Entry {
	entries := make([]Entry, 0, len(lines))
	for i := range lines {
		l := &lines[i]
		switch l.Kind {
		case berth.KindRequest, berth.KindJob, berth.KindBooking, "":
		case berth.KindOutage:
		default:
			continue // transfers and tasks take no PEs of their own
		}
		beside := l.Part > 1 || l.Kind == berth.KindBooking || l.Kind == berth.KindOutage
		e := Entry{
			Arrival: l.Arrival, Ready: l.Ready, Deadline: l.Deadline, Duration: l.Duration, NPE: l.NPE, Job: l.Kind == berth.KindJob, Beside: beside,
			Answered: l.Accepted || l.Reason != "", Accepted: l.Accepted || beside && l.Start != nil,
		}
		if l.Start != nil && l.End != nil {
			e.Place = berth.Interval{Start: *l.Start, End: *l.End}
			e.Promised, e.Freed = e.Place, e.Place.End
		}
		if l.ActualEnd != nil {
			e.Freed = *l.ActualEnd
		}
		if l.PromisedStart != nil && !e.Job {
			e.Promised = berth.Interval{Start: *l.PromisedStart, End: l.PromisedStart.Add(l.Duration)}
			e.Accepted, e.Moved = true, len(l.MovedFrom) > 0 || !l.Accepted
			e.Freed = max(e.Freed, e.Promised.Start) // of one that was broken no end is told
		}
		entries = append(entries, e)
	}
	return entries
}

// start returns when an entry began to hold PEs.
func (e *Entry) start() berth.Time { return e.Place.Start }

// At returns an entry as a question sees it: one about a request that is made later is about a
// window that is as much later.
func (e Entry) At(q Question) Entry {
	if q.Kind == Accepted {
		e.Arrival, e.Ready, e.Deadline = e.Arrival.Add(q.Later), e.Ready.Add(q.Later), e.Deadline.Add(q.Later)
	}
	return e
}
