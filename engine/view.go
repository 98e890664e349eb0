package engine

import (
	"cmp"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
)

// What the engine knows, for those who look on: the resource information, the
// bookkeeping, and the waiting and running queues of the workload management
// system of Sahakyan and Petrosyan, section 4.

// Standing is where a request or job stands.
type Standing string

// The standings of what is live. What is over has left the engine.
const (
	Pending Standing = "pending" // not decided yet, or a job that waits
	Waiting Standing = "waiting" // promised, not started: held or confirmed
	Running Standing = "running"
)

// Status is what is known of a live request or job.
type Status struct {
	Standing Standing
	Request  berth.Request
	// Reservation is the promise, nil if it is pending.
	Reservation *berth.Reservation
	// Plan is where a pending job is planned to run, nil if nowhere. It is no
	// promise.
	Plan *berth.Allotment
}

// Status returns where a request or job stands; ok is false if it is not live.
func (e *Engine) Status(id string) (s Status, ok bool) {
	if entry, live := e.state.ledger.live[id]; live {
		r := entry.Reservation
		return Status{Standing: standing(entry), Request: *r.Request, Reservation: &r}, true
	}
	if j, waits := e.state.jobs.byID[id]; waits {
		s = Status{Standing: Pending, Request: *j.request}
		if j.plan != nil {
			plan := *j.plan
			s.Plan = &plan
		}
		return s, true
	}
	if p, waits := e.state.queue.byID[id]; waits {
		return Status{Standing: Pending, Request: *p.Request}, true
	}
	return Status{}, false
}

func standing(entry *entry) Standing {
	if entry.State == berth.Active {
		return Running
	}
	return Waiting
}

// Queue yields the reservations of a site that have that standing, in the order
// of acceptance. The pending are not at a site: see Pending. Cost: O(n log n)
// for n live reservations.
func (e *Engine) Queue(site string, s Standing) iter.Seq[berth.Reservation] {
	return func(yield func(berth.Reservation) bool) {
		for _, entry := range e.state.ledger.inOrder() {
			if standing(entry) == s && entry.at(site) && !yield(entry.Reservation) {
				return
			}
		}
	}
}

// at reports whether a part of a reservation is at a site.
func (entry *entry) at(site string) bool {
	for i := range entry.Allotments {
		if entry.Allotments[i].Resource.Site == site {
			return true
		}
	}
	return false
}

// Pending yields the requests that are not decided yet and then the jobs that
// wait, each in the order in which the next pass looks at them. Cost: that of a
// round.
func (e *Engine) Pending() iter.Seq[berth.Request] {
	return func(yield func(berth.Request) bool) {
		for p := range e.state.queue.order.Round(e.state.now) {
			if !yield(*p.Request) {
				return
			}
		}
		for j := range e.state.jobs.round(e.state.now) {
			if !yield(*j.request) {
				return
			}
		}
	}
}

// Load is how much of a resource is in use.
type Load struct {
	Resource berth.ResourceID
	PEs      berth.Count // its size
	Free     berth.Count // neither running nor out of use now
	Running  int         // parts that run
	Waiting  int         // parts promised for later
}

// Loads returns the load of every resource, in the order of the configuration.
// Cost: O(live reservations).
func (e *Engine) Loads() []Load {
	loads := make([]Load, len(e.state.resources))
	place := map[berth.ResourceID]int{}
	for i := range e.state.resources {
		res := &e.state.resources[i]
		free, _ := e.state.calendar(res.id).Free(berth.Interval{Start: e.state.now, End: e.state.now + 1})
		loads[i] = Load{Resource: res.id, PEs: res.pool.PEs, Free: free}
		place[res.id] = i
	}
	for _, entry := range e.state.ledger.live {
		for part := range entry.Allotments {
			l := &loads[place[entry.Allotments[part].Resource]]
			switch {
			case entry.State != berth.Active:
				l.Waiting++
			case entry.holds(part):
				l.Running++
			}
		}
	}
	return loads
}

// Live returns how many requests, jobs and reservations are live.
func (e *Engine) Live() int {
	return len(e.state.ledger.live) + e.state.jobs.len() + e.state.queue.len()
}

// Due yields the reservations of a site that have started, or start until then,
// in the order of acceptance. Cost: O(n) for n live reservations, and sorting
// what is due.
func (e *Engine) Due(site string, until berth.Time) iter.Seq[berth.Reservation] {
	return func(yield func(berth.Reservation) bool) {
		var due []*entry
		for _, entry := range e.state.ledger.live {
			if entry.Start() <= until && !entry.Request.IsJob() && entry.at(site) {
				due = append(due, entry)
			}
		}
		slices.SortFunc(due, func(a, b *entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
		for _, entry := range due {
			r := entry.Reservation
			r.Allotments = slices.Clone(r.Allotments)
			if !yield(r) {
				return
			}
		}
	}
}

// Outages yields what is out of use, in the order in which it began.
func (e *Engine) Outages() iter.Seq[Outage] {
	return func(yield func(Outage) bool) {
		for _, o := range e.state.outages {
			if !yield(*o) {
				return
			}
		}
	}
}
