package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// The passes for jobs on one late-binding resource: the same decisions as those
// of the plain form, with a profile instead of drafts.

// quick is what these passes remember. It follows from the state.
type quick struct {
	// The first of the queue, which does not fit, and where it is booked, empty
	// if nowhere, while the profile's version is that one.
	first   *job
	shadow  berth.Interval
	version uint64

	room    []room // scratch space of quickEASY
	started []*job // likewise, and of replan
}

// room says how many PEs are free from now until a time, the next room's from;
// each has fewer than the one before.
type room struct {
	from berth.Time
	free berth.Count
}

// startFront starts the jobs at the front of the queue until one does not fit.
// It returns that one, nil if there is none.
func (e *Engine) startFront() *job {
	queue, p, now, res := &e.state.jobs, e.state.profile, e.state.now, &e.state.resources[0]
	p.prune(now)
	for queue.len() > 0 {
		first := queue.first()
		v := res.scale(first.variant())
		if end, ok := e.endNow(first, v); !ok || !p.fits(v.NPE, now, end) {
			return first
		}
		e.runNow(first, v)
	}
	return nil
}

// endNow returns when a job ends that starts now; ok is false if that is beyond
// its deadline.
func (e *Engine) endNow(j *job, v berth.Variant) (end berth.Time, ok bool) {
	end = e.state.now.Add(v.Duration)
	return end, end <= j.request.Deadline && end.Valid()
}

// quickFCFS is the pass strictly in order.
func (e *Engine) quickFCFS() { e.startFront() }

// quickEASY is the EASY pass.
func (e *Engine) quickEASY() {
	queue, p, q, res := &e.state.jobs, e.state.profile, &e.quick, &e.state.resources[0]
	first := e.startFront()
	if first == nil || queue.len() == 1 {
		return
	}
	narrowest := queue.narrowest()
	if p.steps[p.index(e.state.now)].free < narrowest {
		return
	}
	if q.first != first || q.version != p.version || q.shadow.Start < e.state.now {
		q.first, q.shadow = first, e.shadow(first)
	}
	q.measure(p, e.state.now, narrowest, first.variant().NPE)
	q.started = q.started[:0]
	for b, block := range queue.blocks {
		if least := res.scale(block.least); !q.fits(e.state.now.Add(least.Duration), least.NPE) {
			continue
		}
		for i, shape := range block.shapes {
			if (i == 0 && b == 0) || shape.NPE > q.room[0].free {
				continue // the first of the queue is booked already
			}
			v := res.scale(shape)
			if end, ok := e.endNow(block.jobs[i], v); ok && q.fits(end, v.NPE) {
				q.take(end, v.NPE)
				q.started = append(q.started, block.jobs[i])
			}
		}
		if q.room[0].free < narrowest {
			break
		}
	}
	for _, j := range q.started {
		e.runNow(j, res.scale(j.variant()))
	}
	q.version = p.version // what starts beside the shadow does not move it
}

// shadow returns where the first of the queue starts earliest; empty is nowhere.
func (e *Engine) shadow(first *job) berth.Interval {
	v := e.state.resources[0].scale(first.variant())
	start, ok := e.state.profile.earliest(e.state.now, v.NPE, v.Duration)
	if end := start.Add(v.Duration); ok && end <= first.request.Deadline && end.Valid() {
		return berth.Interval{Start: start, End: end}
	}
	return berth.Interval{}
}

// measure lists how many PEs are free from now on beside the shadow, which has
// npe PEs, until fewer than the narrowest job wants.
func (q *quick) measure(p *profile, now berth.Time, narrowest, npe berth.Count) {
	q.room = q.room[:0]
	least := p.size + 1
	for i, at := p.index(now), now; i < len(p.steps); i++ {
		end := berth.Time(berth.Forever)
		if i+1 < len(p.steps) {
			end = p.steps[i+1].at
		}
		for at < end {
			next, free := end, p.steps[i].free
			switch {
			case at < q.shadow.Start:
				next = min(next, q.shadow.Start)
			case at < q.shadow.End:
				next, free = min(next, q.shadow.End), free-npe
			}
			if free < least {
				q.room = append(q.room, room{at, free})
				if least = free; least < narrowest {
					return
				}
			}
			at = next
		}
	}
}

// fits reports whether PEs are free from now until end.
func (q *quick) fits(end berth.Time, npe berth.Count) bool {
	for i := range q.room {
		if q.room[i].free < npe {
			return q.room[i].from >= end
		}
	}
	return true
}

// take takes PEs from now until end, which must be free.
func (q *quick) take(end berth.Time, npe berth.Count) {
	i := 0
	for ; i < len(q.room) && q.room[i].from < end; i++ {
		q.room[i].free -= npe
	}
	// What lies behind is bounded by what lies before it.
	least, k := q.room[i-1].free, i
	for k < len(q.room) && q.room[k].free >= least {
		k++
	}
	q.room = slices.Delete(q.room, i, k)
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
	return booked == len(allotments)
}

// quickCompress moves plans earlier, in order.
//
// A job can move only into room that has grown since it was last looked at, so
// one that wants more PEs than are free anywhere there is passed over; so is one
// that starts before, since what moves meanwhile leaves room behind that
// beginning too; and nobody starts behind it. Users submit many equal jobs one
// after the other: where one has found no place before some time, none as large
// and as long finds one, if its plan does not begin before that time.
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
	none := berth.Variant{NPE: berth.MaxPEs + 1} // nobody as large and as long starts before until
	until, reach := now, since.to
	for b := 0; b < len(e.state.jobs.blocks); b++ {
		block := e.state.jobs.blocks[b]
		if block.least.NPE > most {
			continue
		}
		for i := 0; i < len(block.jobs); i++ {
			v := block.shapes[i]
			if v.NPE > most {
				continue
			}
			present := block.jobs[i].start
			if present <= now || present <= since.from || present >= berth.Forever {
				continue
			}
			v = res.scale(v)
			w := wish{Variant: v, present: present, from: now, before: min(present, reach)}
			if v.NPE >= none.NPE && v.Duration >= none.Duration && present >= until {
				w.from, w.near = until, true
			}
			start, ok := p.earlier(&w)
			if none, until = v, start; !ok {
				until = present
				continue
			}
			size := len(block.jobs)
			e.settle(block.jobs[i], berth.Allotment{Resource: res.id, Start: start, End: start.Add(v.Duration), NPE: v.NPE})
			i -= size - len(block.jobs) // what starts leaves the queue
			most = max(most, p.most(growth{max(present, start.Add(v.Duration)), present.Add(v.Duration)}))
			reach = max(reach, p.grown.to)
		}
		if len(block.jobs) == 0 {
			b--
		}
	}
	p.before, p.grown = p.grown, nowhere
}
