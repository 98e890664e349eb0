package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// looked is what a look at a site that is only watched comes to.
type looked struct {
	seen   []ShadowJob // jobs that are followed and have changed
	fresh  []ShadowJob // jobs to ask the engine for, in the order in which they were submitted
	gone   []ShadowJob // jobs that the site does not know any more
	state  site.State  // with nothing but what is out of use for the engine
	listed map[string]bool
}

// askAtOnce is how many jobs the engine is asked for in one go. Each takes up to
// a millisecond at a busy site, for which everybody waits.
const askAtOnce = 100

// watch takes a look at a site that is only watched: jobs that are new are asked
// of the engine, those that have ended end there, and what runs there and was
// not asked for is out of use.
func (h *Host) watch(ctx context.Context, k *keeper, state *site.State) {
	l, err := call(ctx, h, "", func(answer func(looked, error)) {
		l := h.compare(k, state)
		for i := range l.seen {
			h.see(k.name, &l.seen[i], false)
		}
		h.finishShadows(k)
		h.tellOutOfUse(k, &l.state)
		for i := range l.gone {
			if j := &l.gone[i]; j.Left != "" || !h.core.live(j.ID) {
				h.see(k.name, j, true)
			}
		}
		h.whenDurable(func(err error) { answer(l, err) })
	})
	if err != nil {
		return // the service stops
	}
	for chunk := range slices.Chunk(l.fresh, askAtOnce) {
		_, err := call(ctx, h, "", func(answer func(struct{}, error)) {
			// What was submitted in one second is decided together, and not more.
			var submitted berth.Time
			for i := range chunk {
				if chunk[i].Asked != submitted {
					h.wakeIfDue()
				}
				submitted = chunk[i].Asked
				h.askShadow(k, &chunk[i])
			}
			h.whenDurable(func(err error) { answer(struct{}{}, err) })
		})
		if err != nil {
			return
		}
	}
	want, err := call(ctx, h, "", func(answer func(wanted, error)) { answer(wanted{effect: h.core.lastEffect()}, nil) })
	if err != nil {
		return
	}
	did := done{made: map[promise]made{}, failed: map[promise]string{}}
	plain := *state
	plain.Ours = nil // under whatever name: nothing of it can have drifted
	k.reached(&plain, &want, &did)
	h.settle(ctx, k, &want, &did)
}

// lastEffect returns the number of the last effect that is to be carried out.
func (c *Core) lastEffect() uint64 { return c.engine.LastEffect() }

// live reports whether the engine has a request, or a reservation for it.
func (c *Core) live(id string) bool {
	_, is := c.engine.Status(id)
	return is
}

// see records what was seen of a job. What the engine said of it has records of
// its own.
func (h *Host) see(at string, j *ShadowJob, gone bool) {
	seen := *j
	seen.Said = Said{}
	h.persist(h.core.See(h.clock(), sighting{site: at, job: &seen, gone: gone}), consequences{})
}

// askShadow asks the engine for a job.
func (h *Host) askShadow(k *keeper, j *ShadowJob) {
	now := h.clock()
	j.Asked, j.Ready = now, max(now, j.Ready)
	request := j.request(k.name)
	if j.Left == "" && request.Validate() != nil {
		j.Left = LeftNoSize
	}
	h.see(k.name, j, false)
	if j.Left == "" {
		event := engine.Submit(request)
		if h.core.engine.BoundsCost(&event) { // what is only compared delays no job
			event.Foreseen = &engine.Foreseen{Admitted: true}
		}
		h.tell(k, event)
	}
}

// finishShadows ends what has ended at the site: a reservation as long after its
// start as the job ran, or now if that is past; what never ran is cancelled.
func (h *Host) finishShadows(k *keeper) {
	now := h.clock()
	w := h.core.shadows[k.name]
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[id]
		if !j.over() || j.Left != "" || !h.core.live(id) {
			continue
		}
		r, promised := h.core.engine.Reservation(id)
		switch {
		case j.Phase != JobEnded:
			h.tell(k, engine.Cancel(id))
		case promised && r.State == berth.Active && r.Start().Add(j.ran()) <= now:
			h.tell(k, engine.Finish(id))
		}
	}
}

// compare compares what a site shows with what is known of its jobs.
func (h *Host) compare(k *keeper, state *site.State) looked {
	now := h.clock()
	if h.core.shadows[k.name] == nil {
		h.persist(h.core.See(now, sighting{site: k.name}), consequences{})
	}
	w := h.core.shadows[k.name]
	l := looked{state: *state, listed: map[string]bool{}}
	// Nothing at the site is ours, and what a drained node runs is not either.
	l.state.Ours, l.state.Foreign = nil, slices.Concat(state.Ours, state.Foreign)
	l.state.Nodes = slices.Clone(state.Nodes)
	for i := range l.state.Nodes {
		l.state.Nodes[i].Busy = max(1, l.state.Nodes[i].Busy)
	}
	l.state.Running = nil
	room := maxShadowJobs - len(w.jobs)
	take := func(jobs []site.Job, phase Phase, then func(job *site.Job, asked bool)) {
		for i := range jobs {
			for j := range h.elements(k, &jobs[i]) {
				if l.listed[j.ID] {
					continue // twice in one look: what runs comes first
				}
				j.Phase = phase
				was := w.jobs[j.ID]
				asked := false
				switch {
				case was != nil:
					l.listed[j.ID] = true
					asked = was.Left == ""
					l.again(h.core, was, &j, &jobs[i])
				case room > 0 && fresh(w, &j, &jobs[i], now):
					l.listed[j.ID] = true
					asked = j.Left == ""
					l.fresh = append(l.fresh, j)
					room--
				}
				then(&jobs[i], asked)
			}
		}
	}
	take(state.Running, JobRuns, func(job *site.Job, asked bool) {
		if !asked {
			l.state.Running = append(l.state.Running, *job)
		}
	})
	take(state.Pending, JobWaits, func(*site.Job, bool) {})
	take(state.Ended, JobEnded, func(*site.Job, bool) {})
	l.vanished(w, k.lastKnown(now))
	// Of those submitted in one second the site's own order holds.
	slices.SortStableFunc(l.fresh, func(a, b ShadowJob) int { return cmp.Compare(a.Asked, b.Asked) })
	return l
}

// elements yields a job as it may be asked for, or each element of an array that
// waits as one.
func (h *Host) elements(k *keeper, job *site.Job) func(func(ShadowJob) bool) {
	j := ShadowJob{
		ID: k.name + "-" + string(job.ID), Job: job.ID, User: job.User, Partition: job.Partition, Limit: job.Limit,
		Asked: job.Submitted, Ready: job.Begin, NPE: job.Nodes, Start: job.Start, End: job.End, Ending: job.Result.Ending,
	}
	h.size(k, &j, job)
	return func(yield func(ShadowJob) bool) {
		if job.Elements.Empty() {
			yield(j)
			return
		}
		for _, run := range job.Elements.Runs() {
			for pe := run.Lo; pe < run.Hi; pe++ {
				element := j
				element.Job = job.Array + "_" + site.JobID(decimal(pe))
				element.ID = k.name + "-" + string(element.Job)
				if !yield(element) {
					return
				}
			}
		}
	}
}

func decimal(pe berth.PE) string { return strconv.Itoa(int(pe)) }

// size says how many PEs a job asks for, and how long it may run where it does
// not say so itself. Of several partitions in which it may run the first counts.
func (h *Host) size(k *keeper, j *ShadowJob, job *site.Job) {
	j.Partition, _, _ = strings.Cut(j.Partition, ",")
	at := slices.IndexFunc(h.core.config.Sites, func(s berth.Site) bool { return s.Name == k.name })
	s := &h.core.config.Sites[at]
	for i := range s.Partitions {
		if j.Limit == 0 && s.Partitions[i].Name == j.Partition {
			j.Limit = s.Partitions[i].MaxDuration
		}
	}
	if k.ground.Load().layout.Unit() == site.UnitCore {
		j.NPE = job.Cores
		return
	}
	least := berth.Count(berth.MaxPEs)
	for i := range s.Pools {
		for node := range s.Pools[i].Nodes() {
			least = min(least, berth.Count(max(1, node.Sockets)*max(1, node.Cores)))
		}
	}
	j.Partial = !job.Exclusive && int64(job.Cores) < int64(j.NPE)*int64(least)
}

// fresh decides what becomes of a job that is not followed yet; false if nothing
// does for now, or ever.
func fresh(w *shadow, j *ShadowJob, job *site.Job, now berth.Time) bool {
	j.show(j, job)
	// What began in the second of the first look, and was not seen by it, began
	// behind it.
	before := j.Start < w.since || j.Start == w.since && now == w.since
	switch {
	case j.Phase == JobCancelled || j.Phase == JobWaits && job.Held:
		return false
	case j.Phase == JobEnded && before:
		return false
	case j.Phase != JobWaits && before:
		j.Left = LeftBefore
	case j.Phase != JobWaits && j.Start < now.Add(-ShadowTolerance):
		j.Left = LeftUnseen
	case job.Reservation != "":
		j.Left = LeftReservation
	case j.Limit == 0:
		j.Left = LeftNoLimit
	case j.NPE == 0:
		j.Left = LeftNoSize
	}
	return true
}

// show sets what became of a job from what was seen of it now.
func (j *ShadowJob) show(seen *ShadowJob, job *site.Job) {
	j.Phase, j.Start, j.End, j.Ending = seen.Phase, seen.Start, seen.End, seen.Ending
	if j.Phase == JobEnded && len(job.Shares) == 0 {
		j.Phase = JobCancelled
	}
	switch j.Phase {
	case JobWaits, JobCancelled: // of one that waits they are the site's guess
		j.Start, j.End = 0, 0
	case JobRuns: // the end is that of its limit
		j.End = 0
	}
}

// again notes how a job is that is followed. One that the engine was to be asked
// for when the service ended is asked for now.
func (l *looked) again(c *Core, was, seen *ShadowJob, job *site.Job) {
	is := *was
	is.show(seen, job)
	switch {
	case is.Left == "" && is.Promised == 0 && is.Refusal == "" && c.card(is.ID) == nil:
		l.fresh = append(l.fresh, is)
	case is != *was:
		l.seen = append(l.seen, is)
	}
}

// vanished notes what is followed and was not seen. What ran has ended, it is not
// known when, but it ran until a time; what waited may have run or not.
func (l *looked) vanished(w *shadow, until berth.Time) {
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if l.listed[id] {
			continue
		}
		j := *w.jobs[id]
		if !j.over() {
			if j.Phase == JobRuns {
				j.Phase, j.End = JobEnded, max(until, j.Start)
			} else {
				j.Phase = JobVanished
			}
			l.seen = append(l.seen, j)
		}
		l.gone = append(l.gone, j)
	}
}
