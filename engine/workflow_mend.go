package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// What happens to tasks of workflows is noted by the state, whatever it was: a report, an end,
// an outage, another promise, their owner. Before an Apply returns, and before time moves on,
// the workflows concerned are mended: it is decided how tasks have come out, those that
// failed are tried again or take those behind them along, and no task is left to start before
// its parents have ended. So a task that starts has parents that have all succeeded.

// conclude brings what waits, and workflows, in order after a step.
func (e *Engine) conclude() {
	for again := true; again; again = e.state.AnyDisturbed() && e.mendWorkflows() {
		if e.yielded || e.shortened {
			e.settle()
		}
	}
	clear(e.atLimit)
	if e.names.due || e.names.stale {
		e.name()
	}
}

// mendWorkflows mends the workflows with tasks that have ended or moved. It reports whether
// there were any.
func (e *Engine) mendWorkflows() bool {
	list := e.state.Disturbed()
	for i := range list {
		if f := list[i].Flow; e.state.Flow(f.ID()) == f {
			e.mendWith(f, &repair{engine: e, f: f, moved: list[i].Moved, freed: list[i].Freed, left: list[i].Left})
		}
	}
	return len(list) > 0
}

// mendWith mends a workflow with a repair.
func (e *Engine) mendWith(f *state.Flow, r *repair) {
	changes := len(e.changes)
	defer func() {
		if len(e.changes) > changes {
			e.freed()
		}
	}()
	if e.judgeGone(f) {
		return
	}
	r.given = append(slices.Clone(r.freed), r.left...)
	r.run()
	freed, left := f.TakeFreed() // by those that went with what is gone, and those that moved
	r.freed, r.given = append(r.freed, freed...), slices.Concat(r.given, freed, left)
	r.bringForward()
	if f.Open() == 0 {
		e.workflowDone(f)
		return
	}
	if end := e.expectedEnd(f); r.count > 0 || end != f.End() {
		e.emit(change.Change{Kind: change.WorkflowReplanned, Flow: &change.Flow{
			Workflow: f.ID(), Cause: r.cause(), Repair: f.Workflow().Repair, Moved: r.count, Before: f.End(), End: end,
		}})
	}
}

// repair gives tasks of a workflow that need it another place, parents before children, and
// the others none.
type repair struct {
	engine *Engine
	f      *state.Flow
	// moved says which tasks have come out or have another place since the workflow was
	// mended last.
	moved []bool
	// freed lists what tasks of the workflow have given back that ended early or have come forward, and
	// left what those held that have moved since the workflow was mended last.
	freed, left []berth.Allotment
	// given lists what the workflow held before that and does not hold since, and came the tasks that
	// hold what they did not hold before.
	given []berth.Allotment
	came  []*state.Entry
	// slower, if given, is a site to which data take another time now.
	slower string
	// resent says for which tasks data come from another site now.
	resent map[int32]bool
	count  int // of the tasks that got another place
	failed bool
	late   bool
	early  bool
	data   bool
}

// cause returns why tasks have other places: the gravest reason that there is.
func (r *repair) cause() change.Cause {
	late := r.late
	for i, moved := range r.moved {
		if d := r.f.Live(i); moved && d != nil && d.State() == berth.Active {
			late = true // it goes on
		}
	}
	switch {
	case r.failed:
		return change.CauseFailed
	case r.data:
		return change.CauseData
	case late:
		return change.CauseLate
	case r.early:
		return change.CauseEarly
	}
	return change.CauseDisplaced
}

func (r *repair) run() {
	e, f := r.engine, r.f
	for _, at := range f.Order() {
		i := int(at)
		ready := e.ready(f, i)
		switch d := e.waitingTask(f, i); {
		case f.Again(i):
			was := f.Site(i)
			if e.tryAgain(f, i) {
				r.failed, r.moved[i] = true, true
				r.count++
				r.resend(i, was)
			}
		case d == nil:
		case d.Vacant() || d.Start() < ready:
			r.late = r.late || d.Start() < ready
			if !e.placeAgain(f, i, d, max(ready, d.Start())) {
				e.failForGood(f, i, "there is no place for it")
				e.emitOf(d, change.Change{Kind: change.Cancelled})
				continue
			}
			r.moved[i] = true
			r.count++
		case r.awaitsData(i, d):
			switch placed := e.placeAgain(f, i, d, max(ready, d.Start())); {
			case placed:
				r.data, r.moved[i] = true, true
				r.count++
			case r.resent[int32(i)]: // what it has is not for what it would bring
				e.failForGood(f, i, "what it reads is at another site now, and there is no place where it can be brought")
				e.emitOf(d, change.Change{Kind: change.Cancelled})
			default: // it stays where it is, and is late
			}
		case r.mayComeForward(i, d):
			if from := max(ready, e.state.Now()); from < d.Start() {
				r.comeForward(i, d, from)
			}
		}
	}
}

// resend notes that what those behind a task read of it comes from another site than before, if
// it does.
func (r *repair) resend(i int, was string) {
	if len(r.f.Workflow().Routes) == 0 || r.f.Site(i) == was {
		return
	}
	if r.resent == nil {
		r.resent = map[int32]bool{}
	}
	for _, child := range r.f.Children(i) {
		r.resent[child] = true
	}
}

// awaitsData reports whether the time that a task holds its PEs for its transfer is no longer the
// one that it needs: data come from elsewhere, or take longer than was forecast.
func (r *repair) awaitsData(i int, d *state.Entry) bool {
	if r.resent[int32(i)] {
		return place.HaulsOf(r.f.Workflow()).Megabytes(i, d.Part(0).Resource.Site, r.f.Site) != d.Request().StorageMB
	}
	if r.slower == "" || d.Request().StorageMB == 0 || d.Part(0).Resource.Site != r.slower {
		return false
	}
	var held berth.Duration // none where the link was of unknown speed
	for t := range d.Transfers() {
		held = t.End.Sub(t.Start)
	}
	return r.engine.finder.Hauling(d) > held
}

// mayComeForward reports whether a task that has not started may be moved to an earlier start:
// under a repair that does so, where a parent ended or was moved.
func (r *repair) mayComeForward(i int, d *state.Entry) bool {
	if r.f.Workflow().Repair != berth.RepairBoth || d.State() == berth.Held || d.Missing() > 0 {
		return false
	}
	for _, parent := range r.f.Task(i).After {
		if r.moved[parent] {
			return true
		}
	}
	return false
}

// judgeGone decides how tasks whose reservations are over have come out. It reports
// whether the workflow is over with that.
func (e *Engine) judgeGone(f *state.Flow) bool {
	for _, at := range f.Order() {
		i := int(at)
		switch kind := f.Gone(i); kind {
		case "":
		case change.Expired:
			e.endWorkflow(f, berth.OutcomeExpired, change.Expired, "it was not confirmed in time")
			return true
		case change.Ended:
			if e.state.Managed(f.Was(i).Request().Site) {
				why := "its time was over before it was"
				if limit := e.atLimit[f.Was(i).ID()]; limit != "" {
					why += ", and more is beyond " + limit
				}
				e.taskFailed(f, i, why)
			} else {
				e.taskOver(f, i, berth.Succeeded, "")
			}
		case change.Rejected:
			if e.notBegun(f) { // then it is all or nothing still
				e.takeDown(f, i)
			} else {
				e.taskFailed(f, i, "its reservation is gone: "+string(kind))
			}
		case change.Cancelled:
			e.failForGood(f, i, "its reservation was cancelled")
		default:
			e.taskFailed(f, i, "its reservation is gone: "+string(kind))
		}
	}
	return false
}

// takeDown gives all of a workflow up when the site of a task refuses it.
func (e *Engine) takeDown(f *state.Flow, i int) {
	e.failForGood(f, i, "its site refuses it, and no task has begun")
	for _, at := range f.Order() {
		k := int(at)
		if outcome, _ := f.Outcome(k); outcome != "" {
			continue
		}
		e.failForGood(f, k, "the site of task "+f.Task(i).ID+" refuses that, and no task has begun")
		if d := f.Live(k); d != nil {
			e.emitOf(d, change.Change{Kind: change.Cancelled})
		}
	}
}

// notBegun reports whether no task of a workflow has begun that was promised with it.
func (e *Engine) notBegun(f *state.Flow) bool {
	for _, i := range f.Order() {
		t := f.Task(int(i))
		if outcome, _ := f.Outcome(int(i)); outcome != "" && !t.Done || f.Tries(int(i)) > t.Tries+1 {
			return false
		}
		if d := f.Live(int(i)); d != nil && d.State() == berth.Active {
			return false
		}
	}
	return true
}

// waitingTask returns the reservation of an open task that has not started, nil if there is
// none.
func (e *Engine) waitingTask(f *state.Flow, i int) *state.Entry {
	if outcome, _ := f.Outcome(i); outcome != "" {
		return nil
	}
	d := f.Live(i)
	if d == nil || d.State() == berth.Active {
		return nil
	}
	return d
}

// ready returns when the parents of a task have ended, or will have.
func (e *Engine) ready(f *state.Flow, i int) (ready berth.Time) {
	ready = -berth.Forever
	for _, parent := range f.Task(i).After {
		ready = max(ready, e.endOfTask(f, parent))
	}
	return ready
}

// endOfTask returns when a task has ended, or is expected to.
func (e *Engine) endOfTask(f *state.Flow, i int) berth.Time {
	if outcome, ended := f.Outcome(i); outcome != "" {
		return ended
	}
	if d := f.Live(i); d != nil {
		return d.End()
	}
	return e.state.Now()
}

// expectedEnd returns when a workflow is expected to end.
func (e *Engine) expectedEnd(f *state.Flow) berth.Time {
	end := f.Workflow().Arrival
	for i := range f.Workflow().Tasks {
		end = max(end, e.endOfTask(f, i))
	}
	return end
}

// behind returns the reservations of tasks that depend on a task and have not started.
func (e *Engine) behind(f *state.Flow, i int) (list []*state.Entry) {
	seen := make([]bool, len(f.Workflow().Tasks))
	var next []int32
	follow := func(i int) {
		for _, child := range f.Children(i) {
			if !seen[child] {
				seen[child] = true
				next = append(next, child)
			}
		}
	}
	follow(i)
	for k := 0; k < len(next); k++ {
		at := int(next[k])
		follow(at)
		if d := e.waitingTask(f, at); d != nil && !d.Vacant() {
			list = append(list, d)
		}
	}
	return list
}

// placeAgain gives a task that has not started the earliest place from a time on. What depends on it gives way, and is placed again after it.
func (e *Engine) placeAgain(f *state.Flow, i int, d *state.Entry, from berth.Time) bool {
	behind := e.behind(f, i)
	found, ok := e.finder.Again(f.Workflow(), i, d, max(from, e.state.Now()), berth.Forever, behind, f.Site)
	if !ok {
		return false
	}
	if !d.Vacant() {
		e.emitOf(d, change.Change{Kind: change.Vacated})
	}
	e.giveWay(&found.Place.Allotments[0], behind)
	e.putTask(d, &found)
	return true
}

// giveWay vacates those behind a task that start before it ends where it is now: they cannot
// stay, and what they hold, of whatever kind, may be what it takes.
func (e *Engine) giveWay(a *berth.Allotment, behind []*state.Entry) {
	for _, d := range behind {
		if d.Start() < a.End {
			e.emitOf(d, change.Change{Kind: change.Vacated})
		}
	}
}

// putTask gives the reservation of a task another place.
func (e *Engine) putTask(d *state.Entry, to *place.TaskPlace) {
	if !d.Vacant() {
		e.emitOf(d, change.Change{Kind: change.Vacated})
	}
	e.makeRoom(to.Place.Allotments)
	terms := to.Place.Terms
	terms.Expires = d.Terms().Expires
	e.emitOf(d, change.Change{
		Kind: change.Modified, Request: &to.Request, Moved: to.Place.Allotments, Terms: &terms, Stocks: to.Place.Stocks, Transfers: to.Place.Transfers,
	})
}

// displacedTask gives a vacated task that has no place in its window one after that, and those
// behind it after it. It reports false if d is no task, or there is no such place.
func (e *Engine) displacedTask(d *state.Entry) bool {
	f, i := e.state.FlowOf(d)
	if f == nil || !e.placeAgain(f, i, d, e.ready(f, i)) {
		return false
	}
	e.placeVacant(f)
	return true
}

// placeVacant gives the vacated tasks of a workflow other places, before anything else gets
// their old ones.
func (e *Engine) placeVacant(f *state.Flow) {
	r := repair{engine: e, f: f, moved: make([]bool, len(f.Workflow().Tasks))}
	r.run()
}

// taskOver notes how a task has come out.
func (e *Engine) taskOver(f *state.Flow, i int, outcome berth.Outcome, why string) {
	e.emit(change.Change{Kind: change.TaskOver, Flow: &change.Flow{Workflow: f.ID(), Task: i, Outcome: outcome, Why: why}})
}

// taskFailed has a task that failed tried again, if it may be.
func (e *Engine) taskFailed(f *state.Flow, i int, why string) {
	if t := f.Task(i); f.Tries(i)-t.Tries <= t.Retries {
		e.taskOver(f, i, berth.TriedAgain, why)
		return
	}
	e.failForGood(f, i, why)
}

// failForGood ends a task, and what depends on it and nothing else.
func (e *Engine) failForGood(f *state.Flow, i int, why string) {
	e.taskOver(f, i, berth.FailedForGood, why)
	behind := append([]int32(nil), f.Children(i)...)
	for len(behind) > 0 {
		at := int(behind[0])
		behind = behind[1:]
		if outcome, _ := f.Outcome(at); outcome != "" {
			continue
		}
		behind = append(behind, f.Children(at)...)
		e.taskOver(f, at, berth.Skipped, "task "+f.Task(i).ID+" failed")
		if d := f.Live(at); d != nil {
			e.emitOf(d, change.Change{Kind: change.Cancelled})
		}
	}
}

// tryAgain promises a task that failed another reservation. It had begun, so that all it waits
// for is over. Without a place for it the task has failed for good.
func (e *Engine) tryAgain(f *state.Flow, i int) bool {
	was, behind := f.Was(i).Reservation(), e.behind(f, i)
	found, over, ok := e.finder.Retry(&place.Try{Workflow: f.Workflow(), Task: i, Was: &was, Aside: behind, Vacant: e.vacantTasks(f), At: f.Site})
	switch {
	case !ok:
		e.failForGood(f, i, "there is no place for another try")
		return false
	case over != nil:
		e.failForGood(f, i, "another try is beyond "+beyond(over))
		return false
	}
	e.giveWay(&found.Place.Allotments[0], behind)
	try := f.Tries(i) + 1
	id := TaskID(f.ID(), i, try)
	for n := 2; e.isTaken(id); n++ { // something else was given that name
		id = TaskID(f.ID(), i, try) + "." + strconv.Itoa(n)
	}
	e.promiseTask(&found, id, try)
	return true
}

// beyond names a limit that something exceeds, with both values.
func beyond(over *berth.Exceeded) string {
	whose, unit := "", "PEs"
	switch {
	case over.Account != "":
		whose = " of account " + over.Account
	case over.QOS != "":
		whose = " of QOS " + over.QOS
	case over.Partition != "":
		whose = " of partition " + over.Partition
	}
	if kind, known := policy.LimitNamed(policy.LimitName(over.Limit)); known {
		switch kind.Unit {
		case policy.InPESeconds:
			unit = "PE-seconds"
		case policy.InSeconds:
			unit = "seconds"
		}
	}
	return fmt.Sprintf("the limit %s%s: %d of %d %s", over.Limit, whose, over.Asked, over.Allowed, unit)
}

// vacantTasks returns the reservations of tasks that have left their places and have no others yet.
func (e *Engine) vacantTasks(f *state.Flow) (list []*state.Entry) {
	for i := range f.Workflow().Tasks {
		if d := f.Live(i); d != nil && d.Vacant() {
			list = append(list, d)
		}
	}
	return list
}

// workflowDone ends a workflow whose tasks have all come out.
func (e *Engine) workflowDone(f *state.Flow) {
	over := change.Flow{Workflow: f.ID(), Outcome: berth.Succeeded}
	for i := range f.Workflow().Tasks {
		if outcome, _ := f.Outcome(i); outcome == berth.FailedForGood {
			over.Outcome, over.Why = berth.FailedForGood, "task "+f.Task(i).ID+" failed"
			break
		}
	}
	e.emit(change.Change{Kind: change.WorkflowOver, Flow: &over})
}

// least step and budget of a task that runs longer than planned: a look at a site takes
// seconds, and estimates of short tasks miss by more than those of long ones.
const (
	leastStep   berth.Duration = 5
	leastBudget berth.Duration = 60
)

// taskRunsOn lets a task at a managed site go on whose time is over: a tenth longer, where its
// PEs are free for that or held by tasks of its own workflow that have not started, which are
// moved. In all it may take twice as long as planned, and no longer than the limits of its holders let
// it be extended.
func (e *Engine) taskRunsOn(over *state.Entry, f *state.Flow, task int) bool {
	if f.Workflow().Repair == berth.RepairHold || !e.state.Managed(over.Part(0).Resource.Site) {
		return false
	}
	extra := over.Part(0)
	prolonged := e.finder.Prolonged(f.Workflow(), task, over)
	planned := extra.End.Sub(extra.Start) - prolonged
	step := max(leastStep, planned/10)
	if prolonged+step > max(leastBudget, planned) {
		return false
	}
	extra.Start, extra.End = extra.End, extra.End.Add(step)
	if !extra.End.Valid() || extra.NPE == 0 || e.finder.StockShort(over, extra.End) != nil || len(e.state.Claimed(&extra)) > 0 {
		return false
	}
	var own []*state.Entry
	for _, i := range f.Order() {
		if d := e.waitingTask(f, int(i)); d != nil {
			own = append(own, d)
		}
	}
	yielding, ok := e.finder.Yielding(&extra, own)
	if !ok {
		return false
	}
	if beyondIt := e.finder.OverLonger(over, extra.End, yielding); beyondIt != nil {
		e.atLimit[over.ID()] = beyond(beyondIt)
		return false
	}
	e.vacate(yielding)
	e.makeRoom([]berth.Allotment{extra})
	e.emitOf(over, change.Change{Kind: change.Extended, Until: extra.End})
	e.placeVacant(f)
	return true
}
