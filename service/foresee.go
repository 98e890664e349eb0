package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// What an offer would cost the ordinary jobs is foreseen beside the loop, by the engine of the other
// core (see planner): from the jobs that wait in the engine, and from those that wait at managed sites by
// themselves, as the last look at each showed them.

const (
	// costPatience is how long an answer with offers waits for what they cost. Without it they come after that.
	costPatience = 5 * time.Second
	// maxForeseen is how many jobs of all managed sites are foreseen: with 10,000 the engine's own bound is met after a hundred passes.
	maxForeseen = 10_000
)

// queue is what costs are foreseen from.
type queue struct {
	now    berth.Time
	number uint64          // of the last record then
	jobs   []berth.Request // that wait at sites by themselves; not written any more
	all    bool            // else there are more
}

// free says of offers that they cost no ordinary job anything, since none waits.
func free(list []Offer) {
	for i := range list {
		list[i].Cost = &engine.Cost{Complete: true}
	}
}

// withCosts returns offers with what each would cost. They come without it if that could not be
// foreseen in time.
func (h *Host) withCosts(asking context.Context, who string, list []Offer, q *queue) []Offer {
	leave, full := h.planner.enter(who)
	if full != nil {
		return list
	}
	ctx, end := context.WithTimeout(asking, costPatience)
	defer end()
	wanted := func() bool { return ctx.Err() == nil && h.snapshots.ctx.Err() == nil }
	offers := make([]engine.Offer, len(list))
	for i := range list {
		offers[i] = list[i].Offer
	}
	foreseen := make(chan []*engine.Cost, 1)
	h.planner.line.push(who, func() {
		defer leave()
		var costs []*engine.Cost
		err := h.onOther(q.number, "foreseeing what offers cost", wanted, func(e *engine.Engine) (err error) {
			costs, err = e.Costs(offers, engine.Foresight{From: q.now, Queue: q.jobs, Quit: func() bool { return !wanted() }})
			return err
		})
		if err == nil {
			foreseen <- costs
		}
		end()
	})
	<-ctx.Done()
	select {
	case costs := <-foreseen:
		list = slices.Clone(list) // the loop has those that it has named
		for i, c := range costs {
			if list[i].Cost = c; c != nil {
				c.Complete = c.Complete && q.all
			}
		}
	default:
	}
	return list
}

// queue returns what costs are foreseen from, nil if no ordinary job waits. It is of the loop.
func (h *Host) queue(now berth.Time) *queue {
	q := &queue{now: now, number: h.core.position.Number, all: true}
	for _, name := range slices.Sorted(maps.Keys(h.sites)) {
		k := h.sites[name]
		if k.last == nil || k.manager.Shadow {
			continue
		}
		if k.queued != k.last {
			k.queued, k.queue = k.last, h.queueOf(k)
		}
		q.jobs = append(q.jobs, k.queue...)
	}
	if len(q.jobs) > maxForeseen {
		q.jobs, q.all = q.jobs[:maxForeseen], false
	}
	if len(q.jobs) == 0 && h.core.engine.Waiting() == 0 && !h.core.config.Preempt {
		return nil
	}
	return q
}

// queueOf returns the jobs that wait at a managed site by themselves, in its own order, if it
// is known how much they want and for how long, and one more than maxForeseen at most. Left out are those that are
// held, and those in reservations, which begin with them. It is of the loop.
func (h *Host) queueOf(k *keeper) (queue []berth.Request) {
	pending := slices.Clone(k.last.Pending)
	slices.SortStableFunc(pending, func(a, b site.Job) int { return cmp.Compare(a.Rank, b.Rank) })
	for i := range pending {
		if pending[i].Held || pending[i].Reservation != "" {
			continue
		}
		for j := range h.elements(k, &pending[i]) {
			if j.Limit <= 0 || j.NPE <= 0 {
				continue
			}
			r := berth.Job(j.ID, j.Ready, j.NPE, j.Limit)
			r.User, r.Site, r.Partition = j.User, k.name, j.Partition
			if queue = append(queue, r); len(queue) > maxForeseen {
				return queue
			}
		}
	}
	return queue
}
