package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// While the service is stopped, or its machine sleeps, or its clock is not believed, tasks of workflows
// go on at their sites and end there. When that time passes here, the engine lets a task whose time is over
// go on where it can, as it would have done then. Of one that cannot go on its site is asked before: what has
// succeeded in its time has succeeded, and is not run again because the service was not there to hear of it.

const (
	// overduePatience is how long sites are waited for in the loop. What is decided is decided at a time, which may not pass
	// before they have said how tasks ended, so the loop could do nothing for anyone meanwhile; those who only look do not wait.
	overduePatience = 5 * time.Second
	// overdueEvery is how long after that nothing is waited for again: a service that cannot keep up
	// gets no faster by it.
	overdueEvery = time.Minute
)

// hearOverdue reports tasks of workflows that have ended at their sites in time that has not passed here yet. It is
// of the loop, before that time passes.
func (h *Host) hearOverdue() {
	at, due := h.core.engine.Next()
	now := h.clock()
	if h.core.flows.live == 0 || !due || now.Sub(at) <= lateLead || h.moment != 0 || time.Since(h.heardOverdue) < overdueEvery {
		return
	}
	type asked struct {
		k       *keeper
		overdue []string
		state   *site.State
		err     error
	}
	var list []*asked
	for _, name := range slices.Sorted(maps.Keys(h.sites)) {
		k := h.sites[name]
		overdue := slices.DeleteFunc(h.core.engine.ActiveTasks(name), func(id string) bool {
			c := h.core.card(id)
			return c == nil || c.promise == nil || c.promise.End() > now
		})
		if len(overdue) > 0 && !k.manager.Shadow {
			list = append(list, &asked{k: k, overdue: overdue})
		}
	}
	if len(list) == 0 {
		return
	}
	h.heardOverdue = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), overduePatience)
	defer cancel()
	var asking sync.WaitGroup // all at once, so that one that does not answer costs the others nothing
	for _, a := range list {
		asking.Go(func() { a.state, a.err = a.k.agent.Observe(ctx) })
	}
	asking.Wait()
	ends := map[string]overdueEnd{}
	defer func() { h.moment = 0 }()
	for _, a := range list {
		if a.err != nil {
			h.log.Warn("a site does not say how tasks of workflows ended whose time is over", "site", a.k.name, "tasks", len(a.overdue), "error", a.err)
			continue
		}
		h.moment = h.core.engine.Now() // no time passes for what the site shows
		state, _ := h.own(a.k, a.state)
		h.tellTasks(a.k, state)
		h.endsOf(a.k, a.overdue, ends)
	}
	for id, end := h.firstOver(ends); id != "" && end <= now; id, end = h.firstOver(ends) {
		h.moment = max(end-1, h.core.engine.Now())
		h.reportTask(id, berth.StillRunning, "")
		if c := h.core.card(id); c != nil && c.promise.State == berth.Active && c.promise.End() == end {
			h.reportTask(id, ends[id].outcome, ends[id].why)
			delete(ends, id)
		}
	}
}

// overdueEnd is how a task ended.
type overdueEnd struct {
	outcome berth.Outcome
	why     string
}

// endsOf adds how those of some tasks ended that a site says have ended.
func (h *Host) endsOf(k *keeper, ids []string, ends map[string]overdueEnd) {
	for _, id := range ids {
		for _, t := range h.core.tasksAt(k.name).flows[id] {
			if t.task.Stage == site.Ended {
				outcome, why := outcomeOfTask(&t.task, h.core.looksForFiles(id))
				ends[id] = overdueEnd{outcome, why}
			}
		}
	}
}

// firstOver returns the task of those that ended whose time is over first, and when; those that run no more are
// forgotten.
func (h *Host) firstOver(ends map[string]overdueEnd) (first string, end berth.Time) {
	for id := range ends {
		c := h.core.card(id)
		if c == nil || c.promise == nil || c.end != "" || c.promise.State != berth.Active {
			delete(ends, id)
			continue
		}
		if at := c.promise.End(); first == "" || cmp.Or(cmp.Compare(at, end), cmp.Compare(id, first)) < 0 {
			first, end = id, at
		}
	}
	return first, end
}
