package service

import (
	"maps"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/site"
)

// Given is what became of promises up to now, in PE-seconds and in reservations.
type Given struct {
	Promised  int64 // what was promised for times that have come; of what was released or cancelled early, until then
	Delivered int64 // of that, what its sites had
	Ran       int64 // what jobs in the reservations held, in the PEs of their sites
	Moved     int   // how often a reservation was given another place without being asked
	Late      int   // reservations that began without all of their PEs
	Broken    int   // reservations that were lost, failed or were rejected by their site
}

func (g *Given) add(o Given) {
	g.Promised, g.Delivered, g.Ran = addArea(g.Promised, o.Promised), addArea(g.Delivered, o.Delivered), addArea(g.Ran, o.Ran)
	g.Moved, g.Late, g.Broken = g.Moved+o.Moved, g.Late+o.Late, g.Broken+o.Broken
}

// taskAt is a job of a site.
type taskAt struct {
	site string
	job  site.JobID
}

// runs is a job that runs in a reservation.
type runs struct {
	reservation string
	since       berth.Time
	pes         berth.Count
}

// counted is where a reservation that is over was counted.
type counted struct {
	in *Used // nil if it is not counted
	at berth.Time
}

const (
	// tasksBehind is for how long after the end of a reservation its jobs are heard of: a site may be out of reach.
	tasksBehind berth.Duration = 86400
	// fewCounted are not looked through for those that no more is heard of.
	fewCounted = 1024
)

// follow takes in what a record says of what was given.
func (u *usage) follow(p *past) {
	if d := p.in.delivery; d != nil {
		for _, n := range d.news {
			if f := u.live[n.id]; f != nil && !n.isOfProposal() {
				f.given.advance(p.at)
				f.given.there[d.site] = n.generation > 0
			}
		}
	}
	if p.in.tasks != nil {
		for i := range p.in.tasks.events {
			u.task(p.at, p.in.tasks.site, &p.in.tasks.events[i])
		}
	}
}

// task takes in what a look at a site has shown of a task.
func (u *usage) task(at berth.Time, where string, e *taskEvent) {
	if e.what == TaskLeft || e.what == SiteChanged {
		return
	}
	key := taskAt{where, e.task.ID}
	was, is := u.running[key]
	switch {
	case e.what == TaskStarted:
		u.running[key] = runs{e.reservation, e.task.Start, e.pes}
		return
	case e.what == TaskEnded:
		if e.pes > 0 || !is {
			was = runs{e.reservation, e.task.Start, e.pes}
		}
		u.ran(was, e.task.End)
	case is && e.task.Stage == site.Waiting: // again
		u.ran(was, at)
	default:
		return
	}
	delete(u.running, key)
}

// ran counts what a job held until a time.
func (u *usage) ran(r runs, until berth.Time) {
	if r.since <= 0 || until <= r.since {
		return
	}
	area := berth.Area(r.pes, until.Sub(r.since))
	if f := u.live[r.reservation]; f != nil {
		f.ran = addArea(f.ran, area)
	} else if done := u.done[r.reservation]; done.in != nil {
		done.in.Ran = addArea(done.in.Ran, area)
	}
}

// close notes where a reservation that is over was counted.
func (u *usage) close(id string, in *Used) {
	delete(u.live, id)
	u.done[id] = counted{in, u.now}
	if len(u.done) >= u.many {
		maps.DeleteFunc(u.done, func(_ string, c counted) bool { return u.now.Sub(c.at) > tasksBehind })
		u.many = max(fewCounted, 2*len(u.done))
	}
}

// reckoned is a live reservation whose records are read.
type reckoned struct {
	berth.Reservation
	given tally
	ran   int64
	moved int
}

// until returns what became of it up to a time.
func (f *reckoned) until(now berth.Time) Given {
	g := Given{Ran: f.ran, Moved: f.moved}
	var late bool
	if g.Promised, g.Delivered, late = f.given.come(now); late {
		g.Late = 1
	}
	if f.given.broken {
		g.Broken = 1
	}
	return g
}

// come returns what was owed for times that have come, in PE-seconds, and what of that was there; late is whether it
// began without all of its PEs. All that was promised last is owed where the promise was broken.
func (t *tally) come(now berth.Time) (owed, there int64, late bool) {
	t.advance(now)
	until := now
	if t.over {
		until = min(t.ended, now)
	}
	var broken int64 // what was owed for the time behind that
	for i := range t.allotments {
		a := &t.allotments[i]
		if end := min(a.End, until); end > a.Start {
			owed = addArea(owed, berth.Area(t.owed[i], end.Sub(a.Start)))
		}
		if from := max(a.Start, until); t.broken && a.End > from {
			broken = addArea(broken, berth.Area(t.owed[i], a.End.Sub(from)))
		}
	}
	there = max(0, owed-t.delivered.Short)
	if len(t.allotments) > 0 {
		start := t.allotments[0].Start
		late = start < until && (t.delivered.Whole == 0 || t.delivered.Whole > start)
	}
	return addArea(owed, broken), there, late
}

// isBroken reports whether a change ends a promise that is not kept.
func isBroken(kind change.Kind) bool {
	return kind == change.Lost || kind == change.Failed || kind == change.Rejected
}

// pesOf returns how many PEs of the site a job holds or held: its nodes, each counted for every job on it, or its cores.
func (k *keeper) pesOf(j *site.Job) berth.Count {
	if k.ground.Load().layout.Unit() == site.UnitCore {
		return j.Cores
	}
	return berth.Count(len(j.Shares))
}
