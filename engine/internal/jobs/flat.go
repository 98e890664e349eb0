package jobs

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// The passes on one pool of late binding: the same decisions as those of the plain
// form, with a profile instead of trials. All jobs find the pool equally fast.

// flat is what these passes remember. It follows from the state.
type flat struct {
	// The number of the first of the queue, which does not fit, and where it is booked, empty
	// if nowhere, while the profile's version is that one.
	first   uint64
	shadow  berth.Interval
	version uint64

	room    []room       // scratch space of easyFlat
	started []*state.Job // likewise
}

// room says how many PEs are free from now until a time, the next room's from; each
// has fewer than the one before.
type room struct {
	from berth.Time
	free berth.Count
}

func (r *Runner) startFlat(p *state.Profile) {
	first := r.startFront(p)
	if r.pass.Name == "easy" && first != nil {
		r.easyFlat(p, first)
	}
}

// startFront starts the jobs at the front of the queue until one does not fit. It
// returns that one, nil if there is none.
func (r *Runner) startFront(p *state.Profile) *state.Job {
	backlog, now := r.state.Backlog(), r.state.Now()
	for backlog.Len() > 0 {
		first := backlog.First()
		v := r.finder.Standard(first.Variant())
		if end, ok := endNow(now, first, v); !ok || !p.Fits(v.NPE, now, end) {
			return first
		}
		r.runNow(first, v)
	}
	return nil
}

// endNow returns when a job ends that starts now; ok is false if that is beyond its
// deadline.
func endNow(now berth.Time, j *state.Job, v berth.Variant) (end berth.Time, ok bool) {
	end = now.Add(v.Duration)
	return end, end <= j.Request().Deadline && end.Valid()
}

// easyFlat is the rest of the EASY pass, behind the first job that does not fit.
func (r *Runner) easyFlat(p *state.Profile, first *state.Job) {
	backlog, f, now := r.state.Backlog(), &r.flat, r.state.Now()
	if backlog.Len() == 1 {
		return
	}
	narrowest := backlog.Narrowest()
	if p.Free(p.Index(now)) < narrowest {
		return
	}
	if f.first != first.Number() || f.version != p.Version() || f.shadow.Start < now {
		f.first, f.shadow = first.Number(), r.shadow(p, first)
	}
	f.measure(p, now, narrowest, first.Variant().NPE)
	f.started = f.started[:0]
	for b := range backlog.Blocks() {
		block := backlog.Block(b)
		if least := r.finder.Standard(block.Least()); !f.fits(now.Add(least.Duration), least.NPE) {
			continue
		}
		free := f.room[0].free
		for i, shape := range block.Shapes() {
			if shape.NPE > free || (i == 0 && b == 0) {
				continue // the first of the queue is booked already
			}
			v := r.finder.Standard(shape)
			if end, ok := endNow(now, block.Job(i), v); ok && f.fits(end, v.NPE) {
				f.take(end, v.NPE)
				f.started = append(f.started, block.Job(i))
				free = f.room[0].free
			}
		}
		if f.room[0].free < narrowest {
			break
		}
	}
	for _, j := range f.started {
		r.runNow(j, r.finder.Standard(j.Variant()))
	}
	f.version = p.Version() // what starts beside the shadow does not move it
}

// shadow returns where the first of the queue starts earliest; empty is nowhere.
func (r *Runner) shadow(p *state.Profile, first *state.Job) berth.Interval {
	v := r.finder.Standard(first.Variant())
	start, ok := p.Earliest(r.state.Now(), v.NPE, v.Duration)
	if end := start.Add(v.Duration); ok && end <= first.Request().Deadline && end.Valid() {
		return berth.Interval{Start: start, End: end}
	}
	return berth.Interval{}
}

// measure lists how many PEs are free from now on beside the shadow, which has npe
// PEs, until fewer than the narrowest job wants.
func (f *flat) measure(p *state.Profile, now berth.Time, narrowest, npe berth.Count) {
	f.room = f.room[:0]
	least := p.Size() + 1
	for i, at := p.Index(now), now; i < p.Steps(); i++ {
		end := berth.Forever
		if i+1 < p.Steps() {
			end = p.At(i + 1)
		}
		for at < end {
			next, free := end, p.Free(i)
			switch {
			case at < f.shadow.Start:
				next = min(next, f.shadow.Start)
			case at < f.shadow.End:
				next, free = min(next, f.shadow.End), free-npe
			}
			if free < least {
				f.room = append(f.room, room{at, free})
				if least = free; least < narrowest {
					return
				}
			}
			at = next
		}
	}
}

// fits reports whether PEs are free from now until end.
func (f *flat) fits(end berth.Time, npe berth.Count) bool {
	for i := range f.room {
		if f.room[i].free < npe {
			return f.room[i].from >= end
		}
	}
	return true
}

// take takes PEs from now until end, which must be free.
func (f *flat) take(end berth.Time, npe berth.Count) {
	i := 0
	for ; i < len(f.room) && f.room[i].from < end; i++ {
		f.room[i].free -= npe
	}
	// What lies behind is bounded by what lies before it.
	least, k := f.room[i-1].free, i
	for k < len(f.room) && f.room[k].free >= least {
		k++
	}
	f.room = slices.Delete(f.room, i, k)
}

// runNow starts a job in the only pool.
func (r *Runner) runNow(j *state.Job, v berth.Variant) {
	now := r.state.Now()
	r.Run(j, &berth.Allotment{Resource: r.finder.OnlyPool(), Start: now, End: now.Add(v.Duration), NPE: v.NPE})
}

// planFlat plans jobs in order.
func (r *Runner) planFlat(p *state.Profile, waiting []*state.Job) {
	now, pool := r.state.Now(), r.finder.OnlyPool()
	for _, j := range waiting {
		v := r.finder.Standard(j.Variant())
		if start, ok := p.Earliest(now, v.NPE, v.Duration); ok && start.Add(v.Duration) <= j.Request().Deadline && start.Add(v.Duration).Valid() {
			r.setPlan(j, &berth.Allotment{Resource: pool, Start: start, End: start.Add(v.Duration), NPE: v.NPE})
		}
	}
}

// compressFlat moves plans earlier, in order.
//
// A job can move only into room that has grown since it was last looked at, so one
// that wants more PEs than are free anywhere there is passed over; so is one that
// starts before, since what moves meanwhile leaves room behind that beginning too;
// and none starts behind it. Users submit many equal jobs one after the other: where
// one has found no place before some time, none as large and as long finds one, if
// its plan does not begin before that time.
func (r *Runner) compressFlat(p *state.Profile) {
	backlog, now, pool := r.state.Backlog(), r.state.Now(), r.finder.OnlyPool()
	since := p.BeginCompression()
	if since.Empty() || since.To <= now {
		return
	}
	most := p.Most(since)
	none := berth.Variant{NPE: berth.MaxPEs + 1} // none as large and as long starts before until
	until, reach := now, since.To
	w := state.Wish{From: now}
	for b := 0; b < backlog.Blocks(); b++ {
		block := backlog.Block(b)
		if block.Least().NPE > most {
			continue
		}
		for i, shapes := 0, block.Shapes(); i < len(shapes); i++ {
			v := shapes[i]
			if v.NPE > most {
				continue
			}
			present := block.Job(i).PlannedStart()
			if present <= now || present <= since.From || present >= berth.Forever {
				continue
			}
			v = r.finder.Standard(v)
			w.Variant, w.Present, w.Before = v, present, min(present, reach)
			if w.From, w.Near = now, false; v.NPE >= none.NPE && v.Duration >= none.Duration && present >= until {
				w.From, w.Near = until, true
			}
			start, ok := p.Earlier(&w)
			if none, until = v, start; !ok {
				until = present
				continue
			}
			r.setPlan(block.Job(i), &berth.Allotment{Resource: pool, Start: start, End: start.Add(v.Duration), NPE: v.NPE})
			i -= len(shapes) - block.Len() // what starts leaves the queue
			shapes = block.Shapes()
			most = max(most, p.Most(state.Growth{From: max(present, start.Add(v.Duration)), To: present.Add(v.Duration)}))
			reach = max(reach, p.Grown().To)
		}
		if block.Len() == 0 {
			b--
		}
	}
	p.EndCompression()
}
