package engine

import (
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/workflow"
)

// Workflows: all tasks are promised in one step, or none is. From then on each task is a
// reservation like others, which whatever displaces reservations displaces too; workflow_mend.go
// brings a workflow in order again after that.

// SubmitWorkflow brings a workflow. It is decided when it arrives, whatever the trigger is.
func SubmitWorkflow(w *berth.Workflow) Event { return Event{Kind: EventSubmitWorkflow, Workflow: w} }

// SubmitPlanned is SubmitWorkflow with a plan that was made beside the engine, by another one in
// the state of a moment ago (see Engine.PlanWorkflow).
func SubmitPlanned(w *berth.Workflow, plan *WorkflowPlan) Event {
	return Event{Kind: EventSubmitWorkflow, Workflow: w, Plan: plan}
}

// ConfirmWorkflow makes all held tasks of a workflow confirmed ones. Those that should have
// started meanwhile are moved.
func ConfirmWorkflow(id string) Event { return Event{Kind: EventConfirmWorkflow, ID: id} }

// CancelWorkflow ends a workflow: what runs and what was to run.
func CancelWorkflow(id string) Event { return Event{Kind: EventCancelWorkflow, ID: id} }

// Report says that the work of a task has ended, whose reservation is active: with
// berth.Succeeded or berth.FailedForGood, after which it may be tried again. why is that in
// words, for people. berth.StillRunning says that it will soon have had its time and needs
// longer: told before the end it may go on, where else its site might end it. At sites that
// are not managed a task succeeds when its time is over.
func Report(reservation string, outcome berth.Outcome, why string) Event {
	return Event{Kind: EventReport, ID: reservation, Outcome: outcome, Why: why}
}

// TaskID returns the id of the reservation of a task, by its place in the workflow from 0 and
// how often it was tried with it: names of tasks may be anything, those of reservations may not. A
// retry whose id something else has gets a number more behind it, ".2" for example.
func TaskID(workflow string, task, try int) string {
	id := workflow + "." + strconv.Itoa(task+1)
	if try > 1 {
		id += "-" + strconv.Itoa(try)
	}
	return id
}

func (e *Engine) submitWorkflow(event *Event) error {
	w, plan := event.Workflow, event.Plan
	if w == nil {
		return berth.Errorf(berth.Invalid, "workflow", "missing")
	}
	if err := e.hasCome(w.Arrival); err != nil {
		return err
	}
	if plan != nil && plan.ready != nil && plan.ready.of == w && !e.BoundsCost(event) {
		if decided, err := e.submitReady(w, plan); decided || err != nil {
			return err
		}
	}
	if err := e.checkWorkflow(w); err != nil {
		return err
	}
	own := w.Clone()
	found, refusal, err := e.placesOf(own, plan)
	if err == nil && refusal == nil {
		refusal, err = e.dearWorkflow(event, found)
	}
	switch {
	case err != nil:
		return err
	case refusal != nil:
		e.emit(change.Change{Kind: change.WorkflowRefused, Workflow: own, Refusal: refusal})
		return nil
	}
	e.changes = slices.Grow(e.changes, 1+2*len(found.Tasks))
	e.emit(workflowPromised(own, found))
	for i := range found.Tasks {
		try := own.Tasks[found.Tasks[i].Task].Tries + 1
		e.promiseTask(&found.Tasks[i], TaskID(own.ID, found.Tasks[i].Task, try), try)
	}
	e.jobs.Plan()
	return nil
}

// submitReady is submitWorkflow for what was made ready beside, which is what it would come to if the
// plan holds; false if it does not.
func (e *Engine) submitReady(w *berth.Workflow, plan *WorkflowPlan) (decided bool, err error) {
	r := plan.ready
	if err := e.idsTaken(w, r.requests); err != nil {
		return false, err
	}
	holds, over := e.finder.Holds(w, r.places)
	if !holds || over != nil {
		return false, nil
	}
	plan.ready = nil // it is used once
	now, found := e.state.Now(), r.places.Plan
	if room := r.room[:0]; cap(e.changes)-len(e.changes) < cap(room) && len(e.changes)+1+2*len(found.Tasks) <= cap(room) {
		e.changes = append(room, e.changes...)
	}
	e.effects, e.spare.effects = append(r.told[:0], e.effects...), r.effects[:0]
	promised := workflowPromised(r.workflow, found)
	e.emitAbout(&promised, state.Ref{Flow: r.flow})
	for i := range r.requests {
		request := &r.requests[i]
		request.Arrival = now
		e.emit(change.Change{Kind: change.Queued, ID: request.ID, Request: request})
		e.makeRoom(r.reservations[i].Allotments)
		e.accept(&r.reservations[i], state.Ref{Entry: &r.entries[i], Flow: r.flow, Task: found.Tasks[i].Task})
	}
	e.jobs.Plan()
	return true, nil
}

func workflowPromised(w *berth.Workflow, found *place.WorkflowPlan) change.Change {
	return change.Change{Kind: change.WorkflowPromised, Workflow: w, Flow: &change.Flow{Workflow: w.ID, End: found.End, Why: found.Planner}}
}

// placesOf returns where the tasks of a workflow are, or why it is refused: as it is planned now,
// or as a plan has it that was made a moment ago.
func (e *Engine) placesOf(w *berth.Workflow, plan *WorkflowPlan) (*place.WorkflowPlan, *berth.Refusal, error) {
	if plan == nil {
		found, refusal := e.finder.Workflow(w, &place.Planning{From: e.state.Now()})
		return found, refusal, nil
	}
	if err := plan.check(w); err != nil {
		return nil, nil, err
	}
	if plan.Refusal != nil {
		refusal := *plan.Refusal
		return nil, &refusal, nil
	}
	found, over := e.finder.Follow(w, plan.Planner, plan.Places, plan.Order)
	switch kept := found != nil && over == nil && found.End <= plan.end(); {
	case kept:
		return found, nil, nil
	case !plan.Last:
		return nil, nil, berth.Errorf(berth.Conflict, "plan", "others were promised what workflow %q was planned on; plan it again", w.ID)
	case found == nil:
		a := &plan.Places[0]
		return nil, &berth.Refusal{Reason: berth.NoCapacity, Resource: a.Resource, Wanted: a.NPE}, nil
	}
	if over != nil {
		return nil, over, nil
	}
	return found, nil, nil
}

// checkWorkflow reports what cannot be right with a workflow.
func (e *Engine) checkWorkflow(w *berth.Workflow) error {
	if err := w.Validate(); err != nil {
		return err
	}
	if err := knownPlanner(w); err != nil {
		return err
	}
	if err := e.idsTaken(w, nil); err != nil {
		return err
	}
	return e.finder.CheckWorkflow(w)
}

// idsTaken reports that a workflow or one of its tasks cannot have its id. requests are those of its
// open tasks, if they are there already.
func (e *Engine) idsTaken(w *berth.Workflow, requests []berth.Request) error {
	if e.isTaken(w.ID) {
		return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already", w.ID)
	}
	known := requests != nil
	for i := range requests {
		if e.isTaken(requests[i].ID) {
			known = false // the first in the order of the workflow is told
			break
		}
	}
	for i := range w.Tasks {
		if known {
			break
		}
		if id := TaskID(w.ID, i, w.Tasks[i].Tries+1); !w.Tasks[i].Done && e.isTaken(id) {
			return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already; it would be the reservation of task %q", id, w.Tasks[i].ID)
		}
	}
	return nil
}

// knownPlanner reports a planner that there is not.
func knownPlanner(w *berth.Workflow) error {
	if _, known := place.Planners(w); known {
		return nil
	}
	names := []string{berth.BestAlgorithm}
	for i := range workflow.Planners {
		names = append(names, workflow.Planners[i].Name)
	}
	return berth.Errorf(berth.Invalid, "algorithm", "%s", nearest.Unknown("planner", w.Algorithm, names))
}

// promiseTask makes a task a reservation.
func (e *Engine) promiseTask(t *place.TaskPlace, id string, try int) {
	r := t.Request
	r.ID, r.Task.Try = id, try
	e.emit(change.Change{Kind: change.Queued, ID: r.ID, Request: &r})
	e.promise(&r, &t.Place)
}

// flow returns the live workflow of an id.
func (e *Engine) flow(id string) (*state.Flow, error) {
	f := e.state.Flow(id)
	if f == nil {
		return nil, berth.Errorf(berth.NotFound, "id", "no live workflow %q; if it was held, it has expired", id)
	}
	return f, nil
}

// confirmWorkflow confirms what is held of a workflow.
func (e *Engine) confirmWorkflow(id string) error {
	f, err := e.flow(id)
	if err != nil {
		return err
	}
	var held []*state.Entry
	for _, i := range f.Order() {
		d := f.Live(int(i))
		if d == nil || d.State() != berth.Held {
			continue
		}
		if d.FirstEnd() <= e.state.Now() {
			return berth.Errorf(berth.Conflict, "id", "task %q of workflow %q is over at this moment", f.Task(int(i)).ID, id)
		}
		held = append(held, d)
	}
	if len(held) == 0 {
		return berth.Errorf(berth.Conflict, "id", "workflow %q is not held", id)
	}
	for _, d := range held {
		if now := e.state.Now(); d.Start() < now {
			e.placeAgain(f, f.At(d.ID()), d, max(now, e.ready(f, f.At(d.ID()))))
		}
	}
	e.placeVacant(f)
	for _, d := range held {
		if e.state.Entry(d.ID()) == d {
			e.emitOf(d, change.Change{Kind: change.Confirmed})
		}
	}
	return nil
}

// cancelWorkflow ends all that is live of a workflow.
func (e *Engine) cancelWorkflow(id string) error {
	f, err := e.flow(id)
	if err != nil {
		return err
	}
	e.endWorkflow(f, berth.OutcomeCancelled, change.Cancelled, "cancelled by its owner")
	e.freed()
	return nil
}

// endWorkflow ends a workflow with all that is live of it.
func (e *Engine) endWorkflow(f *state.Flow, outcome berth.Outcome, kind change.Kind, why string) {
	e.emit(change.Change{Kind: change.WorkflowOver, Flow: &change.Flow{Workflow: f.ID(), Outcome: outcome, Why: why}})
	for _, i := range f.Order() {
		if d := f.Live(int(i)); d != nil {
			e.emitOf(d, change.Change{Kind: kind})
		}
	}
}

// report notes how the work of a task has ended.
func (e *Engine) report(event *Event) error {
	d := e.state.Entry(event.ID)
	switch {
	case event.Outcome != berth.Succeeded && event.Outcome != berth.FailedForGood && event.Outcome != berth.StillRunning:
		return berth.Errorf(berth.Invalid, "outcome", "%q; it is %q, %q or %q", event.Outcome, berth.Succeeded, berth.FailedForGood, berth.StillRunning)
	case d == nil:
		return berth.Errorf(berth.NotFound, "id", "no live reservation %q", event.ID)
	case d.Request().Task == nil:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is no task of a workflow", event.ID)
	case d.State() != berth.Active:
		return berth.Errorf(berth.Conflict, "id", "reservation %q is %s, not active; only what runs can end", event.ID, d.State())
	}
	f, i := e.state.FlowOf(d)
	switch event.Outcome {
	case berth.StillRunning:
		if e.taskRunsOn(d, f, i) {
			e.freed()
		}
		return nil
	case berth.Succeeded:
		e.taskOver(f, i, berth.Succeeded, event.Why)
	default:
		e.taskFailed(f, i, event.Why)
	}
	e.emitOf(d, change.Change{Kind: change.Ended})
	e.freed()
	return nil
}

// WorkflowStatus is what is known of a live workflow.
type WorkflowStatus struct {
	Workflow berth.Workflow
	Tasks    []TaskStatus // in the order of the workflow
	End      berth.Time   // when it is expected to end
}

// TaskStatus is how far a task is.
type TaskStatus struct {
	Reservation string // that it has, or had last; empty if it had none
	Tries       int
	Outcome     berth.Outcome // empty while it is open
	Ended       berth.Time    // when it had its outcome
}

// WorkflowStatus returns how far a live workflow is; ok is false if there is none of that id.
func (e *Engine) WorkflowStatus(id string) (s WorkflowStatus, ok bool) {
	f := e.state.Flow(id)
	if f == nil {
		return s, false
	}
	s = WorkflowStatus{Workflow: *f.Workflow().Clone(), End: e.expectedEnd(f)}
	for i := range s.Workflow.Tasks {
		t := TaskStatus{Reservation: f.Reservation(i), Tries: f.Tries(i)}
		t.Outcome, t.Ended = f.Outcome(i)
		s.Tasks = append(s.Tasks, t)
	}
	return s, true
}

// Workflows returns the ids of the live workflows in the order in which they were promised.
func (e *Engine) Workflows() []string {
	var ids []string
	for _, f := range e.state.Flows() {
		ids = append(ids, f.ID())
	}
	return ids
}

// WorkflowOffer is what a deadline costs: what would be promised now if Workflow was
// submitted. It holds nothing.
type WorkflowOffer struct {
	Workflow  berth.Workflow
	End       berth.Time
	PESeconds int64
	// Critical lists the tasks of its critical path, in order of time: those that bind.
	Critical []string
}

// WorkflowOffers returns at most n deadlines with their costs: first the tightest for
// which a plan is found, then deadlines further and further off. It is empty if no plan is
// found for any. The engine does not change. The error is of code Invalid and concerns the
// workflow; one that is to arrive later is planned as if it came now, and so do its offers. The planners are heuristics: there may be tighter and cheaper plans than they find.
func (e *Engine) WorkflowOffers(w *berth.Workflow, most int) ([]WorkflowOffer, error) {
	return e.PlanOffers(w, PlanOptions{Offers: most})
}

// offersOf is WorkflowOffers of a workflow that was checked.
func (e *Engine) offersOf(w *berth.Workflow, most int, p *place.Planning) []WorkflowOffer {
	var offers []WorkflowOffer
	for _, o := range e.finder.WorkflowOffers(w, most, p) {
		offer := WorkflowOffer{Workflow: *w.Clone(), End: o.End, PESeconds: o.PESeconds}
		offer.Workflow.Deadline, offer.Workflow.Algorithm = o.Deadline, o.Planner
		offer.Workflow.Arrival = min(w.Arrival, p.From)
		for _, i := range o.Critical {
			offer.Critical = append(offer.Critical, w.Tasks[i].ID)
		}
		offers = append(offers, offer)
	}
	return offers
}
