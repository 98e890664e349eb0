package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// The passes for jobs on one late-binding resource: the same decisions as those
// of the plain form, with counts instead of drafts.

// quick is what these passes remember. It follows from the state, and is looked
// at only while the calendar's version is the one it belongs to.
type quick struct {
	version uint64
	first   *job           // of the queue, which does not fit
	shadow  berth.Interval // where it is booked; empty if nowhere
	pieces  []piece        // scratch space of quickEASY
	started []*job         // likewise
}

// piece says how many PEs are free from the end of the one before, the first
// from now, until its own.
type piece struct {
	end  berth.Time
	free berth.Count
}

// quickEASY is the EASY pass.
func (e *Engine) quickEASY() {
	queue := &e.state.jobs
	res := &e.state.resources[0]
	c := e.state.calendar(res.id)
	now := e.state.now
	narrowest := queue.narrowest()
	for {
		// Every start takes some of what is free now, so this ends the pass as
		// soon as nobody can start.
		if free, _ := c.Free(berth.Interval{Start: now, End: now + 1}); free < narrowest {
			return
		}
		first := queue.first()
		v := res.scale(first.variant())
		free, _ := c.Free(berth.Interval{Start: now, End: now.Add(v.Duration)})
		if free < v.NPE || now.Add(v.Duration) > first.request.Deadline {
			break
		}
		e.runNow(first, v)
		if queue.len() == 0 {
			return
		}
	}
	if queue.len() == 1 {
		return
	}
	first := queue.first()
	q := &e.quick
	if q.first != first || q.version != c.Version() || q.shadow.Start < now {
		v := res.scale(first.variant())
		q.first, q.shadow = first, berth.Interval{}
		if fit, ok := calendar.Earliest(c, e.query(first.request, &first.request.Parts[0], v, res)); ok && fit.End.Valid() {
			q.shadow = berth.Interval{Start: fit.Start, End: fit.End}
		}
	}
	e.measure(c, narrowest, first.variant().NPE)
	q.started = q.started[:0]
	for b, block := range queue.blocks {
		if !q.fits(now, res.scale(block.least)) {
			continue
		}
		for i, shape := range block.shapes {
			if (i == 0 && b == 0) || shape.NPE > q.pieces[0].free {
				continue // the first of the queue is booked already
			}
			v := res.scale(shape)
			if q.fits(now, v) && now.Add(v.Duration) <= block.jobs[i].request.Deadline {
				q.take(now.Add(v.Duration), v.NPE)
				q.started = append(q.started, block.jobs[i])
			}
		}
	}
	for _, j := range q.started {
		e.runNow(j, res.scale(j.variant()))
	}
	q.version = c.Version() // what starts beside the shadow does not move it
}

// measure lists how many PEs are free from now on beside the shadow, which has
// npe PEs, until fewer than the narrowest job wants.
func (e *Engine) measure(c calendar.Calendar, narrowest, npe berth.Count) {
	q := &e.quick
	q.pieces = q.pieces[:0]
	at, free := e.state.now, c.Size()
	for r := range c.Records() {
		if at = q.piece(at, r.Time, free, npe); len(q.pieces) > 0 && q.pieces[len(q.pieces)-1].free < narrowest {
			return
		}
		free = r.Free
	}
	q.piece(at, berth.Forever, free, npe)
}

// piece adds what is free from at until end, cut where the shadow begins and
// ends, and returns end.
func (q *quick) piece(at, end berth.Time, free, npe berth.Count) berth.Time {
	for at < end {
		next, left := end, free
		switch {
		case at < q.shadow.Start:
			next = min(next, q.shadow.Start)
		case at < q.shadow.End:
			next, left = min(next, q.shadow.End), free-npe
		}
		q.pieces = append(q.pieces, piece{next, left})
		at = next
	}
	return at
}

// fits reports whether a variant fits now.
func (q *quick) fits(now berth.Time, v berth.Variant) bool {
	end := now.Add(v.Duration)
	for i := range q.pieces {
		if q.pieces[i].free < v.NPE {
			return false
		}
		if q.pieces[i].end >= end {
			return true
		}
	}
	return false
}

// take takes PEs from now until end.
func (q *quick) take(end berth.Time, npe berth.Count) {
	for i := range q.pieces {
		p := q.pieces[i]
		if p.end > end {
			q.pieces = append(q.pieces, piece{})
			copy(q.pieces[i+1:], q.pieces[i:])
			q.pieces[i].end = end
		}
		q.pieces[i].free -= npe
		if p.end >= end {
			return
		}
	}
}

// runNow starts a job on the only resource.
func (e *Engine) runNow(j *job, v berth.Variant) {
	e.run(j, berth.Allotment{
		Resource: e.state.resources[0].id, Start: e.state.now, End: e.state.now.Add(v.Duration), NPE: v.NPE,
	})
}

// quickPlan plans jobs in order.
func (e *Engine) quickPlan(unplanned []*job) {
	p, now, res := e.state.profile, e.state.now, &e.state.resources[0]
	p.prune(now)
	for _, j := range unplanned {
		v := res.scale(j.variant())
		if start, ok := p.earliest(now, v.NPE, v.Duration); ok && start.Add(v.Duration) <= j.request.Deadline && start.Add(v.Duration).Valid() {
			e.settle(j, berth.Allotment{Resource: res.id, Start: start, End: start.Add(v.Duration), NPE: v.NPE})
		}
	}
}

// quickPlanable reports whether allotments are free beside the plans.
func (e *Engine) quickPlanable(allotments []berth.Allotment) bool {
	p := e.state.profile
	p.prune(e.state.now)
	grown := p.grown
	booked := 0
	for ; booked < len(allotments); booked++ {
		a := &allotments[booked]
		if !p.fits(a.NPE, a.Start, a.End) {
			break
		}
		p.add(a.Start, a.End, -a.NPE)
	}
	for i := range allotments[:booked] {
		a := &allotments[i]
		p.add(a.Start, a.End, a.NPE)
	}
	p.grown = grown // nothing has
	return booked == len(allotments)
}

// quickCompress moves plans earlier, in order. A job can move only into room
// that has grown since it was last looked at, so one that wants more PEs than
// are free anywhere there is passed over, and so is one that starts before: what
// moves meanwhile leaves room behind that beginning too.
func (e *Engine) quickCompress() {
	p, now, res := e.state.profile, e.state.now, &e.state.resources[0]
	p.prune(now)
	since := p.before.and(p.grown)
	p.grown = nowhere
	if since.empty() || since.to <= now {
		p.before = nowhere
		return
	}
	most := p.most(since)
	for b := 0; b < len(e.state.jobs.blocks); b++ {
		block := e.state.jobs.blocks[b]
		if block.least.NPE > most {
			continue
		}
		for i := 0; i < len(block.jobs); i++ {
			n := block.shapes[i].NPE
			if n > most {
				continue
			}
			present := block.jobs[i].start
			if present <= now || present <= since.from || present >= berth.Forever {
				continue
			}
			d := res.scale(block.shapes[i]).Duration
			start, ok := p.earlier(now, n, d, present)
			if !ok {
				continue
			}
			size := len(block.jobs)
			e.settle(block.jobs[i], berth.Allotment{Resource: res.id, Start: start, End: start.Add(d), NPE: n})
			i -= size - len(block.jobs) // what starts leaves the queue
			most = max(most, p.most(p.grown))
		}
		if len(block.jobs) == 0 {
			b--
		}
	}
	p.before, p.grown = p.grown, nowhere
}
