package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/site"
)

// Tasks of workflows are handed to their sites when their reservations begin, which the engine
// lets happen only when their parents have succeeded. They are handed in under a key of their
// reservation, so that a task that may have been handed in before, by a service that was
// stopped meanwhile, runs once. How they end is what their sites say, and is looked for in
// what is on record, not only in what is new: a report that was lost is made again.

// flowKey is the key of a task in its reservation, which is that of one try.
const flowKey = "workflow"

// runTasks has the tasks run whose reservations have begun.
func (h *Host) runTasks(list []news) {
	for i := range list {
		n := &list[i]
		if change.Kind(n.what) == change.Started && n.card.request.Task != nil {
			h.runTask(n.card.id)
			if n.card.promise != nil && n.card.promise.End().Sub(h.clock()) <= lateLead { // too short for the next look
				h.line.push("", h.sayLate)
			}
		}
	}
}

// runTask hands a task to its site beside the loop, until the site has taken it or its
// reservation is over. It is of the loop.
func (h *Host) runTask(id string) {
	k := h.core.card(id)
	if k == nil || k.end != "" || k.promise == nil || k.promise.State != berth.Active || h.handing[id] {
		return
	}
	f := h.core.flows.byID[k.request.Task.Workflow]
	if f == nil || h.sites[k.promise.Allotments[0].Resource.Site] == nil {
		return
	}
	at := f.taskOf(id, k.request.Task)
	work := f.w.Tasks[at].Work
	if work.Empty() {
		return // its owner hands in what runs there
	}
	task := site.Task{
		Key: flowKey, Account: k.request.Account, QOS: k.request.QOS, Name: oneLine(f.w.Tasks[at].ID), Command: work.Command, Script: work.Script, Dir: work.Dir, Env: work.Env,
		Output: taskOutput(f.w, at, k.request.Task.Try),
	}
	bring, note := h.bringing(f, at, k.promise.Allotments[0].Resource.Site)
	task = withFiles(task, work.Inputs, work.Outputs, bring, note)
	ask := Ask{By: Principal{User: k.request.User, Role: User}}
	variables := site.Variables{Workflow: f.w.ID, Task: f.w.Tasks[at].ID}
	in := handingIn{ask: ask, id: id, task: task, variables: variables, keeper: h.sites[k.promise.Allotments[0].Resource.Site]}
	in.deputy, _ = in.keeper.manager.Adapter.(site.Deputy)
	if in.deputy != nil {
		in.job = h.core.handedIn(in.keeper.name, id)
	}
	h.handing[id] = true
	h.keepers.running.Go(func() {
		defer h.boundary("handing in a task of a workflow")
		h.handIn(&in)
	})
}

// oneLine returns a name that a site takes: names of tasks may have line breaks.
func oneLine(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if r < ' ' || r == 0x7f {
			runes[i] = ' '
		}
	}
	const most = 64
	return string(runes[:min(len(runes), most)])
}

// handEvery is how long it takes until a site that did not take a task is asked again.
const handEvery = time.Second

// handIn hands a task in.
func (h *Host) handIn(in *handingIn) {
	id := in.id
	defer func() {
		_, _ = call(context.Background(), h, "", func(answer func(struct{}, error)) { // the error is that the service stops
			delete(h.handing, id)
			answer(struct{}{}, nil)
		})
	}()
	for {
		err := h.try(in)
		coded, is := errors.AsType[*berth.Error](err)
		switch {
		case err == nil, h.tasksEnd.Err() != nil:
			return
		case is && (coded.Code == berth.NotFound || coded.Code == berth.Conflict && coded.Field == "id"):
			return // its reservation is over
		case is && (coded.Code == berth.Invalid || coded.Code == berth.Conflict || coded.Code == berth.Denied), refusedForGood(err):
			h.log.Warn("a task of a workflow cannot be run", "id", id, "error", err)
			_, _ = call(h.tasksEnd, h, "", func(answer func(struct{}, error)) {
				h.reportTask(id, berth.FailedForGood, "it cannot be run: "+err.Error())
				answer(struct{}{}, nil)
			})
			return
		}
		h.log.Info("a task of a workflow is not taken by its site; it is asked again", "id", id, "error", err)
		select {
		case <-time.After(handEvery):
		case <-h.tasksEnd.Done():
			return
		}
	}
}

// refusedForGood reports whether a site will not take a task however often it is asked.
func refusedForGood(err error) bool {
	switch site.KindOf(err) {
	case site.Denied, site.Invalid:
		return true
	}
	return false
}

// reportTask tells the engine how a task is. It is of the loop.
func (h *Host) reportTask(id string, outcome berth.Outcome, why string) {
	state, live := h.core.engine.State(id)
	if !live || state != berth.Active {
		return
	}
	if err := h.step(engine.Report(id, outcome, why), asked{}, nil); err != nil {
		h.log.Error("the engine does not take how a task ended", "id", id, "error", err)
	}
}

// reportTasks reports the tasks of workflows that a site says have ended and that the engine
// has running, and hands in those that began without being handed in. It is of the loop, after each look at the
// site in a round.
func (h *Host) reportTasks(k *keeper, state *site.State) {
	if h.core.flows.live == 0 {
		return
	}
	held := map[site.JobID]bool{} // handed in and not told to start, if they are a deputy's
	for i := range state.Pending {
		if state.Pending[i].Held {
			held[state.Pending[i].ID] = true
		}
	}
	var ended []string
	for _, id := range h.core.engine.ActiveTasks(k.name) {
		known := false
		for _, t := range h.core.tasksAt(k.name).flows[id] {
			known = known || t.task.Stage != site.Waiting || !held[t.task.ID]
			if t.task.Stage == site.Ended {
				ended = append(ended, id)
				break
			}
		}
		if !known {
			h.runTask(id)
		}
	}
	h.reportEnded(k, ended)
}

// reportEnded reports the tasks of workflows among reservations in which tasks have ended at a site. It is of the loop.
func (h *Host) reportEnded(k *keeper, ids []string) {
	if h.core.flows.live == 0 {
		return
	}
	h.each(ids, func(id string) {
		var ended *Task
		for _, t := range h.core.tasksAt(k.name).flows[id] {
			if t.task.Stage == site.Ended {
				ended = &t.task // the last one, as tasks are tried again
			}
		}
		if ended != nil {
			outcome, why := outcomeOfTask(ended, h.core.looksForFiles(id))
			h.reportTask(id, outcome, why)
		}
	})
}

// each does something about some reservations one after the other, in several goes of the loop if it
// takes long. It is of the loop.
func (h *Host) each(ids []string, do func(id string)) {
	for began := time.Now(); len(ids) > 0; {
		do(ids[0])
		if ids = ids[1:]; len(ids) > 0 && time.Since(began) > h.options.turn {
			h.line.push("", func() { h.each(ids, do) })
			if h.options.turned != nil {
				h.options.turned(h)
			}
			return
		}
	}
}

// looksForFiles reports whether the task of a reservation names files.
func (c *Core) looksForFiles(id string) bool {
	k := c.card(id)
	if k == nil || k.request.Task == nil || c.flows.byID[k.request.Task.Workflow] == nil {
		return false
	}
	f := c.flows.byID[k.request.Task.Workflow]
	work := &f.w.Tasks[f.taskOf(id, k.request.Task)].Work
	return len(work.Inputs)+len(work.Outputs) > 0
}

// outcomeOfTask says how a task has ended, which may have looked for its files.
func outcomeOfTask(t *Task, looks bool) (berth.Outcome, string) {
	r := t.Result
	switch {
	case r.Ending == site.Completed && r.Code == 0 && r.Signal == 0:
		return berth.Succeeded, "exit code 0"
	case r.Signal != 0 && t.Reason != "":
		return berth.FailedForGood, fmt.Sprintf("signal %d: %s", r.Signal, t.Reason)
	case r.Signal != 0:
		return berth.FailedForGood, fmt.Sprintf("signal %d", r.Signal)
	case (r.Ending == site.Failed || r.Ending == site.Completed) && looks && r.Code == noInput:
		return berth.FailedForGood, fmt.Sprintf("exit code %d: an input of it is not there; its output says which", r.Code)
	case (r.Ending == site.Failed || r.Ending == site.Completed) && looks && r.Code == noOutput:
		return berth.FailedForGood, fmt.Sprintf("exit code %d: an output of it is not there; its output says which", r.Code)
	case (r.Ending == site.Failed || r.Ending == site.Completed) && looks && r.Code == notBrought:
		return berth.FailedForGood, fmt.Sprintf("exit code %d: a file could not be brought from another site; its output says which and why", r.Code)
	case (r.Ending == site.Failed || r.Ending == site.Completed) && looks && r.Code == notSame:
		return berth.FailedForGood, fmt.Sprintf("exit code %d: a file that was brought from another site is not the one that was written there; its output has both checksums", r.Code)
	case r.Ending == site.Failed || r.Ending == site.Completed:
		return berth.FailedForGood, fmt.Sprintf("exit code %d", r.Code)
	case t.Reason != "":
		return berth.FailedForGood, t.Reason
	}
	return berth.FailedForGood, "it ended as " + string(r.Ending)
}

// startTasks begins to look after the tasks of workflows.
func (h *Host) startTasks() {
	ctx, cancel := context.WithCancel(context.Background())
	h.tasksEnd = ctx
	h.keepers.cancel = append(h.keepers.cancel, cancel)
	if len(h.sites) == 0 {
		return
	}
	h.keepers.running.Go(func() {
		defer h.boundary("looking after tasks of workflows")
		h.watchTasks(ctx)
	})
}

// lateLead is how long before the end of its time a task that still runs is said to need
// longer: enough for its site to be told in time.
const lateLead berth.Duration = 2

// watchTasks says each second, while there are workflows, which tasks will need longer than they have, until ctx ends.
func (h *Host) watchTasks(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if !h.flowing.Load() {
			ticker.Stop()
			select {
			case <-ctx.Done():
				return
			case <-h.flows:
			}
			ticker.Reset(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, _ = call(ctx, h, "", func(answer func(struct{}, error)) { // the error is that the service stops
			h.sayLate()
			answer(struct{}{}, nil)
		})
	}
}

// noteFlows has watchTasks look while there are workflows. It is of the loop.
func (h *Host) noteFlows() {
	live := h.core.flows.live > 0
	if h.flowing.Swap(live) || !live {
		return
	}
	select {
	case h.flows <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// sayLate tells the engine which tasks will need longer than they have.
func (h *Host) sayLate() {
	if h.core.flows.live == 0 {
		return
	}
	names := make([]string, 0, len(h.sites))
	for name, k := range h.sites {
		if !k.manager.Shadow {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	isLate := func(id string) bool {
		k := h.core.card(id)
		return k != nil && k.promise != nil && k.promise.End().Sub(h.clock()) <= lateLead
	}
	for _, name := range names {
		late := slices.DeleteFunc(h.core.engine.ActiveTasks(name), func(id string) bool { return !isLate(id) })
		h.each(late, func(id string) {
			if !isLate(id) {
				return // something else has given it more time
			}
			if h.reportTask(id, berth.StillRunning, ""); isLate(id) {
				h.sites[name].lookSoon() // it gets no more: it may have ended since the last look
			}
		})
	}
}
