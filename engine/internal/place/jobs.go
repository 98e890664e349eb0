package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// JobNow returns where a job can start now, with what is tried. If running jobs
// yield to promises, it may start where it will have to yield.
func (f *Finder) JobNow(j *state.Job) (berth.Allotment, bool) {
	x := f.search(j.Request(), nil)
	at, ok := x.jobBy(j, &latest{start: f.state.Now()})
	if !ok && f.Preempt {
		return x.meanwhile(j)
	}
	return at, ok
}

// JobEarliest returns where a job can start earliest, with what is tried.
func (f *Finder) JobEarliest(j *state.Job) (berth.Allotment, bool) {
	x := f.search(j.Request(), nil)
	return x.jobBy(j, &latest{start: berth.Forever})
}

// JobsMoveByRoom reports whether a planned job can move to an earlier start only where room has grown. It can do so
// elsewhere where the match prefers something to an early start, as one that compares ends does among pools of different
// speed: what it prefers may be taken meanwhile. It is not reported where jobs yield to promises.
func (f *Finder) JobsMoveByRoom() bool {
	if f.Preempt {
		return false
	}
	switch f.compare.(type) {
	case nil, policy.BestKey: // the key of a job's place is its start
		return true
	case policy.EarliestFinishMatch:
		for i := range f.pools {
			if p := f.pools[i].config; p.Speed != f.pools[0].config.Speed || p.Node.AcceleratorSpeed != f.pools[0].config.Node.AcceleratorSpeed {
				return false
			}
		}
		return true
	}
	return false
}

// JobEarlier returns what JobEarliest does if that is earlier than the job's plan, which is not booked; ok is false if it
// is not. It looks only where room has grown, which is enough where JobsMoveByRoom reports that. Cost: a search in each
// pool with such room.
func (f *Finder) JobEarlier(j *state.Job, room *state.Room) (at berth.Allotment, ok bool) {
	x := f.search(j.Request(), nil)
	plan, _ := j.Plan()
	at, ok = x.jobBy(j, &latest{start: plan.Start - 1, room: room, own: plan.Resource})
	return at, ok && at.Start < plan.Start
}

// latest bounds where a job is looked for: it starts at a time or before, and overlaps room that has grown if there is
// a Room.
type latest struct {
	start berth.Time
	room  *state.Room
	own   berth.ResourceID // the pool of its plan
}

// bound bounds a query, which has the deadline of the job. It returns false if nothing can be found in the pool.
func (l *latest) bound(p *pool, q *calendar.Query) bool {
	start := l.start
	if l.room != nil {
		since := l.room.In(p.index)
		if since.Empty() || q.NPE > l.room.Most(p.index) && p.id != l.own {
			return false
		}
		if start = min(start, since.To-1); since.From > q.Now {
			q.Ready = max(q.Ready, since.From.Add(1-q.Duration))
		}
	}
	if start < berth.Forever {
		q.Deadline = min(q.Deadline, start.Add(q.Duration))
	}
	return true
}

// jobBy returns where a job can start earliest, among the pools that could serve it, by its deadline and as it is bounded.
// Of equal starts the one
// ranked first by the match is taken; a match that compares fits compares them
// instead.
func (x *search) jobBy(j *state.Job, l *latest) (best berth.Allotment, found bool) {
	var bestFit calendar.Fit
	for _, candidate := range x.ranked(0) {
		p := &x.pools[candidate.Index]
		v := x.scaled(p, j.Variant())
		for x.way = range x.ways(0) {
			if v.NPE > x.eligibleCount(0, p) {
				continue
			}
			q := x.query(0, v, p)
			if q.Deadline = j.Request().Deadline; !l.bound(p, &q) {
				continue
			}
			fit, ok := x.view(p).Earliest(q)
			if ok && fit.End.Valid() && (!found || x.sooner(fit, bestFit)) {
				o := offer{pool: p, variant: v, fit: fit}
				best, bestFit, found = o.allotment(), fit, true
			}
		}
	}
	return best, found
}

func (f *Finder) sooner(a, b calendar.Fit) bool {
	if f.compare != nil {
		return f.compare.Better(a, b)
	}
	return a.Start < b.Start
}

// meanwhile returns where a job can run from now on until a promise needs its PEs,
// for the longest time of any pool, the first of equals.
func (x *search) meanwhile(j *state.Job) (best berth.Allotment, found bool) {
	now := x.state.Now()
	for _, candidate := range x.ranked(0) {
		p := &x.pools[candidate.Index]
		v := x.scaled(p, j.Variant())
		for x.way = range x.ways(0) {
			if v.NPE > x.eligibleCount(0, p) {
				continue
			}
			for low, high := berth.Duration(0), v.Duration; high-low > 1; {
				d := low + (high-low)/2
				q := x.query(0, berth.Variant{NPE: v.NPE, Duration: d}, p)
				q.Deadline = now.Add(d)
				fit, ok := x.view(p).Earliest(q)
				if !ok {
					high = d
					continue
				}
				if low = d; !found || d > best.End.Sub(best.Start) {
					o := offer{pool: p, variant: v, fit: fit}
					best, found = o.allotment(), true
				}
			}
		}
	}
	return best, found
}

// Remainder returns the rest of a job that has run for a time on its pool, in standard
// seconds; ok is false if it has used up its limit.
func (f *Finder) Remainder(e *state.Entry, ran berth.Duration) (rest *berth.Request, ok bool) {
	a := e.Part(0)
	p := f.poolOf(a.Resource)
	x := f.search(e.Request(), nil)
	whole := e.Request().Parts[0].Variants[0]
	if ran >= x.scaled(p, whole).Duration {
		return nil, false
	}
	left := e.Request().Clone()
	left.Deadline = berth.Forever // it did start in time
	left.Parts[0].Variants[0].Duration = max(1, whole.Duration-p.config.SpeedFor(&left.Requirements).Work(ran))
	return left, true
}

// OnlyPool returns the first pool: the only one where passes look at a profile.
func (f *Finder) OnlyPool() berth.ResourceID { return f.pools[0].id }

// Standard returns a variant with its duration in the first pool, for requests that
// all find it equally fast.
func (f *Finder) Standard(v berth.Variant) berth.Variant {
	v.Duration = f.pools[0].config.Speed.Scale(v.Duration)
	return v
}
